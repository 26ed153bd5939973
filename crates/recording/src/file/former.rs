//! What lay beside recordings before it was of their format: files `PID-START.KIND` of cuptop 0.1.0 up to build 5ec0108. One is
//! converted as a whole when it is opened, up to where it is damaged.
//!
//! All numbers are little-endian. A header of 64 bytes: `b"cuptop+\n"`, u32 version 1, u32 64, u32 process, u32 flags, i64 START, 16 bytes
//! KIND, and at 60 u32 CRC-32 of what is before it. Then blocks at multiples of 16: `b"+blk"`, u32 length, u32 CRC-32 of the payload, u32
//! CRC-32 of the 12 bytes before it, payload.
//!
//! Payloads of `hardware` and `host` are entries: u8 tag, u16 length, fields (a text is u8 length and UTF-8). Those of
//! `stacks` are LEB128 numbers and texts behind them: texts, frames, stacks and looks before the block. Then looks a
//! second, torn, lost, ns that looking took. Then entries of a tag each.

use std::fs::File;
use std::io::{self, Read, Seek};
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
/// What is read of a file: no run of that time left as much.
const MOST: u64 = 1 << 30;

/// The same in the format of today, in a file that nobody else sees. Any other file comes back as it is.
pub(super) fn converted(mut file: File) -> io::Result<File> {
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
    let mut bytes = Vec::new();
    file.seek(io::SeekFrom::Start(HEADER as u64))?;
    file.take(MOST).read_to_end(&mut bytes)?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let at = HEADER + bytes.len() - rest.len();
        let payload = block(&mut rest);
        if payload.is_none_or(|it| conversion.payload(&head[32..48], it).is_none()) {
            let damage = format!("it is damaged at byte {at}: nothing is read from there on");
            conversion.writer.notice(true, &damage);
            break;
        }
    }
    conversion.writer.flush()?;
    conversion.writer.finish();
    File::open(path)
}

/// The payload of the next block; `None` where none stands whole.
fn block<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let head = rest.split_off(..HEAD)?;
    let length = u32::get(head, 4)? as usize;
    let payload = rest
        .split_off(..length.next_multiple_of(HEAD))?
        .get(..length)?;
    let is_sound = head[..4] == *b"+blk"
        && u32::get(head, 12)? == crc32fast::hash(&head[..12])
        && u32::get(head, 8)? == crc32fast::hash(payload);
    is_sound.then_some(payload)
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
}

impl Conversion {
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
        while !rest.is_empty() {
            let (tag, length) = (take(&mut rest)?, take::<u16>(&mut rest)?);
            let entry = decode(tag, rest.split_off(..usize::from(length))?)?;
            self.writer.add(&entry);
        }
        Some(())
    }

    fn samples(&mut self, rest: &mut &[u8]) -> Option<()> {
        // What came before the block is known from there.
        for _ in 0..4 {
            number(rest)?;
        }
        let sampling = Sampling {
            hz: small(rest)?,
            torn: number(rest)?,
            lost: number(rest)?,
            cost_ns: number(rest)?,
            ..Sampling::default()
        };
        let mut last = 0;
        while !rest.is_empty() {
            self.sample(rest, &mut last)?;
        }
        self.writer.add(&Entry::Sampling(sampling));
        Some(())
    }

    fn sample(&mut self, rest: &mut &[u8], last: &mut Ns) -> Option<()> {
        let Conversion {
            pid,
            writer,
            stacks,
        } = self;
        match take::<u8>(rest)? {
            1 => writer.add(&Entry::Process(ProcessInfo {
                pid: *pid,
                command: long_text(rest)?,
                ..ProcessInfo::default()
            })),
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
            5 => writer.add(&Entry::Thread(small(rest)?, long_text(rest)?.as_bytes())),
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
