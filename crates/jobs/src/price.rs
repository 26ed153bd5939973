//! What a rank's lateness costs: the job replayed without it.
//!
//! All ranks' launches, kernels and syncs are replayed together, each collective with the last of its ranks. Once more without one rank,
//! the others are held up by their own launching and by the next one that is last. The difference of the two replays is the price. Beside it
//! lies by how much the rank is behind what the others could do without it, from collective to collective. Where that grows it fell behind.

use rustc_hash::FxHashMap;

use super::input::Input;
use super::split::Split;
use activity::stats;
use activity::{Ns, Span};
use causes::Causes;
use causes::graph::EdgeKind;
use replay::program::{Class, Dep, GpuRates, Joint, NONE, Program, Times};

/// More calls and operations than this are not replayed at once: what comes first stands for all.
const MOST: usize = 2_000_000;

/// What begins within this time after a collective's end, on another stream of its rank, likely waited for that. Measured: up to 9 us.
const FOLLOWS: Ns = 30_000;

/// All ranks of a job, to be replayed.
pub(super) struct Replayed<'a> {
    known: &'a Input<'a>,
    pub(super) program: Program<'a>,
    pub(super) joints: Vec<Joint>,
    /// The rank of each operation, or [`NONE`].
    pub(super) rank_of: Vec<u32>,
    all: Times,
    /// If no rank waited for another one.
    pub(super) alone: Times,
}

/// A rank fell behind on its way to a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// From its collective before to this one, in its own time.
    pub(super) span: Span,
    pub(super) by: Ns,
}

/// What is saved without a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Price {
    /// By when the rank came to a collective, in its own time and in order: by how much sooner that is over without it.
    pub(super) saved: Vec<(Ns, Ns)>,
    /// Where it fell behind, in order.
    pub(super) behind: Vec<Behind>,
}

impl Price {
    /// What is saved in a stretch of the rank's own time; below 0 where the others were ahead anyway.
    pub(super) fn within(&self, span: Span) -> Ns {
        let at = |time: Ns| {
            let before = self.saved.partition_point(|it| it.0 < time);
            before.checked_sub(1).map_or(0, |it| self.saved[it].1)
        };
        at(span.end) - at(span.start)
    }
}

impl<'a> Replayed<'a> {
    /// Replays the job as it was. `None` where the ranks' clocks are not set to one, or no collective is of this stretch.
    pub(super) fn new(known: &'a Input<'a>, causes: &Causes<'a>) -> Option<Replayed<'a>> {
        let graph = causes.graph();
        if graph.calls.start.len() + graph.ops.start.len() > MOST {
            return None;
        }
        let mut program = Program::new(known.trace, graph, None, &GpuRates::default());
        let mut places: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut rank_of = Vec::with_capacity(program.ops.len());
        for op in 0..program.ops.len() as u32 {
            let id = program.op_id(op) as usize;
            let lane = graph.ops.lane[id];
            places.insert((lane, graph.ops.row[id]), op);
            let process = known.trace.lanes()[lane as usize].key().process;
            let device = program.ops[op as usize].device as usize;
            let is_it =
                |unit: &super::collect::Unit| unit.process == process && unit.device == device;
            rank_of.push(
                known
                    .units
                    .iter()
                    .position(is_it)
                    .map_or(NONE, |it| it as u32),
            );
        }
        let mut joints = Vec::new();
        for group in known.groups {
            for row in (0..group.rows()).filter(|row| group.is_mutual(*row)) {
                let mut joint = Joint {
                    transfer: Ns::MAX,
                    ..Joint::default()
                };
                for (slot, part) in group.members(row) {
                    if let Some(&op) = places.get(&(part.lane as u32, part.row as u32)) {
                        let line = &known.clocks[group.ranks[slot]];
                        joint
                            .members
                            .push((op, line.apply(part.span.start) - part.span.start));
                        joint.transfer = joint.transfer.min(part.span.len());
                    }
                }
                if joint.members.len() > 1 {
                    joints.push(joint);
                }
            }
        }
        follow(&mut program, &joints, &rank_of);
        meet(&mut program, &joints, &rank_of, known.units.len());
        program.order();
        let all = program.replay_jointly(&joints, |_| false);
        let alone = program.replay_jointly(&apart(&joints), |_| false);
        (!joints.is_empty()).then_some(Replayed {
            known,
            program,
            joints,
            rank_of,
            all,
            alone,
        })
    }

    /// What is saved without a rank.
    pub(super) fn price(&self, rank: usize, split: &Split) -> Price {
        let is_it = |op: u32| self.rank_of[op as usize] == rank as u32;
        let without = self.undisturbed(rank, split);
        let without = without.replay_jointly(&self.joints, is_it);
        let begun = |times: &Times, (op, clock): (u32, Ns)| times.op_start[op as usize] + clock;
        let mut price = Price::default();
        let mut lags: Vec<(Ns, Ns)> = Vec::new();
        for joint in &self.joints {
            let (mine, others): (Vec<_>, Vec<_>) = joint.members.iter().partition(|it| is_it(it.0));
            let last = others.iter().map(|it| begun(&without, *it)).max();
            if let (Some(&mine), Some(&other), Some(last)) = (mine.first(), others.first(), last) {
                let at = self.program.op_span(mine.0).start;
                let end = |times: &Times| times.op_end[other.0 as usize];
                price.saved.push((at, end(&self.all) - end(&without)));
                lags.push((at, begun(&self.all, mine) - last));
            }
        }
        price.saved.sort_unstable();
        lags.sort_unstable();
        let grown = lags.windows(2).filter_map(|two| {
            let by = two[1].1 - two[0].1.max(0);
            (by > self.known.noise).then(|| Behind {
                span: Span::new(two[0].0, two[1].0),
                by,
            })
        });
        price.behind.extend(grown);
        price
    }
}

impl<'a> Replayed<'a> {
    /// The job in which kernels that ran beside a wait for a rank take what they take elsewhere. A collective that waits keeps a part of
    /// the SMs.
    fn undisturbed(&self, rank: usize, split: &Split) -> Program<'a> {
        let mut program = self.program.clone();
        let mut beside = Vec::new();
        let mut elsewhere: FxHashMap<(u32, u32), Vec<Ns>> = FxHashMap::default();
        for op in 0..program.ops.len() as u32 {
            let (it, span) = (&program.ops[op as usize], program.op_span(op));
            let of = self.rank_of[op as usize];
            let Some(waits) = split.waits.get(of as usize).filter(|_| it.shape != NONE) else {
                continue;
            };
            let from = waits.partition_point(|wait| wait.span.end <= span.start);
            let mut waits = waits[from..]
                .iter()
                .take_while(|wait| wait.span.start < span.end);
            match waits.any(|wait| wait.for_rank == rank) {
                true => beside.push((op, (of, it.shape))),
                false => elsewhere.entry((of, it.shape)).or_default().push(it.time),
            }
        }
        for (op, of) in beside {
            let typical = elsewhere
                .get_mut(&of)
                .and_then(|it| stats::lower_median(it));
            let time = &mut program.ops[op as usize].time;
            *time = typical.map_or(*time, |it| it.min(*time));
        }
        program
    }
}

/// Collectives that each rank does for itself.
pub(super) fn apart(joints: &[Joint]) -> Vec<Joint> {
    let members = joints
        .iter()
        .flat_map(|of| of.members.iter().map(|it| (it, of.transfer)));
    let alone = |(it, transfer): (&(u32, Ns), Ns)| Joint {
        members: vec![*it],
        transfer,
    };
    members.map(alone).collect()
}

/// Has what began just after a collective wait for it: most sources record no waits between streams.
fn follow(program: &mut Program<'_>, joints: &[Joint], rank_of: &[u32]) {
    let ends = joints.iter().flat_map(|it| &it.members);
    let mut ends: Vec<(u32, Ns, u32)> = ends
        .map(|(op, _)| (rank_of[*op as usize], program.op_span(*op).end, *op))
        .collect();
    ends.sort_unstable();
    for op in 0..program.ops.len() as u32 {
        let start = program.op_span(op).start;
        let before = ends.partition_point(|it| (it.0, it.1) <= (rank_of[op as usize], start));
        let Some(&(rank, end, on)) = before.checked_sub(1).and_then(|it| ends.get(it)) else {
            continue;
        };
        let mut it = program.ops[op as usize];
        let is_known = program.lists.get(it.deps).iter().any(|dep| dep.op == on);
        if rank != rank_of[op as usize] || start - end > FOLLOWS || on >= op || is_known {
            continue;
        }
        let typical = |class| program.delays.typical(class, &program.known);
        let launch = it.launch.min(typical(it.launch_class()));
        let shorter: Vec<Ns> = program
            .lists
            .get(it.deps)
            .iter()
            .map(|dep| dep.delay.min(typical(dep.class)))
            .collect();
        let engine = program.ops[on as usize].engine;
        let class = Class::between(EdgeKind::OtherLikely, engine, it.engine);
        for (dep, delay) in program.lists.get_mut(it.deps).iter_mut().zip(shorter) {
            dep.delay = delay;
        }
        program
            .lists
            .push(&mut it.deps, Dep::on_end(on, start - end, class));
        it.launch = launch;
        program.ops[op as usize] = it;
    }
}

/// Has each rank's part of a collective wait for the same one of its kernels. On ranks that came early the collective before it hides
/// that; on the one that came last it shows. Only of ranks that run equally many kernels can it be told.
fn meet(program: &mut Program<'_>, joints: &[Joint], rank_of: &[u32], ranks: usize) {
    let mut is_member = vec![false; rank_of.len()];
    for (op, _) in joints.iter().flat_map(|it| &it.members) {
        is_member[*op as usize] = true;
    }
    let mut own: Vec<Vec<(Ns, u32)>> = vec![Vec::new(); ranks];
    for op in (0..rank_of.len() as u32).filter(|it| !is_member[*it as usize]) {
        if let Some(own) = own.get_mut(rank_of[op as usize] as usize) {
            own.push((program.op_span(op).end, op));
        }
    }
    if own.iter().any(|it| it.len() != own[0].len()) {
        return;
    }
    own.iter_mut().for_each(|it| it.sort_unstable());
    for joint in joints {
        // How many kernels of its own each had ended, and how long before.
        let ended = joint.members.iter().map(|(op, _)| {
            let own = &own[rank_of[*op as usize] as usize];
            let start = program.op_span(*op).start;
            let count = own.partition_point(|it| it.0 <= start);
            (
                count,
                count.checked_sub(1).map_or(Ns::MAX, |it| start - own[it].0),
            )
        });
        let Some((count, delay)) = ended.min().filter(|it| it.1 <= FOLLOWS) else {
            continue;
        };
        for (op, _) in &joint.members {
            let on = own[rank_of[*op as usize] as usize][count - 1].1;
            let mut it = program.ops[*op as usize];
            if on < *op && program.lists.get(it.deps).iter().all(|dep| dep.op != on) {
                let class = Class::between(EdgeKind::OtherLikely, it.engine, it.engine);
                program
                    .lists
                    .push(&mut it.deps, Dep::on_end(on, delay, class));
                program.ops[*op as usize] = it;
            }
        }
    }
}
