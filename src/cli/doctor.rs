//! `cuptop doctor`: what this machine offers, and the cost of each missing part.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use super::exit::{self, Ending};
use super::print;
use activity::text::printable_lines;
use activity::units::bytes;
use live::attach::right;
use live::attach::trial::{self, Trial, TrialEnd};
use live::counters;
use live::runner::device::Gpu;
use live::runner::{self, Part, Probe};
use recording::scratch;

/// Prints what it found. Fails (3) when scenarios cannot run on a GPU here, or programs cannot be traced.
pub(super) fn doctor() -> Result<u8, Ending> {
    let (probe, trial) = (runner::probe(), trial::trial(crate::inject::LIBRARY));
    // Without a driver that works, that is what is told.
    let counters = matches!(trial.end, TrialEnd::Records { .. }).then(counters::tried);
    print(&printable_lines(&render(&probe, &trial, counters)))?;
    let can_trace = matches!(trial.end, TrialEnd::Records { .. });
    Ok(if probe.can_run() && can_trace {
        exit::FINE
    } else {
        exit::MACHINE
    })
}

fn render(probe: &Probe, trial: &Trial, counters: Option<Result<(), String>>) -> String {
    let mut out = String::new();
    let cost = "scenarios run on the simulator; trace files can be opened";
    part(&mut out, "driver", &probe.driver, cost);
    for gpu in &probe.gpus {
        let _ = writeln!(out, "  ok       GPU       {}", describe(gpu));
    }
    if probe.driver.is_usable && probe.gpus.is_empty() {
        let _ = writeln!(
            out,
            "  missing  GPU       the driver sees none: scenarios run on the simulator\n                     help: check CUDA_VISIBLE_DEVICES and nvidia-smi"
        );
    }
    let cost = "nothing on a GPU can be recorded";
    part(&mut out, "libcupti", &probe.cupti, cost);
    let cost = "scenarios with kernels cannot run on a GPU";
    part(&mut out, "NVRTC", &probe.nvrtc, cost);
    injection(&mut out, trial);
    let cost = "programs that run already can be looked at only as far as NVML tells of their GPUs";
    part(&mut out, "attach", &right(), cost);
    if let Some(tried) = counters {
        let counters = Part {
            is_usable: tried.is_ok(),
            text: tried.err().unwrap_or_else(|| "can be sampled".to_owned()),
            help: String::new(),
        };
        let cost = "no row of DRAM, tensor cores and the like but NVML's, and no class of kernels";
        part(&mut out, "counters", &counters, cost);
    }
    recordings(&mut out);
    terminal(&mut out);
    let can_trace = matches!(trial.end, TrialEnd::Records { .. });
    let verdict = match (probe.can_run(), probe.nvrtc.is_usable) {
        (true, _) if !can_trace => {
            "Scenarios run and are recorded on the GPU; other programs cannot be traced."
        }
        (true, true) => "Ready: scenarios and programs can be run and recorded on the GPU.",
        (true, false) => "Programs can be traced; scenarios with kernels need NVRTC.",
        (false, _) if can_trace => {
            "Programs can be traced; scenarios run on the simulator, and say so."
        }
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
    let size = crossterm::terminal::size().map_or_else(
        |_| "size unknown".to_owned(),
        |(columns, rows)| format!("{columns}x{rows}"),
    );
    let notes = match notes.join("; ") {
        none if none.is_empty() => none,
        notes => format!(" ({notes})"),
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

/// Prints the result of tracing a process on trial.
fn injection(out: &mut String, trial: &Trial) {
    let _ = match &trial.end {
        TrialEnd::Records { library, with } => writeln!(
            out,
            "  ok       injection {}: the driver loads it and it records, by {with}",
            library.display()
        ),
        TrialEnd::NoDriver { library, why } => writeln!(
            out,
            "  untried  injection {} loads and begins; no driver here would load it ({why})",
            library.display()
        ),
        TrialEnd::Stopped(stopped) => {
            part(out, "injection", stopped, "programs cannot be traced");
            Ok(())
        }
    };
    for remark in &trial.remarks {
        let _ = writeln!(out, "                     note: {remark}");
    }
}

/// Prints where followed recordings lie, and how much room is there.
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
