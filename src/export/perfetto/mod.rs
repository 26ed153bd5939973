//! A timeline as a Perfetto trace, for <https://ui.perfetto.dev>.
//!
//! Field numbers are those of `protos/perfetto/trace` in <https://github.com/google/perfetto>. Each
//! device is a group of tracks: its streams, GB/s of each direction, memory in use; each process a
//! group of its host threads. Of a job of several ranks a track of each that is aligned says how; times are as recorded. Arrows lead from a host call to the operations that it caused. Slices of
//! one Perfetto track must nest, so what overlaps without nesting goes to a further track of that name.

mod proto;
mod tracks;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::clocks::{self, RankClock};
use super::rows::{self, Marks};
use activity::units::{duration, gb_per_s};
use activity::{Activity, Direction, Metric, Ns, RangeKind, SLOWED, Span, What};
use analysis::memory::MemoryUse;
use proto::Message;
use trace::{LaneId, LaneKind, Trace, describe};
use tracks::Levels;

/// `TracePacket`, in `Trace`.
const PACKET: u32 = 1;
/// The one sequence that everything belongs to: what is interned in it holds to its end.
const SEQUENCE: u64 = 1;
/// `TrackEvent.Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// Arguments of a slice, whose names are interned under their position here, counted from 1.
const ARGUMENTS: [&str; 12] = [
    "bytes",
    "GB/s",
    "from",
    "to",
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "graph",
    "correlation",
    "return value",
    "duration_ns",
];

/// Writes a timeline.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer {
        trace,
        out,
        marks: Marks::of(trace),
        // Timestamps have no sign.
        shift: trace.extent().map_or(0, |extent| (-extent.start).max(0)),
        names: FxHashMap::default(),
        next_track: 1,
    };
    writer.first()?;
    let devices = writer.devices()?;
    let processes = writer.processes()?;
    for rank in clocks::find(trace).iter().flat_map(|job| &job.ranks) {
        // A wall clock is what a reader takes it for.
        if let Some(residual) = rank.residual_ns {
            writer.clock(processes[rank.process_index], rank, residual)?;
        }
    }
    for (id, lane) in trace.lanes().iter().enumerate() {
        let process = processes[lane.key().process];
        match lane.key().kind {
            LaneKind::Stream { device, .. } => {
                let name = describe::stream(trace, lane.key());
                let name = match trace.processes().len() {
                    1 => name,
                    _ => format!("{name} · process {}", lane.key().process),
                };
                writer.lane(id, devices[device], &name)?;
            }
            LaneKind::Thread { thread } => {
                let name = describe::thread(trace, lane.key().process, thread);
                writer.lane(id, process, &name)?;
            }
            LaneKind::Range { kind, thread } => {
                let what = match kind {
                    RangeKind::Variant => "variants",
                    RangeKind::Warmup | RangeKind::Repeat => "passes",
                    RangeKind::Phase => "phases",
                    RangeKind::Nvtx | RangeKind::CpuOp => "ranges",
                    RangeKind::Function => "python functions",
                    RangeKind::Python => "python",
                };
                writer.lane(id, process, &format!("{what} of thread {thread}"))?;
            }
            LaneKind::Overhead => writer.lane(id, process, "profiler and driver")?,
            LaneKind::Sync => writer.lane(id, process, "synchronizations")?,
            LaneKind::Event => writer.lane(id, process, "events")?,
            // Drawn as a counter of the device.
            LaneKind::Memory { .. } => {}
        }
    }
    for (index, &track) in devices.iter().enumerate() {
        writer.rates(index, track)?;
        writer.memory(index, track)?;
        writer.hardware(index, track)?;
    }
    Ok(())
}

struct Writer<'a> {
    trace: &'a Trace,
    out: &'a mut dyn Write,
    marks: Marks,
    /// What is added to every time.
    shift: Ns,
    /// Names of slices that have been interned.
    names: FxHashMap<String, u64>,
    next_track: u64,
}

impl Writer<'_> {
    fn packet(&mut self, mut packet: Message) -> io::Result<()> {
        packet.uint(10, SEQUENCE);
        let mut whole = Message::default();
        whole.bytes(PACKET, &packet.0);
        self.out.write_all(&whole.0)
    }

    /// Starts the sequence: nothing is interned before, the names of arguments from here on.
    fn first(&mut self) -> io::Result<()> {
        let mut packet = Message::default();
        packet.message(12, |interned| {
            for (iid, name) in (1..).zip(ARGUMENTS) {
                interned.message(3, |entry| entry.named(iid, name));
            }
        });
        // SEQ_INCREMENTAL_STATE_CLEARED
        packet.uint(13, 1);
        self.packet(packet)?;
        if self.marks.words().is_empty() {
            return Ok(());
        }
        let words = self.marks.words();
        let track = self.track(None, &words, |_| {})?;
        let at = self.trace.extent().map_or(0, |extent| extent.start);
        self.event(at, INSTANT, track, Some(&words), |_| {})
    }

    /// A track below another one.
    fn track(
        &mut self,
        parent: Option<u64>,
        name: &str,
        more: impl FnOnce(&mut Message),
    ) -> io::Result<u64> {
        let uuid = self.next_track;
        self.next_track += 1;
        let mut packet = Message::default();
        packet.message(60, |track| {
            track.named(uuid, name);
            if let Some(parent) = parent {
                track.uint(5, parent);
            }
            more(track);
        });
        self.packet(packet)?;
        Ok(uuid)
    }

    fn devices(&mut self) -> io::Result<Vec<u64>> {
        let trace = self.trace;
        (0..trace.devices().len())
            .map(|index| {
                let name = self.marks.on(&describe::device(trace, index));
                self.track(None, &name, |_| {})
            })
            .collect()
    }

    fn processes(&mut self) -> io::Result<Vec<u64>> {
        let trace = self.trace;
        let pids = rows::pids(trace);
        trace
            .processes()
            .iter()
            .zip(pids)
            .map(|(process, pid)| {
                let command = process.info.command.clone();
                let name = match process.info.rank {
                    Some(rank) => format!("rank {rank}: {command}"),
                    None => command,
                };
                let name = self.marks.on(if name.is_empty() { "host" } else { &name });
                self.track(None, &name, |track| {
                    track.message(3, |info| {
                        info.uint(1, u64::from(pid));
                        info.text(6, &name);
                    });
                })
            })
            .collect()
    }

    /// What aligns a rank's clock: a track's name says it, and an instant has the numbers.
    fn clock(&mut self, process: u64, rank: &RankClock, residual: Ns) -> io::Result<()> {
        let is_set = self.trace.is_on_one_clock();
        let words = format!(
            "clock of {}: {} {}, {:+.1} ppm (± {})",
            rank.name,
            if is_set { "added" } else { "add" },
            duration(rank.offset_ns),
            rank.drift_ppm,
            duration(residual)
        );
        let track = self.track(Some(process), &words, |_| {})?;
        let at = self.trace.extent().map_or(0, |extent| extent.start);
        self.event(at, INSTANT, track, Some(&words), |event| {
            let mut add = |name: &str, write: &dyn Fn(&mut Message)| {
                event.message(4, |annotation| {
                    annotation.text(10, name);
                    write(annotation);
                });
            };
            add("offset_ns", &|m| m.uint(4, rank.offset_ns.cast_unsigned()));
            add("at_ns", &|m| m.uint(4, rank.at_ns.cast_unsigned()));
            add("drift_ppm", &|m| m.double(5, rank.drift_ppm));
            add("residual_ns", &|m| m.uint(4, residual.cast_unsigned()));
        })
    }

    fn event(
        &mut self,
        time: Ns,
        kind: u64,
        track: u64,
        name: Option<&str>,
        more: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let mut packet = Message::default();
        packet.uint(8, (time + self.shift).cast_unsigned());
        let iid = name.map(|name| {
            self.names.get(name).copied().unwrap_or_else(|| {
                let next = self.names.len() as u64 + 1;
                self.names.insert(name.to_owned(), next);
                packet.message(12, |interned| {
                    interned.message(2, |entry| entry.named(next, name));
                });
                next
            })
        });
        packet.message(11, |event| {
            event.uint(9, kind);
            event.uint(11, track);
            if let Some(iid) = iid {
                event.uint(10, iid);
            }
            more(event);
        });
        // SEQ_NEEDS_INCREMENTAL_STATE
        packet.uint(13, 2);
        self.packet(packet)
    }

    /// A lane's rows as slices.
    fn lane(&mut self, id: LaneId, parent: u64, name: &str) -> io::Result<()> {
        let trace = self.trace;
        let lane = &trace.lanes()[id];
        let process = lane.key().process;
        let mut levels = Levels::default();
        let mut tracks = Vec::new();
        for row in lane.kept() {
            let activity = trace.activity(id, row);
            let title = describe::whole(trace, &activity.what);
            let placed = levels.place(activity.span);
            for (level, time) in placed.ended {
                self.event(time, END, tracks[level], None, |_| {})?;
            }
            if placed.level == tracks.len() {
                tracks.push(self.track(Some(parent), name, |_| {})?);
            }
            let kind = if placed.fits { BEGIN } else { INSTANT };
            self.event(
                activity.span.start,
                kind,
                tracks[placed.level],
                Some(&title),
                |event| {
                    arguments(trace, process, &activity, placed.fits, event);
                },
            )?;
        }
        for (level, time) in levels.rest() {
            self.event(time, END, tracks[level], None, |_| {})?;
        }
        Ok(())
    }

    fn counter(&mut self, parent: u64, name: &str, unit: &str) -> io::Result<u64> {
        self.track(Some(parent), name, |track| {
            track.message(8, |counter| counter.text(6, unit));
        })
    }

    /// GB/s of each direction: at each moment the sum over the copies that run.
    fn rates(&mut self, device: usize, parent: u64) -> io::Result<()> {
        let trace = self.trace;
        for direction in Direction::NAMED {
            // When, whether a copy begins there, and by how much the rate changes: a copy of no bytes changes it by nothing.
            let mut edges: Vec<(Ns, bool, f64)> = Vec::new();
            for (id, lane) in trace.streams_of(device) {
                for row in lane.kept() {
                    let activity = trace.activity(id, row);
                    if let What::Copy(copy) = activity.what
                        && copy.direction == direction
                        && let Some(rate) = gb_per_s(copy.bytes, activity.span.len())
                    {
                        edges.push((activity.span.start, true, rate));
                        edges.push((activity.span.end, false, -rate));
                    }
                }
            }
            if edges.is_empty() {
                continue;
            }
            edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
            let track = self.counter(parent, &format!("{} GB/s", direction.label()), "GB/s")?;
            let (mut running, mut sum) = (0usize, 0.0);
            for (i, (time, begins, change)) in edges.iter().enumerate() {
                running = if *begins { running + 1 } else { running - 1 };
                // Rounding must not add up to a rate where nothing runs.
                sum = if running == 0 { 0.0 } else { sum + change };
                if edges.get(i + 1).is_none_or(|next| next.0 != *time) {
                    self.event(*time, COUNTER, track, None, |event| event.double(44, sum))?;
                }
            }
        }
        Ok(())
    }

    /// What the GPU's counters and sensors said: each value stands at its window's start.
    fn hardware(&mut self, device: usize, parent: u64) -> io::Result<()> {
        let trace = self.trace;
        let Some(gpu) = trace.readings(device) else {
            return Ok(());
        };
        for metric in Metric::ALL.into_iter().filter(|&metric| gpu.has(metric)) {
            let name = format!("{} (hardware)", metric.words());
            let track = self.counter(parent, &name, metric.unit().label())?;
            for window in gpu.windows_of(metric) {
                if let Some(value) = window.value(metric) {
                    self.event(window.span.start, COUNTER, track, None, |event| {
                        event.double(44, value);
                    })?;
                }
            }
        }
        if gpu.limits.tells_slowdowns {
            let track = self.counter(parent, "clocks held down (hardware)", "")?;
            for window in gpu.windows() {
                let is_slowed = u64::from(window.reasons & SLOWED != 0);
                self.event(window.span.start, COUNTER, track, None, |event| {
                    event.uint(30, is_slowed);
                })?;
            }
        }
        Ok(())
    }

    fn memory(&mut self, device: usize, parent: u64) -> io::Result<()> {
        let steps = MemoryUse::of(self.trace, Some(device)).steps;
        if steps.is_empty() {
            return Ok(());
        }
        let track = self.counter(parent, "device memory", "B")?;
        for (time, bytes) in steps {
            self.event(time, COUNTER, track, None, |event| event.uint(30, bytes))?;
        }
        Ok(())
    }
}

/// Adds what is known of an activity to its slice.
fn arguments(trace: &Trace, process: usize, activity: &Activity, fits: bool, event: &mut Message) {
    let mut add = |name: &str, write: &dyn Fn(&mut Message)| {
        if let Some((iid, _)) = (1..).zip(ARGUMENTS).find(|(_, n)| *n == name) {
            event.message(4, |annotation| {
                annotation.uint(1, iid);
                write(annotation);
            });
        }
    };
    if let Some(bytes) = rows::bytes(&activity.what) {
        add("bytes", &|m| m.uint(3, bytes));
        if let Some(rate) = gb_per_s(bytes, activity.span.len()) {
            add("GB/s", &|m| m.double(5, rate));
        }
    }
    match activity.what {
        What::Copy(copy) => {
            add("from", &|m| m.text(6, copy.from.label()));
            add("to", &|m| m.text(6, copy.to.label()));
        }
        What::Kernel(kernel) => {
            let shape = trace.shape(kernel.shape);
            let size = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
            add("grid", &|m| m.text(6, &size(shape.grid)));
            add("block", &|m| m.text(6, &size(shape.block)));
            add("registers per thread", &|m| {
                m.uint(3, u64::from(shape.registers));
            });
            add("shared memory", &|m| m.uint(3, rows::shared(&shape)));
            if kernel.graph != 0 {
                add("graph", &|m| m.uint(3, u64::from(kernel.graph)));
            }
        }
        What::Call(call) if call.code != 0 => {
            add("return value", &|m| {
                m.uint(4, i64::from(call.code).cast_unsigned());
            });
        }
        _ => {}
    }
    if !fits {
        let length: Span = activity.span;
        add("duration_ns", &|m| m.uint(3, length.len().cast_unsigned()));
    }
    if activity.correlation != 0 {
        add("correlation", &|m| {
            m.uint(3, u64::from(activity.correlation));
        });
        if matches!(activity.what, What::Call(_)) || activity.is_operation() {
            event.fixed64(47, (process as u64) << 32 | u64::from(activity.correlation));
        }
    }
}
