//! `cuptop doctor`: what was found, and what each lack costs.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use super::exit::{self, Ending};
use super::print;
use crate::activity::units::bytes;
use crate::source::recording::scratch;
use crate::source::runner::device::Gpu;
use crate::source::runner::{self, Part, Probe};

/// Says what was found. Fails (3) when scenarios cannot run on a GPU here.
pub(super) fn doctor() -> Result<u8, Ending> {
    let probe = runner::probe();
    print(&render(&probe))?;
    Ok(if probe.can_run() {
        exit::FINE
    } else {
        exit::MACHINE
    })
}

fn render(probe: &Probe) -> String {
    let mut out = String::new();
    part(
        &mut out,
        "driver",
        &probe.driver,
        "scenarios run on the simulator; trace files can be opened",
    );
    for gpu in &probe.gpus {
        let _ = writeln!(out, "  ok       GPU       {}", describe(gpu));
    }
    if probe.driver.is_usable && probe.gpus.is_empty() {
        let _ = writeln!(
            out,
            "  missing  GPU       the driver sees none: scenarios run on the simulator\n                     help: check CUDA_VISIBLE_DEVICES and nvidia-smi"
        );
    }
    part(
        &mut out,
        "libcupti",
        &probe.cupti,
        "nothing on a GPU can be recorded",
    );
    part(
        &mut out,
        "NVRTC",
        &probe.nvrtc,
        "scenarios with kernels cannot run on a GPU",
    );
    recordings(&mut out);
    terminal(&mut out);
    let verdict = match (probe.can_run(), probe.nvrtc.is_usable) {
        (true, true) => "Ready: scenarios and programs can be run and recorded on the GPU.",
        (true, false) => "Programs can be traced; scenarios with kernels need NVRTC.",
        (false, _) => {
            "Nothing can be recorded on a GPU here. `cuptop run` uses the simulator, and says so."
        }
    };
    let _ = writeln!(out, "\n{verdict}");
    out
}

fn part(out: &mut String, name: &str, part: &Part, cost: &str) {
    if part.is_usable {
        let _ = writeln!(out, "  ok       {name:9} {}", part.text);
        return;
    }
    let _ = writeln!(out, "  missing  {name:9} {}", part.text);
    let _ = writeln!(out, "                     without it: {cost}");
    if !part.help.is_empty() {
        let _ = writeln!(out, "                     help: {}", part.help);
    }
}

fn terminal(out: &mut String) {
    let name = std::env::var("TERM").unwrap_or_else(|_| "unset".to_owned());
    let is_ascii = crate::tui::theme::is_ascii_locale(|key| std::env::var(key).ok());
    let mut notes = Vec::new();
    if !std::io::stdout().is_terminal() {
        notes.push("standard output is not a terminal");
    }
    if is_ascii {
        notes.push("the locale is not UTF-8: the screen keeps to ASCII");
    }
    if std::env::var_os("TMUX").is_some() {
        notes.push("inside tmux");
    }
    let size = crossterm::terminal::size()
        .map(|(columns, rows)| format!("{columns}x{rows}"))
        .unwrap_or_else(|_| "size unknown".to_owned());
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(" ({})", notes.join("; "))
    };
    let _ = writeln!(out, "  ok       terminal  {name} {size}{notes}");
}

fn describe(gpu: &Gpu) -> String {
    let mut text = format!(
        "{}: {}, {}, {} SMs",
        gpu.ordinal,
        gpu.name,
        bytes(gpu.memory),
        gpu.multiprocessors
    );
    if !gpu.link.is_empty() {
        let _ = write!(text, ", {}", gpu.link);
    }
    text
}
/// Where recordings lie while they are followed, and how much room is there.
fn recordings(out: &mut String) {
    let _ = match scratch::places().next() {
        Some(place) => {
            let room = rustix::fs::statvfs(&place)
                .map(|stat| bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
                .unwrap_or_else(|_| "unknown room".to_owned());
            writeln!(
                out,
                "  ok       recordings {} ({room} free)",
                place.display()
            )
        }
        None => writeln!(out, "  missing  recordings there is no temporary directory"),
    };
}
