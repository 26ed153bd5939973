//! Fields of activity records at fixed offsets, read only where the record is long enough.
//!
//! From 11.8 on every newer layout keeps all fields of the older one in place, so the offsets below
//! hold for all releases. Fields that came later are `Option`s. A record is a slice of exactly the
//! length that [`crate::RecordSizes`] gives for its kind. A reader returns `None` when the record is
//! shorter than the oldest layout.
//!
//! Names are pointers into the traced process; [`text`] reads them there, right after the record came in:
//! they may go stale when a module is unloaded.

use std::ffi::{CStr, c_char};

/// What stands at an offset of a record; `None` when the record does not reach that far.
trait Field: Sized {
    fn at(record: &[u8], at: usize) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Field for $type {
            #[inline]
            fn at(record: &[u8], at: usize) -> Option<Self> {
                Some(<$type>::from_ne_bytes(<[u8; _]>::at(record, at)?))
            }
        })*
    };
}
numbers!(u8 u16 u32 u64 i32);

impl<const N: usize> Field for [u8; N] {
    #[inline]
    fn at(record: &[u8], at: usize) -> Option<Self> {
        record.get(at..at + N)?.try_into().ok()
    }
}

impl Field for [u32; 3] {
    #[inline]
    fn at(record: &[u8], at: usize) -> Option<Self> {
        let number = |i: usize| u32::at(record, at + 4 * i);
        Some([number(0)?, number(1)?, number(2)?])
    }
}

impl Field for Text {
    #[inline]
    fn at(record: &[u8], at: usize) -> Option<Self> {
        u64::at(record, at).map(Text)
    }
}

/// Every record begins with its kind.
#[inline]
pub fn kind(record: &[u8]) -> Option<u32> {
    u32::at(record, 0)
}

/// A pointer to a string inside the process that the record came from; 0 when there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text(pub u64);

/// Reads a string of this process; empty for none.
///
/// # Safety
/// `text` must come from a record that this process's libcupti delivered, and the string must still exist.
pub unsafe fn text<'a>(text: Text) -> &'a [u8] {
    let pointer = text.0 as usize as *const c_char;
    if pointer.is_null() {
        return b"";
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_bytes()
}

/// A record's fields: each with its type, its offset and what it is.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $type:ty = $at:literal, $words:literal;)* }
        $(+ later { $($later:ident: $later_type:ty = $later_at:literal, $later_words:literal;)* })?
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $(#[doc = $words] pub $field: $type,)*
            $($(#[doc = $later_words] pub $later: Option<$later_type>,)*)?
        }

        impl $name {
            /// Reads a record of this kind.
            #[inline]
            pub fn read(record: &[u8]) -> Option<$name> {
                Some($name {
                    $($field: Field::at(record, $at)?,)*
                    $($($later: Field::at(record, $later_at),)*)?
                })
            }
        }
    )*};
}

records! {
    /// `CUpti_ActivityKernel8` and later: kinds KERNEL and CONCURRENT_KERNEL.
    Kernel {
        registers: u16 = 6, "Registers of a thread.";
        start: u64 = 16, "Nanoseconds; 0 when unknown.";
        end: u64 = 24, "Nanoseconds; 0 when unknown or still running.";
        device: u32 = 40, "Device ordinal.";
        context: u32 = 44, "Context.";
        stream: u32 = 48, "Stream.";
        grid: [u32; 3] = 52, "Blocks.";
        block: [u32; 3] = 64, "Threads of a block.";
        static_shared: u32 = 76, "Bytes.";
        dynamic_shared: u32 = 80, "Bytes.";
        local: u32 = 84, "Bytes of a thread.";
        correlation: u32 = 92, "Joins it with its API call.";
        name: Text = 104, "Mangled.";
        graph_node: u64 = 144, "The graph's node, 0 for none.";
        graph: u32 = 156, "The graph, 0 for none.";
        cluster: [u32; 3] = 176, "Blocks of a cluster.";
    }

    /// `CUpti_ActivityMemcpy5` and later.
    Memcpy {
        copy_kind: u8 = 4, "[`crate::kinds::copy`]";
        source_kind: u8 = 5, "[`crate::kinds::memory`]";
        target_kind: u8 = 6, "[`crate::kinds::memory`]";
        flags: u8 = 7, "Bit 0: asynchronous.";
        bytes: u64 = 8, "Bytes.";
        start: u64 = 16, "Nanoseconds.";
        end: u64 = 24, "Nanoseconds.";
        device: u32 = 32, "Device ordinal.";
        context: u32 = 36, "Context.";
        stream: u32 = 40, "Stream.";
        correlation: u32 = 44, "Joins it with its API call.";
        graph_node: u64 = 64, "The graph's node, 0 for none.";
        graph: u32 = 72, "The graph, 0 for none.";
    }

    /// `CUpti_ActivityMemcpyPtoP4`: kind MEMCPY2. Up to the stream it is a [`Memcpy`].
    PeerCopy {
        source_device: u32 = 44, "Device that was read.";
        target_device: u32 = 52, "Device that was written.";
        correlation: u32 = 60, "Joins it with its API call.";
        graph_node: u64 = 72, "The graph's node, 0 for none.";
        graph: u32 = 80, "The graph, 0 for none.";
    }

    /// `CUpti_ActivityMemset4` and later.
    Memset {
        bytes: u64 = 8, "Bytes.";
        start: u64 = 16, "Nanoseconds.";
        end: u64 = 24, "Nanoseconds.";
        device: u32 = 32, "Device ordinal.";
        context: u32 = 36, "Context.";
        stream: u32 = 40, "Stream.";
        correlation: u32 = 44, "Joins it with its API call.";
        graph_node: u64 = 64, "The graph's node, 0 for none.";
        graph: u32 = 72, "The graph, 0 for none.";
    }

    /// `CUpti_ActivityAPI`: kinds DRIVER and RUNTIME.
    ApiCall {
        callback_id: u32 = 4, "Which function, see [`crate::names`].";
        start: u64 = 8, "Nanoseconds.";
        end: u64 = 16, "Nanoseconds.";
        thread: u32 = 28, "Operating system's thread id.";
        correlation: u32 = 32, "Its own id, which operations refer to.";
        code: i32 = 36, "What it returned.";
    }

    /// `CUpti_ActivitySynchronization` and later.
    Sync {
        sync_kind: u32 = 4, "[`crate::kinds::sync`]";
        start: u64 = 8, "Nanoseconds.";
        end: u64 = 16, "Nanoseconds.";
        correlation: u32 = 24, "The API call.";
        context: u32 = 28, "Context.";
        stream: u32 = 32, "Stream or [`crate::kinds::sync::INVALID`].";
        event: u32 = 36, "Event or [`crate::kinds::sync::INVALID`].";
    }

    /// `CUpti_ActivityOverhead` and later.
    Overhead {
        overhead_kind: u32 = 4, "See [`crate::kinds::overhead_name`].";
        object_kind: u32 = 8, "[`crate::kinds::object`]";
        object: [u32; 3] = 12, "For a thread: process id, thread id, unused.";
        start: u64 = 24, "Nanoseconds.";
        end: u64 = 32, "Nanoseconds.";
    }
    + later {
        correlation: u32 = 40, "The API call (12.3 and later).";
    }

    /// `CUpti_ActivityName`.
    Name {
        object_kind: u32 = 4, "[`crate::kinds::object`]";
        object: [u32; 3] = 8, "Process and thread, or device, context and stream.";
        name: Text = 24, "The name.";
    }

    /// `CUpti_ActivityMarker2`: one end of an NVTX range, or a mark.
    Marker {
        flags: u32 = 4, "[`crate::kinds::marker`]";
        time: u64 = 8, "Nanoseconds.";
        id: u32 = 16, "Joins the ends of a range.";
        object_kind: u32 = 20, "[`crate::kinds::object`]";
        object: [u32; 3] = 24, "Process and thread, or device, context and stream.";
        name: Text = 40, "Its name; none at the end of a range.";
    }

    /// `CUpti_ActivityDevice4` and later.
    Device {
        memory_bandwidth: u64 = 8, "Kilobytes per second.";
        memory: u64 = 16, "Bytes.";
        warp: u32 = 32, "Threads.";
        clock: u32 = 36, "kHz.";
        copy_engines: u32 = 40, "Copy engines.";
        multiprocessors: u32 = 44, "Streaming multiprocessors.";
        max_warps: u32 = 52, "Of an SM.";
        max_blocks: u32 = 56, "Of an SM.";
        shared: u32 = 60, "Bytes of an SM.";
        registers: u32 = 64, "Of an SM.";
        major: u32 = 104, "Compute capability.";
        minor: u32 = 108, "Compute capability.";
        id: u32 = 112, "Ordinal.";
        uuid: [u8; 16] = 120, "The GPU's UUID.";
        name: Text = 136, "\"NVIDIA H200\"";
        visible: u8 = 144, "Whether CUDA_VISIBLE_DEVICES lets the process use it.";
    }

    /// `CUpti_ActivityContext` and later.
    Context {
        id: u32 = 4, "Its id.";
        device: u32 = 8, "Device ordinal.";
        null_stream: u16 = 14, "The id of its default stream.";
    }

    /// `CUpti_ActivityStream`.
    Stream {
        context: u32 = 4, "Context.";
        id: u32 = 8, "Its id.";
        priority: i32 = 12, "CUDA's priority, an int.";
        flag: u32 = 16, "1 default, 2 non-blocking, 3 null.";
    }

    /// `CUpti_ActivityCudaEvent` and later.
    CudaEvent {
        correlation: u32 = 4, "The call that recorded it.";
        context: u32 = 8, "Context.";
        stream: u32 = 12, "Stream.";
        event: u32 = 16, "Event.";
    }
    + later {
        device: u32 = 24, "Device ordinal (12.8 and later).";
    }

    /// `CUpti_ActivityMemory2` and later: kind MEMORY2.
    Memory {
        operation: u32 = 4, "[`crate::kinds::memory`]: allocated or released.";
        memory_kind: u32 = 8, "[`crate::kinds::memory`]";
        correlation: u32 = 12, "The API call.";
        address: u64 = 16, "Address.";
        bytes: u64 = 24, "Bytes.";
        time: u64 = 32, "Nanoseconds.";
        device: u32 = 52, "Device ordinal.";
        context: u32 = 56, "Context.";
        stream: u32 = 60, "Stream.";
        is_async: u32 = 72, "Stream-ordered.";
    }

    /// `CUpti_ActivityGraphTrace` and later: one launch of a graph as a whole.
    GraphTrace {
        correlation: u32 = 4, "The call that launched it.";
        start: u64 = 8, "Nanoseconds.";
        end: u64 = 16, "Nanoseconds.";
        device: u32 = 24, "Device ordinal.";
        graph: u32 = 28, "The graph.";
        context: u32 = 32, "Context.";
        stream: u32 = 36, "Stream that it was launched on.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_record_is_none_and_never_read_past_its_end() {
        let record = [0_u8; 208];
        assert!(Kernel::read(&record).is_some());
        for length in 0..188 {
            assert_eq!(Kernel::read(&record[..length]), None, "{length}");
        }
        let overhead = Overhead::read(&[1_u8; 40]).expect("the 11.8 layout");
        assert_eq!(overhead.correlation, None);
        assert_eq!(
            Overhead::read(&[0_u8; 48]).expect("12.3").correlation,
            Some(0)
        );
    }
}
