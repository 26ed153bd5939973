//! Sets the clocks of processes: everything known of a process moves from its own times to those of one timeline.
//!
//! It rebuilds what is stored, once. So all readers (lanes, figures, searches, exports) see one clock and know of no
//! other. Later records move as they come. Both ends of a span move: within a process all stays in its order, and what
//! touches touches. Lengths change by the drift (1e-4 at most between two machines' quartzes). A process whose clock
//! stays keeps every nanosecond.

use super::{Clock, Device, Engine, LaneKind, Trace, engine_of, intake};
use activity::text::printable;
use activity::{Def, Ns, Span, Uuid, What};

/// From one clock of a process to another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    from: Clock,
    to: Clock,
}

impl Move {
    fn is_none(&self) -> bool {
        self.from == self.to
    }

    fn to(&self, time: Ns) -> Ns {
        self.to.apply(self.from.first(time))
    }

    fn span(&self, span: Span) -> Span {
        Span::new(self.to(span.start), self.to(span.end))
    }
}

impl Trace {
    /// From now on shows a process's times by the clock at its place in `clocks`; without one, as recorded. This holds
    /// for present and future records, and for processes that have sent nothing yet. Rows keep their indices.
    ///
    /// A device is on the clock of the first process that has operations on it. If others have other clocks, its sums
    /// are made anew. Returns whether something moved.
    pub fn retime(&mut self, clocks: &[Clock]) -> bool {
        if self.processes.len() < clocks.len() {
            self.processes.resize_with(clocks.len(), Default::default);
        }
        self.is_on_one_clock = true;
        self.revision += 1;
        let moves = self.processes.iter().enumerate().map(|(process, it)| Move {
            from: it.clock,
            to: clocks.get(process).copied().unwrap_or_default(),
        });
        let moves: Vec<Move> = moves.collect();
        if moves.iter().all(Move::is_none) {
            return false;
        }
        for (process, by) in self.processes.iter_mut().zip(&moves) {
            process.clock = by.to;
            if !by.is_none() {
                process.recorded.retime(|time| by.to(time));
                process.off_cpu.retime(|span| by.span(span));
                process.sampled.retime(|time| by.to(time));
            }
        }
        for lane in &mut self.lanes {
            let by = &moves[lane.key().process];
            if !by.is_none() {
                lane.retime(|time| by.to(time));
            }
        }
        for device in 0..self.devices.len() {
            self.devices[device].off.take();
            self.retime_device(device, &moves);
        }
        let mut hardware = std::mem::take(&mut self.hardware);
        hardware.retime(|uuid, by| self.clock_of_gpu(uuid, by));
        self.hardware = hardware;
        if let Some(evicted) = &mut self.evicted {
            let all = moves.iter().map(|by| by.to(evicted.before));
            evicted.before = all.max().unwrap_or(evicted.before);
        }
        let lanes = self.lanes.iter().filter_map(super::Lane::extent);
        let samples = self.processes.iter().filter_map(|it| it.sampled.extent());
        self.extent = lanes.chain(samples).reduce(Span::hull);
        true
    }

    /// Puts a new process, of which nothing is known yet, on the clock of the others of its host. The timeline must be on one clock.
    pub(super) fn join_host(&mut self, process: usize, defs: &[Def]) {
        let is_other = |lane: &super::Lane| lane.key().process != process;
        if !self.is_on_one_clock || defs.is_empty() || !self.clock(process).is_same() {
            return;
        }
        let host = defs.iter().find_map(|def| match def {
            Def::Process(info) if !info.host.is_empty() => Some(printable(&info.host)),
            _ => None,
        });
        let Some(host) = host else {
            return;
        };
        let mut others = self.processes.iter();
        let beside = others.find(|it| it.info.host == host && !it.clock.is_same());
        if let Some(clock) = beside.map(|it| it.clock)
            && self.lanes.iter().all(is_other)
        {
            self.processes[process].clock = clock;
        }
    }

    fn retime_device(&mut self, index: usize, moves: &[Move]) {
        let device = &mut self.devices[index];
        device.settle();
        let mut by = device.processes.iter().map(|&process| moves[process]);
        let Some(first) = by.next() else {
            return;
        };
        let is_one = by.all(|it| it == first);
        if is_one && first.is_none() {
            return;
        }
        let to = |time: Ns| first.to(time);
        if is_one {
            device.usage.retime(to);
            for bytes in &mut device.copied_bytes {
                bytes.retime(to);
            }
            return;
        }
        device.usage.empty(to);
        for bytes in &mut device.copied_bytes {
            bytes.empty(to);
        }
        let mut device = std::mem::take(&mut self.devices[index]);
        for lane in 0..self.lanes.len() {
            if matches!(self.lanes[lane].key().kind, LaneKind::Stream { device, .. } if device == index)
            {
                self.add_up(lane, &mut device);
            }
        }
        self.devices[index] = device;
    }

    /// Adds the operations of a lane to its device's sums.
    fn add_up(&self, lane: super::LaneId, device: &mut Device) {
        let mut spans: Vec<(Span, Engine)> = Vec::new();
        for row in self.lanes[lane].first_row()..self.lanes[lane].len() {
            let activity = self.activity(lane, row);
            let Some(engine) = engine_of(&activity.what) else {
                continue;
            };
            spans.push((activity.span, engine));
            if let What::Copy(copy) = activity.what
                && let Some(slot) = intake::slot(copy.direction)
            {
                device.copied[slot].push((activity.span, copy.bytes));
            }
        }
        device.pending = spans;
        device.settle();
    }

    /// The clock that shows a GPU's readings: of the first process that has operations on it, else of the one that sent
    /// them.
    pub(super) fn clock_of_gpu(&self, uuid: Uuid, by: usize) -> Clock {
        let mut devices = self.devices.iter();
        let device = devices.find(|it| it.info.uuid == Some(uuid));
        let process = device.and_then(|it| it.processes.first());
        self.clock(process.copied().unwrap_or(by))
    }
}

#[cfg(test)]
mod tests;
