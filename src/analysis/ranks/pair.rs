//! Which collectives of two ranks are one, whatever their clocks say.
//!
//! Operation, size and order must agree; which of the many places where they do is right shows in the time between
//! collectives, which no clock's offset changes. From there on both are walked along in step, the offset
//! followed as it drifts, and what one of them lacks is stepped over.

use super::collect::Part;
use crate::activity::Ns;
use crate::analysis::stats;

/// Collectives in a row that are looked for at first; where fewer overlap, as many as here.
const PROBES: [usize; 3] = [48, 12, 3];
/// Places of one rank's row that are looked for in the other's.
const PLACES: usize = 5;
/// How far a collective's end may lie from where the ones beside it put it. Exits of one collective's kernels were seen to
/// lie tens of us apart.
const NEAR: Ns = 200_000;

/// The pairs of `a` and `b`, as indices in ascending order; empty when nothing shows any.
pub(super) fn pairs(a: &[Part], b: &[Part]) -> Vec<(usize, usize)> {
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

/// Where rows of both begin that are the same collectives, and by how much the times between them differ.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    a: usize,
    b: usize,
    differs: f64,
}

fn anchor(a: &[Part], b: &[Part], length: usize) -> Option<Anchor> {
    let steps = |parts: &[Part]| -> Vec<Ns> {
        let ends = parts.windows(2);
        ends.map(|two| two[1].span.end - two[0].span.end).collect()
    };
    let (steps_a, steps_b) = (steps(a), steps(b));
    // Two rows that differ from a third by chance alone differ by as much within three standard errors of a root mean square; the
    // exits of kernels alone make some us.
    let factor = 1.0 + 3.0 / (length as f64).sqrt();
    let alike = |differs: f64| factor * differs + 2_000.0;
    let apart = |at: Anchor| (a[at.a].span.end.saturating_sub(b[at.b].span.end)).unsigned_abs();
    let mut best: Option<Anchor> = None;
    let mut places: Vec<usize> = (0..PLACES)
        .map(|i| (b.len() - length) * i / (PLACES - 1))
        .collect();
    places.dedup();
    for from_b in places {
        let probe = &b[from_b..from_b + length];
        for from_a in 0..=a.len() - length {
            // Beyond what is like the best it is not the one.
            let limit = best.map_or(f64::MAX, |best| alike(best.differs));
            let is_same = || {
                let row = &a[from_a..from_a + length];
                row.iter().zip(probe).all(|(a, b)| a.kind == b.kind)
            };
            let Some(differs) = differs(
                &steps_a[from_a..from_a + length - 1],
                &steps_b[from_b..from_b + length - 1],
                limit,
            ) else {
                continue;
            };
            let this = Anchor {
                a: from_a,
                b: from_b,
                differs,
            };
            let is_better = best.is_none_or(|best| {
                let is_alike = best.differs <= alike(differs);
                // Steps that do not differ from each other show nothing: then the clocks are believed.
                if is_alike {
                    apart(this) < apart(best)
                } else {
                    differs < best.differs
                }
            });
            if is_better && is_same() {
                best = Some(this);
            }
        }
    }
    best
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
    use crate::activity::Span;
    use crate::analysis::ranks::collect::{Kind, Operation};

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
