//! How long each engine of a GPU works, and what would be hidden if they worked beside each other.

use crate::program;
use activity::text::listed;
use activity::units::{duration, share};
use activity::{Activity, Direction, Ns, Span};
use rustc_hash::FxHashMap;
use trace::{Engine, LaneId, Trace, engine_of};

/// How long the SMs and the two copy engines to and from the host worked.
pub struct Engines {
    /// Compute, H2D, D2H.
    pub busy: [Ns; 3],
    /// Any of them.
    any: Ns,
    /// What kernels take at the least, where those that leave room on the SMs run beside each other.
    packed: Ns,
}

impl Engines {
    /// Of some operations of a device, which may copy one way at a time.
    pub fn of(
        trace: &Trace,
        (device, copies_one_way): (usize, bool),
        operations: impl Iterator<Item = Activity>,
    ) -> Self {
        let mut spans: [Vec<Span>; 3] = Default::default();
        let mut packed = 0.0;
        let back = if copies_one_way { 1 } else { 2 };
        for activity in operations {
            let Some(engine) = engine(&activity) else {
                continue;
            };
            if engine == 0 {
                let share = program::share(trace, device, &activity.what);
                packed += activity.span.len() as f64 * f64::from(share);
            }
            spans[engine.min(back)].push(activity.span);
        }
        Engines {
            any: Span::union_len(spans.concat()),
            busy: spans.map(Span::union_len),
            packed: packed as Ns,
        }
    }

    fn longest(&self) -> Ns {
        self.busy.into_iter().max().unwrap_or(0)
    }

    /// What the busiest engine takes at the least: no order of the same operations is faster.
    pub fn least(&self) -> Ns {
        let [compute, h2d, d2h] = self.busy;
        compute.min(self.packed).max(h2d).max(d2h)
    }

    /// What would be won if the busiest engine hid all the others.
    pub fn hideable(&self) -> Ns {
        self.any - self.longest()
    }

    /// The same with kernels that leave SMs free beside each other, too.
    pub fn packable(&self) -> Ns {
        self.any - self.least()
    }

    /// How much of the other engines' work was hidden, of what could be, 0 to 1.
    pub fn hidden(&self) -> f64 {
        let sum: Ns = self.busy.iter().sum();
        share(sum - self.any, sum - self.longest())
    }

    /// Those that worked, and how long: "kernels (1.00 ms) and H2D (1.20 ms)".
    pub fn text(&self) -> String {
        let parts = ["kernels", "H2D", "D2H"].into_iter().zip(self.busy);
        let parts = parts.filter(|part| part.1 > 0);
        let parts = parts.map(|(name, busy)| format!("{name} ({})", duration(busy)));
        listed(&parts.collect::<Vec<_>>())
    }
}

/// How many streams use all three engines. Where most of the copies' time lies on another stream, they bring no batch of their own.
pub fn whole_streams(operations: impl Iterator<Item = (LaneId, Activity)>) -> usize {
    let mut by = FxHashMap::<LaneId, [Ns; 3]>::default();
    for (lane, activity) in operations {
        if let Some(engine) = engine(&activity) {
            by.entry(lane).or_default()[engine] += activity.span.len().max(1);
        }
    }
    let copied = |it: &[Ns; 3]| it[1] + it[2];
    let all: Ns = by.values().map(copied).sum();
    by.retain(|_, it| !it.contains(&0));
    match 2 * by.values().map(copied).sum::<Ns>() >= all {
        true => by.len(),
        false => 0,
    }
}

/// Whether all that is copied to the device is there before the first kernel, and nothing is copied back before the last.
pub fn is_one_batch(operations: impl Iterator<Item = Activity>) -> bool {
    let mut all = [None::<Span>; 3];
    for activity in operations {
        if let Some(engine) = engine(&activity) {
            all[engine] = Some(all[engine].map_or(activity.span, |it| it.hull(activity.span)));
        }
    }
    let [Some(kernels), up, down] = all else {
        return false;
    };
    up.is_none_or(|up| up.end <= kernels.start) && down.is_none_or(|it| it.start >= kernels.end)
}

/// Compute, H2D and D2H, as a number.
pub fn engine(of: &Activity) -> Option<usize> {
    match engine_of(&of.what)? {
        Engine::Compute => Some(0),
        Engine::Copy(Direction::H2D) => Some(1),
        Engine::Copy(Direction::D2H) => Some(2),
        _ => None,
    }
}
