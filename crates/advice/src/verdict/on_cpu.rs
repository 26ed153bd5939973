//! What the CPU does in a recording without any operation of a GPU: its own times are all there is to tell.

use rustc_hash::FxHashMap;

use activity::text::{NAME_MAX, cut_middle, printable};
use activity::units::{count, duration, percent, share};
use activity::{Ns, RangeKind, Span, What};
use causes::stacks::StackCounts;
use figures::steps::without_numbers;
use trace::{LaneId, LaneKind, SourceKind, Trace};

use super::BOUND_MIN;

/// So many names are told, where each takes this part of the time.
const NAMES_MAX: usize = 4;
const NAME_SHARE: f64 = 0.02;

/// What a range is called that has no name.
const NAMELESS: &str = "?";

/// What goes by one name on a thread.
#[derive(Default)]
struct Named {
    name: String,
    count: u64,
    time: Ns,
    longest: Ns,
    /// Without what else lies within.
    own: Ns,
}

/// What a thread does, from the first of it to the last.
struct Work {
    span: Span,
    by: FxHashMap<String, Named>,
}

/// Where most of the CPU's time goes, and a sentence each of what is known of it: operators, calls, ranges, samples.
pub(super) fn told(trace: &Trace) -> (Option<String>, Vec<String>) {
    let lanes = trace.lanes().iter().enumerate();
    // Operators lie among ranges. A report of nsys has calls of the system there, in which threads mostly wait.
    let own = |key: &LaneKind| match key {
        LaneKind::Thread { .. } => true,
        LaneKind::Range { kind, .. } => *kind == RangeKind::Nvtx,
        _ => false,
    };
    let lanes = lanes.filter(|it| own(&it.1.key().kind));
    let of = |kind: Option<RangeKind>| {
        let work = lanes.clone().filter_map(|it| Work::of(trace, it.0, kind));
        let is_told = kind != Some(RangeKind::CpuOp) || trace.source.kind == SourceKind::Kineto;
        work.filter(|_| is_told).max_by_key(Work::time)
    };
    let kinds = [None, Some(RangeKind::CpuOp), Some(RangeKind::Nvtx)];
    let [calls, operators, ranges] = kinds.map(of);
    let all = [
        (&calls, "CUDA calls"),
        (&operators, "CPU operators"),
        (&ranges, "ranges"),
    ];
    let mut known = all
        .into_iter()
        .filter_map(|it| Some((it.0.as_ref()?, it.1)));
    let told = known.clone().filter_map(|(work, what)| work.list(what));
    let told = told.chain(sampled(trace)).collect();
    (known.find_map(|it| it.0.most()), told)
}

/// What samples saw its busiest thread at.
fn sampled(trace: &Trace) -> Option<String> {
    let all = super::outside::recorded(trace)?;
    let of = trace.processes().iter().enumerate();
    let threads = of.filter_map(|(process, it)| Some((process, *it.sampled.busiest(1).first()?)));
    let (process, thread) = threads.max_by_key(|&(process, thread)| {
        let sampled = &trace.processes()[process].sampled;
        sampled.within(thread, all).count()
    })?;
    let mut seen = StackCounts::default();
    seen.add_samples(trace, process, thread, all);
    Some(format!(
        "{} sampled, {}",
        duration(all.len()),
        seen.work(trace)?
    ))
}

impl Work {
    fn of(trace: &Trace, id: LaneId, kind: Option<RangeKind>) -> Option<Work> {
        let lane = &trace.lanes()[id];
        let span = lane.extent()?;
        let mut work = Work {
            span,
            by: FxHashMap::default(),
        };
        let mut around: Vec<(Ns, String)> = Vec::new();
        for (_, activity) in trace.activities(id, lane.kept()) {
            let (name, of) = match activity.what {
                What::Call(it) => (it.name, None),
                What::Range(it) => (it.name, Some(it.kind)),
                _ => continue,
            };
            if of != kind {
                continue;
            }
            let raw = trace.names().full(name);
            if raw == NAMELESS {
                continue;
            }
            let name = match kind {
                Some(RangeKind::Nvtx) => without_numbers(raw).0,
                _ => raw.to_owned(),
            };
            let span = activity.span;
            around.retain(|it| it.0 > span.start);
            if let Some(it) = around.last().and_then(|it| work.by.get_mut(&it.1)) {
                it.own -= span.len();
            }
            let it = work.by.entry(name.clone()).or_default();
            // Its numbers tell some from others.
            let is_one = it.count == 0 || it.name == raw;
            *it = Named {
                name: if is_one { raw } else { &name }.to_owned(),
                count: it.count + 1,
                time: it.time + span.len(),
                longest: it.longest.max(span.len()),
                own: it.own + span.len(),
            };
            around.push((span.end, name));
        }
        (!work.by.is_empty()).then_some(work)
    }

    fn time(&self) -> Ns {
        self.by.values().map(|it| it.own).sum()
    }

    /// "62 % of the CPU's 3.22 s is in `cudaMalloc`".
    fn most(&self) -> Option<String> {
        let most = self.by.iter().max_by_key(|it| (it.1.own, it.0))?;
        let part = share(most.1.own, self.span.len());
        (part >= BOUND_MIN).then(|| {
            let (part, all) = (percent(part), duration(self.span.len()));
            format!("{part} of the CPU's {all} is in {}", quoted(&most.1.name))
        })
    }

    /// "ranges: `decoder` 111 s (132 of 842 ms), `attention` 67.9 s (132 of 514 ms)".
    fn list(&self, what: &str) -> Option<String> {
        let mut by: Vec<_> = self.by.iter().collect();
        by.retain(|it| share(it.1.time, self.span.len()) >= NAME_SHARE);
        by.sort_by_key(|it| (std::cmp::Reverse(it.1.time), it.0));
        let told = by.iter().take(NAMES_MAX).map(|(_, it)| {
            let each = match it.count {
                1 => String::new(),
                many if 2 * it.longest > it.time => {
                    format!(" ({}, one of {})", count(many), duration(it.longest))
                }
                many => format!(" ({} of {})", count(many), duration(it.time / many as Ns)),
            };
            format!("{} {}{each}", quoted(&it.name), duration(it.time))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("{what}: {}", told.join(", ")))
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", printable(&cut_middle(name, NAME_MAX)))
}

#[cfg(test)]
mod tests {
    use super::told;
    use activity::{Ns, RangeKind};
    use trace::testing::Scene;

    const MS: Ns = 1_000_000;

    #[test]
    fn calls_and_ranges_are_told_without_any_operation() {
        // Ten rounds of 10 ms: 6 ms take memory, 1 ms waits.
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 10 * MS) {
            scene.call("cudaMalloc", at, at + 6 * MS);
            scene.call("cudaDeviceSynchronize", at + 9 * MS, at + 10 * MS);
            let name = format!("round {at}");
            scene.range(RangeKind::Nvtx, &name, 0, at, at + 10 * MS);
        }
        let (most, all) = told(&scene.trace());
        assert_eq!(
            most.as_deref(),
            Some("60 % of the CPU's 100 ms is in `cudaMalloc`")
        );
        let calls = "CUDA calls: `cudaMalloc` 60.0 ms (10 of 6.00 ms), `cudaDeviceSynchronize` 10.0 ms (10 of 1.00 ms)";
        assert_eq!(all, [calls, "ranges: `round #` 100 ms (10 of 10.0 ms)"]);
    }
}
