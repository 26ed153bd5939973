//! Which collectives of two ranks are one, whatever their clocks say.
//!
//! Operation, size and order must agree. They often do in many places: the time between collectives, which no clock's
//! offset changes, shows which is right. From there on both are walked along in step, the offset followed as it drifts,
//! and what one of them lacks is stepped over.

use super::collect::Part;
use activity::Ns;
use activity::stats;

/// Collectives in a row that are looked for at first; where fewer overlap, as many as here.
const PROBES: [usize; 3] = [48, 12, 3];
/// Places of one rank's row that are looked for in the other's.
const PLACES: usize = 5;
/// Of several places that fit alike, rows so many times as long are held against each other, …
const LONGER: usize = 4;
/// … up to this length, …
const LONGEST: usize = 3_072;
/// … of so many collectives in all at each length.
const LOOKED_AT: usize = 1_000_000;
/// A place at which this much less of a row has a partner than at another is not the one.
const LACKS: f64 = 0.1;
/// How far a collective's end may lie from where the ones beside it put it. Exits of one collective's kernels were seen to
/// lie tens of us apart.
const NEAR: Ns = 200_000;
/// Clocks that are set by a network lie no further apart, ns.
const CLOCKS: u64 = 1_000_000_000;

/// The pairs of `a` and `b`, as indices in ascending order; empty when nothing shows any. Ends of what goes one way tell nothing, so
/// the others are paired first.
pub(super) fn pairs(a: &[Part], b: &[Part]) -> Vec<(usize, usize)> {
    let is_one_way = |it: &Part| it.kind.operation.is_one_way();
    if !a.iter().chain(b).any(is_one_way) {
        return by_ends(a, b);
    }
    let others = |all: &[Part]| -> (Vec<usize>, Vec<Part>) {
        let others = all.iter().enumerate().filter(|it| !is_one_way(it.1));
        others.map(|(at, part)| (at, *part)).unzip()
    };
    let ((at_a, of_a), (at_b, of_b)) = (others(a), others(b));
    let found = by_ends(&of_a, &of_b).into_iter();
    let found: Vec<(usize, usize)> = found.map(|(i, j)| (at_a[i], at_b[j])).collect();
    with_one_way(a, b, &found)
}

fn by_ends(a: &[Part], b: &[Part]) -> Vec<(usize, usize)> {
    for length in PROBES {
        if length > a.len() || length > b.len() {
            continue;
        }
        if let Some(anchor) = anchor(a, b, length) {
            return walk(a, b, anchor, length);
        }
    }
    // One or two on either: only what is one and the same on both sides.
    if a.len() == b.len() && a.len() < 3 && a.iter().zip(b).all(|(a, b)| a.kind == b.kind) {
        return (0..a.len()).map(|i| (i, i)).collect();
    }
    Vec::new()
}

/// With the operations that go one way (broadcasts), whose ends tell nothing: one rank leaves early. Between two collectives that
/// are paired they have one order on all ranks. Where kinds and number agree they are the same.
fn with_one_way(a: &[Part], b: &[Part], pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let alike = |it: &(usize, usize)| a[it.0].kind == b[it.1].kind;
    let one_way = |it: &(usize, usize)| a[it.0].kind.operation.is_one_way();
    let whole = || (0..a.len()).map(|i| (i, i));
    let is_whole =
        a.len() == b.len() && whole().all(|it| alike(&it)) && whole().any(|it| one_way(&it));
    let is_mutual = |it: &&(usize, usize)| a[it.0].kind.operation.is_mutual();
    if is_whole && pairs.iter().filter(is_mutual).all(|it| it.0 == it.1) {
        return whole().collect();
    }
    let anchors: Vec<(usize, usize)> = pairs.iter().filter(is_mutual).copied().collect();
    let (Some(&first), Some(&last)) = (anchors.first(), anchors.last()) else {
        return pairs.to_vec();
    };
    // Before the first and behind the last as far as they agree: one recording may begin later, or end earlier.
    let before = (0..first.0).rev().zip((0..first.1).rev());
    let mut all: Vec<(usize, usize)> = before.take_while(alike).filter(one_way).collect();
    all.reverse();
    for two in anchors.windows(2) {
        let (from, to) = (two[0], two[1]);
        all.push(from);
        let between = || (from.0 + 1..to.0).zip(from.1 + 1..to.1);
        if to.0 - from.0 == to.1 - from.1 && between().all(|it| alike(&it)) {
            all.extend(between().filter(one_way));
        }
    }
    all.push(last);
    let behind = (last.0 + 1..a.len()).zip(last.1 + 1..b.len());
    all.extend(behind.take_while(alike).filter(one_way));
    all
}

/// Where rows of both begin that are the same collectives, and by how much the times between them differ.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    a: usize,
    b: usize,
    differs: f64,
}

/// Differences up to which a row of this length cannot be told from one that differs by `differs`. The least of many
/// thousands is searched for, so by chance alone roots of mean squares lie seven standard errors (each `1 / sqrt(2
/// length)`) apart. The exits of kernels alone make some us.
fn alike(differs: f64, length: usize) -> f64 {
    (1.0 + 5.0 / (length as f64).sqrt()) * differs + 2_000.0
}

/// The place that is right, of all at which rows of this length are alike. A short row of one rank fits several places
/// of the other's by chance, the more the longer they ran. So longer rows around them decide. Only of steps that do not
/// differ from each other, or by less than the exits of one collective do, the clocks are believed.
fn anchor(a: &[Part], b: &[Part], length: usize) -> Option<Anchor> {
    let mut places = places(a, b, length);
    let apart = |at: &Anchor| (a[at.a].span.end.saturating_sub(b[at.b].span.end)).unsigned_abs();
    let mut row = length;
    while places.len() > 1 && row < LONGEST && row < a.len().max(b.len()) {
        row *= LONGER;
        // Half of them by their clocks, half by how well they fit.
        let half = (LOOKED_AT / row / 2).max(1);
        if places.len() > 2 * half {
            places.sort_by_key(apart);
            places[half..].sort_by(|a, b| a.differs.total_cmp(&b.differs));
            places.truncate(2 * half);
        }
        let around: Vec<Around> = places
            .iter()
            .map(|at| around(a, b, *at, length, row))
            .collect();
        let most = around.iter().map(|it| it.found).fold(0.0, f64::max);
        let is_found = |it: &&Around| it.found >= most - LACKS;
        // A short overlap fits well by chance: it is no measure for a long one.
        let found = around.iter().filter(is_found);
        let Some(best) = found.min_by(|x, y| x.at_most().total_cmp(&y.at_most())) else {
            break;
        };
        let is_it = |it: &Around| {
            is_found(&it) && it.differs <= alike(best.differs, it.pairs.min(best.pairs))
        };
        places = (places.into_iter().zip(&around))
            .filter(|(_, it)| is_it(it))
            .map(|(at, it)| Anchor {
                differs: it.differs,
                ..at
            })
            .collect();
    }
    // Clocks of machines that keep time are believed. Where they are not, all that was recorded of either is there of the other.
    let near = places.iter().copied().filter(|at| apart(at) <= CLOCKS);
    if let Some(near) = near.min_by_key(apart) {
        return Some(near);
    }
    let overlap = |at: &Anchor| at.a.min(at.b) + (a.len() - at.a).min(b.len() - at.b);
    let most = places.iter().map(overlap).max();
    let longest = places.into_iter().filter(|at| Some(overlap(at)) == most);
    longest.min_by(|x, y| x.differs.total_cmp(&y.differs))
}

/// Where rows of this length are alike.
fn places(a: &[Part], b: &[Part], length: usize) -> Vec<Anchor> {
    let steps = |parts: &[Part]| -> Vec<Ns> {
        let ends = parts.windows(2);
        ends.map(|two| two[1].span.end - two[0].span.end).collect()
    };
    let (steps_a, steps_b) = (steps(a), steps(b));
    let mut from: Vec<usize> = (0..PLACES)
        .map(|i| (b.len() - length) * i / (PLACES - 1))
        .collect();
    from.dedup();
    let mut found: Vec<Anchor> = Vec::new();
    let mut least = f64::MAX;
    for from_b in from {
        let probe = &b[from_b..from_b + length];
        for from_a in 0..=a.len() - length {
            // Beyond what is like the best it is not the one.
            let limit = if least == f64::MAX {
                f64::MAX
            } else {
                alike(least, length)
            };
            let Some(differs) = differs(
                &steps_a[from_a..from_a + length - 1],
                &steps_b[from_b..from_b + length - 1],
                limit,
            ) else {
                continue;
            };
            let row = &a[from_a..from_a + length];
            if row.iter().zip(probe).all(|(a, b)| a.kind == b.kind) {
                least = least.min(differs);
                found.push(Anchor {
                    a: from_a,
                    b: from_b,
                    differs,
                });
            }
        }
    }
    let limit = alike(least, length);
    found.retain(|at| at.differs <= limit);
    found
}

/// How well the rows around a place fit.
struct Around {
    /// So many have partners.
    pairs: usize,
    /// The part of the row that has partners.
    found: f64,
    /// By how much the times between those differ: the root of the mean square, ns.
    differs: f64,
}

impl Around {
    /// By how much they may differ, for all that is known.
    fn at_most(&self) -> f64 {
        alike(self.differs, self.pairs)
    }
}

fn around(a: &[Part], b: &[Part], at: Anchor, length: usize, row: usize) -> Around {
    let before = at.a.min(at.b).min((row - length) / 2);
    let behind = (a.len() - at.a).min(b.len() - at.b);
    let behind = behind.min(length + (row - length) / 2);
    let (a, b) = (
        &a[at.a - before..at.a + behind],
        &b[at.b - before..at.b + behind],
    );
    let inner = Anchor {
        a: before,
        b: before,
        ..at
    };
    let pairs = walk(a, b, inner, length);
    let cut = (ends_apart(b) as f64 / b.len() as f64).max(1.0);
    let between = pairs.windows(2).map(|two| {
        let step = |parts: &[Part], i: usize, j: usize| parts[j].span.end - parts[i].span.end;
        let differs = step(a, two[0].0, two[1].0) - step(b, two[0].1, two[1].1);
        (differs.abs() as f64).min(cut).powi(2)
    });
    Around {
        pairs: pairs.len(),
        found: pairs.len() as f64 / a.len() as f64,
        differs: (between.sum::<f64>() / pairs.len().saturating_sub(1).max(1) as f64).sqrt(),
    }
}

/// How much two rows of times differ: the root of the mean square, `None` when it is beyond `limit`. Of several collectives a step most
/// times between them are alike in all steps; squares let the one count that tells steps apart. Single large ones (a rank's late
/// exit) are cut at the mean step.
fn differs(a: &[Ns], b: &[Ns], limit: f64) -> Option<f64> {
    let count = a.len().max(1) as f64;
    let cut = b.iter().sum::<Ns>() as f64 / count;
    let most = limit * limit * count;
    let mut sum = 0.0;
    for (a, b) in a.iter().zip(b) {
        sum += ((a - b).abs() as f64).min(cut.max(1.0)).powi(2);
        if sum > most {
            return None;
        }
    }
    Some((sum / count).sqrt())
}

fn ends_apart(parts: &[Part]) -> Ns {
    let end = |part: Option<&Part>| part.map_or(0, |part| part.span.end);
    end(parts.last()) - end(parts.first())
}

fn walk(a: &[Part], b: &[Part], from: Anchor, length: usize) -> Vec<(usize, usize)> {
    let ends = |i: usize, j: usize| a[i].span.end - b[j].span.end;
    let first: Vec<f64> = (0..length)
        .map(|k| (ends(from.a + k, from.b + k) - ends(from.a, from.b)) as f64)
        .collect();
    let begin = ends(from.a, from.b) + stats::median(&first).unwrap_or(0.0) as Ns;
    let steps = ends_apart(&b[from.b..from.b + length]) / (length - 1).max(1) as Ns;
    let near = NEAR.max(((10.0 * from.differs) as Ns).min(steps / 2));
    let mut found: Vec<(usize, usize)> = Vec::new();
    // Backwards, then forwards.
    let (mut i, mut j, mut offset) = (from.a, from.b, begin);
    while i > 0 && j > 0 {
        let by = ends(i - 1, j - 1) - offset;
        if a[i - 1].kind == b[j - 1].kind && by.abs() <= near {
            (i, j) = (i - 1, j - 1);
            offset += by / 8;
            found.push((i, j));
        } else if by > 0 {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    found.reverse();
    (i, j, offset) = (from.a, from.b, begin);
    while i < a.len() && j < b.len() {
        let by = ends(i, j) - offset;
        if a[i].kind == b[j].kind && by.abs() <= near {
            offset += by / 8;
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if by < 0 {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Kind;
    use crate::operation::Operation;
    use activity::Span;

    /// Collectives that end at these times, us.
    fn parts(ends: impl IntoIterator<Item = i64>) -> Vec<Part> {
        let part = |end: i64| Part {
            kind: Kind {
                operation: Operation::AllReduce,
                bytes: 4,
            },
            span: Span::new(end * 1_000 - 500, end * 1_000),
            lane: 0,
            row: 0,
        };
        ends.into_iter().map(part).collect()
    }

    /// Times between collectives that repeat nowhere.
    fn uneven(count: i64) -> Vec<i64> {
        (0..count)
            .scan(0, |at, i| {
                *at += 1_000 + (i * i * 7919) % 613;
                Some(*at)
            })
            .collect()
    }

    #[test]
    fn one_that_begins_later_lacks_some_and_has_a_clock_of_its_own_is_matched() {
        let all = uneven(300);
        let hours = 7_200_000_000;
        let other: Vec<i64> = all[40..].iter().map(|t| t + hours).collect();
        // Two of the other's are lost.
        let kept = |i: &usize| ![50, 51].contains(i);
        let other: Vec<i64> = (0..other.len()).filter(kept).map(|i| other[i]).collect();
        let found = pairs(&parts(all), &parts(other));
        let expected: Vec<(usize, usize)> = (40..300)
            .filter(|i| ![90, 91].contains(i))
            .map(|i| (i, i - 40 - if i > 91 { 2 } else { 0 }))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn where_steps_are_all_alike_the_clocks_are_believed() {
        let all: Vec<i64> = (0..200).map(|i| i * 1_000).collect();
        let other: Vec<i64> = (20..150).map(|i| i * 1_000 + 100).collect();
        let found = pairs(&parts(all), &parts(other));
        assert!(!found.is_empty() && found.iter().all(|&(i, j)| i == j + 20));
        assert_eq!(found.len(), 130);
    }

    /// Broadcasts that one rank leaves 5 ms early are paired by their order; where one rank lacks one, or a send is among
    /// them, nothing tells which is which.
    #[test]
    fn broadcasts_are_paired_by_their_order() {
        use Operation::{AllReduce, Broadcast, PointToPoint};
        let parts = |operations: &[Operation], late: i64| -> Vec<Part> {
            let all = operations.iter().zip(1..).map(|(&operation, i)| {
                let end = i * 10_000 + if operation == AllReduce { 0 } else { late };
                let mut part = parts([end]).remove(0);
                part.kind.operation = operation;
                part
            });
            all.collect()
        };
        let all = [
            Broadcast, AllReduce, Broadcast, Broadcast, AllReduce, AllReduce, Broadcast,
        ];
        let (a, b) = (parts(&all, 0), parts(&all, 5_000));
        let mutual = [(1, 1), (4, 4), (5, 5)];
        let every: Vec<(usize, usize)> = (0..7).map(|i| (i, i)).collect();
        assert_eq!(with_one_way(&a, &b, &mutual), every);
        let lacks = parts(
            &[
                Broadcast, AllReduce, Broadcast, AllReduce, AllReduce, Broadcast,
            ],
            0,
        );
        let found = with_one_way(&a, &lacks, &[(1, 1), (4, 3), (5, 4)]);
        assert_eq!(found, [(0, 0), (1, 1), (4, 3), (5, 4), (6, 5)]);
        let sends = parts(&[PointToPoint; 3], 0);
        assert!(with_one_way(&sends, &sends, &[]).is_empty());
    }

    /// Numbers that look like chance and are always the same.
    fn chance(seed: u64) -> impl FnMut(i64) -> i64 {
        let mut state = seed;
        move |limit| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as i64) % limit
        }
    }

    /// When collectives end, us: `steps` of five each, of which one in three takes 3 ms longer, the others by up to 0.5 ms.
    fn long_run(steps: usize) -> Vec<i64> {
        let mut below = chance(1);
        let mut at = 0;
        let mut ends = Vec::new();
        for step in 0..steps {
            at += 2_800 + if step % 3 == 1 { 3_000 } else { below(488) };
            for _ in 0..5 {
                at += 265;
                ends.push(at);
            }
        }
        ends
    }

    /// Ten steps that look like others ten are found in every long run, and a clock that is a second off would have them.
    #[test]
    fn a_long_run_has_rows_alike_and_only_one_that_is_the_same() {
        let all = long_run(4_000);
        for seed in 2..12 {
            let mut below = chance(seed);
            let clock = below(2_000_000) - 1_000_000;
            // Exits of kernels lie up to 15 us apart, and one collective in 700 is lost.
            let mut exits = |i: usize| (i % 700 != 350).then(|| all[i] + below(15));
            let a: Vec<(usize, i64)> = (0..all.len())
                .filter_map(|i| Some((i, exits(i)?)))
                .collect();
            let b: Vec<(usize, i64)> = (123..all.len() - 500)
                .filter_map(|i| Some((i, exits(i + 100)? + clock - all[i + 100] + all[i])))
                .collect();
            let ends = |of: &[(usize, i64)]| parts(of.iter().map(|(_, end)| *end));
            let found = pairs(&ends(&a), &ends(&b));
            let wrong = found.iter().filter(|(i, j)| a[*i].0 != b[*j].0).count();
            assert_eq!(wrong, 0, "{seed}: {} pairs", found.len());
            assert!(found.len() > b.len() * 99 / 100, "{seed}: {}", found.len());
        }
    }

    /// Steps that differ by less than the exits of one collective do, but for one in three: most places fit nearly as well as the right one,
    /// and a short overlap at an end by chance better.
    #[test]
    fn where_steps_are_nearly_alike_no_short_overlap_by_chance_is_believed() {
        let mut below = chance(3);
        let mut at = 0;
        let mut all = Vec::new();
        for step in 0..1_400 {
            at += 80_200 + if step % 3 == 0 { 9_000 } else { 0 } + below(30);
            for _ in 0..3 {
                at += 2_040;
                all.push(at);
            }
        }
        for seed in 10..22 {
            let mut below = chance(seed);
            // Clocks that keep time, and some that are hours off.
            let clock = match seed % 3 {
                0 => 7_200_000_000 + below(1_000_000),
                _ => below(100_000) - 50_000,
            };
            let mut rank = |clock: i64| parts(all.iter().map(|at| at + below(40) + clock));
            let found = pairs(&rank(0), &rank(clock));
            let wrong = found.iter().filter(|(i, j)| i != j).count();
            assert_eq!((wrong, found.len()), (0, all.len()), "{seed}");
        }
    }

    #[test]
    fn others_are_no_partners() {
        let mut other = parts(uneven(100));
        for part in &mut other {
            part.kind.bytes = 8;
        }
        assert!(pairs(&parts(uneven(100)), &other).is_empty());
        assert!(pairs(&[], &other).is_empty());
    }
}
