//! Where on the timeline what is looked for is.

use super::needle::Needle;
use activity::feed::Stop;
use activity::{Direction, Ns, Span, What};
use trace::{LaneId, LaneKind, Trace};

/// Rows between two looks at whether to go on.
const STRIDE: usize = 65_536;

/// Which records have a name that is looked for.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// By name: whether it is one.
    names: Vec<bool>,
    directions: [bool; Direction::ALL.len()],
    memset: bool,
    graphs: bool,
    /// Its records by lane, in their order.
    lanes: Vec<Vec<u32>>,
}

/// A record, as its lane and its number there.
pub type Hit = (LaneId, usize);

impl Hits {
    /// Looks through all lanes that have a row; what there is so far when it is stopped.
    pub fn of(trace: &Trace, needle: &Needle, stop: &Stop) -> Hits {
        let names = trace.names();
        let is_name = |id: u32| needle.is_in(names.full(id)) || needle.is_in(names.short(id));
        let is_kind = |what: Direction| needle.is_in(what.label());
        let mut found = Hits {
            names: (0..names.len() as u32).map(is_name).collect(),
            directions: Direction::ALL.map(is_kind),
            memset: needle.is_in("memset"),
            graphs: needle.is_in("graph"),
            lanes: Vec::with_capacity(trace.lanes().len()),
        };
        let mut known = Vec::new();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let mut hits = Vec::new();
            if is_shown(lane.key().kind) {
                let has = |what: &What| found.has(trace, what);
                trace.rows_of(id, &mut known, has, |row, is_hit| {
                    // A lane has no more rows than 32 bits number: they would take 64 GiB.
                    if is_hit && let Ok(row) = u32::try_from(row) {
                        hits.push(row);
                    }
                    row % STRIDE != 0 || !stop.is_stopped()
                });
            }
            found.lanes.push(hits);
        }
        found
    }

    /// Whether this has a name that is looked for. Names that came since are none.
    pub fn has(&self, trace: &Trace, what: &What) -> bool {
        let has_name = |id: u32| self.names.get(id as usize).copied().unwrap_or(false);
        match what {
            What::Kernel(k) => has_name(trace.shape(k.shape).name),
            What::Copy(c) => self.directions[c.direction as usize],
            What::Memset(_) => self.memset,
            What::Graph(_) => self.graphs,
            What::Call(c) => has_name(c.name),
            What::Overhead(o) => has_name(o.name),
            What::Range(r) => has_name(r.name),
            _ => false,
        }
    }

    /// The records of a lane, in their order.
    pub fn of_lane(&self, lane: LaneId) -> &[u32] {
        self.lanes.get(lane).map_or(&[], Vec::as_slice)
    }

    /// Those of a lane that start within `window`.
    fn within(&self, trace: &Trace, lane: LaneId, window: Span) -> &[u32] {
        let rows = trace.lanes()[lane].starting(window);
        let hits = self.of_lane(lane);
        let from = hits.partition_point(|&hit| (hit as usize) < rows.start);
        let to = hits.partition_point(|&hit| (hit as usize) < rows.end);
        &hits[from..to.max(from)]
    }

    /// How many of a lane start within `window`.
    pub fn count(&self, trace: &Trace, lane: LaneId, window: Span) -> usize {
        self.within(trace, lane, window).len()
    }

    /// The next one after (or before) `at` that starts within `window`, over all of `lanes`: by start, then in the
    /// order of the lanes.
    pub fn step(
        &self,
        trace: &Trace,
        lanes: &[LaneId],
        window: Span,
        at: Position,
        is_forwards: bool,
    ) -> Option<Hit> {
        let candidates = lanes.iter().enumerate().filter_map(|(order, &lane)| {
            let hits = self.within(trace, lane, window);
            let position = |hit: u32| Position::of(trace, (lane, hit as usize), order);
            let hit = if is_forwards {
                *hits.get(hits.partition_point(|&hit| position(hit) <= at))?
            } else {
                let before = hits.partition_point(|&hit| position(hit) < at);
                hits[before.checked_sub(1)?]
            };
            Some((position(hit), (lane, hit as usize)))
        });
        let found = if is_forwards {
            candidates.min_by_key(|(position, _)| *position)
        } else {
            candidates.max_by_key(|(position, _)| *position)
        };
        found.map(|(_, hit)| hit)
    }

    /// How many of those of `lanes` that start within `window` lie before `at`.
    pub fn count_before(
        &self,
        trace: &Trace,
        lanes: &[LaneId],
        window: Span,
        at: Position,
    ) -> usize {
        let of_lane = |(order, &lane): (usize, &LaneId)| {
            let hits = self.within(trace, lane, window);
            hits.partition_point(|&hit| Position::of(trace, (lane, hit as usize), order) < at)
        };
        lanes.iter().enumerate().map(of_lane).sum()
    }
}

/// Whether a lane of a kind has a row on the timeline.
fn is_shown(kind: LaneKind) -> bool {
    matches!(
        kind,
        LaneKind::Stream { .. }
            | LaneKind::Thread { .. }
            | LaneKind::Range { .. }
            | LaneKind::Overhead
    )
}

/// Where a record stands among those of several lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Its start.
    pub start: Ns,
    /// Of those that start at once, its lane's place among the lanes.
    pub order: usize,
    /// Its number in the lane.
    pub row: usize,
}

impl Position {
    /// Before all that start at `time`, behind all that start before.
    pub fn before(time: Ns) -> Position {
        Position {
            start: time.saturating_sub(1),
            order: usize::MAX,
            row: usize::MAX,
        }
    }

    /// Where a record is whose lane stands at `order`.
    pub fn of(trace: &Trace, (lane, row): Hit, order: usize) -> Position {
        Position {
            start: trace.lanes()[lane].span(row).start,
            order,
            row,
        }
    }
}
