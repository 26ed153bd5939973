//! Operations of several ranks that end together: collectives.
//!
//! None of a collective's kernels ends before the last of them has begun and the transfer is over. So a rank that comes late holds up
//! the others. A replay in which one rank is waited for no more tells what its lateness costs. The others are then held up by their own
//! launches, syncs and kernels, or by the next one that is last.

use super::{NONE, Program, Times};
use activity::Ns;

/// One collective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joint {
    /// Its operations (index into [`Program::ops`]), each with what its rank's clock is behind that of all, ns.
    pub members: Vec<(u32, Ns)>,
    /// How long it takes once the last one is there, ns.
    pub transfer: Ns,
}

/// How far a collective is in a replay.
#[derive(Clone, Copy)]
struct Open {
    /// Members that have not begun.
    left: usize,
    /// When the last of those that have did, on the clock of all.
    last: Ns,
}

impl Program<'_> {
    /// The times with these collectives, in which nobody waits for operations that are `absent`.
    pub fn replay_jointly(&self, joints: &[Joint], absent: impl Fn(u32) -> bool) -> Times {
        let mut joint_of = vec![NONE; self.ops.len()];
        let mut open = Vec::with_capacity(joints.len());
        for (joint, number) in joints.iter().zip(0..) {
            let present = joint.members.iter().filter(|it| !absent(it.0));
            for (op, _) in present.clone() {
                joint_of[*op as usize] = number;
            }
            open.push(Open {
                left: present.count(),
                last: Ns::MIN,
            });
        }
        let joined = |op: u32, times: &mut Times| {
            let number = joint_of[op as usize];
            let Some(joint) = joints.get(number as usize) else {
                return false;
            };
            let member = joint.members.iter().find(|it| it.0 == op);
            let behind = member.map_or(0, |it| it.1);
            let open = &mut open[number as usize];
            open.left -= 1;
            open.last = open.last.max(times.op_start[op as usize] + behind);
            if open.left > 0 {
                return true;
            }
            // What follows comes later in the order: it began after all of them.
            for &(of, behind) in joint
                .members
                .iter()
                .filter(|it| joint_of[it.0 as usize] == number)
            {
                times.op_end[of as usize] = open.last + joint.transfer - behind;
            }
            true
        };
        self.times(Times::default(), |delay, _| delay, joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::GpuRates;
    use activity::LaunchShape;
    use causes::graph::Graph;
    use trace::testing::{Scene, h200};

    /// Two streams stand for two ranks: each runs a kernel of 100 ns and then a collective's, in rounds of 1,000 ns. The second one begins
    /// 400 ns later, for which the first waits. The first takes 450 ns between rounds.
    #[test]
    fn without_the_late_one_the_other_goes_on_at_its_own_pace() {
        let mut scene = Scene::new();
        scene.device(h200());
        let rounds = 10;
        for begin in (0..rounds).map(|round| 1_000 * round) {
            for (stream, late) in [(1, 0), (2, 400)] {
                let first = begin + late + 20;
                // Small ones: both ranks are on the one device of the scene.
                let small = LaunchShape {
                    grid: [1, 1, 1],
                    block: [32, 1, 1],
                    ..LaunchShape::default()
                };
                scene.without_call();
                scene.shaped(small, "work", stream, first, first + 100);
                scene.shaped(small, "collective", stream, first + 100, begin + 570);
            }
        }
        let trace = scene.trace();
        let graph = Graph::new(&trace);
        let program = Program::new(&trace, &graph, None, &GpuRates::default());
        let all = 0..program.ops.len() as u32;
        let collectives: Vec<u32> = all
            .filter(|it| program.op_span(*it).end % 1_000 == 570)
            .collect();
        let first = program.ops.iter().map(|it| it.stream).min().expect("some");
        let (a, b): (Vec<u32>, Vec<u32>) = collectives
            .iter()
            .partition(|it| program.ops[**it as usize].stream == first);
        assert_eq!((a.len(), b.len()), (10, 10));
        let joint = |(a, b): (&u32, &u32)| Joint {
            members: vec![(*a, 0), (*b, 0)],
            transfer: 50,
        };
        let joints: Vec<Joint> = a.iter().zip(&b).map(joint).collect();
        let ends = |times: &Times, of: &[u32]| {
            of.iter()
                .map(|it| times.op_end[*it as usize])
                .collect::<Vec<Ns>>()
        };
        let every = |period: Ns, first: Ns| {
            (0..rounds)
                .map(|it| period * it + first)
                .collect::<Vec<Ns>>()
        };
        // With both it is what was recorded.
        let both = program.replay_jointly(&joints, |_| false);
        assert_eq!(ends(&both, &a), every(1_000, 570));
        // 20 + 100 + 50, and 450 to the next kernel of its own.
        let without = program.replay_jointly(&joints, |it| b.contains(&it));
        assert_eq!(ends(&without, &a), every(600, 170));
        // Without the first nothing is gained: nobody waited for it.
        let other = program.replay_jointly(&joints, |it| a.contains(&it));
        assert_eq!(ends(&other, &b), every(1_000, 570));
    }
}
