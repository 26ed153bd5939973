//! What a running plan tells the collector.

use std::ffi::c_void;

use crate::activity::{Ns, RangeKind};

/// Where the names go that CUDA does not know: of stretches of host time, and of streams.
pub(crate) trait Marks {
    /// A stretch of this thread's time.
    fn range(&self, kind: RangeKind, name: &str, index: u32, start: Ns, end: Ns);

    /// The scenario's name for a stream.
    ///
    /// # Safety
    /// Both must be live handles of this process.
    #[expect(unsafe_code, reason = "CUDA's handles are pointers")]
    unsafe fn name_stream(&self, context: *mut c_void, stream: *mut c_void, name: &str);
}
