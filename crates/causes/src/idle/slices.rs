//! Turns that another process has of a device. It leaves no record, and yet its turns show.
//!
//! A GPU that several processes use works for one at a time, without MPS for 2 ms and more. What was launched meanwhile starts as
//! late, and a kernel that runs when a turn begins takes as much longer. Both are equally long, whatever is launched.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Cause, Causes, Certainty, Culprit, Gap, Piece, gaps, is_shared};
use crate::first_use;
use crate::graph::{CallId, NONE, OpId};
use activity::stats::lower_median;
use activity::{Ns, ShapeId, Span, What};

/// So many turns tell how long they last. They are the first ones, so that a cause does not change with what comes after it.
const TURNS: usize = 16;

/// Where kernels took as much longer, so many are enough.
const TURNS_MIN: usize = 3;

/// Gaps that differ by no more than this part of the first are equal.
const EQUAL: Ns = 50;

/// So many late starts are looked at.
const LOOKED_AT: usize = 64;

/// What differs from a turn by no more than this part of it is as long.
const AS_LONG: f64 = 0.15;

/// A turn lasts so long. Measured: 2.26 to 2.6 ms on V100s and A100s, and twice that.
const LENGTHS: Span = Span {
    start: 1_000_000,
    end: 8_000_000,
};

/// Of a process that NVML names it may be shorter: 0.7 to 0.8 ms on an H200 between two that serve.
const SHORTEST: Ns = 100_000;

/// The driver's own length of a turn, with switching to it and back.
const USUAL: Span = Span {
    start: 2_000_000,
    end: 3_000_000,
};

/// A launch that comes within a turn waits for the rest of it, if no less than this part.
const REST: Ns = 8;

/// Calls after which a stream may wait for what no record shows: a function on the CPU, a value in memory.
const WAITING: [&str; 2] = ["StreamWaitValue", "StreamBatchMemOp"];

/// Calls that put a function on the CPU into a stream.
const FUNCTIONS: [&str; 2] = ["LaunchHostFunc", "StreamAddCallback"];

/// So many calls before a launch are looked at for one.
const CALLS_BACK: usize = 8;

/// How another process has a device.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// How long it has it as a rule, where that shows.
    pub turn: Option<Ns>,
    /// Whether NVML names it.
    pub(super) is_named: bool,
    /// Kernels that a turn lies within, one for each turn: their span, and how long the turn is.
    cut: Vec<(Span, Ns)>,
}

impl Turns {
    /// The turns that lie in kernels which start within a span.
    pub fn in_kernels(&self, span: Span) -> impl Iterator<Item = Ns> {
        let cut = self.cut.iter().filter(move |it| span.contains(it.0.start));
        cut.map(|it| it.1)
    }

    /// Whether something is as long as a turn.
    pub(super) fn is_one(&self, time: Ns) -> bool {
        self.turn.is_some_and(|turn| is_as_long(time, turn))
    }

    /// Whether an unexplained wait is of a turn, or of the rest of one.
    pub(super) fn holds(&self, time: Ns) -> bool {
        (self.turn).is_some_and(|turn| time < turn && REST * time >= turn) || self.is_one(time)
    }

    /// Of a device, if another process has it by turns.
    pub(super) fn of(causes: &Causes<'_>, device: usize) -> Option<Turns> {
        let graph = causes.graph;
        let is_named = is_shared(causes.trace, device);
        let lengths = Span {
            start: if is_named { SHORTEST } else { LENGTHS.start },
            ..LENGTHS
        };
        let all = gaps::between(graph, graph.ops.of_device(device));
        let all = all.map(|it| it.gap(graph));
        let all = all.filter(|it| it.span.len() >= lengths.start && causes.is_launched(*it));
        let late = all.filter_map(|it| Some((late(causes, it)?, it)));
        let late = late.filter(|it| it.0 >= lengths.start / 2);
        let gaps: Vec<(Ns, Gap)> = late.take(LOOKED_AT).collect();
        let late: Vec<(Ns, Span)> = gaps.iter().map(|it| (it.0, it.1.span)).collect();
        let turn = lower_median(&mut late.iter().map(|it| it.0).collect::<Vec<_>>());
        let turn = turn.filter(|it| lengths.contains(*it));
        let is_alike = |of: &&(Ns, Span)| {
            turn.is_some_and(|it| [of.0, of.1.len()].iter().any(|of| is_as_long(*of, it)))
        };
        let alike = late.iter().filter(is_alike).count();
        let turn = turn.filter(|_| 4 * alike >= 3 * late.len());
        let cut = turn.map_or_else(Vec::new, |it| cut(causes, device, it));
        let is_usual = |it: &Ns| USUAL.contains(*it) && !waits_for_cpu(causes);
        let shows = |it: &Ns| alike >= TURNS && (is_named || is_usual(it));
        let many = |it: &Ns| alike >= TURNS_MIN && (!cut.is_empty() || shows(it));
        // Fewer gaps tell, where they are of the driver's own length, next to equal, and a turn of this process lies between two.
        let is_next = |of: &[(Ns, Span)]| {
            let [a, b] = [of[0].1, of[1].1];
            EQUAL * (a.len() - b.len()).abs() <= a.len() && b.start - a.end <= USUAL.end
        };
        let follow = late.len() > 1 && late.windows(2).all(is_next);
        let few = |it: &Ns| is_usual(it) && cases::EQUAL_TURNS.holds(follow);
        let is_own = |it: &Ns| {
            let may_be = !is_named && !USUAL.contains(*it);
            may_be && (is_everywhere(causes, device, &gaps) || recur(causes, device, &gaps))
        };
        let turn = turn.filter(|it| (many(it) || few(it)) && !is_own(it));
        (is_named || turn.is_some()).then_some(Turns {
            turn,
            is_named,
            cut,
        })
    }
}

fn is_as_long(time: Ns, turn: Ns) -> bool {
    (time - turn).abs() as f64 <= AS_LONG * turn as f64
}

/// Whether another device waits as long before the same operations, most of these times. Turns of another process come at any.
fn is_everywhere(causes: &Causes<'_>, device: usize, late: &[(Ns, Gap)]) -> bool {
    let (ops, trace) = (&causes.graph.ops, causes.trace);
    let own = ops.of_device(device);
    let name = |op| causes.graph.what(trace, op).name();
    let places = late.iter().filter_map(|(_, gap)| {
        let at = own.iter().position(|it| *it == gap.next)?;
        Some((at, gap))
    });
    let places: Vec<(usize, &Gap)> = places.collect();
    let is_there = |other: usize| {
        let all = ops.of_device(other);
        let same = places.iter().filter(|(at, gap)| {
            let (before, next) = (at.checked_sub(1).and_then(|it| all.get(it)), all.get(*at));
            before.zip(next).is_some_and(|(before, next)| {
                let time = ops.start[*next as usize] - ops.span(*before).end;
                name(*next) == name(gap.next) && is_as_long(time, gap.span.len())
            })
        });
        2 * same.count() > late.len()
    };
    (0..trace.devices().len()).any(|it| it != device && is_there(it))
}

/// Whether most of these times come between the same two operations as a rule, wherever those follow each other. Turns of a length that
/// no driver gives know nothing of the program's own order.
fn recur(causes: &Causes<'_>, device: usize, late: &[(Ns, Gap)]) -> bool {
    let graph = causes.graph;
    let kind = |op: OpId| {
        let engine = graph.ops.engine[op as usize] as u8;
        (engine, first_use::kernel(causes.trace, graph, op))
    };
    let ends: FxHashSet<OpId> = late.iter().map(|it| it.1.next).collect();
    let last = ends.iter().max().copied().unwrap_or(0);
    let mut by: FxHashMap<_, [usize; 2]> = FxHashMap::default();
    let own = graph.ops.of_device(device);
    let pairs = own.windows(2).take_while(|two| two[1] <= last);
    for two in pairs {
        let [all, ends_late] = by.entry((kind(two[0]), kind(two[1]))).or_default();
        *all += 1;
        *ends_late += usize::from(ends.contains(&two[1]));
    }
    let often = by
        .values()
        .filter(|it| it[0] >= TURNS_MIN && 2 * it[1] >= it[0]);
    2 * often.map(|it| it[1]).sum::<usize>() > late.len()
}

/// How late an operation starts for no recorded reason. One that starts as the CPU begins to wait was held back until then, as WSL does.
fn late(causes: &Causes<'_>, gap: Gap) -> Option<Ns> {
    let calls = &causes.graph.calls;
    let piece = causes
        .walked(gap)
        .into_iter()
        .find(|it| it.cause == Cause::LateStart)?;
    let call = causes.graph.ops.call[gap.next as usize];
    let length = piece.span.len();
    // From the end: a launch may have been made ten thousands of calls ahead.
    let list = calls.of_lane(calls.at(call).0);
    let start = |it: CallId| calls.start[it as usize];
    let before = &list[..list.partition_point(|&it| start(it) < gap.span.end)];
    let is_asked = |it: CallId| it > call && gap.span.end - start(it) < length / 4;
    let mut asked = before.iter().rev().take_while(|&&it| is_asked(it));
    (!asked.any(|&it| calls.kind[it as usize].is_wait())).then_some(length)
}

/// Whether the program makes such calls.
fn waits_for_cpu(causes: &Causes<'_>) -> bool {
    let names = causes.trace.names();
    let is_one = |name: &str| FUNCTIONS.iter().chain(&WAITING).any(|it| name.contains(it));
    (0..names.len() as u32).any(|id| is_one(names.full(id)))
}

/// Kernels that take a turn longer than others of their shape do, which are most.
fn cut(causes: &Causes<'_>, device: usize, turn: Ns) -> Vec<(Span, Ns)> {
    let graph = causes.graph;
    let mut by: FxHashMap<ShapeId, Vec<Span>> = FxHashMap::default();
    for &op in graph.ops.of_device(device) {
        if let What::Kernel(it) = graph.what(causes.trace, op) {
            by.entry(it.shape).or_default().push(graph.ops.span(op));
        }
    }
    let mut all = Vec::new();
    for spans in by.into_values() {
        let mut times: Vec<Ns> = spans.iter().map(|it| it.len()).collect();
        let usual = lower_median(&mut times).unwrap_or(0);
        let longer = spans.iter().map(|it| (*it, it.len() - usual));
        let cut: Vec<(Span, Ns)> = longer.filter(|it| is_as_long(it.1, turn)).collect();
        if 2 * usual < turn && 2 * cut.len() < spans.len() {
            all.extend(cut);
        }
    }
    all.sort_unstable_by_key(|it| (it.0.start, it.0.end));
    // Kernels of several streams that run at once lost one turn together.
    let mut end = Ns::MIN;
    all.retain(|(span, _)| {
        let is_next = span.start >= end;
        end = if is_next { span.end } else { end };
        is_next
    });
    all
}

impl Causes<'_> {
    /// How another process has a device, where that is known or shows.
    pub fn turns(&self, device: usize) -> Option<&Turns> {
        let known = self.ready.turns.get(device)?;
        known.get_or_init(|| Turns::of(self, device)).as_ref()
    }

    pub(super) fn is_launched(&self, gap: Gap) -> bool {
        self.graph.ops.call[gap.next as usize] != NONE
    }

    /// The function on the CPU that a thread put into a stream right before this launch: no call between brought an operation.
    fn function_before(&self, launch: CallId) -> Option<CallId> {
        let calls = &self.graph.calls;
        let previous =
            |&call: &CallId| Some(calls.previous[call as usize]).filter(|it| *it != NONE);
        let before = std::iter::successors(previous(&launch), previous);
        let before = before.take_while(|&it| calls.first_op[it as usize] == NONE);
        let is_one = |&it: &CallId| {
            let name = self.graph.function(self.trace, it);
            FUNCTIONS.iter().any(|one| name.contains(one))
        };
        before.take(CALLS_BACK).find(is_one)
    }

    /// Puts a function on the CPU, or what shows to be a turn of another process in the place of what nobody knows. Without its call nothing but its length tells
    /// of what an operation waited for.
    pub(super) fn put_turns(&self, gap: Gap, pieces: &mut [Piece]) {
        let is_alone = pieces.len() == 1;
        let turns = || self.device(gap.next).and_then(|it| self.turns(it));
        let is_open = |it: &&mut Piece| matches!(it.cause, Cause::LateStart | Cause::Unknown);
        for piece in pieces.iter_mut().filter(is_open) {
            let function = match piece.culprit {
                Culprit::Call(launch) => self.function_before(launch),
                _ => None,
            };
            if let Some(call) = function {
                (piece.cause, piece.culprit) = (Cause::HostFunction, Culprit::Call(call));
                piece.certainty = Certainty::Likely;
                continue;
            }
            let time = piece.span.len();
            let is_turn = match piece.cause == Cause::LateStart {
                true => turns().is_some_and(|it| it.is_named || it.holds(time)),
                false if is_alone && !self.is_launched(gap) => {
                    turns().is_some_and(|it| it.is_named && it.is_one(time))
                }
                false => false,
            };
            if is_turn {
                (piece.cause, piece.culprit) = (Cause::Process, Culprit::Nobody);
                piece.certainty = Certainty::Likely;
            }
        }
    }
}
