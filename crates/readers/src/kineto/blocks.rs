//! The text of a list of events in blocks, which threads read beside each other.
//!
//! One thread reads (and unpacks) the text and cuts it where an event seems to begin; others read the events of a
//! block; their results come back in order. Whether a cut was right is known when the block before it was read: it must
//! end exactly there, between two events. What a wrong cut has torn is put together and read again, so the result
//! is that of one reader that goes from front to back, however many threads there are.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded};
use memchr::memmem;

use super::events::{End, Events, Next};
use super::scan::{Block, ScanError, Scanner, VALUE_MAX};

/// Bytes of a block: many events, and little beside what a processor has for a cache.
pub(super) const BLOCK: usize = 1 << 20;
/// A block that is as many times as long is cut where it ends, without a sign of an event.
const STRETCH: usize = 8;
/// Threads that read events at once. The thread that takes their results, and the store behind it, keep up with no more.
const WORKERS_MAX: usize = 8;

/// What was read of a block.
pub(super) struct Parsed {
    pub(super) block: Block,
    pub(super) events: Events,
    pub(super) end: Result<End, ScanError>,
}

/// Reads the events of a block, the first of which may be there in part; `next` is what comes first.
fn parse(block: Block, next: Next) -> Parsed {
    let mut events = Events::at(block.at, next);
    let mut scanner = Scanner::of_block(block);
    let end = events.read(&mut scanner, u64::MAX);
    if matches!(end, Ok(End::List)) {
        events.at = scanner.offset();
    }
    // Sorted here, a block's worth at a time and beside other blocks, it is merged with little effort.
    events.converter.gather.seal();
    Parsed {
        block: scanner.into_block(),
        events,
        end,
    }
}

/// What comes out of [`Blocks`], in order.
enum Coming {
    Block(Receiver<Parsed>),
    Failed(io::Error),
}

/// The blocks of a text, in order, each with what was read of it.
pub(super) struct Blocks {
    order: Receiver<Coming>,
    used: Sender<Vec<u8>>,
}

impl Blocks {
    /// Starts the threads. `begun` is what was read of the text already, from the first event on; `consumed` is kept at
    /// what `count` says of the input. Blocks have about `size` bytes.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start<'scope, 'env, R: Read + Send + 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        begun: Block,
        input: R,
        count: fn(&R) -> u64,
        consumed: &'env AtomicU64,
        size: usize,
    ) -> io::Result<Blocks> {
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX));
        // Bounded, so that what is read ahead is.
        let (order_in, order) = bounded(2 * workers);
        let (jobs_in, jobs) = bounded::<(Block, Sender<Parsed>)>(2 * workers);
        let (used, free) = bounded(2 * workers + 2);
        for n in 0..workers {
            let jobs = jobs.clone();
            Builder::new()
                .name(format!("trace-parse-{n}"))
                .spawn_scoped(scope, move || {
                    for (block, result) in jobs {
                        // Nobody waits for it when reading has ended before its end.
                        let _ = result.send(parse(block, Next::Event));
                    }
                })?;
        }
        let cutter = Cutter {
            lead: lead(begun.text()),
            order: order_in,
            jobs: jobs_in,
            free,
            size,
        };
        Builder::new()
            .name("trace-read".to_owned())
            .spawn_scoped(scope, move || cutter.run(begun, input, count, consumed))?;
        Ok(Blocks { order, used })
    }

    /// The next block as it was read on the assumption that it begins with an event; `None` behind the last one.
    pub(super) fn next(&mut self) -> io::Result<Option<Parsed>> {
        match self.order.recv() {
            Ok(Coming::Block(parsed)) => parsed.recv().map(Some).map_err(|_| {
                io::Error::other("a thread that reads the trace ended; this is a bug in cuptop")
            }),
            Ok(Coming::Failed(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The text from offset `at` on, which lies in `block`, the last one that was taken.
    pub(super) fn into_rest(self, block: &Block, at: u64) -> Scanner<Rest> {
        let buffer = block.text_from(at).to_vec();
        let begun = Block {
            end: buffer.len(),
            buffer,
            at,
            is_last: false,
        };
        let rest = Rest {
            blocks: self,
            now: Block::default(),
            next: 0,
        };
        Scanner::resume(begun, rest)
    }

    /// Gives a block's memory back, for another one.
    pub(super) fn recycle(&self, block: Block) {
        if block.buffer.len() <= 2 * BLOCK {
            let _ = self.used.try_send(block.buffer);
        }
    }
}

/// The end of a block that cannot be read without the block that follows.
pub(super) struct Torn {
    text: Vec<u8>,
    at: u64,
    next: Next,
}

impl Torn {
    /// What stands in `block` from offset `at` of the text on, where `next` comes.
    pub(super) fn of(block: &Block, at: u64, next: Next) -> Torn {
        Torn {
            text: block.text_from(at).to_vec(),
            at,
            next,
        }
    }

    /// Reads it together with the block that follows.
    ///
    /// # Errors
    /// When the torn event is longer than any that is read.
    pub(super) fn join(mut self, following: &Block) -> Result<Parsed, ScanError> {
        if self.text.len() > VALUE_MAX {
            return Err(ScanError::Malformed {
                at: self.at,
                what: "a single value of more than 64 MiB",
            });
        }
        self.text.extend_from_slice(following.text());
        let block = Block {
            end: self.text.len(),
            buffer: self.text,
            at: self.at,
            is_last: following.is_last,
        };
        Ok(parse(block, self.next))
    }
}

/// The text behind a list of events, as a stream.
pub(super) struct Rest {
    blocks: Blocks,
    now: Block,
    next: usize,
}

impl Read for Rest {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.next >= self.now.end {
            let Some(parsed) = self.blocks.next()? else {
                return Ok(0);
            };
            (self.now, self.next) = (parsed.block, 0);
        }
        let rest = &self.now.text()[self.next..];
        let n = into.len().min(rest.len());
        into[..n].copy_from_slice(&rest[..n]);
        self.next += n;
        Ok(n)
    }
}

/// What the first event begins with, up to its first key: `{"ph"`, with whatever space is between.
fn lead(text: &[u8]) -> Vec<u8> {
    let quoted = text
        .strip_prefix(b"{")
        .map(|inside| inside.trim_ascii_start())
        .and_then(|inside| inside.strip_prefix(b"\""));
    let key = quoted.and_then(|key| Some((key, memchr::memchr(b'"', key)?)));
    match key {
        Some((key, length)) if length <= 16 => {
            let end = text.len() - key.len() + length + 1;
            text[..end].to_vec()
        }
        _ => b"{\"ph\"".to_vec(),
    }
}

/// Cuts the text and hands the blocks out.
struct Cutter {
    lead: Vec<u8>,
    order: Sender<Coming>,
    jobs: Sender<(Block, Sender<Parsed>)>,
    free: Receiver<Vec<u8>>,
    size: usize,
}

impl Cutter {
    fn run<R: Read>(
        self,
        mut block: Block,
        mut input: R,
        count: fn(&R) -> u64,
        consumed: &AtomicU64,
    ) {
        let finder = memmem::FinderRev::new(&self.lead);
        let mut wanted = self.size;
        loop {
            let error = match fill(&mut block, &mut input, wanted) {
                Ok(()) => None,
                Err(error) => {
                    block.is_last = true;
                    Some(error)
                }
            };
            consumed.store(count(&input), Ordering::Relaxed);
            let text = block.text();
            let cut = match block.is_last {
                true => text.len(),
                false => match boundary(text, &finder) {
                    Some(cut) => cut,
                    None if text.len() < STRETCH * self.size => {
                        wanted = block.end + self.size;
                        continue;
                    }
                    None => text.len(),
                },
            };
            let mut following = Block {
                buffer: self.free.try_recv().unwrap_or_default(),
                at: block.at + cut as u64,
                ..Block::default()
            };
            let rest = &text[cut..];
            if following.buffer.len() < rest.len() {
                following.buffer.resize(rest.len(), 0);
            }
            following.buffer[..rest.len()].copy_from_slice(rest);
            following.end = rest.len();
            wanted = self.size;
            block.end = cut;
            let is_last = block.is_last;
            if let Some(error) = error {
                // What was read before is told first: the text goes on, but nobody knows how.
                block.is_last = false;
                if self.hand_out(block) {
                    let _ = self.order.send(Coming::Failed(error));
                }
                return;
            }
            if !self.hand_out(block) || is_last {
                return;
            }
            block = following;
        }
    }

    /// False when nobody takes any more.
    fn hand_out(&self, block: Block) -> bool {
        let (result, parsed) = bounded(1);
        self.order.send(Coming::Block(parsed)).is_ok() && self.jobs.send((block, result)).is_ok()
    }
}

/// Reads on until a block has `wanted` bytes or the text ends.
fn fill(block: &mut Block, input: &mut impl Read, wanted: usize) -> io::Result<()> {
    if block.buffer.len() < wanted {
        block.buffer.resize(wanted, 0);
    }
    while block.end < wanted {
        match input.read(&mut block.buffer[block.end..wanted]) {
            Ok(0) => {
                block.is_last = true;
                return Ok(());
            }
            Ok(n) => block.end += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Where the last event seems to begin, if not at the very front.
fn boundary(text: &[u8], lead: &memmem::FinderRev<'_>) -> Option<usize> {
    let mut until = text.len();
    while let Some(at) = lead.rfind(&text[..until]) {
        if is_between(&text[..at]) {
            return Some(at);
        }
        until = at;
    }
    // No event begins like the first one: one that begins like any object will do.
    let mut until = text.len();
    while let Some(at) = memchr::memrchr(b'{', &text[..until]) {
        if is_between(&text[..at]) {
            return Some(at);
        }
        until = at;
    }
    None
}

/// Whether a text ends with the end of an object and a comma.
fn is_between(text: &[u8]) -> bool {
    let before_comma = text.trim_ascii_end().strip_suffix(b",");
    before_comma.is_some_and(|text| text.trim_ascii_end().ends_with(b"}"))
}
