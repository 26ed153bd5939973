//! Files beside a recording: whatever happens to one, what is whole in it is read, and the rest is counted.

use proptest::prelude::*;
use recording::file::beside::{LONGEST, OpenError, Reader, Writer};

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

fn write(directory: &std::path::Path, blocks: &[Vec<u8>]) -> Writer {
    let mut writer = Writer::create(directory, "stacks", 3, 17, 255, 0).expect("a file");
    for block in blocks {
        writer.append(block).expect("written");
    }
    writer
}

fn read(reader: &mut Reader) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    while reader
        .read(&mut |payload| blocks.push(payload.to_vec()))
        .expect("readable")
    {}
    blocks
}

#[test]
fn a_file_is_framed_as_documented() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let writer = write(directory.path(), &[b"hello, block here".to_vec()]);
    let path = directory.path().join("17-ff.stacks");
    assert_eq!(writer.path(), path);
    let bytes = std::fs::read(&path).expect("readable");
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // By hand from the table in the documentation.
    let mut expected = Vec::new();
    expected.extend(b"cuptop+\n");
    for number in [3_u32, 64, 17, 1] {
        expected.extend(number.to_le_bytes());
    }
    expected.extend(255_i64.to_le_bytes());
    expected.extend(b"stacks\0\0\0\0\0\0\0\0\0\0");
    expected.extend([0; 12]);
    expected.extend(common::crc32(&expected).to_le_bytes());
    let mut head = b"+blk".to_vec();
    head.extend(17_u32.to_le_bytes());
    head.extend(common::crc32(b"hello, block here").to_le_bytes());
    head.extend(common::crc32(&head).to_le_bytes());
    expected.extend(head);
    expected.extend(b"hello, block here");
    expected.extend([0; 15]);
    assert_eq!(bytes, expected);
    assert_eq!(writer.length(), bytes.len() as u64);
}

#[test]
fn a_growing_file_is_followed_and_says_whether_it_is_still_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = write(directory.path(), &[vec![1; 5]]);
    let mut reader = Reader::open(writer.path()).expect("a file");
    assert_eq!((reader.header().pid, reader.header().version), (17, 3));
    assert_eq!(reader.writer_lives(), Some(true));
    assert_eq!(read(&mut reader), [vec![1; 5]]);
    // More than is read at a time.
    let long: Vec<Vec<u8>> = (2..8).map(|byte| vec![byte; LONGEST]).collect();
    for block in &long {
        writer.append(block).expect("written");
    }
    assert!(writer.append(&vec![0; LONGEST + 1]).is_err());
    assert_eq!(read(&mut reader), long);
    // Half a block: what was there when the writer was killed.
    let path = writer.path().to_path_buf();
    drop(writer);
    let whole = std::fs::read(&path).expect("readable");
    let mut cut = whole.clone();
    cut.extend(&whole[64..64 + 20]);
    std::fs::write(&path, &cut).expect("written");
    assert!(read(&mut reader).is_empty());
    assert_eq!(
        (reader.rest().expect("a length"), reader.damage()),
        (20, None)
    );
    assert_eq!(reader.writer_lives(), Some(false));
}

#[test]
fn a_file_that_exists_is_never_written_to_and_a_limit_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = write(directory.path(), &[vec![1]]);
    let mut second =
        Writer::create(directory.path(), "stacks", 3, 17, 255, 64 + 32).expect("another");
    assert_ne!(first.path(), second.path());
    second.append(&[1; 16]).expect("fits");
    assert_eq!(
        second.append(&[1]).expect_err("full").kind(),
        std::io::ErrorKind::FileTooLarge
    );
    std::fs::remove_file(first.path()).expect("removed");
    let mut first = first;
    assert!(first.append(&[1]).is_err(), "nobody would see it");
    assert!(Writer::create(directory.path(), "Sta.cks", 1, 1, 1, 0).is_err());
}

#[test]
fn what_has_no_sound_header_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(directory.path(), &[]).path().to_path_buf();
    let whole = std::fs::read(&path).expect("readable");
    std::fs::write(&path, &whole[..63]).expect("written");
    assert!(matches!(Reader::open(&path), Err(OpenError::NoHeader(_))));
    for at in 0..64 {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, bytes).expect("written");
        assert!(
            matches!(Reader::open(&path), Err(OpenError::Damaged(_))),
            "{at}"
        );
    }
}

proptest! {
    /// Each flipped byte costs the block that it lies in, and no other.
    #[test]
    fn damage_costs_the_blocks_that_it_is_in(
        lengths in prop::collection::vec(1_usize..200, 1..20),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..=255), 0..6),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let blocks: Vec<Vec<u8>> = lengths.iter().zip(1..).map(|(&length, byte)| vec![byte; length]).collect();
        let path = write(directory.path(), &blocks).path().to_path_buf();
        let mut bytes = std::fs::read(&path).expect("readable");
        let mut hit = vec![false; blocks.len()];
        let mut starts = Vec::new();
        let mut at = 64;
        for block in &blocks {
            starts.push(at);
            at += 16 + block.len().div_ceil(16) * 16;
        }
        let before = bytes.clone();
        for (index, mask) in flips {
            let place = 64 + index.index(bytes.len() - 64);
            bytes[place] ^= mask;
        }
        for (number, (&start, block)) in starts.iter().zip(&blocks).enumerate() {
            // Zeros behind a payload belong to nobody.
            let end = start + 16 + block.len();
            hit[number] = before[start..end] != bytes[start..end];
        }
        std::fs::write(&path, bytes).expect("written");
        let mut reader = Reader::open(&path).expect("a file");
        let expected: Vec<Vec<u8>> = blocks.iter().zip(&hit).filter(|(_, hit)| !**hit).map(|(block, _)| block.clone()).collect();
        prop_assert_eq!(read(&mut reader), expected);
        let lost: u64 = blocks.iter().zip(&hit).filter(|(_, hit)| **hit).map(|(block, _)| (16 + block.len().div_ceil(16) * 16) as u64).sum();
        prop_assert_eq!(reader.damage().map_or(0, |it| it.skipped), lost);
    }

    /// Whatever stands in it, reading ends and accounts for every byte.
    #[test]
    fn no_file_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = write(directory.path(), &[vec![7; 30]]).path().to_path_buf();
        let mut file = std::fs::read(&path).expect("readable");
        file.extend(&bytes);
        std::fs::write(&path, file).expect("written");
        let mut reader = Reader::open(&path).expect("a file");
        prop_assert_eq!(read(&mut reader), [vec![7; 30]]);
        let skipped = reader.damage().map_or(0, |it| it.skipped);
        prop_assert_eq!(skipped + reader.rest().expect("a length"), bytes.len() as u64);
    }
}
