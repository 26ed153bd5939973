//! Pieces added up: how much of the idle time has one cause, one culprit, one root.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{Cause, Causes, Certainty, Culprit, Gap, Group, Piece};
use crate::graph::{CallId, OpId};
use crate::stacks::{LineShare, NEARLY, StackCounts};
use activity::{NameId, Ns};
use trace::{LaneId, describe};

/// What the CPU does there is a matter of launching, and yet no launch.
const BETWEEN_LAUNCHES: &str = "CPU work between launches";

/// How much of a device's idle time has one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleCause {
    /// The cause; in JSON its [`Cause::id`].
    pub cause: Cause,
    /// What a legend adds it up under; in JSON its [`Group::id`].
    pub group: Group,
    /// The call, range, overhead or stream that is to blame; absent where none is named.
    pub culprit: Option<String>,
    /// The wait before it, without which more could have been queued ahead.
    pub root: Option<String>,
    /// "fact", "likely" or "unknown".
    pub certainty: &'static str,
    /// Pieces of gaps.
    pub count: u64,
    pub total_ns: Ns,
    /// The source line at which the launching thread was seen for most of it; absent where too few samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineShare>,
    /// The samples that tell it.
    #[serde(skip)]
    pub seen: StackCounts,
}

impl Cause {
    /// What programs know it by, whatever people read.
    pub fn id(self) -> &'static str {
        match self {
            Cause::SyncDevice => "wait for the device",
            Cause::HostFunction => "host function",
            Cause::Process => "switching to another process",
            Cause::SyncStream => "wait for a stream",
            Cause::SyncEvent => "wait for an event",
            Cause::Host => "host work",
            Cause::Lock => "lock of another thread's call",
            Cause::Call => "CUDA call",
            Cause::GraphSetup => "graph set-up",
            Cause::QueueFull => "queue full",
            Cause::Event => "event of another stream",
            Cause::Engine => "engine taken",
            Cause::Stream => "another stream",
            Cause::EngineChange => "change of engine",
            Cause::Queued => "between queued operations",
            Cause::LateStart => "late start",
            Cause::Missing => "records missing",
            other => other.label(),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(self.id())
    }
}

impl Group {
    /// What programs know it by: "cpu_work".
    pub fn id(self) -> String {
        self.label().to_lowercase().replace([' ', '-'], "_")
    }
}

impl Serialize for Group {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(&self.id())
    }
}

impl IdleCause {
    /// The cause in a few words, with the group where that says more: "CPU work between launches", "launch latency after a sync".
    pub fn words(&self) -> String {
        let cause = self.cause.label();
        match self.group {
            Group::Launch if self.cause == Cause::Host => BETWEEN_LAUNCHES.to_owned(),
            Group::Sync if !self.cause.is_wait() => format!("{cause} after a sync"),
            _ => cause.to_owned(),
        }
    }
}

/// Times added up by what they have in common, most first. What takes equally long stands as it came.
pub fn sum_by<K: Clone + Eq + Hash>(parts: impl IntoIterator<Item = (K, Ns)>) -> Vec<(K, Ns)> {
    let mut place_of = FxHashMap::default();
    let mut sums: Vec<(K, Ns)> = Vec::new();
    for (of, time) in parts {
        let at = *place_of.entry(of.clone()).or_insert(sums.len());
        match sums.get_mut(at) {
            Some(sum) => sum.1 += time,
            None => sums.push((of, time)),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.1));
    sums
}

/// What names a culprit: pieces with the same are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Label {
    Nobody,
    Name(NameId),
    Stream(LaneId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SumKey {
    cause: Cause,
    group: Group,
    certainty: Certainty,
    culprit: Label,
    root: Option<NameId>,
}

/// Sums under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    sums: FxHashMap<SumKey, (u64, Ns, StackCounts)>,
    /// What was seen in the gap under way, by the operation that ends it.
    seen: FxHashMap<SumKey, StackCounts>,
    next: OpId,
}

impl Sums {
    /// Adds a piece of a gap.
    pub(super) fn add(&mut self, causes: &Causes<'_>, gap: Gap, piece: &Piece) {
        let key = SumKey {
            cause: piece.cause,
            group: causes.group(gap, piece),
            certainty: piece.certainty,
            culprit: causes.named(piece),
            root: piece.root.and_then(|call| causes.call_name(call)),
        };
        let sum = self.sums.entry(key).or_default();
        sum.0 += 1;
        sum.1 += piece.span.len();
        if !causes.is_sampled() {
            return;
        }
        if std::mem::replace(&mut self.next, gap.next) != gap.next {
            self.end_gap();
        }
        if piece.cause.is_of_host() {
            let seen = self.seen.entry(key).or_default();
            causes.add_samples(gap.next, piece.span, seen);
        }
    }

    fn end_gap(&mut self) {
        for (key, seen) in self.seen.drain() {
            self.sums.entry(key).or_default().2.add_gap(&seen);
        }
    }

    pub(super) fn rows(mut self, causes: &Causes<'_>) -> Vec<IdleCause> {
        self.end_gap();
        let names = causes.trace.names();
        let mut rows: Vec<IdleCause> = self
            .sums
            .into_iter()
            .map(|(key, (count, total_ns, seen))| IdleCause {
                cause: key.cause,
                group: key.group,
                culprit: causes.label(key.culprit),
                root: key.root.map(|name| names.full(name).to_owned()),
                certainty: key.certainty.label(),
                count,
                total_ns,
                line: None,
                seen,
            })
            .collect();
        // Streams of one name are one.
        let key = |r: &IdleCause| {
            let (culprit, root) = (r.culprit.clone(), r.root.clone());
            (r.cause, r.group, culprit, root, r.certainty)
        };
        rows.sort_by_cached_key(key);
        rows.dedup_by(|row, before| {
            let is_same = key(row) == key(before);
            if is_same {
                before.count += row.count;
                before.total_ns += row.total_ns;
                before.seen.add(&row.seen);
            }
            is_same
        });
        for row in &mut rows {
            row.line = match row.cause {
                Cause::Host | Cause::Pages if row.seen.seen_part() >= NEARLY => {
                    row.seen.at_work(causes.trace)
                }
                Cause::Host | Cause::Pages => None,
                _ => row.seen.telling(causes.trace),
            };
        }
        // What is equal stays in the order of its key.
        rows.sort_by_key(|r| std::cmp::Reverse(r.total_ns));
        rows
    }
}

impl Causes<'_> {
    /// The call, range, overhead or stream that a piece is blamed on; `None` where none is named.
    pub fn culprit(&self, piece: &Piece) -> Option<String> {
        self.label(self.named(piece))
    }

    fn label(&self, label: Label) -> Option<String> {
        match label {
            Label::Nobody => None,
            Label::Name(name) => Some(self.trace.names().full(name).to_owned()),
            Label::Stream(lane) => Some(describe::lane_stream(self.trace, lane)),
        }
    }

    /// What a piece's culprit is counted under.
    pub(super) fn named(&self, piece: &Piece) -> Label {
        match piece.culprit {
            Culprit::Nobody => Label::Nobody,
            // Every launch has its latency; which function launched says nothing.
            Culprit::Call(_)
                if matches!(
                    piece.cause,
                    Cause::Latency | Cause::LateStart | Cause::Unknown
                ) =>
            {
                Label::Nobody
            }
            of @ (Culprit::Call(_) | Culprit::Row(..)) => {
                self.host_name(of).map_or(Label::Nobody, Label::Name)
            }
            Culprit::Op(op) => match piece.cause {
                Cause::Event | Cause::Engine | Cause::Stream => {
                    Label::Stream(self.graph.ops.place(op).0)
                }
                _ => Label::Nobody,
            },
        }
    }

    /// Which record is to blame.
    pub(super) fn place(&self, culprit: Culprit) -> Option<(LaneId, usize)> {
        match culprit {
            Culprit::Nobody => None,
            Culprit::Call(call) => Some(self.graph.calls.at(call)),
            Culprit::Op(op) => Some(self.graph.ops.place(op)),
            Culprit::Row(lane, row) => Some((lane as usize, row as usize)),
        }
    }

    /// The name of the call, range or overhead that is to blame.
    pub fn host_name(&self, culprit: Culprit) -> Option<NameId> {
        let (lane, row) = self.place(culprit)?;
        self.trace.what(lane, row).name()
    }

    pub(super) fn call_name(&self, call: CallId) -> Option<NameId> {
        self.host_name(Culprit::Call(call))
    }
}
