//! What the host's threads did while the GPU waited for the host: ran, waited for a core, or slept.
//!
//! The kernel's counters are read about ten times a second, and pieces of idle time are often shorter. Each piece takes
//! the same part of its window that the whole window had. So every figure here is an estimate, better for threads that
//! do much the same throughout.

use serde::Serialize;

use crate::device::DeviceFigures;
use activity::{Ns, Span};
use causes::{Cause, Causes, Piece};
use trace::{ThreadTime, Throttling, Trace};

/// Of all devices and processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffCpuFigures {
    /// Always: every figure of `idle` is one.
    pub estimate: bool,
    /// The idle time of each device that the host is to blame for.
    pub idle: Vec<HostIdle>,
    pub processes: Vec<ProcessFigures>,
}

/// Idle time of a device for which the host is to blame: host work, launching, calls that do not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostIdle {
    /// The device's id.
    pub device: u32,
    /// All of it.
    pub total_ns: Ns,
    /// The part of it in which the launching thread was looked at.
    pub looked_ns: Ns,
    /// Of that: on a core.
    pub running_ns: Ns,
    /// Ready, with no core free.
    pub waiting_ns: Ns,
    /// Neither.
    pub sleeping_ns: Ns,
    /// How long the launching threads waited for a core in all, between the device's first operation and its last.
    /// Waiting for a core can have cost that at most.
    #[serde(skip)]
    pub most_waiting_ns: Ns,
    /// The gap in which it waited longest for a core.
    #[serde(skip)]
    pub worst: Option<Span>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessFigures {
    /// Its id; 0 where unknown.
    pub pid: u32,
    pub threads: Vec<ThreadFigures>,
    /// What the limit on its processor time did; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<LimitFigures>,
    /// Why something is not there.
    pub notes: Vec<String>,
}

/// One thread, over all that it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadFigures {
    /// The operating system's id.
    pub thread: u32,
    /// On a core.
    pub running_ns: Ns,
    /// Ready, with no core free.
    pub waiting_ns: Ns,
    /// Neither.
    pub sleeping_ns: Ns,
}

/// The limit of a process's control group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitFigures {
    /// Processors' worth of time that the group may use; 0 where unknown.
    pub cores: f64,
    pub periods: u64,
    /// Periods in which it was stopped.
    pub throttled_periods: u64,
    /// How long, added up over processors.
    pub throttled_ns: Ns,
}

/// What the host's threads did; `None` when nobody looked.
pub fn sum(trace: &Trace, causes: &Causes<'_>, devices: &[DeviceFigures]) -> Option<OffCpuFigures> {
    let processes: Vec<ProcessFigures> = trace
        .processes()
        .iter()
        .filter(|it| !it.off_cpu.is_empty())
        .map(|it| ProcessFigures {
            pid: it.info.pid,
            threads: it
                .off_cpu
                .threads()
                .into_iter()
                .filter_map(|thread| {
                    let time = it.off_cpu.of_thread(thread, trace.extent()?)?;
                    Some(ThreadFigures {
                        thread,
                        running_ns: time.running as Ns,
                        waiting_ns: time.waiting as Ns,
                        sleeping_ns: time.sleeping as Ns,
                    })
                })
                .collect(),
            cpu_limit: limit(&it.off_cpu.throttling),
            notes: it.off_cpu.notes.clone(),
        })
        .collect();
    (!processes.is_empty()).then(|| OffCpuFigures {
        estimate: true,
        idle: devices
            .iter()
            .map(|f| idle(trace, causes, f, None))
            .collect(),
        processes,
    })
}

fn limit(it: &Throttling) -> Option<LimitFigures> {
    (it.periods > 0).then_some(LimitFigures {
        cores: it.cores,
        periods: it.periods,
        throttled_periods: it.throttled_periods,
        throttled_ns: it.throttled,
    })
}

/// Whether the host is to blame for a piece, and was not waiting for the GPU.
fn is_hosts(piece: &Piece) -> bool {
    matches!(
        piece.cause,
        Cause::Host | Cause::Pages | Cause::Launching | Cause::SlowLaunch | Cause::Call
    )
}

/// The host's part of a device's idle time, of the operations that start within `window` or of all.
pub fn idle(
    trace: &Trace,
    causes: &Causes<'_>,
    device: &DeviceFigures,
    window: Option<Span>,
) -> HostIdle {
    let mut all = HostIdle {
        device: device.device,
        ..HostIdle::default()
    };
    let mut sum = ThreadTime::default();
    let mut looked = 0;
    let mut longest = 0.0;
    let mut launching: Vec<(usize, u32)> = Vec::new();
    for gap in causes.gaps_of_device(device.index, window) {
        let Some((process, thread)) = causes.launcher(gap.next) else {
            continue;
        };
        if !launching.contains(&(process, thread)) {
            launching.push((process, thread));
        }
        let off_cpu = &trace.processes()[process].off_cpu;
        let before = sum.waiting;
        for piece in causes.pieces(gap).iter().filter(|it| is_hosts(it)) {
            all.total_ns += piece.span.len();
            if let Some(time) = off_cpu.of_thread(thread, piece.span) {
                looked += time.sum() as Ns;
                sum.add(time);
            }
        }
        let waited = sum.waiting - before;
        if waited > longest {
            longest = waited;
            all.worst = Some(gap.span);
        }
    }
    all.looked_ns = looked;
    all.running_ns = sum.running as Ns;
    all.waiting_ns = sum.waiting as Ns;
    all.sleeping_ns = looked - all.running_ns - all.waiting_ns;
    let waited = launching.into_iter().filter_map(|(process, thread)| {
        let off_cpu = &trace.processes()[process].off_cpu;
        Some(off_cpu.of_thread(thread, device.span)?.waiting as Ns)
    });
    all.most_waiting_ns = waited.sum::<Ns>().min(all.total_ns);
    all
}
