//! What the decode thread is asked for beside decoding.

use activity::{Mode, Place, RangeKind, Span, StallSamples};
use crossbeam_channel::Sender;

/// What the program asks of the decode thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// A phase.
    Range {
        kind: RangeKind,
        name: String,
        index: u32,
        thread: u32,
        start: i64,
        end: i64,
    },
    /// A stream's name.
    Stream { place: Place, name: String },
    /// Something else is recorded from now on.
    Mode(Mode),
    /// Something the user should know.
    Notice { is_warning: bool, text: String },
    /// What the recorder itself was at, and held the program up for.
    Overhead { name: &'static str, span: Span },
    /// What a kernel was seen waiting for.
    Stalls(StallSamples),
    /// Write what there is, then say so.
    Flush(Sender<()>),
}
