//! How the grid of a kernel grows from one launch to the next, and from one step to the next.

use rustc_hash::FxHashMap;

use crate::configs::Config;
use activity::occupancy::product;
use activity::text::{NAME_MAX, counted, cut_middle};
use activity::{Activity, NameId, What};
use trace::Trace;

/// A launch has at most this part more blocks than the one before it: more is other work.
const MOST: u64 = 8;

/// How the blocks of a kernel change from one launch to the next.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// How often by a few more, and how often by many, or to fewer.
    pub grown: usize,
    pub anew: usize,
    /// The fewest blocks, and the most.
    pub least: u64,
    pub most: u64,
}

impl Growth {
    /// Of launches in order of time, by the blocks of each.
    pub fn of(blocks: impl Iterator<Item = u64>) -> Growth {
        let mut growth = Growth {
            grown: 0,
            anew: 0,
            least: u64::MAX,
            most: 0,
        };
        let mut before = None;
        for it in blocks {
            (growth.least, growth.most) = (growth.least.min(it), growth.most.max(it));
            match before {
                Some(last) if it > last && it - last <= last / MOST => growth.grown += 1,
                Some(last) if it != last => growth.anew += 1,
                _ => {}
            }
            before = Some(it);
        }
        growth
    }

    /// Of the launches of a kernel among operations in order of time.
    pub fn of_kernel(trace: &Trace, of: impl Iterator<Item = Activity>, name: NameId) -> Growth {
        Growth::of(of.filter_map(|it| {
            match it.what {
                What::Kernel(it) => Some(trace.shape(it.shape)).filter(|it| it.name == name),
                _ => None,
            }
            .map(|it| product(it.grid))
        }))
    }

    /// Whether one launch after the other has a few more, and seldom one begins anew.
    pub fn is_steady(&self) -> bool {
        cases::LOOP_MIN.is_reached_by(self.grown) && self.grown >= 4 * self.anew
    }
}

/// What each step launches with a few more blocks than the step before it, of the kernel that it launches most of so, in words.
/// Sizes that come again, as those of batches do, are fewer than half as many as steps.
pub fn from_step_to_step(trace: &Trace, configs: &[Config], steps: usize) -> Option<String> {
    let mut by: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in configs.iter().filter(|_| steps > 0) {
        by.entry(it.shape.name).or_default().push(it);
    }
    let grown = by.into_iter().filter_map(|(name, mut of)| {
        of.sort_by_key(|it| it.first);
        let rows = Growth::of(of.iter().map(|it| product(it.shape.grid)));
        let all: u64 = of.iter().map(|it| it.row.count).sum();
        let is_steady = 2 * of.len() > steps && rows.is_steady();
        is_steady.then_some((all.div_ceil(steps as u64), name, rows.least, rows.most))
    });
    let (count, name, least, most) = grown.max()?;
    let count = counted(count, "kernel", "kernels");
    let name = cut_middle(trace.names().short(name), NAME_MAX);
    Some(format!(
        "{count} a step take more blocks each step ({least} to {most}, {name}), as where a KV cache grows"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{configs, device};
    use activity::LaunchShape;
    use trace::testing::Scene;

    #[test]
    fn what_has_more_blocks_in_each_step_is_told_and_sizes_that_come_again_are_not() {
        // Twenty steps of two layers, each with a kernel of so many blocks and one that stays as it is.
        let told = |blocks: &dyn Fn(u32) -> u32| {
            let (mut scene, mut at) = (Scene::new(), 0);
            for step in 0..20 {
                for (name, blocks) in [("cat", blocks(step)), ("add", 64)].repeat(2) {
                    let shape = LaunchShape {
                        grid: [blocks, 2, 1],
                        block: [128, 1, 1],
                        ..LaunchShape::default()
                    };
                    scene.shaped(shape, name, 7, at, at + 5_000);
                    at += 10_000;
                }
            }
            let trace = scene.trace();
            let f = &device::count(&trace, None, None)[0];
            from_step_to_step(&trace, &configs::find(&trace, f, None), 20)
        };
        let words = "2 kernels a step take more blocks each step (130 to 168, cat), as where a KV cache grows";
        assert_eq!(told(&|step| 65 + step).as_deref(), Some(words));
        // A cache of one size; batches of eight sizes; texts of ten words each, one after the other.
        for blocks in [|_| 65, |step| 65 + step % 8, |step| 65 + step % 10] {
            assert_eq!(told(&blocks), None);
        }
        // Far more in each: other work.
        assert_eq!(told(&|step| 65 + 40 * step), None);
    }
}
