//! What the hardware and the host were doing meanwhile.

use super::Report;
use super::page::{Page, Tone};
use super::table::Table;
use activity::Ns;
use activity::text::plural;
use activity::units::{bytes, count, duration, number, percent, share};
use figures::DeviceFigures;
use figures::hardware::{self, GpuFigures, HardwareFigures, show};
use figures::off_cpu::{HostIdle, OffCpuFigures};
use figures::watching::WatchingCost;
use trace::Trace;

/// What was read, with the line on the machine.
pub(super) fn of_machine(
    trace: &Trace,
    devices: &[DeviceFigures],
    machine: Option<String>,
) -> Option<HardwareFigures> {
    let read = hardware::measure(trace, devices);
    match &machine {
        None => read,
        Some(_) => Some(HardwareFigures {
            machine,
            ..read.unwrap_or_default()
        }),
    }
}

/// Counters and sensors of each GPU, and what launching threads did off their processors.
pub(super) fn section(page: &mut Page, report: &Report) {
    if let Some(cost) = &report.watching {
        cost_of(page, cost);
    }
    let was_read = |it: &&HardwareFigures| {
        it.watching.rounds > 0 || !it.devices.is_empty() || !it.notes.is_empty()
    };
    if let Some(hardware) = report.hardware.as_ref().filter(was_read) {
        page.title(match report.devices.is_empty() {
            false => "Hardware (windows of about 0.1 s, from the first operation to the last)",
            true => "Hardware (windows of about 0.1 s, while it was looked at)",
        });
        for gpu in &hardware.devices {
            of_gpu(page, gpu);
        }
        for note in &hardware.notes {
            page.wrapped(note);
        }
        watching(page, hardware);
    }
    if let Some(off_cpu) = &report.off_cpu {
        host(page, off_cpu);
    }
}

/// What recording may have cost, where it may have cost a hundredth of the time.
fn cost_of(page: &mut Page, cost: &WatchingCost) {
    let part = |ns| share(ns, cost.span_ns).min(1.0);
    let range = |[least, most]: [Ns; 2]| {
        format!(
            "{} to {} ({} to {})",
            duration(least),
            duration(most),
            percent(part(least)),
            percent(part(most))
        )
    };
    let mut parts = Vec::new();
    if part(cost.launches_ns[1]) >= 0.01 {
        parts.push(format!(
            "{} launches {} of the launching threads",
            count(cost.launches),
            range(cost.launches_ns)
        ));
    }
    if part(cost.nodes_ns[1]) >= 0.01 {
        parts.push(format!(
            "{} nodes of graphs {}",
            count(cost.graph_nodes),
            range(cost.nodes_ns)
        ));
    }
    if parts.is_empty() {
        return;
    }
    page.title("What recording may have cost (an estimate)");
    page.wrapped(&format!("{}; {}", parts.join("; "), cost.basis));
    let [least, most] = cost.share.map(percent);
    page.wrapped(&format!(
        "in all {least} to {most} of the time of the GPU that it cost most: one that has work ahead loses nothing by launches. {} records, of {} operations",
        count(cost.records),
        count(cost.launches + cost.graph_nodes)
    ));
    if cost.overhead_ns > 0 {
        page.wrapped(&format!(
            "the profiler and the driver were at work on themselves for {} of it, as CUPTI tells",
            duration(cost.overhead_ns)
        ));
    }
}

fn of_gpu(page: &mut Page, gpu: &GpuFigures) {
    let name = format!("GPU {}", gpu.device);
    let mut table = Table::new([name.as_str(), "mean", "most", "limit"]);
    let mut lacks: Vec<(&str, Vec<&str>)> = Vec::new();
    for it in &gpu.metrics {
        if let Some(why) = &it.lack {
            match lacks.iter_mut().find(|known| known.0 == why) {
                Some(known) => known.1.push(it.kind.words()),
                None => lacks.push((why, vec![it.kind.words()])),
            }
            continue;
        }
        let shown = |value: Option<f64>| value.map_or_else(String::new, |it2| show(it.kind, it2));
        table.row([
            it.kind.words().to_owned(),
            shown(it.mean),
            shown(it.max),
            shown(it.limit),
        ]);
    }
    if gpu.looked_ns > 0 {
        page.table(&table);
    }
    for (why, metrics) in lacks {
        page.wrapped(&format!("{why}: {}", metrics.join(", ")));
    }
    let throttled = match (gpu.throttled_ns, gpu.throttled_share) {
        (Some(0), _) => "clocks were not held down".to_owned(),
        (Some(_), Some(share)) => {
            let by = gpu.throttled_by.iter();
            let by = by.map(|it| format!("{} {}", it.reason, duration(it.total_ns)));
            let by = by.collect::<Vec<_>>().join(", ");
            format!("clocks held down in {} of the time: {by}", percent(share))
        }
        _ => "whether clocks were held down is not known".to_owned(),
    };
    page.wrapped(&throttled);
    for it in &gpu.others {
        let memory = it.memory.map(|it| format!(", {}", bytes(it)));
        let line = format!(
            "not yours alone: {}{}",
            it.words(),
            memory.unwrap_or_default()
        );
        page.painted(Tone::Warn, &line);
    }
    if gpu.unknown_processes > 0 {
        page.wrapped(&format!(
            "processes on this GPU whose ids are of another process namespace: {}; whose they are is not known",
            count(gpu.unknown_processes)
        ));
    }
}

fn watching(page: &mut Page, hardware: &HardwareFigures) {
    let it = hardware.watching;
    if let Some(core) = it.core_share {
        let lost = match it.lost {
            0 => String::new(),
            lost => format!("; {} not written", plural(lost, "block")),
        };
        page.wrapped(&format!(
            "watching took {} of processor time in {} rounds: {} of one core{lost}",
            duration(i64::try_from(it.cpu_ns).unwrap_or(i64::MAX)),
            count(it.rounds),
            percent(core),
        ));
    }
}

fn host(page: &mut Page, off_cpu: &OffCpuFigures) {
    page.title("While the GPU waited for the host (estimates, from windows of about 0.1 s)");
    let rows: Vec<&HostIdle> = off_cpu.idle.iter().filter(|it| it.total_ns > 0).collect();
    if !rows.is_empty() {
        let rows = rows.into_iter().map(|it| {
            let looked = percent(share(it.looked_ns, it.total_ns));
            let parts = [it.running_ns, it.waiting_ns, it.sleeping_ns];
            let [running, waiting, sleeping] = parts.map(|ns| percent(share(ns, it.looked_ns)));
            let (gpu, idle) = (format!("GPU {}", it.device), duration(it.total_ns));
            [gpu, idle, looked, running, waiting, sleeping]
        });
        let states = ["running", "waiting for a core", "sleeping"];
        let [running, waiting, sleeping] = states;
        page.cells(
            ["", "host idle", "looked at", running, waiting, sleeping],
            rows,
        );
    }
    for process in &off_cpu.processes {
        if let Some(limit) = process.cpu_limit {
            let cores = match limit.cores {
                0.0 => String::new(),
                cores => format!(" of {} cores", number(cores)),
            };
            page.wrapped(&format!(
                "process {}: its limit{cores} stopped it in {} of {} periods, for {}",
                process.pid,
                count(limit.throttled_periods),
                count(limit.periods),
                duration(limit.throttled_ns),
            ));
        }
        for note in &process.notes {
            page.wrapped(note);
        }
    }
}
