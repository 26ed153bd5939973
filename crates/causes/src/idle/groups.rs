//! What idle time is added up under, once for legend, verdict and findings.

use super::{Bound, Cause, Causes, Culprit, Gap, Group, Piece};
use crate::graph::{CallId, CallKind, EdgeKind, Engine};
use activity::Ns;

/// In gaps up to this long the host's own work is a matter of launching. Measured: a launch from C++ takes 3 to 4 us.
/// In the launch-bound trace of an A100, 2,419 of 2,446 gaps over 10 us are shorter than this.
pub const LAUNCH_GAP_MAX: Ns = 1_000_000;

/// Whether a range is a call of MPI.
pub fn is_mpi(name: &str) -> bool {
    name == "MPI" || name.starts_with("MPI_")
}

impl Piece {
    /// Whether it is work of the CPU in a gap that is too long to be a matter of launching. Then it is CPU work, whatever wait
    /// came before it.
    pub fn is_long_work(&self, gap: &Gap) -> bool {
        self.cause == Cause::Host && gap.span.len() > LAUNCH_GAP_MAX
    }
}

impl Causes<'_> {
    /// The wait that a piece of a gap is due to.
    pub fn wait_of(&self, piece: &Piece) -> Option<CallId> {
        match piece.culprit {
            Culprit::Call(call) if piece.cause.is_wait() => Some(call),
            _ => piece.root.filter(|&root| {
                let kind = self.graph.calls.kind[root as usize];
                kind.is_wait() || kind == CallKind::Copy
            }),
        }
    }

    /// What a piece of this gap is added up under.
    pub fn group(&self, gap: Gap, piece: &Piece) -> Group {
        match self.wait_of(piece) {
            Some(_) if !piece.is_long_work(&gap) && !self.communicates(piece) => Group::Sync,
            _ => self.group_of_cause(gap, piece),
        }
    }

    /// Whether the CPU is in a call of MPI: it exchanges data with other processes, whatever it had waited for.
    fn communicates(&self, piece: &Piece) -> bool {
        let names = self.trace.names();
        let of = (piece.cause == Cause::Host).then(|| self.host_name(piece.culprit));
        (of.flatten()).is_some_and(|name| is_mpi(names.full(name)))
    }

    fn group_of_cause(&self, gap: Gap, piece: &Piece) -> Group {
        let (ops, cause) = (&self.graph.ops, piece.cause);
        let is_sparse = piece.span.len() > self.ready.limits.think_beside;
        // What nobody called for is no launch that could come sooner: a page of managed memory that the host touched.
        let is_short = self.is_launched(gap) && gap.span.len() <= LAUNCH_GAP_MAX;
        match cause {
            // What takes so long is no part of a dense sequence of launches.
            Cause::Host if self.communicates(piece) => Group::Host,
            Cause::Host if is_short && cases::SPARSE_WORK.holds(is_sparse) => Group::Host,
            Cause::Host | Cause::Call | Cause::Lock if is_short => Group::Launch,
            // One launch that takes so long is no matter of launching often.
            Cause::SlowLaunch if !is_short => Group::Host,
            // A GPU takes its time between kernels launched one by one, however far ahead they queue. The nodes of a
            // graph are no matter of launching.
            Cause::Queued if ops.is_graph(gap.next) => Group::Queue,
            _ => cause.group(),
        }
    }

    /// Whether a piece is work of the CPU between two launches that more in a graph would take away. It is as short as what lies
    /// between launches here. Beside graphs there are too few of them to call it launching.
    pub fn is_beside_graphs(&self, gap: Gap, piece: &Piece) -> bool {
        let is_short = piece.span.len() <= self.ready.limits.think && !piece.is_long_work(&gap);
        let is_work = piece.cause == Cause::Host && self.is_launched(gap);
        is_short && is_work && self.group(gap, piece) == Group::Host
    }

    /// What a device is bound by that is idle for this cause; [`Bound::Nothing`] for what is in no share.
    pub fn bound(&self, gap: Gap, piece: &Piece) -> Bound {
        match piece.cause {
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
        self.group_of_cause(gap, piece)
            .bound()
            .unwrap_or_else(of_next)
    }

    /// Whether what a gap's next operation waited for ran on another device.
    fn is_elsewhere(&self, gap: Gap) -> bool {
        let ops = &self.graph.ops;
        let has_source = !matches!(
            ops.edge[gap.next as usize],
            EdgeKind::None | EdgeKind::Launch
        );
        has_source && self.device(gap.next) != self.device(ops.bind[gap.next as usize])
    }
}
