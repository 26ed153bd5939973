//! Rows of kernels that do the same to one tensor after the other.

use rustc_hash::{FxHashMap, FxHashSet};

use activity::{LaunchShape, ShapeId, Span, What};
use trace::{LaneId, Trace};

/// A loop does the same few things to each tensor: so many kernels, of other forms for some sizes.
const NAMES_MAX: usize = 4;
/// And what lies around it is next to nothing of the row.
const SAME: f64 = 0.9;
/// Tensors of so many sizes are different ones.
const SIZES_MIN: usize = 3;

/// What puts the results of a loop into one tensor: so the loop was over different ones, of whatever size.
const JOINS: &str = "CatArrayBatchedCopy";

/// A norm of PyTorch's: `clip_grad_norm_` takes one of each gradient.
pub const NORM: &str = "NormTwoOps";

/// What autograd copies for each tensor no list takes.
const COPIES: &str = "direct_copy_kernel";

/// Kernels of these launches in long rows of few names and several sizes, on one stream. Beside them how many stand before what joins
/// their results.
pub fn find(
    trace: &Trace,
    device: usize,
    window: Option<Span>,
    known: &FxHashMap<ShapeId, LaunchShape>,
) -> (Vec<(LaneId, usize)>, usize) {
    let (mut all, mut joined) = (Vec::new(), 0);
    let name = |it| trace.names().full(trace.shape(it).name);
    // The norms of gradients are joined, too: these are of tensors by themselves.
    let is_norm = |it: &Launch| trace.names().full(it.1.name).contains(NORM);
    let copies = |row: &Row| {
        let copies = row.iter().map(|it| trace.names().full(it.1.name));
        copies.filter(|it| it.contains(COPIES)).count() as f64 >= SAME * row.len() as f64
    };
    for (id, lane) in trace.streams_of(device) {
        let rows = lane.rows_in(window);
        let mut row = Row::new();
        for (at, activity) in trace.activities(id, rows) {
            let shape = match activity.what {
                What::Kernel(it) => known.get(&it.shape),
                _ => None,
            };
            match shape {
                Some(shape) => row.push(((id, at), *shape)),
                None => {
                    let joins = matches!(activity.what, What::Kernel(it) if name(it.shape).contains(JOINS))
                        && !row.iter().any(is_norm);
                    let before = all.len();
                    end(&mut row, &mut all, joins, copies);
                    joined += if joins { all.len() - before } else { 0 };
                }
            }
        }
        end(&mut row, &mut all, false, copies);
    }
    (all, joined)
}

type Launch = ((LaneId, usize), LaunchShape);
type Row = Vec<Launch>;

/// Takes the kernels of a row where a loop over tensors made it.
fn end(
    row: &mut Row,
    all: &mut Vec<(LaneId, usize)>,
    joins: bool,
    are_copies: impl Fn(&Row) -> bool,
) {
    if cases::MANY_LAUNCHES.is_reached_by(row.len()) {
        let mut names: FxHashMap<_, usize> = FxHashMap::default();
        row.iter()
            .for_each(|it| *names.entry(it.1.name).or_default() += 1);
        let mut counts: Vec<usize> = names.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let most: usize = counts.iter().take(NAMES_MAX).sum();
        let sizes: FxHashSet<[u32; 3]> = row.iter().map(|it| it.1.grid).collect();
        let is_one = cases::ONE_SIZE.holds(sizes.len() < SIZES_MIN && !joins);
        if most as f64 >= SAME * row.len() as f64 && !is_one && !are_copies(row) {
            all.extend(row.iter().map(|it| it.0));
        }
    }
    row.clear();
}
