//! Buffers between several threads of CUPTI's, our decode thread and our flush thread.

mod model;

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Threads that record, and how often each takes a buffer.
const THREADS: usize = 3;
const ROUNDS: usize = 2_000;

/// Takes a buffer as CUPTI does; `None` when it is declined.
fn take() -> Option<*mut u64> {
    take_with_size().map(|it| it.0)
}

/// And how long it is said to be.
fn take_with_size() -> Option<(*mut u64, usize)> {
    let (mut buffer, mut size, mut most) = (std::ptr::null_mut(), 0, 7);
    // SAFETY: three valid places.
    unsafe { requested(&raw mut buffer, &raw mut size, &raw mut most) };
    assert_eq!(most, 0, "as many records as there is room for");
    assert_eq!(size == 0, buffer.is_null());
    assert!([0, SMALL, BUFFER].contains(&size));
    (!buffer.is_null()).then_some((buffer.cast(), size))
}

#[test]
fn a_buffer_has_one_owner_comes_empty_and_none_is_lost() {
    let most = 4;
    let pool = install(1, most, true).expect("the only one of this process");
    let (given, declined) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let recording = AtomicUsize::new(THREADS);
    let consumed = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (given, declined, recording) = (&given, &declined, &recording);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let Some(buffer) = take() else {
                        declined.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        continue;
                    };
                    given.fetch_add(1, Ordering::Relaxed);
                    let stamp = (thread * ROUNDS + round + 1) as u64;
                    // SAFETY: a buffer that was given out has room for two numbers, and is this thread's.
                    unsafe {
                        assert_eq!(
                            (buffer.read(), buffer.add(1).read()),
                            (0, 0),
                            "it comes empty"
                        );
                        buffer.write(stamp);
                        std::thread::yield_now();
                        buffer.add(1).write(stamp);
                        completed(std::ptr::null_mut(), 0, buffer.cast(), BUFFER, 16);
                    }
                }
                recording.fetch_sub(1, Ordering::Release);
            });
        }
        let flush = scope.spawn(|| {
            while recording.load(Ordering::Acquire) > 0 {
                pool.top_up();
                pool.begin_flush();
                std::thread::yield_now();
            }
        });
        let mut seen = std::collections::HashSet::new();
        loop {
            let is_over = recording.load(Ordering::Acquire) == 0;
            while let Some(completed) = pool.done.take() {
                pool.consume(&completed, |bytes| {
                    let (first, second) = bytes.split_at(8);
                    assert_eq!(first, second, "one thread wrote it");
                    assert!(seen.insert(first.to_vec()), "read once");
                });
            }
            if is_over {
                break;
            }
            std::thread::yield_now();
        }
        flush.join().expect("no panic");
        seen.len()
    });
    let given = given.into_inner();
    assert_eq!(consumed, given);
    assert_eq!(given + declined.load(Ordering::Relaxed), THREADS * ROUNDS);
    assert_eq!(pool.take_declined(), declined.into_inner() as u64);
    assert_eq!((pool.take_discarded(), pool.unread()), (0, 0));
    // All that were made are free again.
    let (made, free) = pool.made_and_free();
    assert_eq!(free, made);
    assert!((1..=most).contains(&made), "{made}");
    // The first between two flushes are short, so that one that runs on withholds little.
    for _ in 0..2 {
        note_flush();
        for nth in 0..FEW + 2 {
            let (buffer, size) = take_with_size().expect("one");
            assert_eq!(size, if nth < FEW { SMALL } else { BUFFER }, "{nth}");
            // SAFETY: what was just taken.
            unsafe { completed(std::ptr::null_mut(), 0, buffer.cast(), size, 0) };
            let done = pool.done.take().expect("one");
            pool.consume(&done, |_| {});
        }
    }
    // A child that was forked gets none.
    pool.close();
    assert_eq!(take(), None);
}
