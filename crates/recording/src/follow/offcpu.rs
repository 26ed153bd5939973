//! The kind `host`: whether a process's launching threads ran, waited for a core or slept. One file a process.
//!
//! A block is a row of entries: u8 tag, u16 length of what follows, and that. A reader skips tags that it does not know.
//! Spans are i64 start and i64 end, in nanoseconds of `CLOCK_REALTIME`.
//!
//! | tag | what |
//! |---|---|
//! | 1 | a look at a thread: u32 id, span, i64 ns on a core, i64 ns ready with no core free |
//! | 2 | a look at the control group: span, u64 periods, u64 throttled periods, i64 ns throttled, f64 cores that it may use, 0 where unknown |
//! | 3 | why something is not there: u8 length and text |

use super::bytes::{Entries, Rest, each_entry};
use super::decoder::{Decoder, Unreadable};
use activity::{Batch, GroupWindow, OffCpu, ThreadWindow};

pub const KIND: &str = "host";
pub const VERSION: u32 = 1;

const THREAD: u8 = 1;
const GROUP: u8 = 2;
const NOTE: u8 = 3;

/// Entries as a block.
#[must_use]
pub fn encode(all: &[OffCpu]) -> Vec<u8> {
    let mut entries = Entries::default();
    for one in all {
        match one {
            OffCpu::Thread(it) => entries.add(THREAD, |out| {
                out.u32(it.thread);
                out.span(it.span);
                out.i64(it.running);
                out.i64(it.waiting);
            }),
            OffCpu::Group(it) => entries.add(GROUP, |out| {
                out.span(it.span);
                out.u64(it.periods);
                out.u64(it.throttled_periods);
                out.i64(it.throttled);
                out.f64(it.cores);
            }),
            OffCpu::Note(text) => entries.add(NOTE, |out| out.text(text)),
        }
    }
    entries.into_bytes()
}

/// Reads such a file.
#[derive(Debug)]
pub(super) struct OffCpuFile;

impl Decoder for OffCpuFile {
    fn decode(&mut self, payload: &[u8], batch: &mut Batch) -> Result<(), Unreadable> {
        let is_sound = each_entry(payload, |tag, entry| {
            batch.off_cpu.extend(decode(tag, entry)?);
            Some(())
        });
        if is_sound { Ok(()) } else { Err(Unreadable) }
    }
}

/// `None` for what makes no sense; an empty answer for a tag that is not known.
fn decode(tag: u8, mut rest: Rest<'_>) -> Option<Option<OffCpu>> {
    Some(Some(match tag {
        THREAD => {
            let it = ThreadWindow {
                thread: rest.u32()?,
                span: rest.span()?,
                running: rest.i64()?,
                waiting: rest.i64()?,
            };
            if it.running < 0 || it.waiting < 0 {
                return None;
            }
            OffCpu::Thread(it)
        }
        GROUP => OffCpu::Group(GroupWindow {
            span: rest.span()?,
            periods: rest.u64()?,
            throttled_periods: rest.u64()?,
            throttled: rest.i64()?,
            cores: rest.f64()?,
        }),
        NOTE => OffCpu::Note(rest.text()?),
        _ => return Some(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::Span;

    #[test]
    fn what_is_written_is_read() {
        let all = vec![
            OffCpu::Thread(ThreadWindow {
                thread: 77,
                span: Span::new(10, 110),
                running: 60,
                waiting: 30,
            }),
            OffCpu::Group(GroupWindow {
                span: Span::new(10, 110),
                periods: 1,
                throttled_periods: 1,
                throttled: 20,
                cores: 1.5,
            }),
            OffCpu::Note("no schedstat".to_owned()),
        ];
        let block = encode(&all);
        // A look at a thread, by hand: 3 + 4 + 16 + 16.
        assert_eq!(encode(&all[..1]).len(), 39);
        let mut batch = Batch::default();
        OffCpuFile.decode(&block, &mut batch).expect("sound");
        assert_eq!(batch.off_cpu, all);
        for cut in 1..block.len() {
            let _ = OffCpuFile.decode(&block[..cut], &mut Batch::default());
        }
        assert!(
            OffCpuFile
                .decode(&block[..block.len() - 1], &mut Batch::default())
                .is_err()
        );
    }
}
