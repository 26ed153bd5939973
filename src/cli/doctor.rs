//! `cuptop doctor`: what this machine offers, and the cost of each missing part.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde::Serialize;

use super::args::Doctor;
use super::exit::{self, Ending};
use super::print;
use activity::text::{listed, plain_json, printable_lines};
use activity::units::bytes;
use live::attach::right;
use live::attach::trial::{self, Trial, TrialEnd};
use live::runner::device::Gpu;
use live::runner::{self, Part, Probe};
use live::{counters, python};
use recording::scratch;

/// One part of the machine.
#[derive(Debug, Default, Serialize)]
struct DoctorLine {
    /// "ok", "missing" or "untried".
    state: &'static str,
    name: &'static str,
    text: String,
    /// What cannot be done without it; empty where it is there.
    without_it: &'static str,
    /// What would mend it; empty where nothing is known to.
    help: String,
    notes: Vec<String>,
}

impl DoctorLine {
    fn new(state: &'static str, name: &'static str, text: impl Into<String>) -> DoctorLine {
        DoctorLine {
            state,
            name,
            text: text.into(),
            ..DoctorLine::default()
        }
    }

    /// One that is there, or else costs this.
    fn part(name: &'static str, part: &Part, cost: &'static str) -> DoctorLine {
        let (state, without_it) = if part.is_usable {
            ("ok", "")
        } else {
            ("missing", cost)
        };
        DoctorLine {
            without_it,
            help: part.help.clone(),
            ..DoctorLine::new(state, name, part.text.clone())
        }
    }
}

/// Prints what it found. Fails (3) when scenarios cannot run on a GPU here, or programs cannot be traced.
pub(super) fn doctor(args: &Doctor) -> Result<u8, Ending> {
    let (probe, trial) = (runner::probe(), trial::trial(crate::inject::LIBRARY));
    let can_trace = matches!(trial.end, TrialEnd::Records { .. });
    // Without a driver that works, that is what is told.
    let counters = can_trace.then(|| counters::tried(None));
    let rows = rows(&probe, &trial, counters);
    let verdict = verdict(&probe, can_trace);
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let json = serde_json::json!({ "cuptop": version, "parts": rows, "text": verdict });
        print(&plain_json(format!("{json:#}\n")))?;
    } else {
        print(&printable_lines(&render(&rows, verdict)))?;
    }
    Ok(if probe.can_run() && can_trace {
        exit::FINE
    } else {
        exit::MACHINE
    })
}

fn rows(probe: &Probe, trial: &Trial, counters: Option<Result<(), String>>) -> Vec<DoctorLine> {
    let cost = "scenarios run on the simulator; trace files can be opened";
    let mut rows = vec![DoctorLine::part("driver", &probe.driver, cost)];
    let gpus = probe.gpus.iter();
    rows.extend(gpus.map(|gpu| DoctorLine::new("ok", "GPU", describe(gpu))));
    if probe.driver.is_usable && probe.gpus.is_empty() {
        let none = Part::missing(
            "the driver sees none",
            "check CUDA_VISIBLE_DEVICES and nvidia-smi",
        );
        rows.push(DoctorLine::part(
            "GPU",
            &none,
            "scenarios run on the simulator",
        ));
    }
    let cost = "nothing on a GPU can be recorded";
    rows.push(DoctorLine::part("libcupti", &probe.cupti, cost));
    let cost = "scenarios with kernels cannot run on a GPU";
    rows.push(DoctorLine::part("NVRTC", &probe.nvrtc, cost));
    rows.push(injection(trial));
    let cost = "programs that run already can be looked at only as far as NVML tells of their GPUs";
    rows.push(DoctorLine::part("attach", &right(), cost));
    if let Some(tried) = counters {
        let counters = match tried {
            Ok(()) => Part::usable("can be sampled"),
            // The other ones say themselves what helps.
            Err(why) if !why.contains(counters::HELD) => Part::missing(why, ""),
            Err(why) => Part::missing(
                why,
                "dcgmi profile --pause has DCGM let go of them (--resume ends that); `cuptop` lists who is on the GPUs",
            ),
        };
        let cost = "no row of DRAM, tensor cores and the like but NVML's, no class of kernels, no --stalls";
        rows.push(DoctorLine::part("counters", &counters, cost));
    }
    if let TrialEnd::Records { no_stalls, .. } = &trial.end {
        let help = "pip install 'nvidia-cuda-cupti==13.0.*' has that CUPTI, and branch 580 of NVIDIA's packages that driver";
        let stalls = match no_stalls {
            None => Part::usable("can be sampled with this CUPTI and driver"),
            Some(why) => Part::missing(why, help),
        };
        let cost = "what the warps of kernels wait for is not known";
        rows.push(DoctorLine::part("--stalls", &stalls, cost));
    }
    rows.extend([recordings(), nccl(), python(), terminal()]);
    rows
}

fn verdict(probe: &Probe, can_trace: bool) -> &'static str {
    match (probe.can_run(), probe.nvrtc.is_usable) {
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
    }
}

fn render(rows: &[DoctorLine], verdict: &str) -> String {
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "  {:8} {:9} {}", row.state, row.name, row.text);
        let notes = row.notes.iter().map(|note| ("note", note.as_str()));
        let more = [("without it", row.without_it), ("help", &row.help)];
        for (what, text) in more.into_iter().chain(notes).filter(|it| !it.1.is_empty()) {
            let _ = writeln!(out, "                     {what}: {text}");
        }
    }
    let _ = writeln!(out, "\n{verdict}");
    out
}

fn terminal() -> DoctorLine {
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
    DoctorLine::new("ok", "terminal", format!("{name} {size}{notes}"))
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

/// The result of tracing a process on trial.
fn injection(trial: &Trial) -> DoctorLine {
    let name = "injection";
    let row = match &trial.end {
        TrialEnd::Records { library, with, .. } => {
            let library = library.display();
            let text = format!("{library}: the driver loads it and it records, by {with}");
            DoctorLine::new("ok", name, text)
        }
        TrialEnd::NoDriver { library, why } => {
            let library = library.display();
            let text = format!("{library} loads and begins; no driver here would load it ({why})");
            DoctorLine::new("untried", name, text)
        }
        TrialEnd::Stopped(stopped) => DoctorLine::part(name, stopped, "programs cannot be traced"),
    };
    DoctorLine {
        notes: trial.remarks.iter().map(ToString::to_string).collect(),
        ..row
    }
}

/// Whether `cuptop job` may ask NCCL of a program that runs here.
fn nccl() -> DoctorLine {
    let services = live::job::ras::services();
    let of = |it: &(u32, std::net::SocketAddr, _)| format!("process {} answers at {}", it.0, it.1);
    let named: Vec<String> = services.iter().map(of).collect();
    match services.iter().find_map(|it| it.2) {
        _ if services.is_empty() => {
            let none = "no program here listens for `cuptop job`, which shows stacks without it";
            DoctorLine::new("untried", "NCCL", none)
        }
        None => DoctorLine::new("ok", "NCCL", named.join(", ")),
        Some(why) => {
            let part = Part::missing(
                format!("{}: {why}", named.join(", ")),
                "cuptop job --ras asks all the same",
            );
            let cost = "`cuptop job` has no collectives of ranks on other machines";
            DoctorLine::part("NCCL", &part, cost)
        }
    }
}

/// Whether the Python here gives nodes of CUDA graphs their names.
fn python() -> DoctorLine {
    let known: Vec<String> = python::pythons().collect();
    let needs = format!("names in CUDA graphs need CPython {}", listed(&known));
    let part = match python::version() {
        None => Part::missing("python3 says no version", needs),
        Some(it) if known.contains(&it) => Part::usable(format!(
            "python3 is {it}: CUDA graphs have names of its functions"
        )),
        Some(it) => Part::missing(
            format!("python3 is {it}, whose frames are not known"),
            needs,
        ),
    };
    DoctorLine::part(
        "Python",
        &part,
        "kernels of CUDA graphs have no name of a function or line of it",
    )
}

/// Where followed recordings lie, and how much room is there.
fn recordings() -> DoctorLine {
    let Some(place) = scratch::places().next() else {
        return DoctorLine::new("missing", "recordings", "there is no temporary directory");
    };
    let room = rustix::fs::statvfs(&place)
        .map(|stat| bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
        .unwrap_or_else(|_| "unknown room".to_owned());
    DoctorLine::new(
        "ok",
        "recordings",
        format!("{} ({room} free)", place.display()),
    )
}
