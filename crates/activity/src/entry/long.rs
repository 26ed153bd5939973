//! Names that are too long to be kept whole.

use std::borrow::Cow;
use std::io::Write as _;

/// Longer names are cut, in bytes. C++ kernels of real programs stay below a quarter of it.
pub const LONGEST_NAME: usize = 16 * 1024;

/// A name that is no longer than [`LONGEST_NAME`]. What is cut off is stood for by its checksum (64-bit FNV-1a) and its length, so
/// that two names that differ only there stay two.
pub fn shortened(name: &[u8]) -> Cow<'_, [u8]> {
    if name.len() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let is_inside = |byte: u8| byte & 0xc0 == 0x80;
    let mut end = LONGEST_NAME - 64;
    // Not within a character; there are none longer than four bytes.
    for _ in 0..3 {
        end -= usize::from(is_inside(name[end]));
    }
    let (kept, rest) = name.split_at(end);
    let mut short = kept.to_vec();
    // Writing to memory does not fail.
    let (more, sum) = (rest.len(), fingerprint(rest));
    let _ = write!(short, "…[{more} bytes more, {sum:016x}]");
    Cow::Owned(short)
}

/// 64-bit FNV-1a, which unlike the standard library's hasher stays the same from release to release: a name
/// for a text, not a proof of it.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_only_where_it_is_cut_stays_different() {
        let longest = "x".repeat(LONGEST_NAME);
        assert_eq!(shortened(longest.as_bytes()), longest.as_bytes());
        let (one, other) = (format!("{longest}1"), format!("{longest}2"));
        let (one, other) = (shortened(one.as_bytes()), shortened(other.as_bytes()));
        assert_ne!(one, other);
        assert!(one.len() <= LONGEST_NAME);
        // 16,385 bytes, of which 16,320 are kept.
        assert!(String::from_utf8_lossy(&one).contains("[65 bytes more, "));
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for before in 0..4 {
            let name = format!(
                "{}{}",
                "x".repeat(before),
                "\u{1f600}".repeat(LONGEST_NAME / 4)
            );
            let short = shortened(name.as_bytes()).into_owned();
            assert!(String::from_utf8(short).is_ok(), "{before}");
        }
    }
}
