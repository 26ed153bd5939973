//! Collectives matched across ranks: the communicators, and which kernels are one collective.

use super::collect::{Channel, Label, Part};
use super::line::{self, Line};
use super::pair;
use activity::stats;
use activity::{Ns, Span};
use trace::parallel;

/// A rank that has no kernel of a collective, or none that was recorded.
const NONE: u32 = u32::MAX;

/// Streams are taken for one communicator when at least this share of the collectives of the one that has fewer
/// has a partner …
const AGREE: f64 = 0.8;
/// … and at most this share of those could not be: a rank's ended before the other's had begun …
const IMPOSSIBLE: f64 = 0.05;
/// … by more than this, which clocks may be apart after they were aligned.
const TOLERANCE: Ns = 50_000;
/// … and most ends lie no further apart than this, or this part of what the collectives take, after they were aligned.
const APART: Ns = 1_000_000;
const APART_OF: f64 = 0.1;
/// Of two ranks, so many pairs are looked at to tell that.
const LOOKED_AT: usize = 500;

/// The ranks of one communicator and what they did together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Ranks in it, as far as the program says.
    pub size: Option<u32>,
    /// Its ranks, by their index.
    pub ranks: Vec<usize>,
    /// The collectives of each.
    parts: Vec<Vec<Part>>,
    /// For each collective of the first of them, the part of each rank.
    table: Vec<u32>,
}

impl Group {
    /// Collectives of which two ranks' parts or more are known, in order.
    pub(crate) fn collectives(&self) -> impl Iterator<Item = Vec<(usize, &Part)>> + '_ {
        (0..self.rows()).filter_map(|row| {
            let members = self.members(row);
            (members.len() > 1).then_some(members)
        })
    }

    /// The parts of a collective, each with its place in `ranks`.
    pub(super) fn members(&self, row: usize) -> Vec<(usize, &Part)> {
        let slots = 0..self.ranks.len();
        let part = |slot| Some((slot, self.part(row, slot)?));
        slots.filter_map(part).collect()
    }

    /// A rank's place in `ranks`.
    pub(super) fn slot(&self, rank: usize) -> Option<usize> {
        self.ranks.iter().position(|r| *r == rank)
    }

    /// The part of one rank (by its place in `ranks`) of a collective.
    pub(super) fn part(&self, row: usize, slot: usize) -> Option<&Part> {
        let part = self.table[row * self.ranks.len() + slot];
        self.parts[slot].get(part as usize)
    }

    /// Whether parts of two ranks or more are known, and the operation cannot end on one before it has begun on all.
    pub(super) fn is_mutual(&self, row: usize) -> bool {
        let mut parts = (0..self.ranks.len()).filter_map(|slot| self.part(row, slot));
        // All of one collective have its kind.
        let first = parts.next();
        first.is_some_and(|part| part.kind.operation.is_mutual()) && parts.next().is_some()
    }

    /// Its ranks, each with how many collectives it has, judged or not.
    pub(super) fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let parts = self.parts.iter().map(|parts| parts.len() as u64);
        self.ranks.iter().copied().zip(parts)
    }

    /// Rows of the table.
    pub(super) fn rows(&self) -> usize {
        self.table.len() / self.ranks.len().max(1)
    }

    /// Parts of each rank that no other has one to.
    pub(super) fn alone(&self) -> Vec<u64> {
        let mut alone: Vec<u64> = self.counts().map(|(_, count)| count).collect();
        for members in self.collectives() {
            for (slot, _) in members {
                alone[slot] -= 1;
            }
        }
        alone
    }

    fn new(channels: &[&Channel], found: &[Vec<(usize, usize)>]) -> Group {
        let size = match channels[0].label {
            Label::Named(_, size) => (size > 0).then_some(size),
            Label::Stream(_) => None,
        };
        let width = channels.len();
        let mut table = vec![NONE; channels[0].parts.len() * width];
        for (row, cells) in table.chunks_mut(width).enumerate() {
            cells[0] = row as u32;
        }
        for (slot, pairs) in found.iter().enumerate() {
            for &(row, part) in pairs {
                table[row * width + slot + 1] = part as u32;
            }
        }
        Group {
            size,
            ranks: channels.iter().map(|channel| channel.rank).collect(),
            parts: channels
                .iter()
                .map(|channel| channel.parts.clone())
                .collect(),
            table,
        }
    }
}

/// The communicators of these channels, those with most collectives first. `may_be` tells of two ranks with the stretches of their
/// collectives whether they can be of one job.
pub(super) fn find(
    channels: &[Channel],
    may_be: impl Fn((usize, Span), (usize, Span)) -> bool + Sync,
) -> Vec<Group> {
    let stretch = |of: &Channel| {
        let spans = of.parts.iter().map(|part| part.span);
        (of.rank, spans.reduce(Span::hull).unwrap_or_default())
    };
    let mut by_label: Vec<&Channel> = channels.iter().collect();
    by_label.sort_by_key(|channel| &channel.label);
    let mut groups = Vec::new();
    for left in by_label.chunk_by(|a, b| a.label == b.label) {
        let (label, mut left) = (&left[0].label, left.to_vec());
        // The one that has seen most is what the others are matched with.
        left.sort_by_key(|channel| (std::cmp::Reverse(channel.parts.len()), channel.rank));
        while left.len() > 1 {
            let first = left.remove(0);
            let records = left.iter().map(|channel| channel.parts.len()).sum();
            let of_each = parallel::map(records, &left, |channel| {
                if !may_be(stretch(first), stretch(channel)) {
                    return None;
                }
                let pairs = pair::pairs(&first.parts, &channel.parts);
                let is_one = !pairs.is_empty()
                    && (matches!(label, Label::Named(..)) || is_together(first, channel, &pairs));
                is_one.then_some(pairs)
            });
            let mut members = vec![first];
            let mut found = Vec::new();
            let mut of_each = of_each.into_iter();
            left.retain(|channel| match of_each.next().flatten() {
                Some(pairs) => {
                    members.push(channel);
                    found.push(pairs);
                    false
                }
                None => true,
            });
            if members.len() > 1 {
                groups.push(Group::new(&members, &found));
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.table.len()));
    groups
}

/// Whether two ranks' streams can be of one communicator, which nothing but their times tells.
fn is_together(a: &Channel, b: &Channel, pairs: &[(usize, usize)]) -> bool {
    let fewer = a.parts.len().min(b.parts.len());
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else {
        return false;
    };
    // Where one's recording begins later, or ends earlier, the other's are no contradiction.
    let within = (last.0 - first.0 + 1)
        .min(last.1 - first.1 + 1)
        .max(fewer.min(3));
    if (pairs.len() as f64) < AGREE * within as f64 {
        return false;
    }
    let some = pairs.iter().step_by((pairs.len() / LOOKED_AT).max(1));
    let mutual = some.filter(|(i, _)| a.parts[*i].kind.operation.is_mutual());
    let both: Vec<_> = mutual
        .map(|&(i, j)| (a.parts[i].span, b.parts[j].span))
        .collect();
    let points: Vec<(Ns, Ns)> = both.iter().map(|(a, b)| (b.end, a.end)).collect();
    let Some(line) = line::through(&points, None) else {
        return false;
    };
    let off = |of: fn(&(Span, Span), &Line) -> Ns| -> f64 {
        let all: Vec<f64> = both.iter().map(|pair| of(pair, &line) as f64).collect();
        stats::median(&all).unwrap_or(0.0)
    };
    let apart = off(|(a, b), line| (line.apply(b.end) - a.end).abs());
    let length = off(|(a, b), _| a.len().min(b.len()));
    if apart > (APART_OF * length).max(APART as f64) {
        return false;
    }
    let is_impossible = |(a, b): &&(Span, Span)| {
        line.apply(b.end) + TOLERANCE < a.start || a.end + TOLERANCE < line.apply(b.start)
    };
    let impossible = both.iter().filter(is_impossible).count();
    impossible as f64 <= IMPOSSIBLE * both.len() as f64
}
