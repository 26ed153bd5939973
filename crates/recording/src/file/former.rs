//! What lay beside recordings before it was of their format: files `PID-START.KIND` of cuptop 0.1.0 up to build 5ec0108. One is
//! converted as a whole when it is opened. What cannot be read of it is told by notices.
//!
//! All numbers are little-endian. A header of 64 bytes: `b"cuptop+\n"`, u32 version 1, u32 64, u32 process, u32 flags, i64 START, 16 bytes
//! KIND, and at 60 u32 CRC-32 of what is before it. Then blocks at multiples of 16: `b"+blk"`, u32 length, u32 CRC-32 of the payload, u32
//! CRC-32 of the 12 bytes before it, payload.
//!
//! Payloads of `hardware` and `host` are entries: u8 tag, u16 length, fields (a text is u8 length and UTF-8). Those of
//! `stacks` are LEB128 numbers and texts behind them. Before the block: texts, frames, stacks and looks. Then looks a
//! second, torn, lost, ns that looking took. Then entries of a tag each.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::{Clocks, StackLog, Writer};
use activity::entry::{Entry, Field, metrics, occupants, take, take_text};
use activity::{
    Frame, GpuIdentity, GpuLimits, GroupWindow, Hardware, Metric, Ns, OffCpu, ProcessInfo, Reading,
    SampledThread, Sampling, Span, StackId, ThreadWindow, WatchCost,
};

const MAGIC: [u8; 8] = *b"cuptop+\n";
const HEADER: usize = 64;
/// Blocks begin at multiples of this, and this long is what stands before a payload.
const HEAD: usize = 16;
const LONGEST: usize = 1 << 20;

/// The same in the format of today, in a file that nobody else sees. Any other file comes back as it is.
pub(super) fn converted(file: File) -> io::Result<File> {
    let mut head = [0; HEADER];
    let is_former = file.read_exact_at(&mut head, 0).is_ok()
        && head[..8] == MAGIC
        && u32::get(&head, 60) == Some(crc32fast::hash(&head[..60]))
        && u32::get(&head, 8) == Some(1);
    if !is_former {
        return Ok(file);
    }
    let pid = u32::get(&head, 16).unwrap_or(0);
    let start = Clocks {
        realtime: i64::get(&head, 24).unwrap_or(0),
        ..Clocks::default()
    };
    let folder = tempfile::tempdir()?;
    let mut conversion = Conversion {
        pid,
        writer: Writer::outside(folder.path(), pid, start)?,
        stacks: Stacks::default(),
    };
    let path = conversion.writer.path().to_path_buf();
    conversion.file(io::BufReader::new(file), &head[32..48])?;
    conversion.writer.finish();
    File::open(path)
}

struct Conversion {
    pid: u32,
    writer: Writer,
    stacks: Stacks,
}

/// What was defined in a file of stacks.
#[derive(Default)]
struct Stacks {
    log: StackLog,
    texts: Vec<String>,
    frames: Vec<Frame>,
    /// In the new file.
    ids: Vec<StackId>,
    looks: u64,
    lost: u64,
}

impl Conversion {
    fn file(&mut self, mut from: impl Read + io::Seek, kind: &[u8]) -> io::Result<()> {
        let (mut bytes, mut at) = (Vec::new(), HEADER as u64);
        let (mut skipped, mut first, mut senseless) = (0, 0, 0_u64);
        loop {
            from.seek(io::SeekFrom::Start(at))?;
            bytes.clear();
            from.by_ref().take(HEAD as u64).read_to_end(&mut bytes)?;
            if bytes.len() < HEAD {
                break;
            }
            let mut step = HEAD;
            let mut payload = None;
            if let Some((length, sum)) = payload_of(&bytes) {
                bytes.clear();
                let padded = length.next_multiple_of(HEAD);
                from.by_ref().take(padded as u64).read_to_end(&mut bytes)?;
                if bytes.len() < padded {
                    break;
                }
                step += padded;
                payload = Some(&bytes[..length]).filter(|it| crc32fast::hash(it) == sum);
            }
            match payload {
                Some(payload) => senseless += u64::from(self.payload(kind, payload).is_none()),
                None if skipped == 0 => (first, skipped) = (at, step),
                None => skipped += step,
            }
            at += step as u64;
        }
        let rest = from.seek(io::SeekFrom::End(0))?.saturating_sub(at);
        let mut warn = |is_so, text: String| {
            if is_so {
                self.writer.notice(true, &text);
            }
        };
        let damage = format!("it is damaged at byte {first}: {skipped} bytes were skipped");
        warn(skipped > 0, damage);
        let damage = format!("{senseless} blocks of it make no sense");
        warn(senseless > 0, damage);
        let damage = format!("its last block is not whole ({rest} bytes)");
        warn(rest > 0, damage);
        self.writer.flush()
    }

    /// `None` when not all of it makes sense.
    fn payload(&mut self, kind: &[u8], payload: &[u8]) -> Option<()> {
        let mut rest = payload;
        if kind.starts_with(b"stacks\0") {
            return self.samples(&mut rest);
        }
        let decode = match kind.starts_with(b"hardware\0") {
            true => hardware,
            false => off_cpu,
        };
        let mut is_sound = true;
        while !rest.is_empty() {
            let (tag, length) = (take(&mut rest)?, take::<u16>(&mut rest)?);
            match decode(tag, rest.split_off(..usize::from(length))?) {
                Some(entry) => self.writer.add(&entry),
                None => is_sound = false,
            }
        }
        is_sound.then_some(())
    }

    fn samples(&mut self, rest: &mut &[u8]) -> Option<()> {
        let mut before = [0; 4];
        for count in &mut before {
            *count = number(rest)?;
        }
        let [texts, frames, stacks, looks] = before;
        let totals = Sampling {
            hz: small(rest)?,
            torn: number(rest)?,
            lost: number(rest)?,
            ..Sampling::default()
        };
        let cost_ns = number(rest)?;
        let it = &mut self.stacks;
        let had = [it.texts.len(), it.frames.len(), it.ids.len()];
        // More definitions than any program has are a damaged count.
        let is_sound = |(count, had): (&u64, &usize)| (*had as u64..1 << 21).contains(count);
        if !before.iter().zip(&had).all(is_sound) || looks < it.looks {
            return None;
        }
        let unknown = || "?".to_owned();
        it.texts.resize_with(usize::try_from(texts).ok()?, unknown);
        it.frames
            .resize(usize::try_from(frames).ok()?, Frame::default());
        it.ids.resize(usize::try_from(stacks).ok()?, 0);
        it.lost += looks - it.looks;
        it.looks = looks;
        let (mut last, mut result) = (0, Some(()));
        while !rest.is_empty() && result.is_some() {
            result = self.sample(rest, &mut last);
        }
        self.writer.add(&Entry::Sampling(Sampling {
            lost: totals.lost.saturating_add(self.stacks.lost),
            cost_ns,
            ..totals
        }));
        result
    }

    fn sample(&mut self, rest: &mut &[u8], last: &mut Ns) -> Option<()> {
        let Conversion {
            pid,
            writer,
            stacks,
        } = self;
        match take::<u8>(rest)? {
            1 => writer.process(&ProcessInfo {
                pid: *pid,
                command: long_text(rest)?,
                ..ProcessInfo::default()
            }),
            2 => stacks.texts.push(long_text(rest)?),
            3 => {
                let (file, function) = (number(rest)?, number(rest)?);
                let text = |id| by_id(&stacks.texts, id).cloned();
                let frame = Frame {
                    file: text(file)?,
                    function: text(function)?,
                    line: small(rest)?,
                };
                stacks.frames.push(frame);
            }
            4 => {
                let caller = stacks.id(number(rest)?)?;
                let frame = by_id(&stacks.frames, number(rest)?)?;
                stacks.ids.push(stacks.log.deeper(writer, caller, frame));
            }
            5 => writer.thread(small(rest)?, long_text(rest)?.as_bytes()),
            6 => {
                let signed = number(rest)?;
                let since = (signed >> 1).cast_signed() ^ -(signed & 1).cast_signed();
                *last = last.checked_add(since).filter(|time| *time >= 0)?;
                let mut changed = Vec::new();
                for _ in 0..number(rest)? {
                    let (thread, value) = (small(rest)?, number(rest)?);
                    changed.push(SampledThread {
                        thread,
                        stack: stacks.id(value >> 1)?,
                        is_running: value & 1 == 1,
                    });
                }
                stacks.looks += 1;
                stacks.log.change(writer, *last, changed);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Stacks {
    fn id(&self, id: u64) -> Option<StackId> {
        match id {
            0 => Some(0),
            _ => by_id(&self.ids, id).copied(),
        }
    }
}

/// What has this id, which counts from 1.
fn by_id<T>(all: &[T], id: u64) -> Option<&T> {
    all.get(usize::try_from(id.checked_sub(1)?).ok()?)
}

/// The length and the checksum of the payload of a block that begins so; `None` when none does.
fn payload_of(head: &[u8]) -> Option<(usize, u32)> {
    let length = u32::get(head, 4)? as usize;
    let is_sound = head[..4] == *b"+blk"
        && u32::get(head, 12)? == crc32fast::hash(&head[..12])
        && (1..=LONGEST).contains(&length);
    is_sound.then_some((length, u32::get(head, 8)?))
}

fn hardware(tag: u8, mut rest: &[u8]) -> Option<Entry<'static>> {
    let rest = &mut rest;
    Some(Entry::Hardware(match tag {
        1 => {
            let mut limits = GpuLimits {
                uuid: take(rest)?,
                tells_slowdowns: take(rest)?,
                ..GpuLimits::default()
            };
            for _ in 0..take::<u8>(rest)? {
                let (metric, most) = (Metric::from_code(take(rest)?), take(rest)?);
                limits.most.extend(metric.map(|it| (it, most)));
            }
            for _ in 0..take::<u8>(rest)? {
                let (metric, why) = (Metric::from_code(take(rest)?), take_text(rest)?);
                limits.lacks.extend(metric.map(|it| (it, why)));
            }
            Hardware::Limits(limits)
        }
        2 => Hardware::Reading(Reading {
            uuid: take(rest)?,
            span: span(rest)?,
            reasons: take(rest)?,
            values: metrics(rest, |rest| take::<f32>(rest).map(f64::from))?,
        }),
        3 => Hardware::Occupants {
            uuid: take(rest)?,
            time: take(rest)?,
            all: occupants(rest)?,
        },
        4 => Hardware::Note(take_text(rest)?),
        5 => Hardware::Cost(WatchCost {
            rounds: take(rest)?,
            cpu_ns: take(rest)?,
            wall_ns: take(rest)?,
            lost: take(rest)?,
        }),
        6 => Hardware::Gpu(GpuIdentity {
            uuid: take(rest)?,
            index: take(rest)?,
            name: take_text(rest)?,
        }),
        _ => return None,
    }))
}

fn off_cpu(tag: u8, mut rest: &[u8]) -> Option<Entry<'static>> {
    let rest = &mut rest;
    Some(Entry::OffCpu(match tag {
        1 => OffCpu::Thread(ThreadWindow {
            thread: take(rest)?,
            span: span(rest)?,
            running: take(rest)?,
            waiting: take(rest)?,
        }),
        2 => OffCpu::Group(GroupWindow {
            span: span(rest)?,
            periods: take(rest)?,
            throttled_periods: take(rest)?,
            throttled: take(rest)?,
            cores: take(rest)?,
        }),
        3 => OffCpu::Note(take_text(rest)?),
        _ => return None,
    }))
}

fn span(rest: &mut &[u8]) -> Option<Span> {
    let (start, end) = (take(rest)?, take(rest)?);
    (start <= end).then_some(Span { start, end })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take::<u8>(rest)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn small(rest: &mut &[u8]) -> Option<u32> {
    u32::try_from(number(rest)?).ok()
}

fn long_text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest)?).ok()?;
    let text = rest.split_off(..length)?;
    Some(String::from_utf8_lossy(text).into_owned())
}
