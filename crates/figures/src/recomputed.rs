//! Forward passes of a model's blocks that run again in backward, as activation checkpointing does.

use activity::{Ns, Span, What};
use causes::graph::{Graph, OpId};
use rustc_hash::FxHashMap;
use trace::Trace;

use crate::communication::has_any;

/// Kernels of which a block has one or few, forward and backward: fused attention, and activations.
const KINDS: [(&str, &str); 3] = [
    (
        "flash_fwd flash_fprop fmha_cutlassF",
        "flash_bwd flash_bprop fmha_cutlassB",
    ),
    ("GeluCUDAKernelImpl", "GeluBackwardCUDAKernelImpl"),
    ("silu_kernel", "silu_backward_kernel"),
];

/// What is computed again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recomputed {
    /// Forward kernels of the kind that is looked at, those of them that are repeats, and how long the repeats take with all between.
    pub forward: usize,
    pub again: usize,
    pub time: Ns,
    /// Those that run between backward ones.
    pub between: Vec<OpId>,
}

/// Forward kernels in a row, without a backward one between.
type Forwards = Vec<OpId>;

/// Finds what of a device's work within a stretch is computed again. A first run of forward kernels is long, and short ones lie between
/// backward ones. A second model that only runs forward does so before all of them.
pub fn find(trace: &Trace, graph: &Graph, device: usize, span: Span) -> Option<Recomputed> {
    let names = trace.names();
    let has = |words: &str| (0..names.len() as u32).any(|id| has_any(names.full(id), words));
    let (forward, backward) = *KINDS.iter().find(|it| has(it.1) && has(it.0))?;
    let mut kinds: FxHashMap<u32, Option<bool>> = FxHashMap::default();
    let mut is_forward = |shape: u32| {
        *kinds.entry(shape).or_insert_with(|| {
            let name = names.full(trace.shape(shape).name);
            match has_any(name, backward) {
                true => Some(false),
                false => has_any(name, forward).then_some(true),
            }
        })
    };
    let (mut runs, mut run, mut back) = (Vec::new(), Forwards::new(), 0);
    let ops = graph.ops.of_device(device).iter().copied();
    for op in ops.filter(|&op| span.contains(graph.ops.start[op as usize])) {
        let What::Kernel(kernel) = graph.what(trace, op) else {
            continue;
        };
        match is_forward(kernel.shape) {
            Some(true) => run.push(op),
            Some(false) => {
                back += 1;
                runs.extend(Some(std::mem::take(&mut run)).filter(|it| !it.is_empty()));
            }
            None => {}
        }
    }
    Recomputed::of(&graph.ops.start, &runs, back)
}

impl Recomputed {
    fn of(start: &[Ns], runs: &[Forwards], back: usize) -> Option<Recomputed> {
        let longest = runs.iter().map(Forwards::len).max()?;
        let is_long = |it: &&Forwards| 2 * it.len() > longest && it.len() > 2;
        let (long, short): (Vec<&Forwards>, Vec<&Forwards>) = runs.iter().partition(is_long);
        let between: Forwards = short.into_iter().flatten().copied().collect();
        let forward = runs.iter().map(Forwards::len).sum::<usize>();
        let again = forward.saturating_sub(back);
        if 2 * again < back || 2 * between.len() < back || long.is_empty() {
            return None;
        }
        let took = |it: &&Forwards| start[it[it.len() - 1] as usize] - start[it[0] as usize];
        let time: Ns = long.iter().map(took).sum();
        let steps: usize = long.iter().map(|it| it.len() - 1).sum();
        Some(Recomputed {
            forward,
            again,
            time: time / steps as Ns * again as Ns,
            between,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    /// Kernels of 1 ms, one behind the other: attention forward (F) and backward (B), and others.
    fn told(steps: &str) -> Option<Recomputed> {
        let mut scene = Scene::new();
        for (at, it) in (0..).zip(steps.repeat(3).chars()) {
            let name = match it {
                'F' => "flash_fwd_kernel",
                'B' => "flash_bwd_kernel",
                _ => "gemm",
            };
            scene.kernel(name, 1, at * 1_000_000, (at + 1) * 1_000_000);
        }
        let trace = scene.trace();
        let span = Span::new(0, Ns::MAX);
        find(&trace, &Graph::new(&trace), 0, span)
    }

    #[test]
    fn blocks_that_run_again_in_backward_are_known_by_their_order() {
        // Four blocks of 2 ms, one by one: of five in the first run, the last behind the loss, the four steps take 2 ms each.
        let found = told("FgFgFgFgFgBFgBFgBFgB").expect("checkpoints");
        assert_eq!(
            (found.forward, found.again, found.time),
            (24, 12, 24_000_000)
        );
        // The first backward one is the 11th of 20 kernels, so that the 12th, the 15th and the 18th run again in each of three steps.
        let again = [12, 15, 18].map(|it| it - 1);
        let steps = [0, 20, 40].into_iter();
        let expected: Vec<u32> = steps.flat_map(|step| again.map(|it| step + it)).collect();
        assert_eq!(found.between, expected);
        // Two at a time.
        let found = told("FgFgFgFgFgFgBBFgFgBB").expect("checkpoints");
        assert_eq!((found.again, found.time), (12, 24_000_000));
        for none in [
            // Nothing is computed again, and gradients of two batches.
            "FgFgFgFgBBBB",
            "FgFgFgFgBBBBFgFgFgFgBBBB",
            // A teacher that only runs forward, and one of a single block.
            "FgFgFgFgFgFgFgFgBBBB",
            "FgFgB",
            "FgB",
            // A quarter of the blocks alone.
            "FgFgFgFgFgBFgBBBBBBB",
        ] {
            assert_eq!(told(none), None, "{none}");
        }
    }
}
