//! An optimizer that launches its kernels for one parameter after the other, while the GPU waits for launches.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use activity::anonymous::{is_own, short_file};
use activity::units::{count, percent, share};
use activity::{Frame, Ns, What};
use causes::around::{Around, OPTIMIZER};
use causes::graph::{NONE, OpId};
use causes::stacks::{LineShare, StackCounts};
use causes::{Bound, Gap, Group, LAUNCH_GAP_MAX, Piece};
use figures::own_work::{adams_loop, ends_adams_update};
use rustc_hash::FxHashSet;
use scenario::edit::EditSet;
use trace::LaneId;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let seen = Seen::by_ranges(scope, f).or_else(|| Seen::by_lines(scope, f));
    let seen = seen.or_else(|| Seen::by_kernels(scope, f))?;
    let part = seen.launches as f64 / seen.of.max(1) as f64;
    let is_many = cases::MANY_LAUNCHES.is_reached_by(seen.launches);
    if !is_many || !cases::OPTIMIZER_SHARE.is_reached_by(part) {
        return None;
    }
    let Seen { name, line, .. } = &seen;
    let knows = ["foreach", "fused"].iter().zip([SEVERAL, FUSED]);
    let mut knows = knows.filter(|it| {
        it.1.split(' ')
            .any(|it| name.split(" or ").any(|name| name == it))
    });
    let argument = knows.next_back().map(|it| *it.0);
    let about = if line.is_some() { "about " } else { "" };
    let whose = format!(
        "{about}{} of {} launches are in the optimizer's step ({name})",
        count(seen.launches as u64),
        count(seen.of as u64)
    );
    // Fewer kernels take less time, too.
    let bound = seen.idle_most + seen.kernels.unwrap_or((part * f.compute_ns as f64) as Ns);
    let is_main = cases::OPTIMIZER_SHARE.is_reached_by(share(seen.idle, f.idle_ns));
    let found = scope.found(f.span_ns, bound, &longest_first(seen.at.clone()));
    Some(Finding {
        title: format!(
            "{whose} ({}), for one parameter at a time{}",
            percent(part),
            super::words::seen_at(line.as_ref())
        ),
        advice: match argument {
            Some(argument) => format!("Make it with {argument}=True: it has a few launches for all parameters then. Then try a CUDA graph."),
            None => "Update all parameters at once with torch._foreach_ functions, or compile the step (torch.compile).".to_owned(),
        },
        change: match argument {
            Some(it) => scope.changes(&format!("torch.optim.{}: {it}=True", name.replace(" or ", "|torch.optim.")), line.as_ref()),
            None => scope.change("fuse", line.as_ref()),
        },
        says: Some(Says {
            bound: Bound::Launch,
            part: f.part(seen.idle),
            why: format!("as {name} launches its kernels one parameter at a time"),
        }),
        cures: seen.edit.into_iter().collect(),
        // A part of what a graph would cure, and one argument: it comes first, but where the GPU waits elsewhere.
        instead_of: if is_main { &[Rule::LaunchBound] } else { &[] },
        ..found
    })
}

/// The part of these operations' time whose launches lie in an optimizer's step, by the names of ranges around them.
pub(super) fn part_in_step(scope: &Scope, at: impl Iterator<Item = (LaneId, usize)>) -> f64 {
    part_in(scope, at, |it| it.to_lowercase().contains("optim"))
}

/// What part of the time of these operations was asked for in ranges of such names.
pub(super) fn part_in<F: Fn(&str) -> bool + 'static + Copy>(
    scope: &Scope,
    at: impl Iterator<Item = (LaneId, usize)>,
    is_such: F,
) -> f64 {
    if !scope.has_name(is_such) {
        return 0.0;
    }
    let graph = scope.causes.graph();
    let mut around = Around::new(scope.trace);
    let (mut inside, mut all) = (0, 0);
    for place in at {
        let time = scope.trace.lanes()[place.0].span(place.1).len();
        let call = graph.call_at(place);
        let names = (call != NONE).then(|| around.call(graph, call));
        let is_inside = names.unwrap_or_default().into_iter().any(is_such);
        inside += if is_inside { time } else { 0 };
        all += time;
    }
    share(inside, all)
}

/// PyTorch's optimizers that have a fused form on a GPU, and those that can take all parameters at once.
pub(super) const FUSED: &str = "Adam AdamW SGD";
const SEVERAL: &str = "Adam AdamW SGD Adagrad ASGD Adadelta Adamax NAdam RAdam RMSprop Rprop";

/// What is known of an optimizer's launches.
#[derive(Default)]
struct Seen {
    /// Its class ("AdamW").
    name: String,
    /// Its launches, of so many.
    launches: usize,
    of: usize,
    /// Idle time before them, and what it is at most, where samples tell.
    idle: Ns,
    idle_most: Ns,
    at: Vec<(Ns, Occurrence)>,
    /// How long its kernels run, where they are known.
    kernels: Option<Ns>,
    /// The launches of one step in one, where its range is known.
    edit: Option<EditSet>,
    /// Where it is stepped, where samples tell.
    line: Option<LineShare>,
}

/// Idle time that launching is to blame for, of a gap.
fn launching(scope: &Scope, gap: Gap, pieces: &[Piece]) -> Ns {
    let is_its = |it: &&Piece| scope.causes.group(gap, it) == Group::Launch;
    let is_short = gap.span.len() <= LAUNCH_GAP_MAX;
    let its = pieces.iter().filter(|it| is_short && is_its(it));
    its.map(|it| it.span.len()).sum()
}

/// What samples saw in the step of an optimizer of the program's own, which PyTorch calls. One whose kernels take several parameters
/// goes through none of them.
fn own_steps(scope: &Scope, all: &StackCounts) -> Option<StackCounts> {
    let is_called = |it: &Frame| it.file.ends_with("torch/optim/optimizer.py");
    let is_step = |it: &Frame| is_own(&it.file) && it.function.rsplit('.').next() == Some("step");
    let its = all.filtered(scope.trace, is_called);
    let its = its.filtered(scope.trace, is_step);
    let several = |it: &str| it.contains("multi_tensor_apply");
    (its.all > 0 && !scope.has_name(several)).then_some(its)
}

impl Seen {
    /// By PyTorch's range around the step, and the ops in it.
    fn by_ranges(scope: &Scope, f: &DeviceFigures) -> Option<Seen> {
        if !scope.has_name(|it| it.starts_with(OPTIMIZER)) {
            return None;
        }
        let graph = scope.causes.graph();
        let mut around = Around::new(scope.trace);
        let mut seen = Seen::default();
        let mut single = FxHashSet::default();
        for (place, activity) in scope.operations(f) {
            let call = graph.call_at(place);
            if !matches!(activity.what, What::Kernel(_)) || call == NONE {
                continue;
            }
            seen.of += 1;
            let names = around.call(graph, call);
            let step = names.iter().find_map(|it| it.strip_prefix(OPTIMIZER));
            let is_for_all = |it: &&str| it.starts_with("aten::_foreach") || it.contains("_fused_");
            if let Some(step) = step.filter(|_| !names.iter().any(is_for_all)) {
                step.trim_end_matches(".step").clone_into(&mut seen.name);
                seen.launches += 1;
                single.extend(graph.op_at(place.0, place.1));
            }
        }
        seen.edit = format!("fuse@{OPTIMIZER}{}.step", seen.name).parse().ok();
        seen.before(scope, f, &single)
    }

    /// By the kernels of Adam, from a parameter's first average to its new value, where nothing else tells.
    fn by_kernels(scope: &Scope, f: &DeviceFigures) -> Option<Seen> {
        if !scope.has_name(ends_adams_update) {
            return None;
        }
        let (trace, graph) = (scope.trace, scope.causes.graph());
        let single = adams_loop(trace, graph, scope.operations(f));
        let seen = Seen {
            name: "Adam or AdamW".to_owned(),
            launches: single.len(),
            of: f.kernels as usize,
            ..Seen::default()
        };
        seen.before(scope, f, &single)
    }

    /// Adds the idle time before these operations.
    fn before(mut self, scope: &Scope, f: &DeviceFigures, its: &FxHashSet<OpId>) -> Option<Seen> {
        for (gap, pieces) in scope.gaps(f).filter(|it| its.contains(&it.0.next)) {
            let idle = launching(scope, gap, &pieces);
            self.idle += idle;
            self.at.push((idle, Occurrence::Gap(f.index, gap.span)));
        }
        let ops = &scope.causes.graph().ops;
        self.kernels = Some(its.iter().map(|it| ops.span(*it).len()).sum());
        self.idle_most = self.idle;
        (!its.is_empty()).then_some(self)
    }

    /// By what samples saw of the launching thread while the GPU waited for launches: PyTorch's functions that go through
    /// parameters are named so.
    fn by_lines(scope: &Scope, f: &DeviceFigures) -> Option<Seen> {
        let is_of_torch = |file: &str| file.contains("torch/optim/");
        if !scope.trace.stacks().files().any(is_of_torch) {
            return None;
        }
        let is_its = |frame: &Frame| {
            is_of_torch(&frame.file) && frame.function.starts_with("_single_tensor_")
        };
        let (mut all, mut idle, mut at) = (StackCounts::default(), 0, Vec::new());
        for (gap, pieces) in scope.gaps(f) {
            let here = launching(scope, gap, &pieces);
            if here > 0 {
                idle += here;
                at.push((here, Occurrence::Gap(f.index, gap.span)));
                scope.causes.add_samples(gap.next, gap.span, &mut all);
            }
        }
        let its = all.filtered(scope.trace, is_its);
        let own = own_steps(scope, &all);
        let (its, is_own) = match own {
            Some(own) if own.all > its.all => (own, true),
            _ => (its, false),
        };
        let line = its.telling(scope.trace)?;
        let part = its.all as f64 / all.all as f64;
        // 19 of 20 times a share of samples lies within two standard deviations.
        let most = part + 2.0 * (part * (1.0 - part) / all.all as f64).sqrt();
        let named = |name: &&str| {
            let low = format!("_single_tensor_{}", name.to_lowercase());
            its.filtered(scope.trace, |it| it.function == low).all
        };
        let known = SEVERAL.split(' ').max_by_key(named);
        Some(Seen {
            name: match known.filter(|it| named(it) > 0) {
                _ if is_own => format!("Optimizer.step of {}", short_file(&line.file)),
                // Both go through one function.
                Some("Adam") => "Adam or AdamW".to_owned(),
                name => name?.to_owned(),
            },
            launches: (part * f.kernels as f64) as usize,
            of: f.kernels as usize,
            idle: (part * idle as f64) as Ns,
            idle_most: (most.min(1.0) * idle as f64) as Ns,
            at,
            line: Some(line),
            ..Seen::default()
        })
    }
}
