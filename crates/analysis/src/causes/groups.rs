//! What idle time is added up under, once for legend, verdict and findings.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Bound, Cause, Causes, Culprit, Gap, Group, Piece};
use crate::graph::{CallId, CallKind, Calls, EdgeKind, Engine, NONE, OpId};
use activity::Ns;
use trace::LaneKind;

/// In gaps up to this long the host's own work is a matter of launching. Measured: a launch from C++ takes 3 to 4 us.
/// In the launch-bound trace of an A100, 2,419 of 2,446 gaps over 10 us are shorter than this.
pub const LAUNCH_GAP_MAX: Ns = 1_000_000;

/// A piece of a gap, cut in two: first what a wait is to blame for, then the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The wait, and how much of the piece is in [`Group::Sync`] because of it.
    pub wait: Option<(CallId, Ns)>,
    /// What is left.
    pub rest: Ns,
    /// The group of what is left.
    pub group: Group,
}

/// What each sync can still be blamed for. Without it the CPU would be ahead by as much as it lasted, and no more,
/// whatever came after it.
#[derive(Debug, Default)]
pub struct Waits {
    left: FxHashMap<CallId, Ns>,
}

impl Waits {
    /// Cuts the next piece of a device. Pieces in order of time.
    pub fn cut(&mut self, causes: &Causes<'_>, gap: Gap, piece: &Piece) -> Cut {
        let wait = self.take(causes, gap, piece);
        Cut {
            wait,
            rest: piece.span.len() - wait.map_or(0, |(_, part)| part),
            group: causes.group(gap, piece.cause),
        }
    }

    /// The wait that a piece of a gap is due to and how much of the piece that is.
    fn take(&mut self, causes: &Causes<'_>, gap: Gap, piece: &Piece) -> Option<(CallId, Ns)> {
        let calls = &causes.graph.calls;
        // The CPU touches a page once it has its result: it could not have been ahead.
        let is_launched = causes.graph.ops.call[gap.next as usize] != NONE;
        let wait = match piece.culprit {
            Culprit::Call(call) if piece.cause.is_wait() => call,
            // What an allocation or loading takes is to be saved, not the wait before it.
            _ if matches!(piece.cause, Cause::Memory | Cause::Load) => return None,
            _ => piece.root.filter(|_| is_launched).filter(|&root| {
                let kind = calls.kind[root as usize];
                kind.is_wait() || kind == CallKind::Copy
            })?,
        };
        let left = self
            .left
            .entry(wait)
            .or_insert_with(|| calls.span(wait).len());
        let part = piece.span.len().min(*left);
        *left -= part;
        (part > 0).then_some((wait, part))
    }

    /// How many waits were blamed.
    pub(crate) fn count(&self, calls: &Calls) -> u64 {
        let all = self.left.keys().map(|&wait| calls.with_copy(wait));
        all.collect::<FxHashSet<CallId>>().len() as u64
    }
}

impl Causes<'_> {
    /// What a cause is added up under in this gap.
    pub fn group(&self, gap: Gap, cause: Cause) -> Group {
        let ops = &self.graph.ops;
        // What nobody called for is no launch that could come sooner: a page of managed memory that the host touched.
        let is_launched = ops.call[gap.next as usize] != NONE;
        let is_short = is_launched && gap.span.len() <= LAUNCH_GAP_MAX;
        match cause {
            Cause::Host | Cause::Call | Cause::Lock if is_short => Group::Launch,
            // One launch that takes so long is no matter of launching often.
            Cause::SlowLaunch if !is_short => Group::Host,
            // A GPU takes its time between kernels launched one by one, however far ahead they queue. The nodes of a
            // graph are no matter of launching.
            Cause::Queued if ops.is_graph(gap.next) => Group::Queue,
            _ => cause.group(),
        }
    }

    /// What a device is bound by that is idle for this cause; [`Bound::Nothing`] for what is in no share.
    pub(crate) fn bound(&self, gap: Gap, cause: Cause) -> Bound {
        match cause {
            Cause::Missing => return Bound::Nothing,
            Cause::Staging => return Bound::Copy,
            Cause::Event | Cause::Stream | Cause::Engine if self.is_elsewhere(gap) => {
                return Bound::Peer;
            }
            _ => {}
        }
        let of_next = || match self.graph.ops.engine[gap.next as usize] {
            Engine::Compute | Engine::Memset => Bound::Compute,
            Engine::P2P => Bound::Peer,
            _ => Bound::Copy,
        };
        self.group(gap, cause).bound().unwrap_or_else(of_next)
    }

    /// Whether what a gap's next operation waited for ran on another device.
    fn is_elsewhere(&self, gap: Gap) -> bool {
        let ops = &self.graph.ops;
        let device = |op: OpId| match self.trace.lanes()[ops.place(op).0].key().kind {
            LaneKind::Stream { device, .. } => Some(device),
            _ => None,
        };
        let has_source = !matches!(
            ops.edge[gap.next as usize],
            EdgeKind::None | EdgeKind::Launch
        );
        has_source && device(gap.next) != device(ops.bind[gap.next as usize])
    }
}
