//! What reads one kind of file beside a recording.

use activity::Batch;

/// A block of a kind is not as its writer writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Makes batches of one file's blocks.
pub(super) trait Decoder: std::fmt::Debug + Send {
    /// Puts what a block holds into a batch, as far as it can be read.
    ///
    /// # Errors
    /// When not all of it can be.
    fn decode(&mut self, payload: &[u8], batch: &mut Batch) -> Result<(), Unreadable>;
}
