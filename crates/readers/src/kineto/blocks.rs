//! Cuts the text of a list of events into blocks, which threads read beside each other.
//!
//! One thread reads (and unpacks) the text and cuts it where an event seems to begin. Others read the events of a
//! block, and their results come back in order. A cut was right if the block before it ends exactly there, between two
//! events. If a cut was wrong, the torn text is joined and read again. So the result is that of one reader from front
//! to back, however many threads there are.

use std::io::{self, Read};
use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded};
use memchr::memmem;

use super::events::{End, Events, Next};
use super::scan::{Block, ScanError, Scanner, VALUE_MAX};

/// Bytes of a block: many events, and little beside a processor's cache.
pub(super) const BLOCK: usize = 1 << 20;
/// A block that is this many times as long is cut at its end, without a sign of an event.
const STRETCH: usize = 8;
/// Threads that read events at once. The thread that takes their results, and the store behind it, keep up with no more.
const WORKERS_MAX: usize = 8;

/// The events of a block.
pub(super) struct ParsedBlock {
    pub(super) block: Block,
    pub(super) events: Events,
    pub(super) end: Result<End, ScanError>,
}

/// Reads the events of a block. Its first event may be cut; `next` is what comes first.
fn parse(block: Block, next: Next) -> ParsedBlock {
    let mut events = Events::at(block.at, next);
    let mut scanner = Scanner::of_block(block);
    let end = events.read(&mut scanner);
    if matches!(end, Ok(End::List)) {
        events.at = scanner.offset();
    }
    // Each thread sorts its own block, so that merging is little effort.
    events.converter.gather.seal();
    ParsedBlock {
        block: scanner.into_block(),
        events,
        end,
    }
}

/// What comes out of [`Blocks`], in order.
enum Output {
    Block(Receiver<ParsedBlock>),
    Failed(io::Error),
}

/// The blocks of a text, in order, each with its events.
pub(super) struct Blocks {
    order: Receiver<Output>,
    used: Sender<Vec<u8>>,
}

impl Blocks {
    /// Starts the threads. `begun` is the text that was read already, from the first event on. Blocks
    /// have about `size` bytes.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start<'scope, R: Read + Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        begun: Block,
        input: R,
        size: usize,
    ) -> io::Result<Blocks> {
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX));
        // The bound limits how much is read ahead.
        let (order_in, order) = bounded(2 * workers);
        let (jobs_in, jobs) = bounded::<(Block, Sender<ParsedBlock>)>(2 * workers);
        let (used, free) = bounded(2 * workers + 2);
        for n in 0..workers {
            let jobs = jobs.clone();
            Builder::new()
                .name(format!("trace-parse-{n}"))
                .spawn_scoped(scope, move || {
                    for (block, result) in jobs {
                        // Nobody waits for it when reading has ended early.
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
            .spawn_scoped(scope, move || cutter.run(begun, input))?;
        Ok(Blocks { order, used })
    }

    /// The next block, read as if it began with an event; `None` behind the last one.
    pub(super) fn next(&mut self) -> io::Result<Option<ParsedBlock>> {
        match self.order.recv() {
            Ok(Output::Block(parsed)) => parsed.recv().map(Some).map_err(|_| {
                io::Error::other("a thread that reads the trace ended; this is a bug in cuptop")
            }),
            Ok(Output::Failed(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The text from offset `at` on, which lies in `block`, the last block taken.
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

/// The end of a block that needs the block that follows.
pub(super) struct TornEnd {
    text: Vec<u8>,
    at: u64,
    next: Next,
}

impl TornEnd {
    /// Takes the end of `block` from offset `at` of the text on, where `next` comes.
    pub(super) fn of(block: &Block, at: u64, next: Next) -> TornEnd {
        TornEnd {
            text: block.text_from(at).to_vec(),
            at,
            next,
        }
    }

    /// Reads it together with the block that follows.
    ///
    /// # Errors
    /// When the torn event is longer than the limit.
    pub(super) fn join(mut self, following: &Block) -> Result<ParsedBlock, ScanError> {
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

/// The beginning of the first event, up to its first key: `{"ph"`, with whatever space is between.
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

/// Cuts the text and hands out the blocks.
struct Cutter {
    lead: Vec<u8>,
    order: Sender<Output>,
    jobs: Sender<(Block, Sender<ParsedBlock>)>,
    free: Receiver<Vec<u8>>,
    size: usize,
}

impl Cutter {
    fn run<R: Read>(self, mut block: Block, mut input: R) {
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
                // The earlier text goes out first: more should follow, but nobody knows how.
                block.is_last = false;
                if self.hand_out(block) {
                    let _ = self.order.send(Output::Failed(error));
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
        self.order.send(Output::Block(parsed)).is_ok() && self.jobs.send((block, result)).is_ok()
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
    let last = |found: &dyn Fn(&[u8]) -> Option<usize>| {
        let mut all = std::iter::successors(found(text), |&at| found(&text[..at]));
        all.find(|&at| is_between(&text[..at]))
    };
    // Where no event begins like the first one, one that begins like any object will do.
    last(&|text| lead.rfind(text)).or_else(|| last(&|text| memchr::memrchr(b'{', text)))
}

/// Whether a text ends with the end of an object and a comma.
fn is_between(text: &[u8]) -> bool {
    let before_comma = text.trim_ascii_end().strip_suffix(b",");
    before_comma.is_some_and(|text| text.trim_ascii_end().ends_with(b"}"))
}
