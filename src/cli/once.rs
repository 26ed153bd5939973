//! `cuptop --once`: the first screen as text or JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::exit::Ending;
use super::print;
use crate::board::{self, Entry};
use crate::tui::view::age;
use activity::text::{plain_json, printable};
use activity::units::bytes;
use live::machine::{GpuLoad, Machine, ProcessLoad, Sight};

/// Time in which NVML has answered, or is taken to have none.
const ANSWER: Duration = Duration::from_secs(5);

/// Prints what runs on this machine's GPUs, and the traces of this folder with their headlines.
pub(super) fn once(is_json: bool) -> Result<u8, Ending> {
    // Without NVML the channel closes at once.
    let machine = live::machine::watch().ok();
    let machine = machine.and_then(|it| it.machines.recv_timeout(ANSWER).ok());
    let machine = machine.unwrap_or_default();
    let folder = std::env::current_dir()
        .map_err(|error| Ending::input(format!("cannot read this folder: {error}")))?;
    let traces = board::read(&folder);
    if is_json {
        let gpus: Vec<Value> = machine.gpus.iter().map(gpu_json).collect();
        let traces: Vec<Value> = traces.iter().map(trace_json).collect();
        let all = json!({
            "cuptop": env!("CARGO_PKG_VERSION"), "schema": crate::report::SCHEMA, "gpus": gpus, "traces": traces,
        });
        return print(&(plain_json(all.to_string()) + "\n"));
    }
    print(&text(&machine, &traces))
}

fn text(machine: &Machine, traces: &[Entry]) -> String {
    let mut out = String::new();
    if machine.gpus.is_empty() {
        out += "no GPU is seen here (cuptop doctor says why)\n";
    }
    for gpu in &machine.gpus {
        let memory = gpu
            .memory
            .map(|it| format!("{} of {}", bytes(it.0), bytes(it.1)));
        let busy = gpu.busy.map(|it| format!("{it} % busy"));
        let parts = [Some(printable(&gpu.name)), busy, memory];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        out += &format!("GPU {}  {}\n", gpu.index, parts.join("  "));
        for process in &gpu.processes {
            let memory = process.memory.map_or("-".to_owned(), bytes);
            let command = printable(command(process).unwrap_or("hidden"));
            out += &format!("{:>9}  {memory:>8}  {command}\n", process.pid);
        }
    }
    match traces {
        [] => out += "no trace and no recording lies in this folder\n",
        traces => {
            let names: Vec<String> = traces.iter().map(|it| printable(&it.name())).collect();
            let width = names.iter().map(|it| it.chars().count()).max().unwrap_or(0);
            for (name, trace) in names.iter().zip(traces) {
                let age = format!("{} ago", age(trace.age()));
                let words = printable(&trace.words());
                out += &format!("{name:<width$}  {age:>10}  {words}\n");
            }
        }
    }
    out
}

fn command(process: &ProcessLoad) -> Option<&str> {
    match &process.sight {
        Sight::Seen(seen) => Some(&seen.command),
        _ => None,
    }
}

fn gpu_json(gpu: &GpuLoad) -> Value {
    let process = |it: &ProcessLoad| {
        json!({
            "pid": it.pid, "command": command(it), "memory_bytes": it.memory, "share_percent": it.share,
        })
    };
    let processes: Vec<Value> = gpu.processes.iter().map(process).collect();
    json!({
        "index": gpu.index, "name": gpu.name, "busy_percent": gpu.busy, "memory_used_bytes": gpu.memory.map(|it| it.0),
        "memory_bytes": gpu.memory.map(|it| it.1), "power_mw": gpu.power, "processes": processes,
    })
}

fn trace_json(trace: &Entry) -> Value {
    let told = trace.told.as_ref();
    json!({
        "path": trace.path.display().to_string(), "bytes": trace.size, "age_s": trace.age().as_secs(),
        "headline": told.map(|it| &it.headline), "gain": told.and_then(|it| it.gain.as_ref()),
        "step_ns": told.and_then(|it| it.step_ns), "step_longer": trace.longer,
    })
}
