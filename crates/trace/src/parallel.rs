//! The same work on many things, on a few threads that end with it.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Threads at most: what is done here waits for memory, and more of them do it no sooner.
const THREADS_MAX: usize = 8;
/// Records behind a thing below which a thread takes longer to start than it helps, over all things.
const RECORDS_MIN: usize = 100_000;

/// What `work` makes of each of `items`, in their order. `records` is about how many records are behind all of them.
/// The caller's thread does it where they are few, or where there is one core or one thing. The threads are named, take
/// the next thing that is left, and have ended when this returns; a panic of one goes on here.
pub fn map<T: Sync, R: Send>(records: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    on(threads(records, items.len()), items, work)
}

/// The same with a part of them for each thread, as what goes through memory together.
pub fn map_chunks<T: Sync, R: Send>(
    records: usize,
    items: &[T],
    work: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let threads = threads(records, items.len());
    let chunks: Vec<&[T]> = items.chunks(items.len().div_ceil(threads).max(1)).collect();
    let made = on(threads, &chunks, |some| work(some));
    made.into_iter().flatten().collect()
}

fn threads(records: usize, items: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    match records >= RECORDS_MIN {
        true => cores.min(THREADS_MAX).min(items).max(1),
        false => 1,
    }
}

fn on<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let some = || {
        let mut made: Vec<(usize, R)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match items.get(at) {
                Some(item) => made.push((at, work(item))),
                None => return made,
            }
        }
    };
    let mut made = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|i| {
                let name = format!("cuptop-map-{i}");
                // Where no thread can be had this one does what is left.
                thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, some)
                    .ok()
            })
            .collect();
        let mut made = some();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}

/// The results of two pieces of work that have nothing to do with each other. The second gets a thread of its own,
/// where there are records and cores enough for that. It is named, and has ended when this returns; a panic of it goes
/// on here.
pub fn join<A, B: Send>(
    records: usize,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    at_once(is_worth(records), first, second)
}

/// Whether work with so many records behind it gets a thread beside another.
pub fn is_worth(records: usize) -> bool {
    threads(records, 2) > 1
}

fn at_once<A, B: Send>(
    has_thread: bool,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    // Whoever comes first does it: where no thread can be had that is this one.
    let left = Mutex::new(Some(second));
    let take = || {
        let second = left.lock().unwrap_or_else(PoisonError::into_inner).take();
        second.map(|second| second())
    };
    let (first, other) = thread::scope(|scope| {
        let named = || thread::Builder::new().name("cuptop-join".to_owned());
        let other = has_thread
            .then(|| named().spawn_scoped(scope, take).ok())
            .flatten();
        let first = first();
        let other = other.and_then(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (first, other)
    });
    let second = other.or_else(take).expect("it is done once");
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_in_order_whoever_made_it() {
        let items: Vec<u64> = (0..1_000).collect();
        for threads in [1, 2, 5] {
            let made = on(threads, &items, |it| it * it);
            assert!(
                made.into_iter().eq((0..1_000).map(|it| it * it)),
                "{threads}"
            );
        }
        assert!(on(3, &[], |it: &u64| *it).is_empty());
    }

    #[test]
    fn threads_take_what_is_left() {
        // Both of the first two wait for each other: one thread alone would wait for ever.
        let both = std::sync::Barrier::new(2);
        let made = on(2, &[0, 1, 2], |it| {
            if *it < 2 {
                both.wait();
            }
            thread::current().name().map(str::to_owned)
        });
        assert!(made.iter().flatten().any(|name| name == "cuptop-map-1"));
    }

    #[test]
    fn two_things_are_made_at_once_or_one_after_the_other() {
        let both = std::sync::Barrier::new(2);
        let name = || {
            both.wait();
            thread::current().name().map(str::to_owned)
        };
        let (here, there) = at_once(true, name, name);
        assert_ne!(here, there);
        assert_eq!(there.as_deref(), Some("cuptop-join"));
        assert_eq!(at_once(false, || 1, || 2), (1, 2));
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_goes_on_where_it_was_asked_for() {
        on(2, &[1, 2, 3, 4], |it| assert!(*it != 3, "the third"));
    }
}
