//! Managed memory that the driver moves when it is touched.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Copied, DeviceFigures, Finding, Occurrence, Says, Scope, configs, longest_first, pageable,
};
use crate::thresholds;
use activity::stats::lower_median;
use activity::units::{bytes, count, duration, percent, share};
use activity::{Direction, Ns, Place as On, ShapeId, Span, What};
use causes::Cause;

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let copies = || scope.copies(f).iter().filter(is_page);
    let at = copies().map(|it| (it.1.len(), Occurrence::Row(it.0)));
    let at: Vec<_> = at.collect();
    (!at.is_empty()).then_some(())?;
    let moved: u64 = copies().map(|it| it.2.bytes).sum();
    let evicted = evicted(copies());
    let moving = copies().map(|it| it.1);
    let time = Span::union_len(moving.clone().collect());
    let waits = waits(scope, f, copies());
    let waited = Span::union_len(moving.chain(waits).collect()) - time;
    let waited = waited.max(above_usual(scope, f));
    let of = |way| copies().filter(|it| it.2.direction == way).count() as u64;
    let faults = faults(scope, f);
    // Few bytes may come back in many faults, each of which the CPU waits for.
    let reads = scope.idle_that(f, |_, piece| piece.cause == Cause::Pages);
    let is_read = cases::WARNING_SHARE.is_reached_by(f.part(reads));
    let is_worth = is_read || cases::WORTH_SHARE.is_reached_by(f.part(time + waited + faults));
    let holds_up = cases::HOLDS_UP_KERNELS.holds(cases::LARGE_SHARE.is_reached_by(f.part(waited)));
    let link = pageable::link(scope, f);
    let at_link = copies().map(|it| {
        let peak = scope.peaks.rate(it.2.direction).or(link);
        peak.map_or(0.0, |peak| it.2.bytes as f64 / peak)
    });
    let at_link: f64 = at_link.sum();
    if !cases::LOOP_MIN.is_reached_by(at.len()) && !holds_up || !is_worth {
        return None;
    }
    let told = told(waited, faults, if is_read { reads } else { 0 });
    // However they are asked for, the bytes have to be moved.
    let held = held(scope, f).max(time + waited);
    let saving = (held - at_link as Ns).max(0) + faults;
    let of_kernels = share(waited, f.compute_ns);
    Some(Finding {
        title: format!(
            "page faults moved managed memory {}: {} in {}{evicted}{told}",
            match (of(Direction::H2D), of(Direction::D2H)) {
                (to, 0) => format!("{} times to the GPU", count(to)),
                (0, back) => format!("{} times back to the CPU", count(back)),
                (to, back) => format!("{} times to the GPU and {} times back", count(to), count(back)),
            },
            bytes(moved),
            duration(time),
        ),
        advice: match evicted.as_str() {
            "" => "Prefetch it in large pieces (cudaMemPrefetchAsync, cudaMemAdvise), or use device memory and explicit copies.",
            _ => "The card is too small for all of it, so that prefetching alone is no cure. Work on less at a time.",
        }
        .to_owned() + &drawn_back(scope, f).unwrap_or_default(),
        cure: if evicted.is_empty() { "" } else { "working on less managed memory at a time" },
        change: match evicted.as_str() {
            "" => scope.change("prefetch", None),
            _ => Vec::new(),
        },
        says: (of_kernels >= thresholds::COMPUTE_SHARE)
            .then(|| Says::of_kernels(f, format!("{} of it waiting for pages of managed memory", percent(of_kernels)))),
        ..scope.found(f.span_ns, saving, &longest_first(at))
    })
}

/// Whether the driver moved a page that nobody asked for.
fn is_page(it: &&Copied) -> bool {
    What::Copy(it.2).is_migration()
}

/// What left the GPU because others needed its room, where that is much of what came back.
fn evicted<'a>(pages: impl Iterator<Item = &'a Copied> + Clone) -> String {
    let back = |it: &&Copied| it.2.direction == Direction::D2H;
    let left = |it: &&Copied| it.2.place.stream == On::EVICTED;
    let bytes_of = |it: &Copied| it.2.bytes;
    let all: u64 = pages.clone().filter(back).map(bytes_of).sum();
    let gone: u64 = pages.filter(left).map(bytes_of).sum();
    match gone > all / 2 {
        true => format!(", {} of it evicted to make room", bytes(gone)),
        false => String::new(),
    }
}

/// What goes with the moves.
fn told(waited: Ns, faults: Ns, reads: Ns) -> String {
    let told = [
        (", and about", waited, "in which kernels wait for pages"),
        (", and about", faults, "for the CPU's page faults"),
        ("; the GPU is idle for", reads, "while the CPU touches it"),
    ];
    let told = told.into_iter().filter(|it| it.1 >= thresholds::WORTH_NS);
    told.map(|(and, time, what)| format!("{and} {} {what}", duration(time)))
        .collect()
}

/// What was prefetched to the GPU, and the CPU drew back before a kernel could use it.
fn drawn_back(scope: &Scope, f: &DeviceFigures) -> Option<String> {
    let graph = scope.causes.graph();
    let (mut ahead, mut back) = (0, 0);
    for op in graph.ops.of_device(f.index) {
        match graph.what(scope.trace, *op) {
            What::Copy(it)
                if it.place.stream == On::PREFETCHED && it.direction == Direction::H2D =>
            {
                ahead += it.bytes;
            }
            it @ What::Copy(of) if it.comes_back() => {
                back += of.bytes.min(ahead);
                ahead -= of.bytes.min(ahead);
            }
            What::Copy(_) => {}
            _ => ahead = 0,
        }
    }
    (back > 0).then(|| {
        let back = bytes(back);
        format!(" The CPU drew {back} back that were prefetched, before a kernel ran: prefetch behind its last access.")
    })
}

/// When pages move.
pub(super) fn pages(scope: &Scope, f: &DeviceFigures) -> Vec<Span> {
    let pages = scope.copies(f).iter().filter(is_page).map(|it| it.1);
    Span::merged(pages.collect())
}

/// From a kernel's start to its last page.
pub(super) fn until_last(pages: &[Span], kernel: Span) -> Option<Span> {
    let before = pages.partition_point(|page| page.start < kernel.end);
    let last = pages[..before].last();
    let last = last.filter(|page| page.end > kernel.start)?;
    Some(Span::new(kernel.start, last.end.min(kernel.end)))
}

/// The same, and what kernels that leave no SM empty take until their last one: at most they do nothing but wait.
fn held(scope: &Scope, f: &DeviceFigures) -> Ns {
    let mut spans = pages(scope, f);
    let full = configs::of_device(scope, f).iter();
    let full: Vec<_> = full.filter(|it| it.row.fill.idle_sms == Some(0)).collect();
    let kernels = configs::ran(scope, f, &full).into_iter();
    let kernels = kernels.map(|((lane, row), ..)| scope.trace.lanes()[lane].span(row));
    let kernels: Vec<Span> = kernels.filter_map(|it| until_last(&spans, it)).collect();
    spans.extend(kernels);
    Span::union_len(spans)
}

/// When kernels most likely waited for these pages to come to the GPU: right before each, and longer before the first of a kernel.
fn waits<'a>(
    scope: &Scope,
    f: &DeviceFigures,
    pages: impl Iterator<Item = &'a Copied>,
) -> Vec<Span> {
    let kernels = scope.operations(f).map(|it| it.1);
    let kernels = kernels.filter(|it| matches!(it.what, What::Kernel(_)));
    let kernels = Span::merged(kernels.map(|it| it.span).collect());
    let mut met = FxHashSet::default();
    let wait = |&(_, page, _): &Copied| {
        let at = kernels.partition_point(|it| it.end <= page.start);
        let kernel = kernels.get(at).filter(|it| it.start < page.start)?;
        let most = match met.insert(kernel) {
            true => cases::FIRST_FAULT.value(),
            false => cases::FAULT_MAX.value(),
        };
        let since = kernel.start.max(page.start - most);
        Some(Span::new(since, page.start))
    };
    let come = pages.filter(|it| it.2.direction == Direction::H2D);
    come.filter_map(wait).collect()
}

/// So many launches of a kernel without pages tell what it takes.
const USUAL_MIN: usize = 3;

/// What kernels with pages coming or going take above the median of the same kernel and grid without, wherever those run.
fn above_usual(scope: &Scope, f: &DeviceFigures) -> Ns {
    let whole = scope.within(None, scope.devices);
    let pages = pages(&whole, f);
    let has_pages = |it: Span| {
        let at = pages.partition_point(|page| page.end <= it.start);
        pages.get(at).is_some_and(|page| page.start < it.end)
    };
    let kernels = |scope: &Scope, with_pages: bool| {
        let all = scope.operations(f).filter_map(|(_, it)| match it.what {
            What::Kernel(kernel) => Some((kernel.shape, it.span)),
            _ => None,
        });
        let such = all.filter(|it| has_pages(it.1) == with_pages);
        such.collect::<Vec<_>>()
    };
    let held = kernels(scope, true);
    if held.is_empty() {
        return 0;
    }
    let mut free: FxHashMap<ShapeId, Vec<Ns>> = FxHashMap::default();
    for (shape, span) in kernels(&whole, false) {
        free.entry(shape).or_default().push(span.len());
    }
    let enough = free.iter_mut().filter(|it| it.1.len() >= USUAL_MIN);
    let usual = enough.filter_map(|(shape, times)| Some((*shape, lower_median(times)?)));
    let usual: FxHashMap<ShapeId, Ns> = usual.collect();
    let above = held.iter().filter_map(|(shape, span)| {
        let usual = usual.get(shape)?;
        Some((span.len() - usual).max(0))
    });
    above.sum::<Ns>().min(f.compute_ns)
}

/// Pages that come back so soon after another came with it.
const SAME_FAULT: Ns = 1_000;

/// What the CPU's page faults take in idle time. A pause between two pages that come back has what a fault takes, and what the
/// CPU does with the bytes of the page before. The line that fits them best tells the two apart.
fn faults(scope: &Scope, f: &DeviceFigures) -> Ns {
    let idle: FxHashSet<Span> = scope.gaps(f).map(|(gap, _)| gap.span).collect();
    let pages = scope.copies(f).iter();
    let pages = pages.filter(|it| What::Copy(it.2).comes_back());
    let (mut moved, mut before) = (0, None);
    let mut pauses: Vec<(f64, f64)> = Vec::new();
    for (_, span, copy) in pages {
        let pause = Span::new(before.unwrap_or(span.start), span.start);
        // Pages that follow at once came with the one before.
        if pause.len() > SAME_FAULT {
            if idle.contains(&pause) {
                pauses.push((moved as f64, pause.len() as f64));
            }
            moved = 0;
        }
        moved += copy.bytes;
        before = Some(span.end);
    }
    if !cases::LOOP_MIN.is_reached_by(pauses.len()) {
        return 0;
    }
    let number = pauses.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pauses.iter().map(of).sum::<f64>() / number;
    let [x, y] = [mean(|it| it.0), mean(|it| it.1)];
    let both: f64 = pauses.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let spread: f64 = pauses.iter().map(|it| (it.0 - x).powi(2)).sum();
    let slope = if spread > 0.0 {
        (both / spread).max(0.0)
    } else {
        0.0
    };
    let mut lengths: Vec<Ns> = pauses.iter().map(|it| it.1 as Ns).collect();
    let usual = lower_median(&mut lengths).unwrap_or(0) as f64;
    ((y - slope * x).clamp(0.0, usual) * number) as Ns
}
