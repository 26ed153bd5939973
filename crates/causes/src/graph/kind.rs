//! The kinds of dependencies.

/// A kind of dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeKind {
    /// None is known: no host call, nothing before it on its stream.
    None,
    /// Its host call.
    Launch,
    /// The operation before it on its stream.
    Stream,
    /// The copy engine of its direction had another stream's copy.
    Engine,
    /// Its stream waited for an event; wait and record say which operation that stands for.
    Event,
    /// An earlier node of the same graph launch, on another stream.
    GraphNode,
    /// Its stream waited for an event, and an operation of another stream ended just before it began: no
    /// record names that one.
    EventLikely,
    /// One of the two streams is the default stream, and the other's operation ended just before.
    DefaultLikely,
    /// Another stream's operation ended just before it began, and nothing else explains the time.
    OtherLikely,
}

impl EdgeKind {
    /// Whether times alone show it.
    pub fn is_inferred(self) -> bool {
        matches!(
            self,
            EdgeKind::EventLikely | EdgeKind::DefaultLikely | EdgeKind::OtherLikely
        )
    }
}
