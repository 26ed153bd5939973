//! Where lateness arises, and whether it is paid for: the kernels of two ranks that run the same program, held against each other.
//!
//! Clocks are aligned. The distance of a kernel's edges on one rank from the same kernel's on the other is how far that
//! one is behind. It grows in a gap (the rank idled longer) or in a kernel (it took longer). It shrinks when the other
//! is held up by itself, which costs nobody anything. It also shrinks when the other has to wait for the end of a
//! collective in which the late one came last. Only then the job has lost that time. So it has where the other's
//! kernels take longer because a collective that waits for the late one keeps a part of its SMs. Where a collective
//! runs beside other work, being behind goes on, and is not counted again at each of them.

use rustc_hash::FxHashMap;

use super::collect::{self, Unit};
use super::line::Line;
use super::split::{self, Wait};
use activity::{Ns, ShapeId, Span, What};
use trace::Trace;

/// A late rank holds another up where collectives ran between two kernels of that other's for this part of its lead. It
/// waited in them for as much.
const HELD_UP: f64 = 0.8;
/// Steps of a late rank that must have the same kernels as another's, as a part of all.
const SAME: f64 = 0.5;
/// Of a step's kernels, so many at the most tell which collectives it lies between.
const COMPARED: usize = 64;

/// The kernels of a rank but collectives, by start.
pub(super) struct Own {
    kernels: Vec<(ShapeId, Span)>,
}

impl Own {
    pub(super) fn of(trace: &Trace, unit: Unit) -> Own {
        let mut collectives: FxHashMap<ShapeId, bool> = FxHashMap::default();
        let mut kernels = Vec::new();
        for (id, lane) in split::streams(trace, unit) {
            for row in lane.kept() {
                let What::Kernel(kernel) = trace.what(id, row) else {
                    continue;
                };
                let is_collective = collectives
                    .entry(kernel.shape)
                    .or_insert_with(|| collect::is_one(trace, kernel.shape));
                if !*is_collective {
                    kernels.push((kernel.shape, lane.span(row)));
                }
            }
        }
        kernels.sort_by_key(|(_, span)| *span);
        Own { kernels }
    }

    /// For how much of a stretch any of those that began in it ran, ns.
    pub(super) fn busy(&self, span: Span) -> Ns {
        let kernels = self.within(span).iter().map(|it| it.1.intersect(span));
        Span::merged(kernels.collect())
            .into_iter()
            .map(Span::len)
            .sum()
    }

    fn within(&self, span: Span) -> &[(ShapeId, Span)] {
        let from = self.kernels.partition_point(|k| k.1.start < span.start);
        let to = self.kernels.partition_point(|k| k.1.start < span.end);
        &self.kernels[from..to.max(from)]
    }

    /// Where the same kernels stand as in a step of another rank: at `next`, or in the stretch `near` around `time`.
    /// Before each of them as many collectives have begun as had there, if that may be. (`off` tells by how many that
    /// is not so.) Of those places the nearest counts. (Two ranks' steps may begin with different things, where only
    /// the operations show them. A rank that is late by more than half a step is nearer to the wrong one. Kernels that
    /// are all alike fit one further on as well, but lie otherwise between the collectives.)
    fn same(
        &self,
        step: &[(ShapeId, Span)],
        next: Option<usize>,
        (time, near): (Ns, Span),
        off: impl Fn(&[(ShapeId, Span)]) -> usize,
    ) -> Option<usize> {
        let is_same = |at: &usize| {
            let here = self.kernels.get(*at..*at + step.len());
            here.is_some_and(|here| here.iter().zip(step).all(|(a, b)| a.0 == b.0))
        };
        next.filter(is_same).or_else(|| {
            let bound = |time: Ns| self.kernels.partition_point(|k| k.1.start < time);
            let near = (bound(near.start)..bound(near.end)).filter(is_same);
            near.min_by_key(|&at| {
                let here = &self.kernels[at..at + step.len()];
                (off(here), (here[0].1.start - time).abs())
            })
        })
    }
}

/// A rank as this question needs it.
pub(super) struct Side<'a> {
    pub(super) own: &'a Own,
    pub(super) clock: &'a Line,
    /// Its steps, in its own time.
    pub(super) steps: &'a [Span],
    /// Where it waited in collectives, and for whom.
    pub(super) waits: &'a [Wait],
    /// Where a collective of it ran at all, in order and apart.
    pub(super) collectives: &'a [Span],
}

impl Side<'_> {
    fn at(&self, time: Ns) -> Ns {
        self.clock.apply(time)
    }

    /// For how much of a stretch a collective ran.
    fn in_collectives(&self, stretch: Span) -> Ns {
        let from = self.collectives.partition_point(|c| c.end <= stretch.start);
        let here = self.collectives[from..]
            .iter()
            .take_while(|c| c.start < stretch.end);
        here.map(|c| c.intersect(stretch).len().max(0)).sum()
    }

    /// Its waits for a rank from one on that begin before a stretch ends.
    fn waits(&self, rank: usize, from: usize, stretch: Span) -> impl Iterator<Item = Span> {
        let here = self.waits[from..].iter().map(|w| (w.for_rank, w.span));
        here.take_while(move |(_, span)| span.start < stretch.end)
            .filter_map(move |(whom, span)| (whom == rank).then_some(span))
    }

    /// For how much of a stretch it was waiting for a rank in a collective.
    fn waits_for(&self, rank: usize, stretch: Span) -> Ns {
        let from = self.waits.partition_point(|w| w.span.end <= stretch.start);
        let here = self.waits(rank, from, stretch);
        here.map(|w| w.intersect(stretch).len().max(0)).sum()
    }

    /// How long it waited for a rank in collectives that began in a stretch.
    fn waited_for(&self, rank: usize, stretch: Span) -> Ns {
        let from = self.waits.partition_point(|w| w.span.start < stretch.start);
        self.waits(rank, from, stretch).map(Span::len).sum()
    }
}

/// Time by which a rank fell behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// Of the late rank's steps.
    pub(super) step: usize,
    pub(super) by: Ns,
    /// Where it idled, in its own time; `None`: in a kernel.
    pub(super) idle: Option<Span>,
}

/// How a rank fell behind another.
#[derive(Clone, Debug, Default)]
pub(super) struct Arose {
    /// What the other waited for, in order.
    pub(super) paid: Vec<Behind>,
    /// By step: how long the late one's kernels took, and the other's same ones.
    pub(super) worked: Vec<(Ns, Ns)>,
}

impl Arose {
    /// So much of this the other lost at the most.
    fn pay(&mut self, behind: Vec<Behind>, mut most: Ns) {
        for it in behind {
            let by = it.by.min(most);
            most -= by;
            if by > 0 {
                self.paid.push(Behind { by, ..it });
            }
        }
    }

    /// What the other lost, by step.
    pub(super) fn by_step(&self) -> Vec<Ns> {
        let mut sums = vec![0; self.worked.len()];
        for behind in &self.paid {
            sums[behind.step] += behind.by;
        }
        sums
    }
}

/// How `late` (index `rank` of all) fell behind `other`; in a step by less than `least` is not at all. `begun` is when the collectives of
/// both began, on each. `None` where they do not run the same kernels.
pub(super) fn between(
    (late, rank): (&Side<'_>, usize),
    other: &Side<'_>,
    begun: &[Vec<Ns>; 2],
    least: Ns,
) -> Option<Arose> {
    let mut found = Arose {
        worked: vec![(0, 0); late.steps.len()],
        ..Arose::default()
    };
    let mut pending = Pending::default();
    // The end of the kernel before, on both.
    let mut before: Option<(Ns, Ns)> = None;
    // Since when the two went on together, in the other's time.
    let mut since = Ns::MIN;
    let mut next = None;
    let mut same = 0;
    for (i, step) in late.steps.iter().enumerate() {
        let mine = late.own.within(*step);
        let Some(first) = mine.first() else {
            continue;
        };
        let time = other.clock.invert(late.at(first.1.start));
        let before_it = |side: usize, time: Ns| begun[side].partition_point(|start| *start < time);
        let wanted = before_it(0, first.1.start);
        let stride = mine.len().div_ceil(COMPARED);
        let off = |theirs: &[(ShapeId, Span)]| -> usize {
            let two = mine.iter().zip(theirs).step_by(stride);
            two.map(|(a, b)| before_it(0, a.1.start).abs_diff(before_it(1, b.1.start)))
                .sum()
        };
        // One that is late by more than a step stands, on the other, between the same collectives and not near this time.
        let beside = wanted.checked_sub(1).and_then(|it| begun[1].get(it));
        let from = beside.map_or(time, |start| time.min(*start));
        let to = begun[1].get(wanted).map_or(time, |start| time.max(*start));
        let near = Span::new(from - step.len(), to + step.len());
        let Some(at) = other.own.same(mine, next, (time, near), off) else {
            (before, next) = (None, None);
            pending = Pending::default();
            continue;
        };
        let theirs = &other.own.kernels[at..at + mine.len()];
        next = Some(at + mine.len());
        same += 1;
        for ((_, a), (_, b)) in mine.iter().zip(theirs) {
            let behind = late.at(a.start) - other.at(b.start);
            let mut idle = None;
            if let Some((a_end, b_end)) = before {
                let gap = Span::new(a_end, a.start.max(a_end));
                let was = late.at(a_end) - other.at(b_end);
                let enough = (HELD_UP * was as f64) as Ns;
                let held_up = other.in_collectives(Span::new(b_end, b.start.max(b_end)));
                let is_held_up = was > 0
                    && held_up >= enough.max(1)
                    && other.waited_for(rank, Span::new(since, b.start)) >= enough;
                idle = Some(gap);
                if is_held_up {
                    // A collective let both go on at once: from there they begin anew.
                    found.paid.append(&mut pending.stack);
                    pending = Pending::default();
                    since = b.start;
                    let new = behind.clamp(0, gap.len());
                    idle = Some(Span::new(a.start - new, a.start));
                }
            }
            pending.set(behind, i, idle);
            // A collective that waits keeps a part of the SMs: what its own kernels take longer meanwhile it lost by waiting.
            let waited = other.waits_for(rank, *b);
            let caught_up = pending.set(late.at(a.end) - other.at(b.end), i, None);
            found.pay(caught_up, waited);
            let worked = &mut found.worked[i];
            *worked = (worked.0 + a.len(), worked.1 + b.len());
            before = Some((a.end, b.end));
        }
    }
    let by_step = found.by_step();
    found.paid.retain(|behind| by_step[behind.step] >= least);
    (same as f64 >= SAME * late.steps.len() as f64 && same > 0).then_some(found)
}

/// By what a rank is behind now, and where that came from.
#[derive(Default)]
struct Pending {
    stack: Vec<Behind>,
    /// The sum of it.
    by: Ns,
}

impl Pending {
    /// It is behind by `by` now: more than before by what happened in `step`, or less, which is returned. Being ahead is none.
    fn set(&mut self, by: Ns, step: usize, idle: Option<Span>) -> Vec<Behind> {
        let more = by.max(0) - self.by;
        self.by = by.max(0);
        if more > 0 {
            self.stack.push(Behind {
                step,
                by: more,
                idle,
            });
        }
        let mut less = -more;
        let mut gone = Vec::new();
        while less > 0
            && let Some(last) = self.stack.last_mut()
        {
            let taken = less.min(last.by);
            gone.push(Behind { by: taken, ..*last });
            last.by -= taken;
            less -= taken;
            if last.by == 0 {
                self.stack.pop();
            }
        }
        gone
    }
}
