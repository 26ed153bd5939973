//! Kernels with fewer blocks than the GPU has SMs, or with blocks of less than a warp.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{DeviceFigures, Finding, Occurrence, Says, Scope, configs, longest_first, migrations};
use activity::text::{NAME_MAX, counted, cut_middle};
use activity::units::{self, count, duration};
use activity::{NameId, Ns, ShapeId, Span, What, occupancy};
use causes::{Bound, Cause};
use figures::busy::{KernelTime, mostly};
use figures::communication::is_communication;
use figures::configs::{Config, LANES, WARP_THREADS, take_as_long_with_twice, threads_of};
use figures::host_copies::faults_in;
use figures::stream_order::chained;

/// A part of the time that is nearly all of it.
const MOST: f64 = 0.8;

/// What an empty kernel takes at most. A short one of so many blocks is worth a word from half as much again on.
const NOTHING: Ns = 2_000;
const SHORT_MIN: Ns = 3_000;
const SHORT_BLOCKS: u64 = 2;

/// They are much with this part of kernel time.
const SHORT_SHARE: f64 = 0.2;

/// No GPU of today has fewer.
const SMS_MIN: u64 = 2;

const CHAINED: &str = "Each waits by an event (cudaStreamWaitEvent) for the one before, on another stream. Without waits that no data ask for they run at once.";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let known = u64::from(scope.trace.devices()[f.index].info.multiprocessors);
    // Where nobody says how many there are, one block leaves some empty on any GPU.
    let multiprocessors = if known == 0 { SMS_MIN } else { known };
    let sms = match known {
        0 => String::new(),
        known => format!(" for {known} SMs"),
    };
    let kernels = Kernels::most(scope, f, multiprocessors);
    let part = KernelTime::new(kernels.all, f.compute_ns);
    let share = part.share(kernels.time);
    let saving = (kernels.wasted as Ns).min(f.compute_ns);
    let is_worth = cases::WORTH_SHARE.is_reached_by(f.part(saving + kernels.paged));
    let mean = kernels.time / (kernels.at.len() as Ns).max(1);
    let are_long = cases::LITTLE_TO_DO.is_reached_by(mean) && kernels.blocks.1 <= SHORT_BLOCKS;
    let is_much = cases::UNDER_FILLED_SHARE.is_reached_by(share)
        || are_long && cases::ONE_BLOCK_SHARE.is_reached_by(share);
    if part.is_beside() || !is_much || !is_worth {
        return None;
    }
    let has_blocks = kernels.blocks.0 >= multiprocessors;
    let (&most, &time) = kernels.by_name.iter().max_by_key(|it| (*it.1, *it.0))?;
    // Only beside each other would they fill it: no record says that they may run so.
    if cases::AS_LONG_WITH_TWICE.holds(kernels.take_as_long(most) && !has_blocks) {
        return None;
    }
    // Fewer launches have fewer gaps between them.
    let graph = scope.causes.graph();
    let between = scope.idle_that(f, |gap, piece| {
        let what = graph.what(scope.trace, gap.next);
        piece.cause == Cause::Queued
            && matches!(what, What::Kernel(it) if kernels.few.contains(&it.shape))
    });
    let are_paged = 2 * kernels.paged >= kernels.time;
    let (most_saved, meanwhile) = match are_paged {
        true => (0, ", while pages of managed memory come"),
        false => ((kernels.empty as Ns).min(f.compute_ns) + between, ""),
    };
    let rows = kernels.at.iter().filter_map(|(_, at)| match at {
        Occurrence::Row(at) => Some(*at),
        _ => None,
    });
    let chain = || chained(scope.trace, graph, scope.event_waits(), rows);
    let chained = (!are_paged && !has_blocks).then(chain).flatten();
    // So many streams hold at most so many at once.
    let alone = chained.map_or(0, |streams| kernels.time / streams as Ns);
    let most_saved = most_saved.min(kernels.time + between - alone);
    let both = duration(kernels.time + between);
    let with = (most_saved > kernels.time).then(|| format!(", {both} with what lies between"));
    let with = with.unwrap_or_default();
    let found = scope.found(f.span_ns, most_saved, &longest_first(kernels.at.clone()));
    let number = kernels.at.len();
    let (advice, cure) = match chained {
        Some(_) => (CHAINED, "dropping waits between streams"),
        None => kernels.advice(are_paged, has_blocks),
    };
    Some(Finding {
        // What takes most of the time is worth a change, however short each is.
        severity: found
            .severity
            .keep_where(cases::LITTLE_TO_DO.is_reached_by(mean) || f.part(saving) > MOST),
        title: format!(
            "{} with {}{sms}: {}{with}, {} {}{meanwhile}",
            counted(number as u64, "kernel", "kernels"),
            kernels.size_text(),
            part.words(kernels.time),
            if time == kernels.time {
                "all of it"
            } else {
                mostly(time, kernels.time)
            },
            cut_middle(scope.trace.names().short(most), NAME_MAX),
        ),
        advice: advice.to_owned(),
        cure,
        change: scope.change(if chained.is_some() { "chained" } else { "" }, None),
        says: chained.map(|streams| Says {
            bound: Bound::Compute,
            part: f.part(kernels.time),
            why: format!("{streams} streams one after another, by cudaStreamWaitEvent"),
        }),
        ..found
    })
}

/// The kernels of a device, and those of them that leave much of it empty.
struct Kernels<'s, 'a> {
    scope: &'s Scope<'a>,
    multiprocessors: u64,
    /// Whether those with few blocks are looked at, or those with few threads in each.
    few_blocks: bool,
    /// Whether the program has managed memory, and which kernels are collectives.
    is_managed: bool,
    meant: FxHashMap<NameId, bool>,
    /// How long all of them run.
    all: Ns,
    /// By kernel and blocks: how long in all, and how often.
    sizes: FxHashMap<(NameId, u64), (Ns, Ns)>,
    /// How long those run that fill too little, what of it SMs are left without a block, and places for blocks without one. More
    /// blocks save no more than that.
    time: Ns,
    wasted: f64,
    empty: f64,
    /// How long pages of managed memory come meanwhile.
    paged: Ns,
    pages: Vec<Span>,
    /// In how much time kernels run.
    compute: Ns,
    few: FxHashSet<ShapeId>,
    /// Where they are.
    at: Vec<(Ns, Occurrence)>,
    by_name: FxHashMap<NameId, Ns>,
    /// Least and greatest number of their blocks, and of threads in a block.
    blocks: (u64, u64),
    threads: (u64, u64),
}

impl<'s, 'a> Kernels<'s, 'a> {
    /// Those that leave SMs empty, or those whose warps are not full: what takes more.
    fn most(scope: &'s Scope<'a>, f: &DeviceFigures, multiprocessors: u64) -> Self {
        let few = Kernels::of(scope, f, multiprocessors, true);
        let is_narrow =
            |it: &Config| !cases::UNDER_FILLED_BLOCKS.is_reached_by(it.lanes(multiprocessors));
        if !configs::of_device(scope, f).iter().any(is_narrow) {
            return few;
        }
        let narrow = Kernels::of(scope, f, multiprocessors, false);
        if narrow.time > few.time { narrow } else { few }
    }

    fn of(scope: &'s Scope<'a>, f: &DeviceFigures, multiprocessors: u64, few_blocks: bool) -> Self {
        let mut kernels = Kernels {
            scope,
            multiprocessors,
            few_blocks,
            is_managed: scope.is_managed(f),
            meant: FxHashMap::default(),
            all: 0,
            sizes: FxHashMap::default(),
            time: 0,
            wasted: 0.0,
            empty: 0.0,
            paged: 0,
            pages: migrations::pages(scope, f),
            compute: f.compute_ns,
            few: FxHashSet::default(),
            at: Vec::new(),
            by_name: FxHashMap::default(),
            blocks: (u64::MAX, 0),
            threads: (u64::MAX, 0),
        };
        let all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
        for (place, length, number) in configs::ran(scope, f, &all) {
            kernels.add(all[number], length, Occurrence::Row(place));
        }
        kernels
    }

    fn add(&mut self, config: &Config, length: Ns, place: Occurrence) {
        let shape = &config.shape;
        self.all += length;
        let blocks = occupancy::blocks(shape);
        let threads = threads_of(shape);
        let sms = blocks as f64 / self.multiprocessors as f64;
        let (sum, count) = self.sizes.entry((shape.name, blocks)).or_default();
        (*sum, *count) = (*sum + length, *count + 1);
        let has_blocks = cases::UNDER_FILLED_BLOCKS.is_reached_by(sms);
        let is_filled = match self.few_blocks {
            true => has_blocks,
            false => {
                !has_blocks
                    || cases::UNDER_FILLED_BLOCKS.is_reached_by(config.lanes(self.multiprocessors))
            }
        };
        let is_long = cases::UNDER_FILLED_MIN.is_reached_by(length);
        let is_much = || {
            !cases::SHORT_OF_LITTLE
                .holds(units::share(config.row.total_ns, self.compute) < SHORT_SHARE)
        };
        let is_long = is_long || blocks <= SHORT_BLOCKS && length >= SHORT_MIN && is_much();
        if blocks == 0 || is_filled || !is_long || self.is_spared(shape.name, length) {
            return;
        }
        let fill = sms.min(config.lanes(self.multiprocessors));
        self.time += length;
        // More blocks bring no page sooner.
        let waits = self.waits_for_pages(&place);
        self.paged += waits;
        // Nor does any grid make a short one shorter than nothing takes.
        let works = match cases::UNDER_FILLED_MIN.is_reached_by(length) {
            true => length - waits,
            false => (length - waits - NOTHING).max(0),
        };
        self.wasted += works as f64 * (1.0 - fill);
        let held = config.row.fill.waves.map_or(fill, |it| it.min(fill));
        self.empty += works as f64 * (1.0 - held);
        self.few.insert(config.id);
        *self.by_name.entry(shape.name).or_default() += length;
        self.at.push((length, place));
        self.blocks = (self.blocks.0.min(blocks), self.blocks.1.max(blocks));
        self.threads = (self.threads.0.min(threads), self.threads.1.max(threads));
    }

    fn waits_for_pages(&self, place: &Occurrence) -> Ns {
        let Occurrence::Row((lane, row)) = *place else {
            return 0;
        };
        let kernel = self.scope.trace.lanes()[lane].span(row);
        faults_in(&self.pages, kernel)
    }

    /// Whether blocks are no matter of a kernel.
    fn is_spared(&mut self, kernel: NameId, length: Ns) -> bool {
        let name = self.scope.trace.names().full(kernel);
        let is_short = !cases::EMPTY_MAX.is_reached_by(length);
        // A cast has a block for so many elements: there is nothing to split.
        let is_cast = name.contains("direct_copy_kernel");
        let meant = self.meant.entry(kernel);
        is_cast
            || cases::DOES_NOTHING.holds(is_short && name.ends_with("()"))
            || cases::WAITS_FOR_PAGES.holds(is_short && self.is_managed)
            || *meant.or_insert_with(|| cases::FEW_SMS_MEANT.holds(is_communication(name)))
    }

    /// Whether a kernel's own launches with twice the blocks and more are no shorter. Longer ones have more to do.
    fn take_as_long(&self, kernel: NameId) -> bool {
        let sizes = self.sizes.iter().filter(|it| it.0.0 == kernel);
        let sizes: Vec<(u64, (Ns, Ns))> = sizes.map(|(&(_, blocks), &it)| (blocks, it)).collect();
        take_as_long_with_twice(&sizes)
    }

    /// What to do, and how that is called as a cure.
    fn advice(&self, are_paged: bool, has_blocks: bool) -> (&'static str, &'static str) {
        match (self.blocks.1, self.threads.1) {
            _ if are_paged => (
                "Bring the pages first: until then nobody knows what more blocks save.",
                "",
            ),
            (_, 1) if has_blocks => (
                "One-thread blocks: 31 of a warp's 32 threads are missing. Launch 128 or 256 threads a block, and fewer blocks.",
                "launching larger blocks",
            ),
            (_, WARP_THREADS..) if has_blocks => (
                "Launch larger blocks, or more of them: each of an SM's four schedulers needs a warp of its own.",
                "launching larger blocks",
            ),
            _ if has_blocks => (
                "Launch larger blocks: with fewer than 32 threads a warp is not full.",
                "launching larger blocks",
            ),
            (1, 1) => (
                "One thread does all the work: give each element a thread, in blocks of 128 or 256 threads.",
                "launching more blocks and threads",
            ),
            (1, _) => (
                "One block runs on one SM, the others have nothing: split the work over many blocks (a larger grid).",
                "",
            ),
            _ if self.at.len() == 1 => ("Launch more blocks: split the work finer.", ""),
            _ => (
                "Launch more blocks (split the work finer, or batch it), or run such kernels on several streams at once.",
                "",
            ),
        }
    }

    /// How many blocks they have, and threads where those are few.
    fn size_text(&self) -> String {
        let ((least, greatest), (fewest, most)) = (self.blocks, self.threads);
        let blocks = match counted(greatest, "block", "blocks") {
            blocks if least < greatest => format!("{} to {blocks}", count(least)),
            blocks => blocks,
        };
        let up_to = if fewest < most { "up to " } else { "" };
        match counted(most, "thread", "threads") {
            threads if most < LANES => format!("{blocks} of {up_to}{threads}"),
            _ => blocks,
        }
    }
}
