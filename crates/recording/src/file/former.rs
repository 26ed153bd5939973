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
use activity::entry::{Entry, Field};
use activity::{
    Frame, GpuIdentity, GpuLimits, GroupWindow, Hardware, Metric, Ns, Occupant, OffCpu, Owner,
    ProcessInfo, Reading, SampledThread, Sampling, Span, StackId, ThreadWindow, WatchCost,
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
        let damage = format!("it is damaged at byte {first}: {skipped} bytes were skipped");
        for (is_so, text) in [
            (skipped > 0, damage),
            (
                senseless > 0,
                format!("{senseless} blocks of it make no sense"),
            ),
            (
                rest > 0,
                format!("its last block is not whole ({rest} bytes)"),
            ),
        ] {
            if is_so {
                self.writer.notice(true, &text);
            }
        }
        self.writer.flush()
    }

    /// `None` when not all of it makes sense.
    fn payload(&mut self, kind: &[u8], payload: &[u8]) -> Option<()> {
        let mut rest = Rest(payload);
        if kind.starts_with(b"stacks\0") {
            return self.samples(&mut rest);
        }
        let decode = match kind.starts_with(b"hardware\0") {
            true => hardware,
            false => off_cpu,
        };
        let mut is_sound = true;
        while !rest.0.is_empty() {
            let (tag, length) = (rest.get::<u8>()?, rest.get::<u16>()?);
            let mut fields = Rest(rest.raw(length.into())?);
            match decode(tag, &mut fields) {
                Some(entry) => self.writer.add(&entry),
                None => is_sound = false,
            }
        }
        is_sound.then_some(())
    }

    fn samples(&mut self, rest: &mut Rest<'_>) -> Option<()> {
        let mut before = [0; 4];
        for count in &mut before {
            *count = rest.number()?;
        }
        let [texts, frames, stacks, looks] = before;
        let totals = Sampling {
            hz: rest.small()?,
            torn: rest.number()?,
            lost: rest.number()?,
            ..Sampling::default()
        };
        let cost_ns = rest.number()?;
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
        while !rest.0.is_empty() && result.is_some() {
            result = self.sample(rest, &mut last);
        }
        self.writer.add(&Entry::Sampling(Sampling {
            lost: totals.lost.saturating_add(self.stacks.lost),
            cost_ns,
            ..totals
        }));
        result
    }

    fn sample(&mut self, rest: &mut Rest<'_>, last: &mut Ns) -> Option<()> {
        let Conversion {
            pid,
            writer,
            stacks,
        } = self;
        match rest.get::<u8>()? {
            1 => writer.process(&ProcessInfo {
                pid: *pid,
                command: rest.long_text()?,
                ..ProcessInfo::default()
            }),
            2 => stacks.texts.push(rest.long_text()?),
            3 => {
                let (file, function) = (rest.number()?, rest.number()?);
                let text = |id| by_id(&stacks.texts, id).cloned();
                let frame = Frame {
                    file: text(file)?,
                    function: text(function)?,
                    line: rest.small()?,
                };
                stacks.frames.push(frame);
            }
            4 => {
                let caller = stacks.id(rest.number()?)?;
                let frame = by_id(&stacks.frames, rest.number()?)?;
                stacks.ids.push(stacks.log.deeper(writer, caller, frame));
            }
            5 => writer.thread(rest.small()?, rest.long_text()?.as_bytes()),
            6 => {
                let signed = rest.number()?;
                let since = (signed >> 1).cast_signed() ^ -(signed & 1).cast_signed();
                *last = last.checked_add(since).filter(|time| *time >= 0)?;
                let mut changed = Vec::new();
                for _ in 0..rest.number()? {
                    let (thread, value) = (rest.small()?, rest.number()?);
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
        if id == 0 {
            Some(0)
        } else {
            by_id(&self.ids, id).copied()
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

fn hardware(tag: u8, rest: &mut Rest<'_>) -> Option<Entry<'static>> {
    Some(Entry::Hardware(match tag {
        1 => {
            let mut limits = GpuLimits {
                uuid: rest.get()?,
                tells_slowdowns: rest.get()?,
                ..GpuLimits::default()
            };
            for _ in 0..rest.get::<u8>()? {
                let (code, most) = (rest.get()?, rest.get()?);
                limits
                    .most
                    .extend(Metric::from_code(code).map(|it| (it, most)));
            }
            for _ in 0..rest.get::<u8>()? {
                let (code, why) = (rest.get()?, rest.text()?);
                limits
                    .lacks
                    .extend(Metric::from_code(code).map(|it| (it, why)));
            }
            Hardware::Limits(limits)
        }
        2 => {
            let mut reading = Reading {
                uuid: rest.get()?,
                span: rest.span()?,
                reasons: rest.get()?,
                values: Vec::new(),
            };
            while !rest.0.is_empty() {
                let (code, value) = (rest.get()?, rest.get::<f32>()?.into());
                reading
                    .values
                    .extend(Metric::from_code(code).map(|it| (it, value)));
            }
            Hardware::Reading(reading)
        }
        3 => {
            let (uuid, time, mut all) = (rest.get()?, rest.get()?, Vec::new());
            while !rest.0.is_empty() {
                all.push(Occupant {
                    pid: rest.get()?,
                    owner: match rest.get::<u8>()? {
                        0 => Owner::Program,
                        1 => Owner::Other,
                        _ => Owner::Unknown,
                    },
                    memory: Some(rest.get()?).filter(|bytes| *bytes != u64::MAX),
                    name: rest.text()?,
                });
            }
            Hardware::Occupants { uuid, time, all }
        }
        4 => Hardware::Note(rest.text()?),
        5 => Hardware::Cost(WatchCost {
            rounds: rest.get()?,
            cpu_ns: rest.get()?,
            wall_ns: rest.get()?,
            lost: rest.get()?,
        }),
        6 => Hardware::Gpu(GpuIdentity {
            uuid: rest.get()?,
            index: rest.get()?,
            name: rest.text()?,
        }),
        _ => return None,
    }))
}

fn off_cpu(tag: u8, rest: &mut Rest<'_>) -> Option<Entry<'static>> {
    Some(Entry::OffCpu(match tag {
        1 => OffCpu::Thread(ThreadWindow {
            thread: rest.get()?,
            span: rest.span()?,
            running: rest.get()?,
            waiting: rest.get()?,
        }),
        2 => OffCpu::Group(GroupWindow {
            span: rest.span()?,
            periods: rest.get()?,
            throttled_periods: rest.get()?,
            throttled: rest.get()?,
            cores: rest.get()?,
        }),
        3 => OffCpu::Note(rest.text()?),
        _ => return None,
    }))
}

/// What is left of a payload. Every question answers `None` behind its end.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn get<T: Field>(&mut self) -> Option<T> {
        T::get(self.raw(size_of::<T>())?, 0)
    }

    fn span(&mut self) -> Option<Span> {
        let (start, end) = (self.get()?, self.get()?);
        (start <= end).then_some(Span { start, end })
    }

    fn text(&mut self) -> Option<String> {
        let length = self.get::<u8>()?;
        lossy(self.raw(length.into())?)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.get::<u8>()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn long_text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        lossy(self.raw(length)?)
    }
}

fn lossy(text: &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(text).into_owned())
}
