//! Making files that no writer writes, but whose checksums fit.

use recording::file::{HEADER, UNIT};

/// CRC-32 as IEEE 802.3 has it, a bit at a time.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// Makes all that follows the header page one block.
#[allow(dead_code, reason = "not every test reseals")]
pub(crate) fn reseal(file: &mut [u8]) {
    if file.len() < HEADER + UNIT {
        return;
    }
    let (head, entries) = file[HEADER..].split_at_mut(UNIT);
    head.fill(0);
    head[0] = 96;
    head[2] = 1;
    head[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    head[8..16].copy_from_slice(&(HEADER as u64).to_le_bytes());
    head[56..60].copy_from_slice(&crc32(entries).to_le_bytes());
    let sum = crc32(&head[..60]);
    head[60..].copy_from_slice(&sum.to_le_bytes());
}
