//! Many copies so small that their fixed cost is all they are.

use super::exchanges;
use super::sync_loop::is_dense;
use super::words::{every_kernels, seen_at};
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use crate::thresholds;
use activity::units::{bytes, duration};
use activity::{Copy, Direction, Ns, Place, What};
use causes::graph::{CallId, CallKind, Calls, NONE};
use causes::stacks::StackCounts;
use causes::{Bound, Culprit, Group};
use replay::edits::AROUND_MAX;

pub(super) fn check(scope: &Scope, figures: &DeviceFigures) -> Option<Finding> {
    let tiny = Tiny::of(scope, figures);
    let all = figures.h2d.count + figures.d2h.count;
    let count = tiny.at.len() as u64;
    let saving = tiny.saving.min(figures.span_ns);
    let is_worth = cases::WORTH_SHARE.is_reached_by(figures.part(saving));
    if count < thresholds::TINY_MIN || count * 2 < all || !is_worth {
        return None;
    }
    let found = scope.found(figures.span_ns, saving, &tiny.at);
    let each = tiny.moved / count;
    if tiny.uploads.len() == tiny.at.len()
        && let Some(finding) = before_each(scope, figures, (&tiny.uploads, each))
    {
        return Some(Finding {
            evidence: found.evidence,
            count,
            ..finding
        });
    }
    Some(Finding {
        title: format!(
            "{} ({} on average) take {}{}",
            activity::text::counted(count, "small copy", "small copies"),
            bytes(each),
            duration(tiny.copying),
            match tiny.calling {
                0 => String::new(),
                // What waits between them take goes as well.
                calling if tiny.saving as f64 > 1.1 * (tiny.copying as f64 + calling as f64) =>
                    format!(
                        ", their calls {}, with what lies between {}",
                        duration(calling),
                        duration(tiny.saving)
                    ),
                calling => format!(", their calls {}", duration(calling)),
            },
        ),
        advice: "Gather the values and copy them in one go, or do that work on the GPU.".to_owned(),
        ..found
    })
}

/// The small copies of a device between it and the CPU.
#[derive(Default)]
struct Tiny {
    at: Vec<Occurrence>,
    /// The calls of those to the device.
    uploads: Vec<CallId>,
    moved: u64,
    /// What they take, with what lies between those that follow each other.
    saving: Ns,
    copying: Ns,
    calling: Ns,
}

impl Tiny {
    fn of(scope: &Scope, figures: &DeviceFigures) -> Tiny {
        let mut tiny = Tiny::default();
        let exchanged = exchanges::of_device(scope, figures);
        let is_exchanged = |call| {
            exchanged
                .as_ref()
                .is_some_and(|it| it.calls.contains(&call))
        };
        // Copies follow each other on their stream: what lies between two tiny ones goes with them.
        let mut last: Option<(usize, usize, Ns, CallId)> = None;
        for &((lane, row), span, copy) in scope.copies(figures) {
            // What the driver moves by itself is another rule's.
            let is_asked = copy.place.stream < Place::EVICTED;
            let is_tiny = is_asked
                && matches!(copy.direction, Direction::H2D | Direction::D2H)
                && copy.bytes <= Copy::TINY_BYTES;
            let graph = scope.causes.graph();
            let call = graph.call_at((lane, row));
            if !is_tiny || cases::EXCHANGED_COPY.holds(is_exchanged(call)) {
                continue;
            }
            let called = match call {
                NONE => 0,
                call => graph.calls.span(call).len(),
            };
            // A copy costs what it takes, or what its thread does for it; other work between two is something else's.
            let (from, cost) = match last {
                Some((l, r, end, before)) if l == lane && r + 1 == row => {
                    (end.min(span.start), around(&graph.calls, call, before))
                }
                _ => (span.start, called),
            };
            tiny.saving += (span.end - from).min(cost.max(span.len()));
            tiny.moved += copy.bytes;
            tiny.copying += span.len();
            tiny.calling = tiny.calling.saturating_add(called);
            tiny.uploads
                .extend((copy.direction == Direction::H2D).then_some(call));
            last = Some((lane, row, span.end, call));
            tiny.at.push(Occurrence::Row((lane, row)));
        }
        tiny
    }
}

/// Uploads that the CPU waits for before every few kernels: nothing is launched ahead, and no graph holds them.
fn before_each(
    scope: &Scope,
    f: &DeviceFigures,
    (uploads, each): (&[CallId], u64),
) -> Option<Finding> {
    let calls = &scope.causes.graph().calls;
    let kind = |it: CallId| calls.kind[it as usize];
    let is_waited = |&&upload: &&CallId| {
        let behind = std::iter::successors(calls.next(upload), |&it| calls.next(it));
        let mut behind = behind
            .take(BACK)
            .take_while(|&it| kind(it) != CallKind::Copy);
        calls.waited[upload as usize] != NONE || behind.any(|it| kind(it).is_wait())
    };
    let known = uploads.iter().filter(|it| **it != NONE);
    let is_each = 2 * known.filter(is_waited).count() > uploads.len();
    let kernels = f.kernels / uploads.len() as u64;
    let works = scope.idle_that(f, |gap, it| scope.causes.group(*gap, it) == Group::Host);
    // What takes memory or starts a library is no matter of copies, nor is the profiler's own.
    let others = scope.idle_that(f, |gap, it| {
        let group = scope.causes.group(*gap, it);
        let is_first = || group != Group::Host && scope.causes.is_first(gap.next, it);
        matches!(group, Group::SetUp | Group::Profiler) || is_first()
    });
    let idle = f.idle_ns - others;
    let is_idle = cases::LAUNCH_IDLE_SHARE.is_reached_by(f.part(idle)) && 2 * works < idle;
    if scope.planned.is_some() || !is_each || !is_idle || !is_dense(kernels) {
        return None;
    }
    let last = *uploads.iter().rfind(|it| **it != NONE)?;
    let called = scope.causes.host_name(Culprit::Call(last))?;
    let seen = uploading(scope, f);
    let line = seen.telling(scope.trace);
    let beside = line.as_ref().and_then(|it| seen.beside(scope.trace, it));
    let beside = beside.map_or_else(String::new, |it| format!(", others at {it}"));
    let found = scope.found(f.span_ns, idle - works, &[]);
    let told = format!(
        "{} are uploaded before {}",
        bytes(each),
        every_kernels(kernels)
    );
    Some(Finding {
        title: format!(
            "{told}, by {}, and the CPU waits for it each time: the GPU is idle for {}{}{beside}",
            scope.trace.names().short(called),
            duration(idle),
            seen_at(line.as_ref()),
        ),
        advice: "Upload all values in one copy before the loop, or hand them to the kernel as arguments, and wait once.".to_owned(),
        says: Some(Says {
            bound: Bound::Sync,
            part: f.part(found.bound_ns),
            why: told,
        }),
        instead_of: &[Rule::LaunchBound, Rule::SyncInLoop],
        refused: Some("what can be launched ahead then is not known".to_owned()),
        ..found
    })
}

/// What the CPU was seen at in calls that upload little. All of the timeline tells of it: samples are few.
fn uploading(scope: &Scope, f: &DeviceFigures) -> StackCounts {
    let (graph, mut seen) = (scope.causes.graph(), StackCounts::default());
    for &op in graph.ops.of_device(f.index) {
        let call = graph.ops.call[op as usize];
        let is_upload = matches!(graph.what(scope.trace, op), What::Copy(it) if it.direction == Direction::H2D && it.bytes <= Copy::TINY_BYTES);
        if is_upload && call != NONE {
            let behind = graph.calls.next(call).unwrap_or(call);
            let span = graph.calls.span(call).hull(graph.calls.span(behind));
            scope.causes.add_samples(op, span, &mut seen);
        }
    }
    seen
}

/// So many calls back the call of the copy before is looked for, and so many on a wait.
const BACK: usize = 16;

/// What a thread does from one copy's call to the next one's return, without work of its own between calls. Where it does something
/// else for the GPU meanwhile the call alone is the copy's.
fn around(calls: &Calls, call: CallId, before: CallId) -> Ns {
    let (mut at, mut time) = (call, 0);
    for _ in 0..BACK {
        if at == NONE || at == before {
            break;
        }
        let kind = calls.kind[at as usize];
        // Nor do memory that is taken or pinned, and code that is loaded, go with copies.
        if at != call && !kind.is_wait() && kind != CallKind::Other {
            return calls.span(call).len();
        }
        // What a sync waits for besides is no matter of copies.
        time += match at == call {
            true => calls.span(at).len(),
            false => calls.span(at).len().min(AROUND_MAX),
        };
        let previous = calls.previous[at as usize];
        if previous != NONE {
            let between = calls.span(at).start - calls.span(previous).end;
            let is_near = between <= AROUND_MAX;
            time += if is_near { between.max(0) } else { 0 };
        }
        at = previous;
    }
    time
}
