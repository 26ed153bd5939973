//! An optimizer that launches its kernels for one parameter after the other, while the GPU waits for launches.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use activity::anonymous::short_file;
use activity::units::{count, duration, percent, share};
use activity::{Frame, Ns, What};
use causes::around::{Around, OPTIMIZER};
use causes::graph::{NONE, OpId};
use causes::stacks::{LineShare, StackCounts};
use causes::{Bound, Gap, Group, LAUNCH_GAP_MAX, Piece};
use figures::own_work::{adams_loop, ends_adams_update, own_steps};
use rustc_hash::FxHashSet;
use scenario::edit::EditSet;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    one_by_one(scope, f).or_else(|| zeroed(scope, f))
}

/// Gradients that are filled with zeros one by one before backward adds to them.
fn zeroed(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let fills = Seen::by_ranges(scope, f, ZERO_GRAD)?;
    let adds = Seen::by_ranges(scope, f, "torch::autograd::AccumulateGrad").unwrap_or_default();
    let time = |of: &Seen| of.idle + of.kernels.unwrap_or(0);
    let [own, all] = [time(&fills), time(&fills) + time(&adds)];
    let is_worth = cases::WARNING_SHARE.is_reached_by(f.part(own));
    if !is_worth || !cases::MANY_LAUNCHES.is_reached_by(fills.launches) {
        return None;
    }
    let (number, [own, part]) = (fills.launches as u64, [duration(own), percent(f.part(own))]);
    let found = scope.found(f.span_ns, all, &longest_first(fills.at));
    Some(Finding {
        title: format!("zero_grad fills gradients with zeros, one by one: {} launches take {own} ({part})", count(number)),
        advice: "Set gradients to None: backward then writes each in place of adding to zeros, so that those additions go, too.".to_owned(),
        change: scope.changes("optimizer.zero_grad: set_to_none=True", None),
        cure: "zero_grad(set_to_none=True)",
        ..found
    })
}

/// PyTorch's range around filling gradients.
const ZERO_GRAD: &str = "Optimizer.zero_grad#";

fn one_by_one(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    if !cases::LAUNCH_IDLE_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let seen = Seen::by_ranges(scope, f, OPTIMIZER).or_else(|| Seen::by_lines(scope, f));
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

impl Seen {
    /// By PyTorch's ranges around the step, and the ops in them.
    fn by_ranges(scope: &Scope, f: &DeviceFigures, range: &str) -> Option<Seen> {
        if !scope.has_name(|it| it.starts_with("Optimizer.")) {
            return None;
        }
        let graph = scope.causes.graph();
        let mut around = Around::new(scope.trace);
        let mut seen = Seen::default();
        let mut single = FxHashSet::default();
        for (place, activity) in scope.operations(f) {
            let call = graph.call_at(place);
            let is_set = range == ZERO_GRAD && matches!(activity.what, What::Memset(_));
            if !(is_set || matches!(activity.what, What::Kernel(_))) || call == NONE {
                continue;
            }
            seen.of += 1;
            let names = around.call(graph, call);
            let step = names.iter().find_map(|it| it.strip_prefix(range));
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
        let own = own_steps(scope.trace, &all);
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
