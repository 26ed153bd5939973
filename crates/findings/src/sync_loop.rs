//! A wait for the GPU between one launch and the next, over and over.

use rustc_hash::{FxHashMap, FxHashSet};

use super::no_overlap::engines_of;
use super::words::{every_kernels, seen_at};
use super::{DeviceFigures, Finding, Occurrence, Rule, Says, Scope, longest_first};
use super::{exchanges, launch_bound};
use ::program::{At, Known, operators_cure};
use activity::text::listed;
use activity::units::{count, duration, percent};
use activity::{Direction, Ns, Span, What};
use causes::graph::{CallId, CallKind, NONE};
use causes::stacks::StackCounts;
use causes::{Bound, Cause, Gap, Group, Piece, around, first_use, needs};
use figures::{busy::longest, launches};

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    // What is idle around waits is a part of what is idle.
    if !cases::WORTH_SHARE.is_reached_by(f.idle_share()) {
        return None;
    }
    let waits = Waits::of(scope, f);
    let (idle, number) = (waits.idle(), waits.by_wait.len());
    let share = f.part(idle);
    let is_few = cases::FEW_WAITS.holds(cases::LARGE_SHARE.is_reached_by(share))
        && cases::FEW_WAITS_MIN.is_reached_by(number);
    let is_loop = is_few || cases::LOOP_MIN.is_reached_by(number);
    if !is_loop || !cases::WORTH_SHARE.is_reached_by(share) {
        return None;
    }
    let decides = waits.decide();
    let may_stay = waits.has_needed || decides;
    let kernels = f.kernels / number as u64;
    let of_each = Some(kernels).filter(|_| decides && waits.take_turns());
    let of_each = of_each.and_then(|kernels| waits.of_each(kernels));
    let is_each = of_each.is_some();
    // What is queued ahead does not start late on a GPU that had run out of work.
    let bound = of_each.unwrap_or_else(|| match may_stay {
        true => idle + waits.late,
        false => waits.removed().clamp(idle, idle + hideable(scope, f)) + waits.late,
    });
    let mut line = waits.seen.telling(scope.trace);
    if is_each && line.is_none() {
        // Waits of microseconds have few samples: launches wait for the same values.
        line = launch_bound::seen(scope, f).telling(scope.trace);
    }
    let known = (scope.sources(line.as_ref())).known(scope.trace, &waits.seen, At::Sync);
    let (advice, change, cure) = Known::or(known, || waits.advice(is_each));
    let found = scope.found(f.span_ns, bound, &waits.longest_first());
    let by = waits.told();
    let of_op = by.as_deref().map_or("", operators_cure);
    let idle = if is_each { found.bound_ns } else { idle };
    let without = (found.bound_ns - waits.late).max(idle);
    let title = title((f, &waits), by.as_deref(), idle, without) + &seen_at(line.as_ref());
    let (cap, beside) = waits.most(found.bound_ns, is_each);
    let said = match by {
        _ if is_each => Some((
            f.part(found.bound_ns),
            every(f.kernels, number, &waits.operators()),
        )),
        None => (known.zip(line.as_ref())).map(|(it, line)| (share, it.at(line))),
        by => by.map(|by| (share, format!("by {by}"))),
    };
    Some(Finding {
        title,
        advice: format!(
            "{advice}{of_op} Where a result decides what is launched next, its sync has to stay."
        ),
        change: scope.change(change, line.as_ref()),
        severity: found
            .severity
            .keep_where(cases::WARNING_SHARE.is_reached_by(share) && !decides || is_each),
        says: said.map(|(part, why)| Says {
            bound: Bound::Sync,
            part,
            why,
        }),
        instead_of: if is_each { &[Rule::LaunchBound] } else { &[] },
        beside_ns: beside,
        cure,
        cap_ns: Some(cap),
        // Where what comes back is staged, the next call waits all the same.
        cures: match change {
            "pin" => "no-sync+pin".parse().into_iter().collect(),
            _ => Vec::new(),
        },
        refused: may_stay
            .then(|| "the CPU may use what it waits for, so some syncs have to stay".to_owned()),
        ..found
    })
}

/// What keeps the GPU idle, and for how long engines do not overlap on top of that.
fn title((f, waits): (&DeviceFigures, &Waits), by: Option<&str>, idle: Ns, bound: Ns) -> String {
    let number = waits.by_wait.len() as u64;
    let whose = by.map_or_else(String::new, |by| format!(" ({by})"));
    let apart = match bound - idle {
        more if 20 * more >= idle => {
            format!(
                ", and the work around each apart for at most {} more",
                duration(more)
            )
        }
        _ => String::new(),
    };
    format!(
        "{}{whose} between launches keep the GPU idle for {} ({}){apart}",
        activity::text::counted(number, "CPU sync", "CPU syncs"),
        duration(idle),
        percent(f.part(idle)),
    )
}

/// How often a value is read back: behind every so many kernels, where that is a whole number of them.
fn every(kernels: u64, reads: usize, operators: &[String]) -> String {
    let by = match operators {
        [] => String::new(),
        some => format!(", by {}", listed(some)),
    };
    let each = kernels as f64 / reads.max(1) as f64;
    let whole = each.round().max(1.0);
    match (each - whole).abs() < 0.1 * whole {
        true => format!(
            "a value is read back after {}{by}",
            every_kernels(whole as u64)
        ),
        false => format!(
            "values are read back {} times beside {} kernels{by}",
            count(reads as u64),
            count(kernels),
        ),
    }
}

/// Flags, sums, tokens of a batch. What is larger is a result, which decides nothing by itself.
const VALUE_BYTES: u64 = 4 << 10;

/// Whether so few kernels lie between two waits that nothing is gained by launching those together.
pub(super) fn is_dense(kernels: u64) -> bool {
    kernels > 0 && !cases::GRAPH_MIN.is_reached_by(kernels as usize)
}

/// The waits that idle time of a device lies in or behind.
struct Waits<'s, 'a> {
    scope: &'s Scope<'a>,
    f: &'s DeviceFigures,
    by_wait: FxHashMap<CallId, Ns>,
    /// Idle time behind them in which what was launched had not begun, and nothing says why.
    late: Ns,
    spans: Vec<Span>,
    /// The gaps that it lies in.
    gaps: Vec<Span>,
    seen: StackCounts,
    /// Calls of exchanges through the host's memory, which another rule tells of.
    exchanged: FxHashSet<CallId>,
    /// Whether the CPU works on what it waits for at others.
    has_needed: bool,
    /// Whether the program has managed memory: what the CPU works on behind a sync may be that.
    is_managed: bool,
}

impl<'s, 'a> Waits<'s, 'a> {
    fn of(scope: &'s Scope<'a>, f: &'s DeviceFigures) -> Self {
        let mut waits = Waits {
            scope,
            f,
            by_wait: FxHashMap::default(),
            late: 0,
            spans: Vec::new(),
            gaps: Vec::new(),
            seen: StackCounts::default(),
            exchanged: exchanges::of_device(scope, f)
                .map_or_else(FxHashSet::default, |it| it.calls),
            has_needed: false,
            is_managed: scope.planned.is_none() && scope.is_managed(f),
        };
        for (gap, pieces) in scope.gaps(f) {
            let before = waits.spans.len();
            for piece in &*pieces {
                if let Some(wait) = scope.causes.wait_of(piece) {
                    waits.add(wait, &gap, piece);
                }
            }
            let is_late = |it: &&Piece| it.cause == Cause::LateStart;
            let late = pieces.iter().filter(is_late).map(|it| it.span.len());
            if waits.spans.len() > before {
                waits.late += late.sum::<Ns>();
                waits.gaps.push(gap.span);
            }
        }
        waits.leave_chance();
        waits
    }

    /// Leaves out waits of threads that launch nothing where the GPU goes on behind most of them: they only take results.
    fn leave_chance(&mut self) {
        let calls = &self.scope.causes.graph().calls;
        let window = self.scope.window_on(self.f.index).unwrap_or(self.f.span);
        let lanes: FxHashSet<u32> = self
            .by_wait
            .keys()
            .map(|it| calls.lane[*it as usize])
            .collect();
        let is_by_chance = |lane: &u32| {
            let all = calls.of_lane(*lane as usize);
            let kind = |it: &CallId| calls.kind[*it as usize];
            let is_wait = |it: &&CallId| kind(it).is_wait() && window.overlaps(calls.span(**it));
            let its = self
                .by_wait
                .keys()
                .filter(|it| calls.lane[**it as usize] == *lane);
            let is_one = !all.iter().any(|it| kind(it).is_launch())
                && 2 * its.count() < all.iter().filter(is_wait).count();
            cases::WAITS_BY_CHANCE.holds(is_one)
        };
        let left: FxHashSet<u32> = lanes.into_iter().filter(is_by_chance).collect();
        if !left.is_empty() {
            self.by_wait
                .retain(|it, _| !left.contains(&calls.lane[*it as usize]));
            self.spans = self.by_wait.keys().map(|it| calls.span(*it)).collect();
        }
    }

    fn add(&mut self, wait: CallId, gap: &Gap, piece: &Piece) {
        let (scope, calls) = (self.scope, &self.scope.causes.graph().calls);
        let is_search = self.operator(wait).is_some_and(first_use::is_search);
        if cases::SEARCH.holds(is_search)
            || cases::EXCHANGED_WAIT.holds(self.exchanged.contains(&wait))
        {
            return;
        }
        let may_read = self.is_managed && piece.cause == Cause::Host;
        if cases::MAY_READ_MANAGED.holds(may_read)
            || cases::LONG_WORK_BEHIND.holds(piece.is_long_work(gap))
            || cases::READS_WHAT_CAME.holds(needs::is_needed(
                scope.trace,
                scope.causes.graph(),
                wait,
            ))
        {
            self.has_needed = true;
        } else if !cases::STAGED_BACK.holds(is_staged(scope, wait)) {
            *self.by_wait.entry(calls.with_copy(wait)).or_default() += piece.span.len();
            self.spans.push(calls.span(wait));
            scope
                .causes
                .add_samples(gap.next, piece.span, &mut self.seen);
        }
    }

    /// The range that a call was made in, by name.
    fn operator(&self, call: CallId) -> Option<&'s str> {
        let graph = self.scope.causes.graph();
        Some(first_use::operator(self.scope.trace, graph, call)?.1)
    }

    /// Whether kernels run before a quarter of the waits: a phase of its own may have all of the kernels.
    fn take_turns(&self) -> bool {
        let mut waits: Vec<Ns> = self.spans.iter().map(|it| it.end).collect();
        waits.sort_unstable();
        let kernels = self.scope.operations(self.f).map(|it| it.1);
        let kernels = kernels.filter(|it| matches!(it.what, What::Kernel(_)));
        let behind = kernels.map(|it| waits.partition_point(|wait| *wait <= it.span.start));
        4 * behind.collect::<FxHashSet<_>>().len() > self.by_wait.len()
    }

    /// Who waits, where one does for most of it.
    fn told(&self) -> Option<String> {
        let waits = self.by_wait.iter().map(|(&wait, &time)| (wait, time));
        let most = around::by_name(self.scope.causes, waits, around::told)
            .into_iter()
            .next();
        most.filter(|it| 2 * it.1 >= self.sum())
            .map(|it| it.0)
            .or_else(|| self.sizes())
    }

    /// PyTorch's operator by what it launches behind the value that it reads: it keeps so many of all as that says.
    fn sizes(&self) -> Option<String> {
        let (trace, graph) = (self.scope.trace, self.scope.causes.graph());
        let keeps = |wait: CallId| {
            let waited = graph.calls.waited[wait as usize];
            let place = (waited != NONE).then(|| graph.ops.place(waited));
            let next = place.and_then(|(lane, row)| graph.op_at(lane, row + 1));
            let Some(What::Kernel(it)) = next.map(|it| graph.what(trace, it)) else {
                return false;
            };
            let name = trace.names().full(trace.shape(it.shape).name);
            name.contains("at_cuda_detail") && name.contains("DeviceCompactInit")
        };
        self.are_mostly(keeps).then(|| "aten::nonzero".to_owned())
    }

    fn sum(&self) -> Ns {
        self.by_wait.values().sum()
    }

    /// The idle time, at most what the waits last: without them no more is won.
    fn idle(&self) -> Ns {
        self.sum().min(Span::union_len(self.spans.clone()))
    }

    /// Whether waits that are wanted hold half of it.
    fn are_mostly(&self, is_wanted: impl Fn(CallId) -> bool) -> bool {
        let wanted = self.by_wait.iter().filter(|it| is_wanted(*it.0));
        2 * wanted.map(|it| *it.1).sum::<Ns>() >= self.sum()
    }

    /// Whether the thread goes on to copy back to pageable memory, and does not launch before.
    fn are_before_staged(&self) -> bool {
        let next = |wait| self.scope.causes.graph().calls.next(wait);
        self.are_mostly(|wait| next(wait).is_some_and(|it| is_staged(self.scope, it)))
    }

    /// Whether a value or a few come back to the CPU.
    fn are_of_values(&self) -> bool {
        let is_value = |bytes| bytes <= VALUE_BYTES;
        self.are_mostly(|wait| {
            needs::fetched(self.scope.trace, self.scope.causes.graph(), wait).is_some_and(is_value)
        })
    }

    /// Whether what comes back may say what is launched next. Only what `.item()` brings is mostly printed.
    fn decide(&self) -> bool {
        let is_item = |wait| {
            matches!(
                self.operator(wait),
                Some("aten::_local_scalar_dense" | "aten::item")
            )
        };
        let is_printed = || cases::PRINTED_VALUE.holds(self.are_mostly(is_item));
        let of_values = self.scope.planned.is_none() && self.are_of_values() && !is_printed();
        cases::MANAGED_DECIDES.holds(self.is_managed) || cases::VALUE_DECIDES.holds(of_values)
    }

    /// The idle time behind values that are read back after every few kernels. A graph has little to hold between two of them,
    /// and all launches wait for the value before.
    fn of_each(&self, kernels: u64) -> Option<Ns> {
        let (scope, f) = (self.scope, self.f);
        let is_work = |gap: &Gap, it: &Piece| scope.causes.group(*gap, it) == Group::Host;
        let works = scope.idle_that(f, is_work);
        // Work of the CPU that has a name is the place to look at.
        let named = |it: &Piece| scope.causes.host_name(it.culprit).is_some();
        let known = scope.idle_that(f, |gap, it| is_work(gap, it) && named(it));
        let is_more = 2 * works < f.idle_ns && 4 * known < f.idle_ns;
        let is_cut = || is_dense(kernels) || self.are_cut(kernels);
        (self.are_of_values() && is_more && is_cut()).then_some(f.idle_ns - works)
    }

    /// Whether values cut a step into pieces of few kernels: no graph reaches across them.
    fn are_cut(&self, kernels: u64) -> bool {
        let (reads, steps) = (self.by_wait.len() as f64, self.scope.steps as f64);
        // Behind the last one of all nothing may be idle.
        let of_step = (reads / steps).round() as usize;
        let is_within = || steps > 0.0 && cases::READS_WITHIN.is_reached_by(of_step);
        !cases::CUT_MIN.is_reached_by(kernels as usize) && (is_within() || self.sizes().is_some())
    }

    /// What to do, the change of the source, and how that is called as a cure.
    fn advice(&self, is_each: bool) -> (&'static str, &'static str, &'static str) {
        let cure = if is_each { "reading it less often" } else { "" };
        let is_staged = || cases::WAITS_ALL_THE_SAME.holds(self.are_before_staged());
        let window = self.scope.window_on(self.f.index).unwrap_or(self.f.span);
        let graph = self.scope.causes.graph();
        let are_requests = launches::have_input(graph, window, self.f, self.by_wait.len());
        match self.are_of_values() {
            true if cases::REQUESTS.holds(are_requests) => (
                "Each graph launch has input of its own, and the CPU waits for its result. Give it several inputs at once, or launch the next before that wait.",
                "",
                "batching requests",
            ),
            true if is_each && !self.operators().is_empty() => (
                "Do such operations for many at once, or bring the data to the CPU in one copy.",
                match self.sizes() {
                    Some(_) => "sizes",
                    None => "keep-values",
                },
                cure,
            ),
            true if is_each => (
                "Keep the value on the GPU where a kernel takes it. Where it only ends the loop, look at it in every tenth round.",
                "keep-values",
                cure,
            ),
            true => (
                "Keep the values on the GPU, or copy many back at once.",
                "keep-values",
                cure,
            ),
            false if is_staged() => (
                "Behind these syncs the CPU copies to pageable memory, which waits too: without the sync alone nothing is won. Pin that memory, copy asynchronously, and wait for it one round later.",
                "pin",
                "pinning what comes back, without the syncs",
            ),
            false => (
                "Launch ahead and sync once at the end. Where a stream needs another's result, use an event (cudaStreamWaitEvent).",
                "",
                match is_ordering(self.scope, self.f) {
                    true => "ordering by events",
                    false => cure,
                },
            ),
        }
    }

    /// The operators of PyTorch that wait most, two at most. Some, such as nonzero, wait for a value of their own.
    fn operators(&self) -> Vec<String> {
        let waits = self.by_wait.keys().map(|&wait| (wait, 1));
        let names = around::by_name(self.scope.causes, waits, around::outermost).into_iter();
        let names: Vec<String> = names.take(2).map(|it| it.0).collect();
        if names.is_empty() {
            self.sizes().into_iter().collect()
        } else {
            names
        }
    }

    /// What no cure can exceed, and what goes beside the bound.
    fn most(&self, bound: Ns, is_each: bool) -> (Ns, Ns) {
        let (scope, f) = (self.scope, self.f);
        let beside = scope.beside(f, self.gaps.iter().copied(), bound, Ns::MAX);
        let cap = f.idle_ns + hideable(scope, f);
        if is_each {
            // What is done for many at once has fewer kernels.
            return (cap, beside + launch_bound::batched(scope, f));
        }
        // The thread that waits does the rest of its work all the same.
        let cap = cap.min((self.removed() + self.late).max(bound));
        (cap, beside.min((cap - bound).max(0)))
    }

    /// What all waits last. They keep engines from working beside each other, too, which is no idle time.
    fn removed(&self) -> Ns {
        let calls = &self.scope.causes.graph().calls;
        let window = self.scope.window_on(self.f.index).unwrap_or(self.f.span);
        let waited = self.scope.processes(self.f).into_iter();
        let waited = waited
            .flat_map(|process| calls.ended(process, Ns::MAX))
            .filter(|call| calls.waited[**call as usize] != NONE)
            .map(|&call| calls.span(call))
            .filter(|span| span.overlaps(window));
        Span::union_len(waited.collect())
    }

    fn longest_first(&self) -> Vec<Occurrence> {
        let calls = &self.scope.causes.graph().calls;
        let mut at: Vec<_> = self.by_wait.iter().collect();
        at.sort_unstable();
        let row = |it: (&CallId, &Ns)| (*it.1, Occurrence::Row(calls.at(*it.0)));
        longest_first(at.into_iter().map(row).collect())
    }
}

/// What engines could hide of each other. Only a scenario says which kernels of two streams need each other. On one stream
/// each waits for the one before.
fn hideable(scope: &Scope, f: &DeviceFigures) -> Ns {
    match scope.planned {
        Some(_) => {
            let lanes = scope.trace.streams_of(f.index).map(|it| it.0);
            let longest = longest(scope.trace, lanes.map(|id| (id, scope.rows(id))));
            let packed = engines_of(scope, f).packable();
            packed.min((f.busy_ns - longest).max(0))
        }
        None if streams(scope, f) > 1 => engines_of(scope, f).hideable(),
        None => 0,
    }
}

/// Whether the waits keep copies and kernels of several streams in order: without them something else has to.
fn is_ordering(scope: &Scope, f: &DeviceFigures) -> bool {
    scope.planned.is_some() && f.copy_ns > 0 && f.kernels > 0 && streams(scope, f) > 1
}

/// Streams with operations.
fn streams(scope: &Scope, f: &DeviceFigures) -> usize {
    let lanes = scope.trace.streams_of(f.index).map(|it| it.0);
    lanes.filter(|&id| !scope.rows(id).is_empty()).count()
}

/// Whether it waits for a copy of pageable memory to be staged: a copy back, or an upload before the device's first kernel.
/// `pageable-copy` tells of those.
fn is_staged(scope: &Scope, wait: CallId) -> bool {
    let graph = scope.causes.graph();
    let calls = &graph.calls;
    let waited = calls.waited[wait as usize];
    if waited == NONE || !scope.causes.is_staged(waited) {
        return false;
    }
    let is_back = calls.kind[wait as usize] == CallKind::Copy
        && needs::fetched(scope.trace, graph, wait).is_some();
    let is_upload = || matches!(graph.what(scope.trace, waited), What::Copy(it) if it.direction == Direction::H2D);
    let first = || graph.ops.first_kernel(scope.causes.device(waited)?);
    let is_early = || first().is_none_or(|it| graph.ops.end[waited as usize] <= it);
    is_back || is_upload() && is_early()
}
