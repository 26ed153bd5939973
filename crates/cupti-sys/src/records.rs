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

macro_rules! field {
    ($name:ident, $type:ty) => {
        /// The number at `at`, when the record reaches that far.
        #[inline]
        pub fn $name(record: &[u8], at: usize) -> Option<$type> {
            let bytes = record.get(at..at + size_of::<$type>())?;
            Some(<$type>::from_ne_bytes(bytes.try_into().ok()?))
        }
    };
}
field!(u8_at, u8);
field!(u16_at, u16);
field!(u32_at, u32);
field!(u64_at, u64);
field!(i32_at, i32);

/// Every record begins with its kind.
#[inline]
pub fn kind(record: &[u8]) -> Option<u32> {
    u32_at(record, 0)
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

macro_rules! record {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$fdoc:meta])* $field:ident: $reader:ident -> $type:ty = $at:literal,)* }
        $(later { $($(#[$ldoc:meta])* $later:ident: $lreader:ident -> $ltype:ty = $lat:literal,)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $type,)*
            $($($(#[$ldoc])* pub $later: Option<$ltype>,)*)?
        }

        impl $name {
            /// Reads a record of this kind.
            #[inline]
            pub fn read(record: &[u8]) -> Option<$name> {
                Some($name {
                    $($field: $reader(record, $at)?,)*
                    $($($later: $lreader(record, $lat),)*)?
                })
            }
        }
    };
}

fn text_at(record: &[u8], at: usize) -> Option<Text> {
    u64_at(record, at).map(Text)
}

fn triple_at(record: &[u8], at: usize) -> Option<[u32; 3]> {
    Some([
        u32_at(record, at)?,
        u32_at(record, at + 4)?,
        u32_at(record, at + 8)?,
    ])
}

fn uuid_at(record: &[u8], at: usize) -> Option<[u8; 16]> {
    record.get(at..at + 16)?.try_into().ok()
}

record! {
    /// `CUpti_ActivityKernel8` and later: kinds KERNEL and CONCURRENT_KERNEL.
    Kernel {
        /// Registers of a thread.
        registers: u16_at -> u16 = 6,
        /// Nanoseconds; 0 when unknown.
        start: u64_at -> u64 = 16,
        /// Nanoseconds; 0 when unknown or still running.
        end: u64_at -> u64 = 24,
        /// Device ordinal.
        device: u32_at -> u32 = 40,
        /// Context.
        context: u32_at -> u32 = 44,
        /// Stream.
        stream: u32_at -> u32 = 48,
        /// Blocks.
        grid: triple_at -> [u32; 3] = 52,
        /// Threads of a block.
        block: triple_at -> [u32; 3] = 64,
        /// Bytes.
        static_shared: u32_at -> u32 = 76,
        /// Bytes.
        dynamic_shared: u32_at -> u32 = 80,
        /// Bytes of a thread.
        local: u32_at -> u32 = 84,
        /// Joins it with its API call.
        correlation: u32_at -> u32 = 92,
        /// Mangled.
        name: text_at -> Text = 104,
        /// The graph's node, 0 for none.
        graph_node: u64_at -> u64 = 144,
        /// The graph, 0 for none.
        graph: u32_at -> u32 = 156,
        /// Hardware queue.
        channel: u32_at -> u32 = 168,
        /// `CUpti_ChannelType`.
        channel_type: u32_at -> u32 = 172,
        /// Blocks of a cluster.
        cluster: triple_at -> [u32; 3] = 176,
    }
}

record! {
    /// `CUpti_ActivityMemcpy5` and later.
    Memcpy {
        /// [`crate::kinds::copy`]
        copy_kind: u8_at -> u8 = 4,
        /// [`crate::kinds::memory`]
        source_kind: u8_at -> u8 = 5,
        /// [`crate::kinds::memory`]
        target_kind: u8_at -> u8 = 6,
        /// Bit 0: asynchronous.
        flags: u8_at -> u8 = 7,
        /// Bytes.
        bytes: u64_at -> u64 = 8,
        /// Nanoseconds.
        start: u64_at -> u64 = 16,
        /// Nanoseconds.
        end: u64_at -> u64 = 24,
        /// Device ordinal.
        device: u32_at -> u32 = 32,
        /// Context.
        context: u32_at -> u32 = 36,
        /// Stream.
        stream: u32_at -> u32 = 40,
        /// Joins it with its API call.
        correlation: u32_at -> u32 = 44,
        /// The graph, 0 for none.
        graph: u32_at -> u32 = 72,
        /// Hardware queue.
        channel: u32_at -> u32 = 76,
        /// `CUpti_ChannelType`.
        channel_type: u32_at -> u32 = 80,
    }
    later {
        /// Copies in a batched call (12.8 and later).
        copy_count: u64_at -> u64 = 88,
    }
}

record! {
    /// `CUpti_ActivityMemcpyPtoP4`: kind MEMCPY2.
    PeerCopy {
        /// [`crate::kinds::copy`]
        copy_kind: u8_at -> u8 = 4,
        /// [`crate::kinds::memory`]
        source_kind: u8_at -> u8 = 5,
        /// [`crate::kinds::memory`]
        target_kind: u8_at -> u8 = 6,
        /// Bit 0: asynchronous.
        flags: u8_at -> u8 = 7,
        /// Bytes.
        bytes: u64_at -> u64 = 8,
        /// Nanoseconds.
        start: u64_at -> u64 = 16,
        /// Nanoseconds.
        end: u64_at -> u64 = 24,
        /// Device on whose stream it was queued.
        device: u32_at -> u32 = 32,
        /// Context.
        context: u32_at -> u32 = 36,
        /// Stream.
        stream: u32_at -> u32 = 40,
        /// Device that was read.
        source_device: u32_at -> u32 = 44,
        /// Device that was written.
        target_device: u32_at -> u32 = 52,
        /// Joins it with its API call.
        correlation: u32_at -> u32 = 60,
        /// The graph, 0 for none.
        graph: u32_at -> u32 = 80,
        /// Hardware queue.
        channel: u32_at -> u32 = 84,
    }
}

record! {
    /// `CUpti_ActivityMemset4` and later.
    Memset {
        /// Bytes.
        bytes: u64_at -> u64 = 8,
        /// Nanoseconds.
        start: u64_at -> u64 = 16,
        /// Nanoseconds.
        end: u64_at -> u64 = 24,
        /// Device ordinal.
        device: u32_at -> u32 = 32,
        /// Context.
        context: u32_at -> u32 = 36,
        /// Stream.
        stream: u32_at -> u32 = 40,
        /// Joins it with its API call.
        correlation: u32_at -> u32 = 44,
        /// The graph, 0 for none.
        graph: u32_at -> u32 = 72,
        /// Hardware queue.
        channel: u32_at -> u32 = 76,
    }
}

record! {
    /// `CUpti_ActivityAPI`: kinds DRIVER and RUNTIME.
    ApiCall {
        /// Which function, see [`crate::names`].
        callback_id: u32_at -> u32 = 4,
        /// Nanoseconds.
        start: u64_at -> u64 = 8,
        /// Nanoseconds.
        end: u64_at -> u64 = 16,
        /// Operating system's thread id.
        thread: u32_at -> u32 = 28,
        /// Its own id, which operations refer to.
        correlation: u32_at -> u32 = 32,
        /// What it returned.
        code: i32_at -> i32 = 36,
    }
}

record! {
    /// `CUpti_ActivitySynchronization` and later.
    Sync {
        /// [`crate::kinds::sync`]
        sync_kind: u32_at -> u32 = 4,
        /// Nanoseconds.
        start: u64_at -> u64 = 8,
        /// Nanoseconds.
        end: u64_at -> u64 = 16,
        /// The API call.
        correlation: u32_at -> u32 = 24,
        /// Context.
        context: u32_at -> u32 = 28,
        /// Stream or [`crate::kinds::sync::INVALID`].
        stream: u32_at -> u32 = 32,
        /// Event or [`crate::kinds::sync::INVALID`].
        event: u32_at -> u32 = 36,
    }
}

record! {
    /// `CUpti_ActivityOverhead` and later.
    Overhead {
        /// See [`crate::kinds::overhead_name`].
        overhead_kind: u32_at -> u32 = 4,
        /// [`crate::kinds::object`]
        object_kind: u32_at -> u32 = 8,
        /// For a thread: process id, thread id, unused.
        object: triple_at -> [u32; 3] = 12,
        /// Nanoseconds.
        start: u64_at -> u64 = 24,
        /// Nanoseconds.
        end: u64_at -> u64 = 32,
    }
    later {
        /// The API call (12.3 and later).
        correlation: u32_at -> u32 = 40,
    }
}

record! {
    /// `CUpti_ActivityName`.
    Name {
        /// [`crate::kinds::object`]
        object_kind: u32_at -> u32 = 4,
        /// Process and thread, or device, context and stream.
        object: triple_at -> [u32; 3] = 8,
        /// The name.
        name: text_at -> Text = 24,
    }
}

record! {
    /// `CUpti_ActivityMarker2`: one end of an NVTX range, or a mark.
    Marker {
        /// [`crate::kinds::marker`]
        flags: u32_at -> u32 = 4,
        /// Nanoseconds.
        time: u64_at -> u64 = 8,
        /// Joins the ends of a range.
        id: u32_at -> u32 = 16,
        /// [`crate::kinds::object`]
        object_kind: u32_at -> u32 = 20,
        /// Process and thread, or device, context and stream.
        object: triple_at -> [u32; 3] = 24,
        /// Its name; none at the end of a range.
        name: text_at -> Text = 40,
        /// The domain's name; none for the default domain.
        domain: text_at -> Text = 48,
    }
}

record! {
    /// `CUpti_ActivityDevice4` and later.
    Device {
        /// Kilobytes per second.
        memory_bandwidth: u64_at -> u64 = 8,
        /// Bytes.
        memory: u64_at -> u64 = 16,
        /// Threads.
        warp: u32_at -> u32 = 32,
        /// kHz.
        clock: u32_at -> u32 = 36,
        /// Copy engines.
        copy_engines: u32_at -> u32 = 40,
        /// Streaming multiprocessors.
        multiprocessors: u32_at -> u32 = 44,
        /// Of an SM.
        max_warps: u32_at -> u32 = 52,
        /// Of an SM.
        max_blocks: u32_at -> u32 = 56,
        /// Bytes of an SM.
        shared: u32_at -> u32 = 60,
        /// Of an SM.
        registers: u32_at -> u32 = 64,
        /// Compute capability.
        major: u32_at -> u32 = 104,
        /// Compute capability.
        minor: u32_at -> u32 = 108,
        /// Ordinal.
        id: u32_at -> u32 = 112,
        /// The GPU's UUID.
        uuid: uuid_at -> [u8; 16] = 120,
        /// "NVIDIA H200"
        name: text_at -> Text = 136,
        /// Whether CUDA_VISIBLE_DEVICES lets the process use it.
        visible: u8_at -> u8 = 144,
    }
}

record! {
    /// `CUpti_ActivityContext` and later.
    Context {
        /// Its id.
        id: u32_at -> u32 = 4,
        /// Device ordinal.
        device: u32_at -> u32 = 8,
        /// The id of its default stream.
        null_stream: u16_at -> u16 = 14,
    }
}

record! {
    /// `CUpti_ActivityStream`.
    Stream {
        /// Context.
        context: u32_at -> u32 = 4,
        /// Its id.
        id: u32_at -> u32 = 8,
        /// CUDA's priority, an int.
        priority: i32_at -> i32 = 12,
        /// 1 default, 2 non-blocking, 3 null.
        flag: u32_at -> u32 = 16,
    }
}

record! {
    /// `CUpti_ActivityCudaEvent` and later.
    CudaEvent {
        /// The call that recorded it.
        correlation: u32_at -> u32 = 4,
        /// Context.
        context: u32_at -> u32 = 8,
        /// Stream.
        stream: u32_at -> u32 = 12,
        /// Event.
        event: u32_at -> u32 = 16,
    }
    later {
        /// Device ordinal (12.8 and later).
        device: u32_at -> u32 = 24,
    }
}

record! {
    /// `CUpti_ActivityMemory2` and later: kind MEMORY2.
    Memory {
        /// [`crate::kinds::memory`]: allocated or released.
        operation: u32_at -> u32 = 4,
        /// [`crate::kinds::memory`]
        memory_kind: u32_at -> u32 = 8,
        /// The API call.
        correlation: u32_at -> u32 = 12,
        /// Address.
        address: u64_at -> u64 = 16,
        /// Bytes.
        bytes: u64_at -> u64 = 24,
        /// Nanoseconds.
        time: u64_at -> u64 = 32,
        /// Device ordinal.
        device: u32_at -> u32 = 52,
        /// Context.
        context: u32_at -> u32 = 56,
        /// Stream.
        stream: u32_at -> u32 = 60,
        /// Stream-ordered.
        is_async: u32_at -> u32 = 72,
    }
}

record! {
    /// `CUpti_ActivityGraphTrace` and later: one launch of a graph as a whole.
    GraphTrace {
        /// The call that launched it.
        correlation: u32_at -> u32 = 4,
        /// Nanoseconds.
        start: u64_at -> u64 = 8,
        /// Nanoseconds.
        end: u64_at -> u64 = 16,
        /// Device ordinal.
        device: u32_at -> u32 = 24,
        /// The graph.
        graph: u32_at -> u32 = 28,
        /// Context.
        context: u32_at -> u32 = 32,
        /// Stream that it was launched on.
        stream: u32_at -> u32 = 36,
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
        let copy = Memcpy::read(&[1_u8; 88]).expect("the 11.8 layout");
        assert_eq!(copy.copy_count, None);
        assert_eq!(Memcpy::read(&[0_u8; 96]).expect("12.8").copy_count, Some(0));
    }
}
