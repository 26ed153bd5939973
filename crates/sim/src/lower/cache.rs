//! Which of the host's memory lies in its cache.
//!
//! Uploads of pageable memory go at the pace at which the host reads it. The host of an H200 reads 17 GB/s where it
//! read the same bytes a few megabytes ago, else 10 GB/s (`docs/SIMULATOR.md`). How many bytes it read in between,
//! these included, is the reuse distance of cache models (Mattson et al., 1970). `cuptop calibrate` measures the pace
//! of each distance by uploads of that size over and over.

use std::collections::HashMap;

use activity::{Copy, Direction, MemoryKind};
use scenario::plan::{BufferId, CopyPiece, HostWork, MemRef, VariantPlan};

/// Which bytes of host memory were read, and how many others since.
#[derive(Debug, Default)]
pub(super) struct HostCache {
    /// Bytes that the host has read so far.
    read: u64,
    /// That count before the last read of what begins there.
    last: HashMap<(BufferId, u64), u64>,
}

impl HostCache {
    /// The host's part in a copy. Returns what [`Self::read`] does, for uploads of pageable memory.
    pub(super) fn copy(&mut self, copy: &Copy, piece: &CopyPiece) -> Option<u64> {
        match copy.direction {
            Direction::H2D if copy.from == MemoryKind::Pageable => {
                self.read(piece.from, piece.bytes)
            }
            Direction::D2H => {
                self.overwrite(piece.to.buffer);
                None
            }
            _ => None,
        }
    }

    /// The host's own work reads what it works on.
    pub(super) fn work(&mut self, spec: &VariantPlan, work: HostWork) {
        match work {
            HostWork::Busy(_) => {}
            HostWork::Sum(from, bytes) | HostWork::Sin(from, bytes) => {
                self.read(from, bytes);
            }
            HostWork::Matmul(a, b, c, _) => {
                for buffer in [a, b, c] {
                    self.read(MemRef { buffer, offset: 0 }, spec.buffers[buffer].bytes);
                }
            }
        }
    }

    /// The host reads memory. Returns how many bytes it has read since it last did, these included, where the
    /// cache can have kept them.
    fn read(&mut self, from: MemRef, bytes: u64) -> Option<u64> {
        let last = self.last.insert((from.buffer, from.offset), self.read);
        let since = last.map(|last| (self.read - last).max(bytes));
        self.read += bytes;
        since
    }

    /// A download writes to the buffer. The engine, and the driver's copies, go past the cache: an upload that
    /// follows takes as long as one of memory that was never read.
    fn overwrite(&mut self, buffer: BufferId) {
        self.last.retain(|(of, _), _| *of != buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(buffer: BufferId, offset: u64) -> MemRef {
        MemRef { buffer, offset }
    }

    #[test]
    fn the_distance_is_what_was_read_in_between_and_the_bytes_themselves() {
        let mut cache = HostCache::default();
        assert_eq!(cache.read(at(0, 0), 100), None);
        assert_eq!(cache.read(at(0, 0), 100), Some(100));
        assert_eq!(cache.read(at(1, 0), 1000), None);
        // 100 of its own, 1000 of the other.
        assert_eq!(cache.read(at(0, 0), 100), Some(1100));
        // Another part of the same buffer is other memory.
        assert_eq!(cache.read(at(0, 100), 100), None);
    }

    #[test]
    fn what_a_download_wrote_is_not_in_the_cache() {
        let mut cache = HostCache::default();
        cache.read(at(0, 0), 100);
        cache.read(at(1, 0), 100);
        cache.overwrite(0);
        assert_eq!(cache.read(at(0, 0), 100), None);
        assert_eq!(cache.read(at(1, 0), 100), Some(200));
    }
}
