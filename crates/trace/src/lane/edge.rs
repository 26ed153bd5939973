//! Edges of a lane's cells: which rows lie around a moment, and how long they ran before it.
//!
//! The answers about a cell of the screen lie at its two edges. A cursor reads an edge's own block of rows once, for
//! all questions.

use super::Lane;
use crate::rows::{Around, Rows};
use crate::series::Spot;
use activity::Ns;

/// A moment of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) time: Ns,
    /// The end of the rows that start before it.
    pub(super) spot: Spot,
    /// How many rows start before it, evicted ones included.
    pub(super) index: usize,
    /// Time before it during which a row ran.
    pub(super) busy: Ns,
    /// The rows that run over it; `None` where one may start before its block.
    pub(super) over: Option<Over>,
}

/// The rows that run over a moment, all of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    /// The first such row; without one, the first row that starts no earlier than the moment.
    pub(super) first: usize,
    /// The last such row, and its end.
    pub(super) last: Option<(usize, Ns)>,
}

impl Lane {
    pub(super) fn edge(&self, time: Ns) -> Edge {
        match self.rows.begun(time) {
            Some(chunk) => {
                let rows = self.rows.chunk(chunk);
                let block = rows.block_in(rows.group(time), time);
                self.edge_in(chunk, block, time)
            }
            None => self.first_edge(time),
        }
    }

    /// Finds the edges at these times, which ascend, level by level. So many reads of memory are under way at once,
    /// instead of one after the other. It also reads ahead the rows next to them.
    pub(super) fn edges(&self, times: &[Ns]) -> Vec<Edge> {
        // Until the last step, the row is a group, then a block; `None` where no row starts before.
        let begun = self.rows.begun_each(times);
        let mut spots: Vec<Option<Spot>> = begun
            .map(|chunk| {
                Some(Spot {
                    chunk: chunk?,
                    row: 0,
                })
            })
            .collect();
        let mut step = |next: &dyn Fn(&Rows, usize, Ns) -> usize| {
            for (spot, &time) in spots.iter_mut().zip(times) {
                if let Some(spot) = spot {
                    spot.row = next(self.rows.chunk(spot.chunk), spot.row, time);
                }
            }
        };
        step(&|rows, _, time| rows.group(time));
        step(&|rows, group, time| rows.block_in(group, time));
        // A short lane is in the cache anyway.
        if self.rows.count() > 1 {
            let blocks = spots.iter().flatten();
            let seen = blocks.fold(0, |seen, spot| {
                seen ^ self.rows.chunk(spot.chunk).warm(spot.row)
            });
            std::hint::black_box(seen);
        }
        let edge = |(spot, &time): (Option<Spot>, &Ns)| match spot {
            Some(Spot { chunk, row: block }) => self.edge_in(chunk, block, time),
            None => self.first_edge(time),
        };
        spots.into_iter().zip(times).map(edge).collect()
    }

    /// The edge before any row.
    fn first_edge(&self, time: Ns) -> Edge {
        let spot = Spot::START;
        let index = self.rows.index(spot);
        Edge {
            time,
            spot,
            index,
            busy: self.busy_until(time, spot),
            over: Some(Over {
                first: index,
                last: None,
            }),
        }
    }

    /// The edge in a block of a chunk that begins before it.
    fn edge_in(&self, chunk: usize, block: usize, time: Ns) -> Edge {
        let Around {
            before,
            sums,
            ended,
            first,
            last,
        } = self.rows.chunk(chunk).around(block, time);
        let head = self.rows.head(chunk);
        let busy = match self.rollup.until(time) {
            Some(busy) => busy,
            // Rows before the chunk cover everything from its first start to their greatest end.
            None if time <= head.sums.end => head.sums.busy - (head.sums.end - time),
            None => head.sums.busy + sums.until(time) - head.hidden,
        };
        let base = self.rows.index(Spot { chunk, row: 0 });
        let is_all = head.sums.end.max(ended) <= time;
        Edge {
            time,
            spot: Spot { chunk, row: before },
            index: base + before,
            busy,
            over: is_all.then_some(Over {
                first: base + first,
                last: last.map(|(row, end)| (base + row, end)),
            }),
        }
    }
}
