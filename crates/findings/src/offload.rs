//! Work that goes from the GPU to the CPU and back, round after round: an optimizer on the CPU, offloaded weights.

use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope};
use activity::text::{NAME_MAX, cut_middle};
use activity::units::{bytes, duration, percent};
use activity::{Direction, Ns, Span};
use causes::around::Around;
use causes::graph::CallId;
use causes::{Bound, needs};
use figures::large_copies::{LargeCopies, is_made_of};
use rustc_hash::FxHashMap;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let rounds = Rounds::of(scope, f);
    // Copies and threads may run at once.
    let [back, work, forth] = rounds.times.map(|it| it.min(f.span_ns));
    let all = (back + work + forth).min(f.span_ns);
    let copied = (back + forth).min(all);
    let is_loop = cases::FEW_WAITS_MIN.is_reached_by(rounds.at.len());
    // Copies that take little are no matter beside what the CPU does.
    let is_much = cases::LARGE_SHARE.is_reached_by(f.part(copied));
    if !is_loop || !is_much || !cases::HOST_SHARE.is_reached_by(f.part(all)) {
        return None;
    }
    let (copies, works) = (percent(f.part(copied)), percent(f.part(work)));
    let name = rounds.name.as_deref().unwrap_or("CPU work");
    let in_chunks = (all - back.max(work).max(forth)).max(0);
    // Where a library or the program calls it so, the GPU's memory is most likely too small for it.
    let is_meant = ["offload", "cpu"]
        .iter()
        .any(|it| name.to_lowercase().contains(it));
    let is_meant = cases::OFFLOADED_ON_PURPOSE.holds(rounds.name.is_some() && is_meant);
    let (saving, cure, change) = match is_meant {
        true => (in_chunks, "", "streams"),
        false => (all, "keeping it on the GPU", "keep-work"),
    };
    Some(Finding {
        title: format!(
            "offloading, {} of the time: {} are copied back ({}), worked on by {name} ({}), and copied forth ({}), one after the other",
            percent(f.part(all)),
            bytes(rounds.bytes),
            duration(back),
            duration(work),
            duration(forth),
        ),
        advice: format!(
            "Each part needs the one before. Keep that work on the GPU where memory allows; in chunks, so that copies run beside it, at most {} go.",
            duration(in_chunks)
        ),
        change: scope.change(change, None),
        cure,
        says: Some(Says {
            bound: Bound::Host,
            part: f.part(all),
            why: format!("offloading: {name} {works}, copies {copies}"),
        }),
        instead_of: &[Rule::HostBound, Rule::NoOverlap],
        ..scope.found(f.span_ns, saving, &rounds.at)
    })
}

/// What the rounds take.
#[derive(Default)]
struct Rounds {
    /// Copies back, the CPU's work on what they brought, copies of what it made.
    times: [Ns; 3],
    /// What is copied back.
    bytes: u64,
    at: Vec<Occurrence>,
    /// What the CPU is at in the first of them.
    name: Option<String>,
}

impl Rounds {
    fn of(scope: &Scope, f: &DeviceFigures) -> Rounds {
        let graph = scope.causes.graph();
        let calls = &graph.calls;
        let window = scope.window_on(f.index).unwrap_or(f.span);
        let mut rounds = Rounds::default();
        if scope.copies(f).is_empty() {
            return rounds;
        }
        let needed = scope.program.needed.get_or_init(|| needed(scope));
        let Some(needed) = needed.get(&f.index) else {
            return rounds;
        };
        let copies = LargeCopies::of(graph, f.index, scope.copies(f).iter());
        let mut since = Ns::MIN;
        for (at, &call) in needed.iter().enumerate() {
            let end = calls.end[call as usize];
            if !window.contains(end) || end < since {
                continue;
            }
            let Some((next, works)) = needs::work_behind(graph, call) else {
                continue;
            };
            let work = Span::new(end, calls.start[next as usize]);
            // What is asked for behind the next wait is of the next round.
            let next_wait = needed.get(at + 1);
            let next_wait = next_wait.map_or(Ns::MAX, |it| calls.end[*it as usize]);
            let until = copies.next_kernel(work.end).min(next_wait).max(work.end);
            let (back, came) = copies.sum(Direction::D2H, Span::new(since, end), end);
            let (forth, went) = copies.sum(Direction::H2D, Span::new(work.end, until), Ns::MAX);
            if is_made_of(went, came) {
                let times = rounds.times.iter_mut().zip([back, works, forth]);
                times.for_each(|(it, more)| *it += more);
                rounds.bytes += came;
                rounds.at.push(Occurrence::Gap(f.index, work));
                let named = || name_of(scope, call, work);
                rounds.name = rounds.name.take().or_else(named);
            }
            since = end;
        }
        rounds
    }
}

/// By device, waits for what was copied back that the CPU works on.
fn needed(scope: &Scope) -> FxHashMap<usize, Vec<CallId>> {
    let (trace, graph) = (scope.trace, scope.causes.graph());
    let mut needed: FxHashMap<usize, Vec<CallId>> = FxHashMap::default();
    let all = 0..graph.calls.len() as CallId;
    for call in all.filter(|&call| needs::is_needed(trace, graph, call)) {
        let (lane, _) = graph.ops.place(graph.calls.waited[call as usize]);
        if let Some(device) = trace.lanes()[lane].key().kind.device() {
            needed.entry(device).or_default().push(call);
        }
    }
    needed
}

/// The innermost range that most of a stretch lies in: with its middle it covers the first quarter, or the last.
fn name_of(scope: &Scope, call: CallId, work: Span) -> Option<String> {
    let lane = scope.causes.graph().calls.at(call).0;
    let mut around = Around::new(scope.trace);
    let quarters = [1, 2, 3].map(|it| around.at(lane, work.start + work.len() / 4 * it));
    let [first, middle, last] = quarters;
    let covers = |it: &&&str| first.contains(it) || last.contains(it);
    let mut names = middle.iter().filter(|it| !it.starts_with("ProfilerStep"));
    names.find(covers).map(|it| cut_middle(it, NAME_MAX))
}
