//! Recordings around bytes that may be anything: with sound checksums, which a fuzzer would not find. Written
//! after the tables of the formats, not with the collector's own writer.

const UNIT: usize = 64;
/// Entries of one block are not more than this.
const MOST: usize = 256 * 1024;

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A closed recording of process 1 with these entries.
pub(super) fn recording(entries: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 4096];
    put(&mut file, 0, *b"cuptop\x1a\n");
    put(&mut file, 8, 2_u32.to_le_bytes());
    put(&mut file, 12, 4096_u32.to_le_bytes());
    put(&mut file, 16, 1_u32.to_le_bytes());
    put(&mut file, 24, 1_i64.to_le_bytes());
    let sum = crc(&file[..64]);
    put(&mut file, 64, sum);
    for entries in entries.chunks(MOST) {
        let length = entries.len().next_multiple_of(UNIT);
        let mut block = vec![0; UNIT + length];
        block[UNIT..UNIT + entries.len()].copy_from_slice(entries);
        block[0] = 96;
        put(&mut block, 2, 1_u16.to_le_bytes());
        put(&mut block, 4, (length as u32).to_le_bytes());
        put(&mut block, 8, (file.len() as u64).to_le_bytes());
        let sum = crc(&block[UNIT..]);
        put(&mut block, 56, sum);
        let sum = crc(&block[..60]);
        put(&mut block, 60, sum);
        file.extend(block);
    }
    let units = (entries.len() / UNIT) as u64;
    let (end, mut slot) = (file.len() as u64, [0; 160]);
    put(&mut slot, 0, 1_u64.to_le_bytes());
    put(&mut slot, 8, end.to_le_bytes());
    put(&mut slot, 16, 1_u32.to_le_bytes());
    put(&mut slot, 24, units.to_le_bytes());
    put(&mut slot, 112, units.to_le_bytes());
    let sum = fnv(&slot[..152]);
    put(&mut slot, 152, sum.to_le_bytes());
    put(&mut file, 512, slot);
    file
}

/// Pieces that stand behind one another, each behind its length in two bytes.
fn pieces(mut all: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = all.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length)).clamp(1, rest.len().max(1));
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        all = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// What another machine sends over a link: a greeting, and a frame for each payload.
pub(super) fn link(payloads: &[u8]) -> Vec<u8> {
    let mut bytes = b"\0cuptop-serves\x1a\n".to_vec();
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(*b"\x030.1");
    for payload in pieces(payloads) {
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(crc(payload));
        bytes.extend(payload);
    }
    bytes
}
