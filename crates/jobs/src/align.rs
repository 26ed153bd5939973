//! Puts a timeline on the clock of all of its ranks.

use super::line::Line;
use super::{Alignment, Rank};
use activity::Ns;
use trace::{Clock, Clocks, Trace};

/// From each process's times to those of all: of those on the timeline, and of those that were recorded.
pub(super) fn by_process(trace: &Trace, ranks: &[Rank], lines: &[Line]) -> (Vec<Line>, Vec<Clock>) {
    let all = trace.processes().iter().enumerate();
    all.map(|(process, of)| {
        let host = of.info.host.as_str();
        let own = ranks.iter().position(|rank| rank.process == process);
        if let Some(at) = own {
            return (lines[at], trace.clock(process).then(&lines[at]));
        }
        let mut beside = ranks.iter();
        let beside = beside.position(|rank| !host.is_empty() && rank.host == host);
        let shown = trace.clock(process);
        let recorded = beside.map_or(shown, |at| trace.clock(ranks[at].process).then(&lines[at]));
        let line = match shown == recorded {
            true => Line::default(),
            false => shown.inverse().then(&recorded),
        };
        (line, recorded)
    })
    .unzip()
}

impl Alignment {
    /// The line of a rank from the times that were recorded.
    pub fn line_of_recorded(&self, trace: &Trace, rank: usize) -> Line {
        let process = self.ranks[rank].process;
        trace.clock(process).then(&self.clocks.lines[rank])
    }

    /// What the clocks of processes are to be set to; `None` when none is to move by more than `least` ns.
    pub fn to_set(&self, trace: &Trace, least: Ns) -> Option<Vec<Clock>> {
        let moves = trace.lanes().iter().any(|lane| {
            let line = self.by_process.get(lane.key().process);
            let line = line.filter(|line| !line.is_same());
            line.zip(lane.extent())
                .is_some_and(|(line, extent)| line.most(extent) > least)
        });
        moves.then(|| self.of_recorded.clone())
    }
}

/// Puts a complete timeline on the clock of all of its ranks, as far as its collectives tell.
pub fn align_clocks(trace: &mut Trace) {
    if let Some(clocks) = clocks_of(trace) {
        trace.retime(&clocks);
    }
}

/// What the clocks of its processes are to be set to; `None` where they stay.
pub fn clocks_of(trace: &Trace) -> Option<Vec<Clock>> {
    match trace.source.clocks {
        Clocks::Unknown => Alignment::find(trace)?.to_set(trace, 0),
        Clocks::One | Clocks::Set(_) => None,
    }
}
