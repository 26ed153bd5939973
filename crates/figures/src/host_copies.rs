//! Copies from and to the CPU: what they are of, and how far ahead they were asked for.

use rustc_hash::FxHashSet;

use activity::{Copy, Direction, MemoryKind, Ns, Span, What};
use causes::graph::{CallId, Graph, LATENCY_MAX, NONE};
use trace::{LaneId, Trace};

/// The copies of a device.
#[derive(Debug, Default)]
pub struct HostCopies {
    /// Those from and to the CPU: how long each takes, and where it stands.
    pub at: Vec<(Ns, (LaneId, usize))>,
    /// Their streams.
    pub lanes: FxHashSet<LaneId>,
    /// How many of pinned memory were queued ahead.
    ready: usize,
    /// How long all of them run, and those of pageable and of pinned memory. What asks for the pageable ones.
    pub copied: Ns,
    pub pageable: Ns,
    pinned: Ns,
    pub staging: FxHashSet<CallId>,
    /// When the last upload ends, and the first copy back starts.
    up: Ns,
    back: Option<Ns>,
}

impl HostCopies {
    /// Of all copies of a device.
    pub fn of(graph: &Graph, all: &[((LaneId, usize), Span, Copy)]) -> HostCopies {
        let mut copies = HostCopies::default();
        for &(place, span, copy) in all {
            let call = graph.call_at(place);
            if matches!(copy.direction, Direction::H2D | Direction::D2H) {
                copies.at.push((span.len(), place));
                copies.lanes.insert(place.0);
                match copy.direction {
                    Direction::H2D => copies.up = copies.up.max(span.end),
                    _ => {
                        copies.back = Some(copies.back.map_or(span.start, |it| it.min(span.start)));
                    }
                }
                let is_queued =
                    call != NONE && graph.calls.end[call as usize] + LATENCY_MAX < span.start;
                let is_pinned = [copy.from, copy.to].contains(&MemoryKind::Pinned);
                copies.pinned += if is_pinned { span.len() } else { 0 };
                copies.ready += usize::from(is_queued && is_pinned);
            }
            copies.copied += span.len();
            if copy.is_pageable() {
                copies.pageable += span.len();
                copies.staging.insert(call);
            }
        }
        copies
    }

    /// Whether most of them are of pinned memory.
    pub fn are_pinned(&self) -> bool {
        2 * self.pinned > self.copied
    }

    /// Whether all uploads end before anything comes back, whatever was called first.
    pub fn come_back_last(&self) -> bool {
        self.back.is_some_and(|it| self.up <= it)
    }

    /// Whether no stream of the large ones has a kernel: what keeps them apart is when they are asked for.
    pub fn are_beside(&self, trace: &Trace, window: Option<Span>) -> bool {
        let large = self.at.iter().filter(|it| 10 * it.0 > self.copied);
        let lanes: FxHashSet<LaneId> = large.map(|it| it.1.0).collect();
        let works = |lane: &LaneId| {
            let rows = trace.lanes()[*lane].rows_in(window);
            let mut all = trace.activities(*lane, rows);
            all.any(|it| matches!(it.1.what, What::Kernel(_)))
        };
        !lanes.is_empty() && !lanes.iter().any(works)
    }

    /// Whether what could be done is done: a driver may keep them apart, as on Windows.
    pub fn are_apart(&self) -> bool {
        self.pageable == 0 && self.lanes.len() > 1 && 2 * self.ready > self.at.len()
    }
}

/// How long a kernel waits for pages of managed memory, which are in order of time: until each has come.
pub fn faults_in(pages: &[Span], kernel: Span) -> Ns {
    let from = pages.partition_point(|it| it.end <= kernel.start);
    let within = pages[from..].iter();
    let within = within.take_while(|it| it.start < kernel.end);
    let fault = |it: &Span| Span::new(it.start - cases::FAULT_MAX.value(), it.end);
    Span::union_len(within.map(|it| fault(it).intersect(kernel)).collect())
}
