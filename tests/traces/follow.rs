//! A job whose ranks write into one directory, followed while it runs.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::grown::{Came, Rank};
use activity::feed::Outcome;
use readers::file::{OpenError, open, open_live};
use recording::Follower;
use recording::file::{Entry, Reader, Wait};

#[test]
fn ranks_join_as_they_come_and_the_job_ends_with_the_last() {
    let root = tempfile::tempdir().expect("a directory");
    let job = root.path().to_path_buf();
    let opened =
        open_live(std::slice::from_ref(&job), Some(&mut |_| {})).expect("an empty directory");
    assert!(opened.is_growing);
    let feed = &opened.feed;
    let mut came = Came::default();
    came.until(feed, "it is said what is missing", |it| {
        it.stands("--out") && it.stands(&job.display().to_string())
    });

    let mut first = Rank::start(&job.join("gpu01-77.run"), 0, 3);
    first.record(100);
    came.until(feed, "the first", |it| it.count(0) == 100);
    came.until(feed, "the others are missing", |it| {
        it.stands("2 of 3 ranks have no recording here (yet): 1, 2") && !it.stands("--out")
    });
    // Of another host: the same process id means nothing.
    let mut second = Rank::start(&job.join("gpu02-77.run"), 2, 3);
    second.record(5_000);
    came.until(feed, "a rank that comes later", |it| {
        it.count(2) == 5_000 && it.stands("1 of 3 ranks has no recording here (yet): 1")
    });
    first.record(23);
    first.end();
    // One that comes when another has ended.
    let mut third = Rank::start(&job, 1, 3);
    third.record(1);
    came.until(feed, "all", |it| it.count(1) == 1 && it.standing.is_empty());
    second.record(7);
    second.end();
    third.end();
    came.until(feed, "the end", |it| it.outcome.is_some());
    assert_eq!(came.outcome, Some(Outcome::Complete));
    came.assert_whole(&[(0, 123), (1, 1), (2, 5_007)]);
    assert!(came.notices.is_empty(), "{:?}", came.notices);

    // What has ended is not waited for, also with a rank missing.
    let began = Instant::now();
    let (one, mut came) = (job.join("gpu01-77.run"), Came::default());
    let opened = open_live(&[one], Some(&mut |_| {})).expect("a recording");
    came.until(&opened.feed, "the end", |it| it.outcome.is_some());
    assert!(!opened.is_growing && began.elapsed() < Duration::from_secs(2));
    came.assert_whole(&[(0, 123)]);
}

#[test]
fn only_who_looks_waits_for_a_folder_to_fill() {
    let root = tempfile::tempdir().expect("a directory");
    let paths = [root.path().to_path_buf()];
    let not_a_trace = |result| matches!(result, Err(OpenError::NotATrace { .. }));
    assert!(not_a_trace(open(&paths, &mut |_| {})));
    std::fs::write(root.path().join("train.py"), "import torch").expect("written");
    assert!(not_a_trace(open_live(&paths, Some(&mut |_| {}))));
}

#[test]
fn a_rank_that_does_not_grow_is_called_silent_until_it_does() {
    let root = tempfile::tempdir().expect("a directory");
    let mut ranks: Vec<Rank> = (0..3)
        .map(|rank| Rank::start(root.path(), rank, 3))
        .collect();
    let mut follower = Follower::open(root.path()).expect("a directory");
    let begin = Instant::now();
    let mut look = |ranks: &mut Vec<Rank>, growing: &[usize], seconds: u64| {
        for &rank in growing {
            ranks[rank].record(1);
        }
        let now = begin + Duration::from_secs(seconds);
        follower
            .poll_due(now, &mut |_| Ok(()))
            .expect("somebody listens");
        let all = follower.lacks(now, &|_| false);
        all.into_iter()
            .map(|it| (it.is_alarming, it.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(look(&mut ranks, &[0, 1, 2], 1), []);
    assert_eq!(look(&mut ranks, &[0], 4), []);
    let silent = |text: &str| vec![(true, text.to_owned())];
    assert_eq!(
        look(&mut ranks, &[0, 1], 13),
        silent("rank 2 silent for 12 s")
    );
    assert_eq!(
        look(&mut ranks, &[1], 20),
        silent("rank 0 and rank 2 silent for 7 s or longer")
    );
    assert_eq!(look(&mut ranks, &[0, 1, 2], 30), []);
    // One that has ended is not silent.
    ranks.remove(2).end();
    assert_eq!(look(&mut ranks, &[0, 1], 40), []);
}

/// What a file system that several machines share may show: the page with the published length before the blocks.
#[test]
fn blocks_that_come_after_their_length_are_waited_for() {
    let root = tempfile::tempdir().expect("a directory");
    let mut rank = Rank::start(&root.path().join("there"), 0, 1);
    rank.record(3_000);
    let written = rank.path().to_path_buf();
    let middle = std::fs::read(&written).expect("readable");
    rank.record(3_000);
    let whole = std::fs::read(&written).expect("readable");
    // The newest page, and of the rest only zeros, or nothing.
    let mut hollow = whole.clone();
    hollow[middle.len()..].fill(0);
    for early in [&hollow[..], &hollow[..middle.len()]] {
        let mut early = early.to_vec();
        early[..4096].copy_from_slice(&whole[..4096]);
        let path = root.path().join("1-1.cuptop");
        std::fs::write(&path, &early).expect("written");
        let mut reader = Reader::open(&path).expect("a recording");
        reader.wait = Wait::Blocks;
        assert_eq!(records(&mut reader), 3_000);
        assert!(reader.is_waiting() && reader.damage().is_none());
        let file = std::fs::File::options().write(true).open(&path);
        let file = file.expect("writable");
        // One block's head arrives, then all.
        let at = middle.len() as u64;
        file.write_all_at(&whole[middle.len()..middle.len() + 64], at)
            .expect("written");
        assert_eq!(records(&mut reader), 0);
        file.write_all_at(&whole[middle.len()..], at)
            .expect("written");
        assert_eq!(records(&mut reader), 3_000);
        assert!(!reader.is_waiting());
        assert_eq!((reader.lost, reader.damage()), (0, None));

        // Who does not wait counts them as lost.
        std::fs::write(&path, &early).expect("written");
        let mut reader = Reader::open(&path).expect("a recording");
        assert_eq!(records(&mut reader), 3_000);
        assert!(reader.lost == 3_000 && reader.damage().is_some());
    }
}

fn records(reader: &mut Reader) -> usize {
    let mut count = 0;
    loop {
        let more =
            reader.read(&mut |entry| count += usize::from(matches!(entry, Entry::Record(_))));
        if !more.expect("readable") {
            return count;
        }
    }
}

#[test]
fn hundreds_of_ranks_are_followed_by_one_thread() {
    let root = tempfile::tempdir().expect("a directory");
    let mut ranks: Vec<Rank> = (0..300)
        .map(|rank| {
            Rank::start(
                &root.path().join(format!("gpu{}-1.run", rank / 8)),
                rank,
                300,
            )
        })
        .collect();
    let threads = || std::fs::read_dir("/proc/self/task").expect("Linux").count();
    let before = threads();
    let path: PathBuf = root.path().to_path_buf();
    let opened = open_live(&[path], Some(&mut |_| {})).expect("a directory");
    let mut came = Came::default();
    for _ in 0..3 {
        for rank in &mut ranks {
            rank.record(20);
        }
    }
    came.until(&opened.feed, "all of all", |it| {
        (0..300).all(|rank| it.count(rank) == 60)
    });
    // Other tests have theirs meanwhile.
    assert!(threads() < before + 12);
    ranks.into_iter().for_each(Rank::end);
    came.until(&opened.feed, "the end", |it| it.outcome.is_some());
    assert_eq!(came.outcome, Some(Outcome::Complete));
}
