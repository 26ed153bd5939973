//! Kernels in double precision: which they are, and how far a card falls behind in it.

use rustc_hash::FxHashMap;

use crate::communication::has_any;
use crate::configs::Config;
use crate::rows::is_elementwise;
use activity::occupancy::blocks;
use activity::stats::lower_median;
use activity::{NameId, Ns};

/// By compute capability, how many times as fast a card adds in fp32: the programming guide's table of throughputs. Others
/// have half as many units for double, as those for computing do, or nobody knows.
const TIMES: [((u32, u32), u32); 7] = [
    ((5, 2), 32),
    ((6, 1), 32),
    ((7, 5), 32),
    ((8, 6), 64),
    ((8, 7), 64),
    ((8, 9), 64),
    ((12, 0), 64),
];

/// The same of a card of such a capability, where that is known.
pub fn times(capability: (u32, u32)) -> Option<u32> {
    TIMES.iter().find(|it| it.0 == capability).map(|it| it.1)
}

/// So many times the blocks are other work.
const TIMES_THE_BLOCKS: u64 = 4;

/// What is in the names of kernels over arrays in double, and of products of such matrices.
const NAMES: [&str; 6] = [
    "double*",
    "double *",
    "double const*",
    "<double",
    "dgemm",
    "f64gemm",
];

/// What moves or sorts elements, or does one thing to each, waits for memory.
const MOVES: &str = "copy Copy sort Sort cub:: thrust:: transpose gather scatter";

/// Whether a kernel computes in double, by its name.
pub fn is_double(name: &str) -> bool {
    let has = NAMES.iter().any(|it| name.contains(it));
    has && !is_elementwise(name) && !has_any(name, MOVES)
}

/// How long those take that take as long with several times the blocks, although an SM then works on several of them. They wait for one
/// step after the other, and for no unit.
pub fn flat(sms: u32, all: &[&Config]) -> Ns {
    let sms = u64::from(sms).max(1);
    let mut by_name: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in all {
        by_name.entry(it.shape.name).or_default().push(it);
    }
    let of_one = |of: Vec<&Config>| {
        let mut usual: Vec<Ns> = of.iter().map(|it| it.usual).collect();
        let median = lower_median(&mut usual).unwrap_or(0);
        let alike = of
            .iter()
            .filter(|it| 10 * (it.usual - median).abs() <= median);
        let sizes = alike.clone().map(|it| blocks(&it.shape));
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        let is_flat = most >= TIMES_THE_BLOCKS * least && most.div_ceil(sms) > least.div_ceil(sms);
        is_flat.then(|| alike.map(|it| it.row.total_ns).sum::<Ns>())
    };
    by_name.into_values().filter_map(of_one).sum()
}
