//! Blocks: entries that are written together, under one checksum. Each says where it stands and what came before it. A
//! reader finds the next one behind a damaged one and knows exactly what it missed.

use super::header::RECORDS_MAX;
use activity::entry::{Field, UNIT};

/// The tag of a block's first unit. No entry has it.
const TAG: u8 = 96;
/// Entries are written when this many bytes wait: large enough that a write costs little for each record, small enough
/// to stay in the cache.
pub(super) const FULL: usize = 256 * 1024;
/// The longest block: one entry more than is full.
pub(super) const LONGEST: usize = UNIT + FULL + activity::entry::LONGEST;

/// What a part of a recording holds up to some place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Records.
    pub(super) records: u64,
    /// Definitions that are numbered: at [`NAMES`], [`SHAPES`], [`FRAMES`] and [`STACKS`].
    pub(super) ids: [u32; 4],
}

pub(super) const NAMES: usize = 0;
pub(super) const SHAPES: usize = 1;
pub(super) const FRAMES: usize = 2;
pub(super) const STACKS: usize = 3;

/// What a block says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Bytes of its entries.
    pub(super) length: usize,
    /// What the part holds before it.
    pub(super) before: Counts,
    sum: u32,
}

/// Completes a block that is to stand at `offset`: its first unit is filled in, the rest are its entries.
pub(super) fn seal(bytes: &mut [u8], offset: u64, before: Counts) {
    let (head, entries) = bytes.split_at_mut(UNIT);
    head.fill(0);
    head[0] = TAG;
    1_u16.put(head, 2);
    // Never longer than LONGEST.
    (entries.len() as u32).put(head, 4);
    offset.put(head, 8);
    before.records.put(head, 16);
    before.ids.put(head, 24);
    crc32fast::hash(entries).put(head, 56);
    crc32fast::hash(&head[..60]).put(head, 60);
}

impl Block {
    /// The block that begins with this unit at `offset`; `None` when none does.
    pub(super) fn decode(head: &[u8], offset: u64) -> Option<Block> {
        let head = head.first_chunk::<UNIT>()?;
        let length = u32::get(head, 4)? as usize;
        let is_sound = head[0] == TAG
            && u32::get(head, 60)? == crc32fast::hash(&head[..60])
            && u64::get(head, 8)? == offset
            && u64::get(head, 16)? <= RECORDS_MAX
            && length.is_multiple_of(UNIT)
            && (UNIT..=LONGEST - UNIT).contains(&length);
        is_sound.then_some(Block {
            length,
            before: Counts {
                records: u64::get(head, 16)?,
                ids: Field::get(head, 24)?,
            },
            sum: u32::get(head, 56)?,
        })
    }

    /// Whether these are its entries as they were written.
    pub(super) fn is_of(&self, entries: &[u8]) -> bool {
        crc32fast::hash(entries) == self.sum
    }
}
