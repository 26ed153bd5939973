//! Copies of pageable host memory: the driver stages them through its own pinned buffer.

use figures::remarks::is_backward;
use rustc_hash::{FxHashMap, FxHashSet};

use super::configs;
use super::no_overlap::has_one_batch;
use super::words::seen_at;
use super::{At, Copied, DeviceFigures, Finding, Scope, longest_first};
use crate::thresholds;
use ::program::Framework;
use activity::units::{bytes, duration, rate};
use activity::{Direction, Ns};
use causes::around::Around;
use causes::graph::{CallId, NONE, OpId};
use causes::stacks::StackCounts;
use causes::{Cause, Culprit, Gap, Piece};
use figures::configs::Config;
use figures::uploads;
use trace::{LaneId, describe};

/// What pinned copies of a card reach at best, GB/s: PCIe 5.0 x16.
const FASTEST: f64 = 57.0;

/// Autograd's copy of a gradient to where the tensor lies that `.to()` brought to the GPU.
const TO_CPU: &str = "ToCopyBackward0";

/// What else is said of copies that most likely bring what they brought before.
const SAME: &str = " The thread that copies writes no new data between rounds: what stays the same, keep on the GPU.";

/// The same where nothing shows it.
const SAME_LIKELY: &str =
    " Each round copies as many bytes: what of them stays the same, keep on the GPU.";

/// PyTorch's operators that make data up.
const DRAWS: [&str; 5] = [
    "aten::rand",
    "aten::randn",
    "aten::normal_",
    "aten::uniform_",
    "aten::random_",
];

pub(super) fn check(scope: &Scope, figures: &DeviceFigures) -> Option<Finding> {
    let link = link(scope, figures);
    let copies = Staged::of(scope, figures, link, false);
    if copies.at.is_empty() {
        return None;
    }
    // What looks idle may be work without a record.
    let idle = scope
        .lost()
        .map_or_else(|| copies.idle(scope, figures), |_| 0);
    let (moved, time) = (copies.moved, copies.time);
    let (saving, hidden) = copies.savings(scope, figures, idle)?;
    let staging = match idle >= time / 100 {
        true => format!(", and the calls keep the GPU idle for {}", duration(idle)),
        false => String::new(),
    };
    let at = longest_first(copies.at.clone());
    let line = copies.seen.telling(scope.trace);
    // Before steps, or before one kernel again and again: a single pass does not tell what comes with the next.
    let most = configs::of_device(scope, figures).first();
    let is_loop = |it: &Config| {
        cases::LOOP_MIN.is_reached_by(it.row.count as usize)
            && 2 * it.row.total_ns >= figures.compute_ns
    };
    let is_before = scope.window.is_some()
        || most.is_some_and(is_loop)
        || cases::LOOP_MIN.is_reached_by(figures.kernels as usize) && end_first(scope, figures);
    let is_torch = || scope.framework() == Framework::PyTorch;
    let is_once = is_before && copies.once > moved / 2 && is_torch();
    let is_once = is_once && !cases::BATCH_OF_LOADER.holds(copies.is_batch(scope));
    let gbps = moved as f64 / time.max(1) as f64;
    let pins = Finding {
        title: format!(
            "{} of pageable memory {} at {} GB/s: {} in {}{staging}{}",
            copies.counted(),
            if at.len() == 1 { "runs" } else { "run" },
            rate(gbps),
            bytes(moved),
            duration(time),
            seen_at(line.as_ref()),
        ),
        advice: match copies.asynchronous(scope) {
            Some(call) => format!("Pin the host memory, and copy on a stream of its own. Until then {call} is not asynchronous."),
            None => "Pin the host memory, and copy on a stream of its own. Until then no copy is asynchronous, whatever the call says.".to_owned(),
        },
        change: scope.change("pin", line.as_ref()),
        is_all: 10 * saving >= 9 * (time + idle),
        beside_ns: hidden.max(copies.others(scope, figures).min(time - copies.saving as Ns)),
        at_most: link
            .filter(|_| hidden == 0)
            .and_then(|link| format!("pin:{link}GB/s").parse().ok()),
        ..scope.found(figures.span_ns, saving, &at)
    };
    let is_cuda = scope.framework() == Framework::Cuda;
    let is_same = !is_once && is_cuda && cases::LOOP_MIN.is_reached_by(pins.count as usize) && {
        let graph = scope.causes.graph();
        let (number, time) = uploads::unwritten(scope.trace, graph, figures.index, figures.span);
        cases::LOOP_MIN.is_reached_by(number)
            && cases::LARGE_SHARE.is_reached_by(figures.part(time))
    };
    Some(match is_once {
        true => Finding {
            advice: "The program moves this once: make it on the GPU, or load it there.".to_owned(),
            change: scope.change("create", line.as_ref()),
            cure: "making data on the GPU",
            refused: Some("what is moved once is not worth pinning".to_owned()),
            ..pins
        },
        false if scope.sources(line.as_ref()).cuts_what_comes_back() => Finding {
            advice: "All of it comes back, and the line keeps a part: cut that out on the GPU, before the copy. Pinning speeds up what is left.".to_owned(),
            change: scope.change("cut", line.as_ref()),
            ..pins
        },
        false if is_same => Finding {
            advice: pins.advice + SAME,
            ..pins
        },
        false if is_cuda && brings_as_much(scope, figures) => Finding {
            advice: pins.advice + SAME_LIKELY,
            ..pins
        },
        false => pins,
    })
}

/// Whether copies of as many bytes as one another come to the device in a loop, of pageable memory, and take much of the time.
fn brings_as_much(scope: &Scope, figures: &DeviceFigures) -> bool {
    let mut by: FxHashMap<u64, (usize, Ns)> = FxHashMap::default();
    for (_, span, copy) in scope.copies(figures) {
        if copy.direction == Direction::H2D
            && copy.is_staged()
            && copy.bytes >= thresholds::LARGE_BYTES
        {
            let of = by.entry(copy.bytes).or_default();
            *of = (of.0 + 1, of.1 + span.len());
        }
    }
    let mut many = by.values().filter(|it| cases::LOOP_MIN.is_reached_by(it.0));
    many.any(|it| cases::LARGE_SHARE.is_reached_by(figures.part(it.1)))
}

/// Whether all that goes to the device has come before its first kernel starts.
fn end_first(scope: &Scope, figures: &DeviceFigures) -> bool {
    let first = scope
        .causes
        .graph()
        .ops
        .first_kernel(figures.index)
        .unwrap_or(Ns::MIN);
    let copies = scope.copies(figures).iter();
    let mut staged = copies.filter(|it| it.2.direction == Direction::H2D && it.2.is_staged());
    staged.all(|it| it.1.end <= first)
}

/// The copies of a device that the driver stages, but for set-up.
#[derive(Default)]
pub(super) struct Staged {
    pub at: Vec<(Ns, At)>,
    pub ends: FxHashSet<Ns>,
    lanes: FxHashSet<LaneId>,
    ops: FxHashSet<OpId>,
    calls: FxHashSet<CallId>,
    /// Bytes of all, how long they take, and how much longer than at the link's rate.
    pub moved: u64,
    pub time: Ns,
    saving: f64,
    /// What they take at that rate, to the GPU and back.
    at_rate: [f64; 2],
    /// Where all of them go.
    way: Option<Direction>,
    /// Bytes that come once, before the work.
    once: u64,
    /// What the CPU was seen at in their calls.
    seen: StackCounts,
}

impl Staged {
    /// Those of autograd's gradients, or all others: what autograd allocates nobody can pin.
    pub(super) fn of(
        scope: &Scope,
        figures: &DeviceFigures,
        link: Option<f64>,
        are_gradients: bool,
    ) -> Self {
        let graph = scope.causes.graph();
        let mut copies = Staged::default();
        if !scope.copies(figures).iter().any(|it| it.2.is_staged()) {
            return copies;
        }
        let mut around = Around::new(scope.trace);
        let mut is_gradient = |it: &Copied| match (it.2.direction, graph.call_at(it.0)) {
            (_, NONE) => false,
            (Direction::D2H, call) => around.call(graph, call).contains(&TO_CPU),
            _ => false,
        };
        let set_up = uploads::set_up_ends(scope.trace, graph, figures.index);
        let is_whole = scope.window.is_none();
        let is_set_up = |&(_, span, copy): &Copied| {
            copy.direction == Direction::H2D && set_up.is_some_and(|end| span.start < end)
        };
        // What brings a program its data for long is worth a line, be it once.
        let before = scope.copies(figures).iter().filter(|it| is_set_up(it));
        let before: Ns = before.map(|it| it.1.len()).sum();
        let is_little = !cases::LARGE_SHARE.is_reached_by(figures.part(before));
        for it in scope.copies(figures) {
            let &(place, span, copy) = it;
            let is_left_out = is_whole && is_little && is_set_up(it);
            let is_left_out = cases::COPIES_OF_SET_UP.holds(is_left_out);
            if !copy.is_staged() || is_left_out || is_gradient(it) != are_gradients {
                continue;
            }
            let length = span.len();
            let is_alone = copies.at.is_empty() || copies.way == Some(copy.direction);
            copies.way = is_alone.then_some(copy.direction);
            copies.ends.insert(span.end);
            copies.lanes.insert(place.0);
            copies.once += if is_set_up(it) { copy.bytes } else { 0 };
            copies.moved += copy.bytes;
            copies.time += length;
            let peak = scope.peaks.rate(copy.direction).or(link);
            // On a link that no card has, what is as fast as pinned copies of any card is no slower for its memory.
            let is_fast = copy.bytes as f64 > FASTEST * length as f64;
            let unknown = if is_fast { length as f64 } else { 0.0 };
            let at_peak = peak.map_or(unknown, |peak| copy.bytes as f64 / peak);
            copies.saving += (length as f64 - at_peak).max(0.0);
            let is_back = usize::from(copy.direction == Direction::D2H);
            copies.at_rate[is_back] += at_peak.min(length as f64);
            copies.ops.extend(graph.op_at(place.0, place.1));
            let call = Some(graph.call_at(place)).filter(|&call| call != NONE);
            copies.calls.extend(call);
            if let Some(op) = graph.op_at(place.0, place.1) {
                scope.causes.add_launch(op, &mut copies.seen);
            }
            copies.at.push((length, place));
        }
        copies
    }

    /// What copies of the other direction take on other streams: pinned ones may run beside them.
    fn others(&self, scope: &Scope, figures: &DeviceFigures) -> Ns {
        let Some(way @ (Direction::H2D | Direction::D2H)) = self.way else {
            return 0;
        };
        let crosses = |it: &Copied| matches!(it.2.direction, Direction::H2D | Direction::D2H);
        let is_other =
            |it: &&Copied| crosses(it) && it.2.direction != way && !self.lanes.contains(&it.0.0);
        let others = scope.copies(figures).iter().filter(is_other);
        others.map(|it| it.1.len()).sum()
    }

    /// What pinning saves, and what then lies beside other work; `None` where that is not worth a line.
    fn savings(&self, scope: &Scope, figures: &DeviceFigures, idle: Ns) -> Option<(Ns, Ns)> {
        let is_worth = |time| cases::WORTH_SHARE.is_reached_by(figures.part(time));
        let saving = idle + self.saving as Ns;
        // On a stream of their own they may lie beside the kernels, and beside those of the other direction.
        let may_be_beside = cases::LOOP_MIN.is_reached_by(self.at.len()) || self.lanes.len() > 1;
        let hidden = match may_be_beside && !has_one_batch(scope, figures) {
            true => (self.time - self.saving as Ns - self.left(scope, figures)).max(0),
            false => 0,
        };
        let all = saving + hidden;
        // Of what is as fast as pinned copies the rest is all.
        let both = if is_worth(saving) {
            (saving, hidden)
        } else {
            (all, 0)
        };
        is_worth(all).then_some(both)
    }

    /// What is left of them at the link's rate, beside kernels and those of the other direction, where that has an engine of its own.
    fn left(&self, scope: &Scope, figures: &DeviceFigures) -> Ns {
        let [to, back] = self.at_rate;
        let engines = scope.trace.devices()[figures.index].info.copy_engines;
        let longest = if engines == 1 {
            to + back
        } else {
            to.max(back)
        };
        (longest as Ns - figures.compute_ns).max(0)
    }

    /// Whether what comes before the work is a batch, which no program makes on the GPU. It comes behind PyTorch's loader, or as one array
    /// of a training step. A model comes in many.
    fn is_batch(&self, scope: &Scope) -> bool {
        let start = |&(lane, row): &At| scope.trace.lanes()[lane].span(row).start;
        let (Some(last), longest) = (
            self.at.iter().map(|it| start(&it.1)).max(),
            self.at.iter().map(|it| it.0).max().unwrap_or(0),
        ) else {
            return false;
        };
        let is_one = 10 * longest >= 9 * self.time;
        let trains = || scope.has_name(is_backward);
        let draws = || scope.has_name(|it| DRAWS.contains(&it));
        describe::loads(scope.trace, last).is_some() || is_one && trains() && !draws()
    }

    /// "28 D2H copies": those of one direction may be far slower than the others.
    fn counted(&self) -> String {
        let way = self
            .way
            .map_or(String::new(), |it| format!("{} ", it.label()));
        let [one, many] = ["copy", "copies"].map(|it| way.clone() + it);
        activity::text::counted(self.at.len() as u64, &one, &many)
    }

    /// The call of the longest, by its name, where it says that it is asynchronous in a program that calls CUDA itself.
    fn asynchronous<'s>(&self, scope: &'s Scope) -> Option<&'s str> {
        let graph = scope.causes.graph();
        let longest = self.at.iter().max_by_key(|it| it.0);
        let call = graph.call_at(longest?.1);
        let name = (call != NONE).then(|| graph.function(scope.trace, call))?;
        (scope.framework() == Framework::Cuda && name.contains("Async")).then_some(name)
    }

    /// Idle time in their calls, which return when a copy is staged: until then nothing else is launched. Such a copy also
    /// begins in another way: what the device itself takes before it is not the pinned copy's.
    pub(super) fn idle(&self, scope: &Scope, figures: &DeviceFigures) -> Ns {
        let calls = &scope.causes.graph().calls;
        let idle = |gap: &Gap, piece: &Piece| match piece.culprit {
            // The CPU may have done something else before the call.
            Culprit::Call(call) if self.calls.contains(&call) => {
                piece.span.intersect(calls.span(call)).len()
            }
            _ if matches!(piece.cause, Cause::EngineChange | Cause::Latency)
                && self.ops.contains(&gap.next) =>
            {
                piece.span.len()
            }
            _ => 0,
        };
        let gaps = scope.gaps(figures);
        gaps.map(|(gap, pieces)| pieces.iter().map(|it| idle(&gap, it)).sum::<Ns>())
            .sum()
    }
}

/// What pinned copies reach at best, GB/s, by the card. A large copy may show more. `None` where the GPU is no card.
pub(super) fn link(scope: &Scope, f: &DeviceFigures) -> Option<f64> {
    let card = uploads::link_of(&scope.trace.devices()[f.index].info);
    let is_large = |it: &&Copied| {
        let crosses = matches!(it.2.direction, Direction::H2D | Direction::D2H);
        crosses && it.2.bytes >= thresholds::LARGE_BYTES
    };
    let large = scope.copies(f).iter().filter(is_large);
    let seen = large.map(|it| it.2.bytes as f64 / it.1.len().max(1) as f64);
    card.map(|card| seen.fold(card, f64::max))
}
