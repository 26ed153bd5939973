//! The repeating unit of a sequence of operations.
//!
//! An operation that is done once in every step cuts the sequence into steps. So each operation that
//! occurs at regular distances is tried as such an *anchor*. The sequence is cut before each of its
//! occurrences, and what lies between is compared with the commonest piece. At least two and a quarter of
//! all must be exactly equal. The others need not be, so that a step that also logs is still a step. None need be where the
//! operations begin in the same order in most: some of them then come more often in one than in another.
//! Pieces that are something else (an evaluation) may lie between. What comes before and behind is
//! start-up and tail.
//!
//! Of the anchors that hold, the one with fewest pieces wins, the outermost loop: the layers of a network are not
//! its steps. But a piece that brings its own data to the GPU is an iteration: ten steps with a log line are ten
//! steps, not one. So is one whose launches two threads take by turns, as a pass forth and one back do. The larger one
//! must hold next to nothing beside. The odd pieces between the alike ones may come regularly themselves, and have an
//! anchor. Then the larger unit is taken all the same. Anchors of one loop differ by one piece at most. Of these the least number wins, so that a step begins at the same operation
//! wherever the sequence is begun.
//!
//! Where no operation occurs but once in a step, pairs of operations do, or four in a row, or eight.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

/// Operations in a row that make an anchor.
const ROWS: [usize; 4] = [1, 2, 4, 8];
/// So many different distances between anchors are tried.
const TRIED_MAX: usize = 24;

/// The steps in a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Units {
    /// Each step's operations, as places in the sequence.
    pub(super) units: Vec<Range<usize>>,
    /// Operations of the commonest one.
    pub(super) length: usize,
    /// Whether most are exactly equal, and of so many operations that no chance makes them so.
    pub(super) is_sure: bool,
}

/// A way to cut the sequence that holds.
struct Cut {
    units: Units,
    /// Pieces between alike ones that are not alike.
    odd: usize,
    /// Whether nearly all of them bring data to the GPU.
    uploads: bool,
}

/// Finds the repeating unit; `None` where there is none. Equal numbers are equal operations; they must
/// be dense from 0, and the first `uploads` of them bring data to the GPU. `by_turns` says whether two threads took turns
/// in launching a piece.
pub(super) fn find(
    symbols: &[u32],
    uploads: u32,
    by_turns: impl Fn(&Range<usize>) -> bool,
) -> Option<Units> {
    ROWS.into_iter().find_map(|length| {
        let anchors = rows_of(symbols, length);
        let mut cuts: Vec<(Cut, &[u32])> = candidates(&anchors)
            .into_iter()
            .filter_map(|places| {
                let anchor = &symbols[places[0]..places[0] + length];
                Some((cut(symbols, &places, uploads)?, anchor))
            })
            .collect();
        let count = |cut: &(Cut, &[u32])| cut.0.units.units.len();
        cuts.sort_by_key(|cut| (Reverse(count(cut)), cut.1));
        let mut chosen = 0;
        for larger in 1..cuts.len() {
            let Cut { odd, uploads, .. } = cuts[chosen].0;
            let is_of_another = count(&cuts[larger]) + 1 < count(&cuts[chosen]);
            let [small, large] = [chosen, larger].map(|at| cuts[at].0.units.length);
            let are_turns = || most_are(&cuts[chosen].0.units.units, &by_turns);
            let is_iteration = is_of_another
                && large % small <= small / 20
                && cases::TURNS_OF_THREADS.holds(are_turns());
            let is_outer = !cases::BRINGS_DATA.holds(uploads) && is_of_another && !is_iteration;
            let is_regular =
                cases::STEPS_MIN.is_reached_by(odd) && odd.abs_diff(count(&cuts[larger])) <= 1;
            if is_outer || cases::REGULAR_BETWEEN.holds(is_regular) {
                chosen = larger;
            }
        }
        let (most, length) = (count(cuts.get(chosen)?), cuts[chosen].0.units.length);
        let is_same = |cut: &(Cut, &[u32])| {
            count(cut).abs_diff(most) <= 1 && cut.0.units.length.abs_diff(length) <= length / 8
        };
        let same = (0..cuts.len()).filter(|&i| is_same(&cuts[i]));
        let chosen = same.min_by_key(|&i| cuts[i].1)?;
        Some(cuts.swap_remove(chosen).0.units)
    })
}

/// Numbers for `length` symbols in a row, by where the row begins.
fn rows_of(symbols: &[u32], length: usize) -> Vec<u32> {
    if length == 1 {
        return symbols.to_vec();
    }
    let mut ids: FxHashMap<&[u32], u32> = FxHashMap::default();
    symbols
        .windows(length)
        .map(|row| {
            let next = ids.len() as u32;
            *ids.entry(row).or_insert(next)
        })
        .collect()
}

/// Where each anchor that comes regularly stands: one anchor for each distance and number, the least.
fn candidates(anchors: &[u32]) -> Vec<Vec<usize>> {
    let kinds = anchors.iter().max().map_or(0, |&m| m as usize + 1);
    let mut ends = vec![0; kinds + 1];
    for &a in anchors {
        ends[a as usize + 1] += 1;
    }
    for i in 0..kinds {
        ends[i + 1] += ends[i];
    }
    let starts = ends.clone();
    let mut places = vec![0; anchors.len()];
    for (place, &a) in anchors.iter().enumerate() {
        places[ends[a as usize]] = place;
        ends[a as usize] += 1;
    }
    let mut found: Vec<(usize, &[usize])> = Vec::new();
    let mut distances = Vec::new();
    for kind in 0..kinds {
        let places = &places[starts[kind]..ends[kind]];
        if !cases::STEPS_MIN.is_reached_by(places.len()) {
            continue;
        }
        distances.clear();
        distances.extend(places.windows(2).map(|p| p[1] - p[0]));
        let half = distances.len() / 2;
        let median = *distances.select_nth_unstable(half).1;
        let near = |d: usize| 4 * d >= 3 * median && 3 * d <= 4 * median;
        let regular = distances.iter().filter(|&&d| near(d)).count();
        if 4 * regular >= 3 * distances.len() {
            found.push((median, places));
        }
    }
    // Kinds are in order already, and equal ones stay so.
    found.sort_by_key(|(distance, places)| (*distance, places.len()));
    found.dedup_by_key(|(distance, places)| (*distance, places.len()));
    // Where there are too many, those of the innermost loops and those of the outermost are looked at.
    found.sort_by_key(|(_, places)| Reverse(places.len()));
    if found.len() > TRIED_MAX {
        found.drain(TRIED_MAX / 2..found.len() - TRIED_MAX / 2);
    }
    found.into_iter().map(|(_, p)| p.to_vec()).collect()
}

/// Cuts the sequence before each place; `None` when the pieces are not alike enough to be steps.
fn cut(symbols: &[u32], places: &[usize], uploads: u32) -> Option<Cut> {
    let ends = places[1..].iter().copied().chain([symbols.len()]);
    let mut pieces: Vec<Range<usize>> = places.iter().zip(ends).map(|(&p, end)| p..end).collect();
    let open = pieces.pop()?;
    let (model, equal) = commonest(symbols, &pieces)?;
    // Behind the last anchor the last step may be followed by something else.
    pieces.push(open.start..open.end.min(open.start + model.len()));
    let mut likeness = Likeness::to(&symbols[model.clone()], symbols);
    let mut share = |piece: &Range<usize>| likeness.share(&symbols[piece.clone()]);
    let shares: Vec<(f64, f64)> = pieces.iter().map(&mut share).collect();
    // A few with all of it and more are steps in which more was done.
    let has_more = |it: &&(f64, f64)| it.0 < it.1 && cases::ALIKE_SHARE.is_reached_by(it.1);
    let more = shares.iter().filter(has_more).count();
    let are_few =
        cases::MORE_IN_PIECE.holds(more as f64 <= cases::ODD_PART.value() * pieces.len() as f64);
    let is_alike =
        |it: &(f64, f64)| cases::ALIKE_SHARE.is_reached_by(it.0) || are_few && has_more(&it);
    let alike: Vec<bool> = shares.iter().map(is_alike).collect();
    let first = alike.iter().position(|&a| a)?;
    let last = alike.iter().rposition(|&a| a)?;
    let odd = alike[first..last].iter().filter(|&&a| !a).count();
    let region = pieces[last].end - pieces[first].start;
    let units: Vec<Range<usize>> = pieces
        .into_iter()
        .zip(alike)
        .filter_map(|(piece, alike)| alike.then_some(piece))
        .collect();
    // What alike ones have is at most half as much again.
    let own = units.iter().map(|unit| unit.len().min(3 * model.len() / 2));
    let inside: usize = own.sum();
    let covered = inside as f64 / symbols.len() as f64;
    let is_covered = cases::COVERED_SHARE.is_reached_by(covered)
        || cases::MANY_PIECES.is_reached_by(units.len())
            && cases::COVERED_SHARE_OF_MANY.is_reached_by(covered);
    // Of two kinds by turns, one without data, neither is an iteration.
    let has_upload = |unit: &Range<usize>| symbols[unit.clone()].iter().any(|&it| it < uploads);
    let brings = most_are(&units, has_upload);
    let model = &symbols[model];
    let is_many = cases::MANY_PIECES.is_reached_by(units.len());
    let begins = first_seen(model);
    let is_repeated = equal >= 2 && !cases::NEVER_EQUAL.holds(4 * equal < units.len());
    let are_in_order = || is_many && begin_alike(symbols, &units);
    let holds = cases::STEPS_MIN.is_reached_by(units.len())
        && (is_repeated || cases::OTHER_COUNTS.holds(are_in_order()))
        && cases::REPEATED_MIN.is_reached_by((units.len() - 1) * model.len())
        && cases::PURE_SHARE.is_reached_by(inside as f64 / region as f64)
        && is_covered;
    holds.then(|| Cut {
        units: Units {
            is_sure: is_many
                && 4 * equal >= 3 * units.len()
                && cases::MANY_OPERATIONS.is_reached_by(begins.len()),
            length: model.len(),
            units,
        },
        odd,
        uploads: brings,
    })
}

/// Whether three of four are so.
fn most_are(units: &[Range<usize>], is_so: impl Fn(&Range<usize>) -> bool) -> bool {
    4 * units.iter().filter(|it| is_so(it)).count() >= 3 * units.len()
}

/// What is in less than half of the pieces is another operation each time, such as a product of another size. It must be a
/// small part of them.
const OTHERS: usize = 20;

/// Whether most pieces have the same operations, and those begin in the same order, however often each comes.
fn begin_alike(symbols: &[u32], units: &[Range<usize>]) -> bool {
    let firsts = units.iter().map(|it| first_seen(&symbols[it.clone()]));
    let mut firsts: Vec<Vec<u32>> = firsts.collect();
    let mut held: FxHashMap<u32, usize> = FxHashMap::default();
    for &it in firsts.iter().flatten() {
        *held.entry(it).or_default() += 1;
    }
    held.retain(|_, pieces| 2 * *pieces >= units.len());
    let all = units.iter().flat_map(|it| &symbols[it.clone()]);
    let others = all.clone().filter(|it| !held.contains_key(it)).count();
    let mut orders: FxHashMap<&[u32], usize> = FxHashMap::default();
    for first in &mut firsts {
        first.retain(|it| held.contains_key(it));
        *orders.entry(first).or_default() += 1;
    }
    let most = orders.into_values().max().unwrap_or(0);
    4 * most >= 3 * units.len() && OTHERS * others <= all.count()
}

/// A piece's operations, each once, in the order in which they come first.
fn first_seen(piece: &[u32]) -> Vec<u32> {
    let mut seen = FxHashSet::default();
    let firsts = piece.iter().copied().filter(|it| seen.insert(*it));
    firsts.collect()
}

/// The piece that is there most often, and how often.
fn commonest(symbols: &[u32], pieces: &[Range<usize>]) -> Option<(Range<usize>, usize)> {
    let mut counts: FxHashMap<&[u32], (usize, usize)> = FxHashMap::default();
    for (i, piece) in pieces.iter().enumerate() {
        counts.entry(&symbols[piece.clone()]).or_insert((0, i)).0 += 1;
    }
    // Of equals the first, whatever the order of the map.
    let &(count, first) = counts.values().max_by_key(|(n, i)| (*n, Reverse(*i)))?;
    Some((pieces[first].clone(), count))
}

/// How much of its operations a piece shares with a model.
struct Likeness {
    /// How often the model has each symbol.
    model: Vec<u32>,
    length: usize,
    /// How often the piece had it so far.
    piece: Vec<u32>,
}

impl Likeness {
    fn to(model: &[u32], symbols: &[u32]) -> Self {
        let kinds = symbols.iter().max().map_or(0, |&m| m as usize + 1);
        let mut counts = vec![0; kinds];
        for &s in model {
            counts[s as usize] += 1;
        }
        Likeness {
            model: counts,
            length: model.len(),
            piece: vec![0; kinds],
        }
    }

    /// Of both, and of the model alone.
    fn share(&mut self, piece: &[u32]) -> (f64, f64) {
        let mut common = 0;
        for &s in piece {
            let count = &mut self.piece[s as usize];
            *count += 1;
            common += usize::from(*count <= self.model[s as usize]);
        }
        for &s in piece {
            self.piece[s as usize] = 0;
        }
        let both = (piece.len() + self.length) as f64;
        (
            2.0 * common as f64 / both,
            common as f64 / self.length as f64,
        )
    }
}
