//! A job of several ranks: their collectives matched, their clocks aligned, and who waits for whom.
//!
//! `collect` finds collectives (`operation`: what they do; `host_hint`: by what the CPU says). `pair` and `group` match
//! them across ranks. `clocks` aligns the ranks' clocks on their ends (`line` is a clock's offset and drift). `split`
//! parts each into transfer and waiting. `late` tells who is late and why (`price`: what the job takes without it, and
//! where it falls behind; `places`: at which places of a step it does; `scatter`: what is no chance; `kernels`: whether its own take longer),
//! `words` says it;
//! `roots` is what those did that others waited for. `align` puts the timeline on the clock of all; else each process is mapped. A device that
//! waits inside a collective stays busy in its figures, with the waiting beside them. `docs/RANKS.md` has the rules.

mod align;
mod clocks;
mod collect;
mod group;
mod host_hint;
mod input;
mod kernels;
mod late;
mod line;
mod operation;
mod pair;
mod places;
mod price;
mod roots;
mod scatter;
mod split;
mod words;

pub use align::{align_clocks, clocks_of};
pub use clocks::Clocks;
pub use kernels::More;
pub use late::{Lateness, Pattern, Reason, Stretch};
pub use split::{Split, Wait};

use line::Line;

use std::ops::Deref;
use std::sync::Arc;

use activity::{Ns, Span};
use causes::Causes;
use figures::steps::Steps;
use trace::Trace;

/// One rank: a device that took part in collectives, with the process that used it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Index into [`Trace::processes`].
    pub process: usize,
    /// Index into [`Trace::devices`].
    pub device: usize,
    /// Its number, where its launcher says; a process with several devices has one for all of them.
    pub number: Option<u32>,
    /// "rank 5", else "pid 4711" or "pid 4711 GPU 1".
    pub name: String,
    /// The machine's name; empty where unknown.
    pub host: String,
    /// First to last of its collectives, in its own time.
    pub span: Span,
}

/// What collectives alone tell of a job: its clocks, and who waits for whom.
#[derive(Clone, Debug)]
pub struct Alignment {
    /// In order of number, else of host and process.
    pub ranks: Vec<Rank>,
    pub clocks: Clocks,
    pub split: Split,
    /// By index into [`Trace::processes`], from its times on the timeline: a rank's line. Another process has that of a
    /// rank of its host, if there is one.
    by_process: Vec<Line>,
    /// The same from the times that were recorded.
    of_recorded: Vec<Line>,
}

/// The same, with the collectives that tell it: what who is late is found by.
#[derive(Clone, Debug)]
pub struct MatchedCollectives {
    pub aligned: Arc<Alignment>,
    units: Vec<collect::Unit>,
    groups: Vec<group::Group>,
}

/// What is known of a job: what its collectives tell ([`Alignment`]), and who is late.
#[derive(Clone, Debug)]
pub struct JobAnalysis {
    aligned: Arc<Alignment>,
    /// The ranks that others wait for, those that cost most first.
    pub late: Vec<Lateness>,
}

impl Alignment {
    /// Whether a timeline can be that of a job: several processes, or several devices of one.
    pub fn may_be(trace: &Trace) -> bool {
        trace.devices().len() > 1 || trace.processes().len() > 1
    }

    /// The clocks of a job, without who waits; `None` when no two ranks share a collective.
    pub fn find(trace: &Trace) -> Option<Arc<Alignment>> {
        Some(MatchedCollectives::align(trace)?.aligned)
    }

    /// The time on the clock of all, of a rank's own.
    pub fn aligned(&self, rank: usize, time: Ns) -> Ns {
        self.clocks.lines[rank].apply(time)
    }

    /// A stretch on the clock of all, of a process's own.
    pub fn on_all(&self, process: usize, span: Span) -> Span {
        self.moved(process, span, Line::apply)
    }

    /// A stretch on a process's own clock, of that of all.
    pub fn on_own(&self, process: usize, span: Span) -> Span {
        self.moved(process, span, Line::first)
    }

    fn moved(&self, process: usize, span: Span, to: fn(&Line, Ns) -> Ns) -> Span {
        let Some(line) = self.by_process.get(process) else {
            return span;
        };
        let start = to(line, span.start);
        Span::new(start, to(line, span.end).max(start))
    }
}

impl MatchedCollectives {
    /// Matches a timeline's collectives, and tells who waits in them; `None` when no two ranks share one.
    pub fn of(trace: &Trace) -> Option<MatchedCollectives> {
        Some(MatchedCollectives::align(trace)?.split(trace))
    }

    /// Matches them for the clocks alone: where these move, who waits is to be asked of the times that come of it.
    pub fn align(trace: &Trace) -> Option<MatchedCollectives> {
        if !Alignment::may_be(trace) {
            return None;
        }
        trace::made("ranks");
        let (units, channels) = collect::find(trace);
        if units.len() < 2 {
            return None;
        }
        let groups = group::find(&channels, |a, b| {
            may_be_one_job(trace, (units[a.0], a.1), (units[b.0], b.1))
        });
        if groups.is_empty() {
            return None;
        }
        let ranks = units.iter().map(|unit| rank(trace, *unit, &units));
        let mut ranks: Vec<Rank> = ranks.collect();
        for channel in &channels {
            let parts = || channel.parts.iter().map(|part| part.span);
            if let Some(span) = parts().reduce(Span::hull) {
                let rank = &mut ranks[channel.rank];
                rank.span = match rank.span.is_empty() {
                    true => span,
                    false => rank.span.hull(span),
                };
            }
        }
        let hosts: Vec<&str> = ranks.iter().map(|rank| rank.host.as_str()).collect();
        let is_one = trace.source.clocks == trace::Clocks::One;
        let owners = ranks.iter().map(|it| if is_one { 0 } else { it.process });
        let owners: Vec<usize> = owners.collect();
        let clocks = clocks::align(&hosts, &owners, &groups, trace.is_on_one_clock());
        let mut split = Split {
            sums: vec![split::Sums::default(); units.len()],
            ..Split::default()
        };
        // What no other rank has a part of, such as sends and receives on streams whose communicator has no name.
        for channel in &channels {
            split.sums[channel.rank].unjudged += channel.parts.len() as u64;
        }
        for (rank, count) in groups.iter().flat_map(group::Group::counts) {
            split.sums[rank].unjudged -= count;
        }
        let (by_process, of_recorded) = align::by_process(trace, &ranks, &clocks.lines);
        Some(MatchedCollectives {
            aligned: Arc::new(Alignment {
                by_process,
                of_recorded,
                ranks,
                clocks,
                split,
            }),
            units,
            groups,
        })
    }

    /// Tells who waits, once.
    pub fn split(mut self, trace: &Trace) -> MatchedCollectives {
        let of = Arc::make_mut(&mut self.aligned);
        split::measure(trace, &self.units, &self.groups, &of.clocks, &mut of.split);
        self
    }

    /// With who is late. Why a rank's GPU was idle is only told with `causes`, what a step would take only with `steps`.
    pub fn judge(
        &self,
        trace: &Trace,
        causes: Option<&Causes<'_>>,
        steps: &[Steps],
    ) -> JobAnalysis {
        let aligned = &self.aligned;
        let spans = aligned.ranks.iter().map(|it| it.span.len());
        let known = input::Input {
            trace,
            units: &self.units,
            groups: &self.groups,
            clocks: &aligned.clocks.lines,
            causes,
            steps,
            span: spans.max().unwrap_or(0),
            noise: aligned.clocks.noise(),
        };
        JobAnalysis {
            late: late::find(&known, &aligned.split),
            aligned: Arc::clone(aligned),
        }
    }
}

impl JobAnalysis {
    /// Waits of a device's ranks that lie in a stretch, each with how much of it nothing ran beside, there.
    pub fn waits_on(
        &self,
        device: usize,
        window: Option<Span>,
    ) -> impl Iterator<Item = (&Wait, Ns)> {
        let ours = self.ranks.iter().zip(&self.split.waits);
        let ours = ours.filter(move |(rank, _)| rank.device == device);
        ours.flat_map(|(_, waits)| waits).filter_map(move |wait| {
            let within = window.map_or(wait.span, |w| wait.span.intersect(w));
            (!within.is_empty()).then(|| (wait, wait.exposed.min(within.len())))
        })
    }
}

impl Deref for JobAnalysis {
    type Target = Alignment;

    fn deref(&self) -> &Alignment {
        &self.aligned
    }
}

/// Whether two processes that had collectives in these stretches can be of one job. A job has one number of ranks, and each number
/// once. Processes of one machine have its clock, unless their numbers say that they belong together.
fn may_be_one_job(trace: &Trace, a: (collect::Unit, Span), b: (collect::Unit, Span)) -> bool {
    let info = |unit: collect::Unit| &trace.processes()[unit.process].info;
    let (one, other) = (info(a.0), info(b.0));
    let is_one_size = one.world.is_none() || other.world.is_none() || one.world == other.world;
    let is_one_clock = !one.host.is_empty() && one.host == other.host;
    let are_numbered = one.rank.is_some() && one.rank != other.rank;
    is_one_size && (are_numbered || !is_one_clock || !a.1.intersect(b.1).is_empty())
}

fn rank(trace: &Trace, unit: collect::Unit, units: &[collect::Unit]) -> Rank {
    let info = &trace.processes()[unit.process].info;
    let is_alone = units.iter().filter(|u| u.process == unit.process).count() == 1;
    let number = info.rank;
    let mut name = match number {
        Some(rank) => format!("rank {rank}"),
        None => format!("pid {}", info.pid),
    };
    let is_double = |u: &collect::Unit| {
        u.process != unit.process && trace.processes()[u.process].info.rank == number
    };
    if number.is_some() && units.iter().any(is_double) {
        // Two programs of one environment, or of two jobs.
        name.push_str(&format!(" (pid {})", info.pid));
    }
    if !is_alone {
        name.push_str(&format!(" GPU {}", trace.devices()[unit.device].info.id));
    }
    Rank {
        process: unit.process,
        device: unit.device,
        number,
        name,
        host: info.host.clone(),
        span: Span::default(),
    }
}
