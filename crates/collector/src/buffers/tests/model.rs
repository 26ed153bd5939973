//! The pool's own code (`pool.rs`, compiled once more) over a model checker's memory and locks: every way in which CUPTI's
//! threads, the decode thread and the flush thread may be interleaved, and every value that a weakly ordered machine may
//! show them, with at most [`PREEMPTIONS`] switches of a thread that could have gone on.
//!
//! What is not the code itself: a buffer is a few cells instead of 1 MiB, CUPTI is a lock and a buffer, and the queue (crossbeam's) is
//! taken at its word, which is that who takes something out sees what was done before it was put in, and no more.

#![allow(
    dead_code,
    reason = "of the pool, what the model asks it for is used here"
)]

#[allow(
    clippy::duplicate_mod,
    reason = "the same code over other memory is what this is about"
)]
#[path = "../pool.rs"]
mod pool;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::{Arc, Mutex};
use loom::thread::{JoinHandle, spawn};

use memory::Buffer;
use pool::Pool;

/// Switches from a thread that could have gone on, in one execution. Most races show with two.
const PREEMPTIONS: usize = 3;

mod memory {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicU64, Ordering};

    /// Never freed, as the true ones.
    #[derive(Debug)]
    struct Memory {
        taken: AtomicU64,
        /// The first number of a buffer, which our threads look at while CUPTI may be writing it.
        kind: AtomicU64,
        /// All others: the checker fails when two threads have them at once.
        rest: UnsafeCell<[u8; 1]>,
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Buffer(&'static Memory);

    // SAFETY: the checker sees to it that what is behind has one owner at a time, and fails otherwise.
    unsafe impl Send for Buffer {}
    // SAFETY: as above.
    unsafe impl Sync for Buffer {}

    impl PartialEq for Buffer {
        fn eq(&self, other: &Buffer) -> bool {
            std::ptr::eq(self.0, other.0)
        }
    }

    impl Buffer {
        pub(super) fn allocate() -> Option<Buffer> {
            Some(Buffer(Box::leak(Box::new(Memory {
                taken: AtomicU64::new(0),
                kind: AtomicU64::new(0),
                rest: UnsafeCell::new([0]),
            }))))
        }

        fn rest<T>(self, with: impl FnOnce(&mut [u8; 1]) -> T) -> T {
            // SAFETY: the checker fails when somebody else has it.
            self.0.rest.with_mut(|rest| with(unsafe { &mut *rest }))
        }

        pub(super) fn fault_in(self) {
            self.rest(|rest| rest[0] = 0);
        }

        pub(super) fn taken(&self) -> u64 {
            self.0.taken.load(Ordering::Relaxed)
        }

        pub(super) fn set_taken(&self, flush: u64) {
            self.0.taken.store(flush, Ordering::Relaxed);
        }

        pub(super) fn is_begun(&self) -> bool {
            self.0.kind.load(Ordering::Relaxed) != 0
        }

        pub(super) fn read_and_clear(self, length: usize, read: impl FnOnce(&[u8])) {
            assert_eq!(length, 1);
            self.rest(|rest| {
                read(rest);
                rest[0] = 0;
            });
            self.0.kind.store(0, Ordering::Relaxed);
        }

        /// Whether it is as CUPTI was promised that it comes.
        pub(super) fn is_empty(self) -> bool {
            self.0.kind.load(Ordering::Relaxed) == 0 && self.rest(|rest| rest[0] == 0)
        }

        /// CUPTI writes a record that is not finished.
        pub(super) fn begin(self) {
            self.0.kind.store(1, Ordering::Relaxed);
        }

        pub(super) fn finish(self, stamp: u8) {
            self.rest(|rest| rest[0] = stamp);
        }
    }
}

mod sync {
    use std::collections::VecDeque;

    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    #[derive(Debug)]
    pub(crate) struct Queue<T> {
        /// Not the checker's, so that it orders nothing: that is for the flags. Never held while the checker may switch.
        places: std::sync::Mutex<Places<T>>,
        /// Who takes something out reads what was stored when it was put in.
        flags: Vec<AtomicBool>,
        /// Changed by every use, so that the checker tries their orders; it orders nothing by itself.
        used: AtomicUsize,
    }

    #[derive(Debug)]
    struct Places<T> {
        waiting: VecDeque<(usize, T)>,
        /// Flags that nobody used yet.
        unused: Vec<usize>,
        most: usize,
    }

    impl<T> Queue<T> {
        pub(super) fn new(most: usize) -> Queue<T> {
            // One for each that is put in during an execution: used again, it would order more than was promised.
            let flags = 12;
            Queue {
                places: std::sync::Mutex::new(Places {
                    waiting: VecDeque::new(),
                    unused: (0..flags).collect(),
                    most,
                }),
                flags: (0..flags).map(|_| AtomicBool::new(false)).collect(),
                used: AtomicUsize::new(0),
            }
        }

        fn places(&self) -> std::sync::MutexGuard<'_, Places<T>> {
            self.places.lock().expect("no panic")
        }

        pub(super) fn put(&self, it: T) -> bool {
            let flag = self.places().unused.pop().expect("enough of them");
            self.flags[flag].store(true, Ordering::Release);
            self.used.fetch_add(1, Ordering::Relaxed);
            let mut places = self.places();
            let has_room = places.waiting.len() < places.most;
            if has_room {
                places.waiting.push_back((flag, it));
            }
            has_room
        }

        pub(crate) fn take(&self) -> Option<T> {
            self.used.fetch_add(1, Ordering::Relaxed);
            let (flag, it) = self.places().waiting.pop_front()?;
            // A swap reads the newest: that of who put it in.
            assert!(self.flags[flag].swap(false, Ordering::Acquire));
            Some(it)
        }

        pub(super) fn len(&self) -> usize {
            self.used.fetch_add(1, Ordering::Relaxed);
            self.places().waiting.len()
        }
    }
}

/// Tries all executions of `body`. A check of nothing would be none.
fn check(name: &str, body: impl Fn() + Send + Sync + 'static) {
    let tried = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&tried);
    let begin = std::time::Instant::now();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        body();
    });
    let tried = tried.load(Relaxed);
    #[allow(clippy::print_stderr, reason = "how much was tried")]
    {
        eprintln!("{name}: {tried} executions in {:?}", begin.elapsed());
    }
    assert!(tried > 50, "{tried} executions");
}

fn pool(buffers: usize, most: usize, may_decline: bool) -> Arc<Pool> {
    let pool = Pool::new(most, may_decline).expect("memory");
    pool.grow(buffers);
    Arc::new(pool)
}

/// A thread of CUPTI's that asks for a buffer for each stamp. Returns the stamps that it wrote.
fn program(pool: &Arc<Pool>, stamps: &'static [u8]) -> JoinHandle<Vec<u8>> {
    let pool = Arc::clone(pool);
    spawn(move || {
        let mut written = Vec::new();
        for &stamp in stamps {
            if let Some(buffer) = pool.request() {
                assert!(buffer.is_empty(), "it comes empty");
                buffer.begin();
                buffer.finish(stamp);
                pool.complete(buffer, 1);
                written.push(stamp);
            }
        }
        written
    })
}

/// What the decode thread does with what is there.
fn decode(pool: &Pool, read: &mut Vec<u8>) {
    if let Some(completed) = pool.done.take() {
        pool.consume(&completed, |bytes| read.push(bytes[0]));
    }
}

#[test]
fn a_buffer_has_one_owner_comes_empty_and_none_is_lost() {
    check("owners", || {
        let pool = pool(1, 2, true);
        let programs = [program(&pool, &[1, 2]), program(&pool, &[3])];
        let mut read = Vec::new();
        decode(&pool, &mut read);
        // The flush thread's: makes what is missing.
        pool.top_up();
        let mut written: Vec<u8> = Vec::new();
        for program in programs {
            written.extend(program.join().expect("no panic"));
        }
        for _ in 0..3 {
            decode(&pool, &mut read);
        }
        let declined = 3 - written.len() as u64;
        read.sort_unstable();
        written.sort_unstable();
        assert_eq!(read, written, "each is read once");
        assert_eq!(pool.take_declined(), declined);
        assert_eq!((pool.take_discarded(), pool.unread()), (0, 0));
        let (made, free) = pool.made_and_free();
        assert_eq!(made, free, "all are free again");
        assert!(made <= 2);
    });
}

#[test]
fn what_is_written_where_no_buffer_is_left_is_counted() {
    check("declined", || {
        let pool = pool(1, 1, false);
        let writer = Arc::clone(&pool);
        let program = spawn(move || {
            for stamp in 1..=3 {
                let buffer = writer.request().expect("one to write to, in any case");
                buffer.begin();
                buffer.finish(stamp);
                writer.complete(buffer, 1);
            }
        });
        let mut read = Vec::new();
        let decoder = Arc::clone(&pool);
        let decoding = spawn(move || {
            let mut read = Vec::new();
            decode(&decoder, &mut read);
            decode(&decoder, &mut read);
            read
        });
        let flusher = pool.take_declined();
        program.join().expect("no panic");
        read.extend(decoding.join().expect("no panic"));
        for _ in 0..3 {
            decode(&pool, &mut read);
        }
        assert_eq!(read.len() as u64 + pool.take_discarded(), 3);
        assert_eq!(flusher + pool.take_declined() + read.len() as u64, 3);
    });
}

#[test]
fn what_cupti_withholds_is_known_by_when_it_took_it() {
    check("withheld", || {
        let pool = pool(1, 1, true);
        // A buffer's earlier life is over: its records wait to be read.
        let earlier = pool.request().expect("one");
        earlier.begin();
        earlier.finish(1);
        pool.complete(earlier, 1);
        let held: Arc<Mutex<Option<Buffer>>> = Arc::default();

        let (cupti, asked) = (Arc::clone(&held), Arc::clone(&pool));
        let program = spawn(move || {
            let begun = {
                let mut cupti = cupti.lock().expect("no panic");
                *cupti = asked.request().inspect(|buffer| buffer.begin());
                cupti.is_some()
            };
            if let Some(buffer) = cupti.lock().expect("no panic").take() {
                buffer.finish(2);
                asked.complete(buffer, 1);
            }
            begun
        });
        let decoder = Arc::clone(&pool);
        let decoding = spawn(move || {
            let mut read = Vec::new();
            decode(&decoder, &mut read);
            decode(&decoder, &mut read);
            read
        });

        let flush = pool.begin_flush();
        {
            // What CUPTI has not given back by a flush cannot be given back while this looks.
            let cupti = held.lock().expect("no panic");
            let withheld = pool.oldest_withheld();
            if cupti.is_some() {
                assert!(
                    withheld.is_some_and(|since| since <= flush),
                    "{withheld:?} of {flush}"
                );
                assert_eq!(pool.unread(), 1);
            }
        }
        let begun = program.join().expect("no panic");
        let mut read = decoding.join().expect("no panic");
        decode(&pool, &mut read);
        assert_eq!(read, if begun { vec![1, 2] } else { vec![1] });
        assert_eq!((pool.oldest_withheld(), pool.unread()), (None, 0));
    });
}
