//! What happened in a stretch of time.

use rustc_hash::FxHashMap;

use crate::tui::state::idle::{Basis, IdleMap};
use activity::feed::Stop;
use activity::{Direction, NameId, Ns, Span, What};
use causes::Shares;
use causes::graph::CallKind;
use figures::breakdown::Breakdown;
use trace::{LaneKind, Trace};

/// Records between two looks at whether to go on.
const STRIDE: usize = 65_536;

/// What happened in a stretch of time. Counts are of what began within it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredStretch {
    /// The devices on which something ran in it.
    pub devices: Vec<DeviceTimes>,
    pub kernels: u64,
    pub copies: u64,
    pub memsets: u64,
    /// Launches of graphs that were recorded as a whole.
    pub graphs: u64,
    /// Host calls that hand a kernel or a graph to a stream.
    pub launches: u64,
    /// Whether all records were gone through.
    pub is_whole: bool,
}

/// How a device spent the stretch, ns and bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTimes {
    /// Index into [`Trace::devices`].
    pub device: usize,
    pub parts: Breakdown,
    /// Idle time before its first operation and after its last one, which has no cause.
    pub outside: Ns,
    /// The idle time between operations by cause; `None` where there are too many operations.
    pub causes: Option<Shares>,
    /// Bytes moved by direction, those that are none left out; of a copy across an edge in proportion.
    pub bytes: Vec<(Direction, f64)>,
}

impl MeasuredStretch {
    pub(super) fn of(basis: &Basis, trace: &Trace, span: Span, stop: &Stop) -> MeasuredStretch {
        let idle = IdleMap::on(basis, trace, span, stop);
        let mut found = MeasuredStretch {
            devices: (0..trace.devices().len())
                .filter_map(|device| of_device(trace, device, span, idle.all_of(device)))
                .collect(),
            is_whole: true,
            ..MeasuredStretch::default()
        };
        found.count(trace, span, stop);
        found
    }

    fn count(&mut self, trace: &Trace, span: Span, stop: &Stop) {
        let mut launches: FxHashMap<NameId, bool> = FxHashMap::default();
        for (id, lane) in trace.lanes().iter().enumerate() {
            let kind = lane.key().kind;
            if !matches!(kind, LaneKind::Stream { .. } | LaneKind::Thread { .. }) {
                continue;
            }
            for row in lane.starting(span) {
                if row % STRIDE == 0 && stop.is_stopped() {
                    self.is_whole = false;
                    return;
                }
                match trace.activity(id, row).what {
                    What::Kernel(_) => self.kernels += 1,
                    What::Copy(_) => self.copies += 1,
                    What::Memset(_) => self.memsets += 1,
                    What::Graph(_) => self.graphs += 1,
                    What::Call(call) => {
                        let is_launch = *launches.entry(call.name).or_insert_with(|| {
                            let kind = CallKind::of(trace.names().full(call.name));
                            matches!(kind, CallKind::Launch | CallKind::GraphLaunch)
                        });
                        self.launches += u64::from(is_launch);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn of_device(
    trace: &Trace,
    device: usize,
    span: Span,
    causes: Option<Shares>,
) -> Option<DeviceTimes> {
    let usage = &trace.devices()[device].usage;
    let used = usage.span()?;
    let parts = Breakdown::of_device(trace, device, span);
    let off = trace.unrecorded(device, span);
    // Before the first operation nothing is known to be unrecorded but what overlaps here.
    let inside = used.intersect(span).len();
    let off_outside: Ns = off
        .iter()
        .map(|part| part.len() - part.intersect(used).len())
        .sum();
    let moved = |direction| (direction, trace.bytes_moved(device, direction, span));
    Some(DeviceTimes {
        device,
        parts,
        outside: span.len() - inside - off_outside,
        causes,
        bytes: Direction::ALL
            .into_iter()
            .map(moved)
            .filter(|(_, bytes)| *bytes >= 0.5)
            .collect(),
    })
}
