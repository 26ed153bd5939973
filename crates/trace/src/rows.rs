//! A chunk of a lane: up to some thousand rows and the indices over them.
//!
//! Every sixteenth row's start stands apart, with the sums before it and the greatest length of its sixteen. So do the
//! start and the longest row of every 256. A question reads a line or two of each. What one question reads lies
//! together, as such questions wait for memory.

use std::cmp::Reverse;

use super::series::Chunk;
use activity::{Ns, Span};

/// Rows of a block: a query walks at most this many at either end.
pub(super) const STRIDE: usize = 16;
/// Blocks of a group.
const FAN: usize = 16;
const GROUP: usize = STRIDE * FAN;
/// Groups of a chunk.
const GROUPS: usize = 16;

/// One row as it is stored. `detail` indexes the trace's table of distinct things that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) span: Span,
    pub(super) correlation: u32,
    pub(super) detail: u32,
}

/// Starts and lengths: 32 bits, counted from the chunk's first start, as long as all fit.
#[derive(Clone, Debug)]
enum Times {
    Narrow(Vec<(u32, u32)>),
    Wide(Vec<(Ns, Ns)>),
}

/// Union and greatest end of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) busy: Ns,
    pub(super) end: Ns,
}

impl Sums {
    pub(super) const NONE: Sums = Sums {
        busy: 0,
        end: Ns::MIN,
    };

    pub(super) fn take(&mut self, span: Span) {
        let from = span.start.max(self.end);
        self.busy += (span.end - from).max(0);
        self.end = self.end.max(span.end);
    }

    /// How much of the union lies before `time`; all rows start before it.
    pub(super) fn until(self, time: Ns) -> Ns {
        self.busy - self.end.saturating_sub(time).max(0)
    }
}

/// The rows of a chunk around a moment, as far as its own block tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Rows of the chunk that start before it.
    pub(super) before: usize,
    /// Their union and greatest end.
    pub(super) sums: Sums,
    /// The greatest end of those before the block.
    pub(super) ended: Ns,
    /// The first row of the block that runs over it, or `before`.
    pub(super) first: usize,
    /// The last of them, and its end.
    pub(super) last: Option<(usize, Ns)>,
}

impl Around {
    /// For the block that begins with row `from`, before which `sums` lie.
    fn of(time: Ns, from: usize, sums: Sums, rows: impl Iterator<Item = Span>) -> Around {
        let mut around = Around {
            before: from,
            sums,
            ended: sums.end,
            first: from,
            last: None,
        };
        for span in rows.take_while(|span| span.start < time) {
            around.sums.take(span);
            if span.end > time {
                if around.last.is_none() {
                    around.first = around.before;
                }
                around.last = Some((around.before, span.end));
            }
            around.before += 1;
        }
        if around.last.is_none() {
            around.first = around.before;
        }
        around
    }
}

/// The longest of some rows, the first of equals; none of them yet when that is the greatest number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longest {
    pub(super) length: Ns,
    pub(super) row: usize,
}

/// The index over the blocks of a group.
#[derive(Clone, Debug)]
struct Group {
    /// Start of each block; the greatest time for missing ones.
    starts: [Ns; FAN],
    /// Greatest length in each block.
    longest: [Ns; FAN],
    /// Union and greatest end of the chunk's rows before each block.
    sums: [Sums; FAN],
    /// The row of the block that has the greatest length.
    at: [u8; FAN],
}

impl Longest {
    fn take(&mut self, length: Ns, row: usize) {
        let is_first = length == self.length && row < self.row && self.row < usize::MAX;
        if length > self.length || is_first {
            *self = Longest { length, row };
        }
    }

    /// Takes the longest of some rows, which is at `at`, where that is one of `[from, to)`. Returns whether the caller
    /// must look at these one by one.
    fn may_take(&mut self, length: Ns, from: usize, to: usize, at: usize) -> bool {
        if (from..to).contains(&at) {
            self.take(length, at);
            return false;
        }
        length > self.length || (length == self.length && from < self.row && self.row < usize::MAX)
    }
}

/// Some rows of a lane.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Start of every group (the greatest time for missing ones), the greatest length in it, and the row that has it.
    group_starts: [Ns; GROUPS],
    group_longest: [Ns; GROUPS],
    group_at: [u16; GROUPS],
    groups: Vec<Group>,
    /// Start of the first row.
    origin: Ns,
    times: Times,
    pub(super) correlations: Vec<u32>,
    pub(super) details: Vec<u32>,
    running: Sums,
    longest: Longest,
    /// The longest stretch between two rows during which none of them ran.
    pub(super) widest: Ns,
    correlations_ascend: bool,
    /// Least and greatest correlation id.
    correlated: (u32, u32),
}

/// What lies before a chunk of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsBefore {
    pub(super) sums: Sums,
    /// Time of the chunk's own union that earlier rows cover too.
    pub(super) hidden: Ns,
    /// Length of the chunk's longest row, and which it is.
    pub(super) longest: Ns,
    pub(super) longest_at: u32,
    /// Whether correlation ids ascend up to here.
    pub(super) ascends: bool,
    /// The last correlation id.
    pub(super) correlation: u32,
}

impl Default for RowsBefore {
    fn default() -> Self {
        RowsBefore {
            sums: Sums::NONE,
            hidden: 0,
            longest: 0,
            longest_at: 0,
            ascends: true,
            correlation: 0,
        }
    }
}

impl Chunk for Rows {
    type Entry = Row;
    type Key = (Ns, Reverse<Ns>);
    type Head = RowsBefore;

    /// Of two rows with one start the longer goes first: the other nests in it.
    fn key(row: &Row) -> (Ns, Reverse<Ns>) {
        (row.span.start, Reverse(row.span.end))
    }

    fn push(&mut self, row: Row) {
        let at = self.len();
        let (start, length) = (row.span.start, row.span.len());
        if at == 0 {
            self.origin = start;
        }
        let (block, group) = (at / STRIDE % FAN, at / GROUP);
        if at.is_multiple_of(GROUP) {
            self.group_starts[group] = start;
            self.groups.push(Group {
                starts: [Ns::MAX; FAN],
                longest: [-1; FAN],
                sums: [Sums::NONE; FAN],
                at: [0; FAN],
            });
        }
        let blocks = &mut self.groups[group];
        if at.is_multiple_of(STRIDE) {
            blocks.starts[block] = start;
            blocks.sums[block] = self.running;
        }
        if length > blocks.longest[block] {
            blocks.longest[block] = length;
            blocks.at[block] = (at % STRIDE) as u8;
            if length > self.group_longest[group] {
                self.group_longest[group] = length;
                self.group_at[group] = at as u16;
                if length > self.longest.length {
                    self.longest = Longest { length, row: at };
                }
            }
        }
        if let Some(&last) = self.correlations.last() {
            self.correlations_ascend &= last <= row.correlation;
            self.widest = self.widest.max(start.saturating_sub(self.running.end));
        }
        self.correlated.0 = self.correlated.0.min(row.correlation);
        self.correlated.1 = self.correlated.1.max(row.correlation);
        self.correlations.push(row.correlation);
        self.details.push(row.detail);
        self.running.take(row.span);
        self.push_times(start, length);
    }

    fn entry(&self, row: usize) -> Row {
        Row {
            span: self.span(row),
            correlation: self.correlations[row],
            detail: self.details[row],
        }
    }

    fn len(&self) -> usize {
        self.correlations.len()
    }

    fn first(&self) -> Ns {
        self.origin
    }

    fn enter(&self, before: RowsBefore) -> RowsBefore {
        let end = before.sums.end;
        RowsBefore {
            hidden: if end > self.origin {
                self.busy_until(end, self.before(end))
            } else {
                0
            },
            longest: self.longest.length,
            longest_at: self.longest.row as u32,
            ..before
        }
    }

    fn leave(&self, head: RowsBefore) -> RowsBefore {
        let first = self.correlations.first().copied().unwrap_or(0);
        RowsBefore {
            sums: Sums {
                busy: head.sums.busy + self.running.busy - head.hidden,
                end: head.sums.end.max(self.running.end),
            },
            ascends: head.ascends && self.correlations_ascend && first >= head.correlation,
            correlation: self.correlations.last().copied().unwrap_or(0),
            ..RowsBefore::default()
        }
    }
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            group_starts: [Ns::MAX; GROUPS],
            group_longest: [-1; GROUPS],
            group_at: [0; GROUPS],
            // Most lanes have one, where they are by the thousand.
            groups: Vec::with_capacity(1),
            origin: 0,
            times: Times::Narrow(Vec::new()),
            correlations: Vec::new(),
            details: Vec::new(),
            running: Sums::NONE,
            longest: Longest { length: -1, row: 0 },
            widest: 0,
            correlations_ascend: true,
            correlated: (u32::MAX, 0),
        }
    }
}

/// How many of these, which ascend, are less than `time`. Branches would be wrong every other time;
/// counting has none.
fn count<const N: usize>(times: &[Ns; N], time: Ns) -> usize {
    times.iter().map(|&t| usize::from(t < time)).sum()
}

impl Rows {
    fn push_times(&mut self, start: Ns, length: Ns) {
        if let Times::Narrow(times) = &mut self.times {
            let offset = start.checked_sub(self.origin).map(u32::try_from);
            if let (Some(Ok(offset)), Ok(length)) = (offset, u32::try_from(length)) {
                times.push((offset, length));
                return;
            }
            let origin = self.origin;
            let wide = times
                .iter()
                .map(|&(s, l)| (origin + Ns::from(s), Ns::from(l)));
            self.times = Times::Wide(wide.collect());
        }
        if let Times::Wide(times) = &mut self.times {
            times.push((start, length));
        }
    }

    pub(super) fn span(&self, row: usize) -> Span {
        let (start, length) = match &self.times {
            Times::Narrow(times) => {
                let (offset, length) = times[row];
                (self.origin + Ns::from(offset), Ns::from(length))
            }
            Times::Wide(times) => times[row],
        };
        Span {
            start,
            end: start + length,
        }
    }

    pub(super) fn start(&self, row: usize) -> Ns {
        match &self.times {
            Times::Narrow(times) => self.origin + Ns::from(times[row].0),
            Times::Wide(times) => times[row].0,
        }
    }

    fn length(&self, row: usize) -> Ns {
        match &self.times {
            Times::Narrow(times) => Ns::from(times[row].1),
            Times::Wide(times) => times[row].1,
        }
    }

    /// Rows of this chunk that start before `time`.
    pub(super) fn before(&self, time: Ns) -> usize {
        if self.origin >= time || self.groups.is_empty() {
            return 0;
        }
        let block = self.block_in(self.group(time), time);
        let starts =
            (block * STRIDE..self.len().min((block + 1) * STRIDE)).map(|row| self.start(row));
        block * STRIDE + starts.map(|start| usize::from(start < time)).sum::<usize>()
    }

    /// The last group that begins before `time`, as the chunk does.
    pub(super) fn group(&self, time: Ns) -> usize {
        count(&self.group_starts, time).saturating_sub(1)
    }

    /// The last block of a group that begins before `time`, as its first does.
    pub(super) fn block_in(&self, group: usize, time: Ns) -> usize {
        let begun = count(&self.groups[group].starts, time);
        group * FAN + begun.saturating_sub(1)
    }

    /// The rows around `time`, which lies in this block.
    pub(super) fn around(&self, block: usize, time: Ns) -> Around {
        let from = block * STRIDE;
        let sums = self.sums_at(block);
        match &self.times {
            Times::Narrow(times) => {
                let origin = self.origin;
                let span = |&(start, length): &(u32, u32)| {
                    let start = origin + Ns::from(start);
                    let end = start + Ns::from(length);
                    Span { start, end }
                };
                let block = times[from..].iter().take(STRIDE);
                Around::of(time, from, sums, block.map(span))
            }
            Times::Wide(times) => {
                let span = |&(start, length): &(Ns, Ns)| Span {
                    start,
                    end: start + length,
                };
                let block = times[from..].iter().take(STRIDE);
                Around::of(time, from, sums, block.map(span))
            }
        }
    }

    /// Union of the first `rows` rows before `time`; all of them start before it.
    pub(super) fn busy_until(&self, time: Ns, rows: usize) -> Ns {
        match rows {
            0 => 0,
            rows => self.sums_before(rows).until(time),
        }
    }

    /// Union and greatest end of the first `rows` rows.
    pub(super) fn sums_before(&self, rows: usize) -> Sums {
        if rows == self.len() {
            return self.running;
        }
        let block = rows.saturating_sub(1) / STRIDE;
        let mut sums = self.sums_at(block);
        for row in block * STRIDE..rows {
            sums.take(self.span(row));
        }
        sums
    }

    /// The sums before a block, or after the last.
    pub(super) fn sums_at(&self, block: usize) -> Sums {
        if block * STRIDE >= self.len() {
            return self.running;
        }
        self.groups[block / FAN].sums[block % FAN]
    }

    /// The last block before which all rows have ended by `time`.
    pub(super) fn ended(&self, time: Ns) -> usize {
        let groups = &self.groups;
        let group = groups
            .partition_point(|g| g.sums[0].end <= time)
            .saturating_sub(1);
        let blocks = (self.len() - group * GROUP).div_ceil(STRIDE).min(FAN);
        let ended = groups[group].sums[..blocks].partition_point(|s| s.end <= time);
        group * FAN + ended.saturating_sub(1)
    }

    /// The longest row of `[from, to)` that is longer than `most`, the first of equals. It asks the coarse index first,
    /// and skips rows that cannot be longer.
    pub(super) fn longest(&self, from: usize, to: usize, most: Ns) -> Option<Longest> {
        let mut best = Longest {
            length: most,
            row: usize::MAX,
        };
        // Whole groups, and the parts at either end.
        let (first, last) = (from.div_ceil(GROUP), to / GROUP);
        for group in first..last {
            best.take(self.group_longest[group], usize::from(self.group_at[group]));
        }
        if first > last {
            self.longest_of_group(last, from, to, &mut best);
        } else {
            self.longest_of_group(first.wrapping_sub(1), from, first * GROUP, &mut best);
            self.longest_of_group(last, last * GROUP, to, &mut best);
        }
        (best.row < usize::MAX).then_some(best)
    }

    /// The longest row of a part of a group.
    fn longest_of_group(&self, group: usize, from: usize, to: usize, best: &mut Longest) {
        if from >= to {
            return;
        }
        let at = usize::from(self.group_at[group]);
        if !best.may_take(self.group_longest[group], from, to, at) {
            return;
        }
        let blocks = &self.groups[group];
        let row_of = |block: usize| group * GROUP + block * STRIDE + usize::from(blocks.at[block]);
        let first_row = group * GROUP;
        let (from, to) = (from - first_row, to - first_row);
        let (first, last) = (from.div_ceil(STRIDE), to / STRIDE);
        for block in first..last {
            if blocks.longest[block] >= best.length {
                best.take(blocks.longest[block], row_of(block));
            }
        }
        let mut part = |block: usize, from: usize, to: usize| {
            if from >= to {
                return;
            }
            let (from, to) = (first_row + from, first_row + to);
            if best.may_take(blocks.longest[block], from, to, row_of(block)) {
                for row in from..to {
                    best.take(self.length(row), row);
                }
            }
        };
        if first > last {
            part(last, from, to);
        } else {
            part(first.wrapping_sub(1), from, first * STRIDE);
            part(last, last * STRIDE, to);
        }
    }

    /// Reads ahead for questions about ranges that begin or end in this block: a value of each line of memory.
    pub(super) fn warm(&self, block: usize) -> Ns {
        let last = self.len() - 1;
        let row = |at: usize| self.length((block * STRIDE + at).min(last));
        self.group_longest[0]
            ^ self.group_longest[GROUPS - 1]
            ^ Ns::from(self.group_at[0] ^ self.group_at[GROUPS - 1])
            ^ self.groups[block / FAN].sums[block % FAN].busy
            ^ row(0)
            ^ row(STRIDE / 2)
            ^ row(STRIDE - 1)
    }

    /// The first row with this correlation id.
    pub(super) fn find_correlation(&self, correlation: u32) -> Option<usize> {
        if !(self.correlated.0..=self.correlated.1).contains(&correlation) {
            return None;
        }
        if self.correlations_ascend {
            let row = self.correlations.partition_point(|&c| c < correlation);
            return (self.correlations.get(row) == Some(&correlation)).then_some(row);
        }
        self.correlations.iter().position(|&c| c == correlation)
    }

    /// Bytes of memory of its columns.
    pub(super) fn memory(&self) -> usize {
        let times = match &self.times {
            Times::Narrow(times) => size_of_val(times.as_slice()),
            Times::Wide(times) => size_of_val(times.as_slice()),
        };
        times + self.len() * 2 * size_of::<u32>() + size_of_val(self.groups.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Chunks of the size that the program has, which hold groups; some with times that need 64 bits.
        #[test]
        fn any_range_of_many_rows_agrees_with_counting(
            steps in prop::collection::vec((0i64..9, 0i64..40), 1..1500),
            wide in proptest::option::of(0usize..1500),
            a in 0usize..1500,
            b in 0usize..1500,
        ) {
            let mut rows = Rows::default();
            let mut spans = Vec::new();
            let mut start = -70;
            for (i, &(step, length)) in steps.iter().enumerate() {
                start += if wide == Some(i) { 1 << 33 } else { step };
                let span = Span::new(start, start + length);
                spans.push(span);
                rows.push(Row { span, correlation: 0, detail: 0 });
            }
            let (from, to) = (a.min(b).min(spans.len()), a.max(b).min(spans.len()));
            let lengths: Vec<Ns> = spans[from..to].iter().map(|s| s.len()).collect();
            let greatest = lengths.iter().copied().max();
            let expected = greatest.and_then(|g| lengths.iter().position(|&l| l == g));
            let found = rows.longest(from, to, -1);
            prop_assert_eq!(found.map(|l| l.row), expected.map(|at| from + at));
            prop_assert_eq!(found.map(|l| l.length), greatest);
            // Only what is longer than what is known already is found.
            for more in [1, 0] {
                let known = greatest.map_or(0, |g| g - more);
                let longer = rows.longest(from, to, known).map(|l| l.row);
                prop_assert_eq!(longer, expected.map(|at| from + at).filter(|_| more == 1));
            }

            for at in [from, to.saturating_sub(1)] {
                prop_assert_eq!(rows.span(at.min(spans.len() - 1)), spans[at.min(spans.len() - 1)]);
                for time in [spans[at.min(spans.len() - 1)].start, spans[at.min(spans.len() - 1)].end] {
                    let before = spans.iter().filter(|s| s.start < time).count();
                    prop_assert_eq!(rows.before(time), before);
                    let mut union = 0;
                    let mut end = Ns::MIN;
                    for span in spans.iter().filter(|s| s.start < time) {
                        let (from, to) = (span.start.max(end), span.end.min(time));
                        union += (to - from).max(0);
                        end = end.max(span.end);
                    }
                    prop_assert_eq!(rows.busy_until(time, before), union);
                }
            }
        }
    }
}
