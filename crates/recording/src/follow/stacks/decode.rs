//! Bytes to looks. They are not trusted: what refers to what is not there is counted, not guessed.

use super::{FRAME, LOOK, PROCESS, STACK, TEXT, THREAD};
use crate::follow::decoder::{Decoder, Unreadable};
use activity::{
    Batch, Def, Frame, Look, Ns, ProcessInfo, SampleDef, Samples, Sampling, Seen, StackId,
};

/// More definitions than any program has are a damaged count.
const MOST: u64 = 1 << 21;

/// Reads blocks of stack samples.
#[derive(Debug)]
pub(crate) struct Stacks {
    series: u32,
    pid: u32,
    /// Texts by their id; `None` for those that were lost.
    texts: Vec<Option<String>>,
    frames: u64,
    stacks: u64,
    looks: u64,
    lost: u64,
}

impl Stacks {
    pub(crate) fn new(series: u32, pid: u32) -> Stacks {
        Stacks {
            series,
            pid,
            texts: Vec::new(),
            frames: 0,
            stacks: 0,
            looks: 0,
            lost: 0,
        }
    }

    /// Takes note of what was defined in blocks that could not be read.
    fn arrive(&mut self, texts: u64, frames: u64, stacks: u64, looks: u64) -> Option<()> {
        let (had, frames_had) = (self.texts.len() as u64, self.frames);
        let is_sound = texts >= had
            && frames >= frames_had
            && stacks >= self.stacks
            && looks >= self.looks
            && [texts, frames, stacks].iter().all(|&count| count < MOST);
        if !is_sound {
            return None;
        }
        self.texts.resize(usize::try_from(texts).ok()?, None);
        self.lost += looks - self.looks;
        (self.frames, self.stacks, self.looks) = (frames, stacks, looks);
        Some(())
    }

    fn text(&self, id: u64) -> String {
        let index = usize::try_from(id).unwrap_or(0).wrapping_sub(1);
        let text = self.texts.get(index).and_then(Option::as_ref);
        text.map_or_else(|| "?".to_owned(), Clone::clone)
    }

    fn entry(
        &mut self,
        bytes: &mut Bytes<'_>,
        last: &mut Option<Ns>,
        batch: &mut Batch,
        samples: &mut Samples,
    ) -> Option<()> {
        match bytes.byte()? {
            PROCESS => {
                let command = bytes.text()?;
                batch.defs.push(Def::Process(ProcessInfo {
                    pid: self.pid,
                    command,
                    ..ProcessInfo::default()
                }));
            }
            TEXT => {
                let text = bytes.text()?;
                self.texts.push(Some(text));
            }
            FRAME => {
                let (file, function) = (bytes.number()?, bytes.number()?);
                let line = bytes.small()?;
                self.frames += 1;
                let frame = Frame {
                    file: self.text(file),
                    function: self.text(function),
                    line,
                };
                let id = u32::try_from(self.frames).ok()?;
                samples.defs.push(SampleDef::Frame { id, frame });
            }
            STACK => {
                let (caller, frame) = (bytes.small()?, bytes.small()?);
                // A stack that is its own caller would have no end.
                if u64::from(caller) > self.stacks || !(1..=self.frames).contains(&frame.into()) {
                    return None;
                }
                self.stacks += 1;
                let id = StackId::try_from(self.stacks).ok()?;
                samples.defs.push(SampleDef::Stack { id, caller, frame });
            }
            THREAD => {
                let (thread, name) = (bytes.small()?, bytes.text()?);
                batch.defs.push(Def::Thread { thread, name });
            }
            LOOK => {
                let time = last.unwrap_or(0).checked_add(bytes.signed()?)?;
                let count = bytes.number()?;
                let mut changed = Vec::new();
                for _ in 0..count {
                    let thread = bytes.small()?;
                    let value = bytes.number()?;
                    let stack = StackId::try_from(value >> 1).ok()?;
                    if u64::from(stack) > self.stacks {
                        return None;
                    }
                    changed.push(Seen {
                        thread,
                        stack,
                        is_running: value & 1 == 1,
                    });
                }
                *last = Some(time);
                self.looks += 1;
                samples.looks.push(Look { time, changed });
            }
            _ => return None,
        }
        Some(())
    }
}

impl Decoder for Stacks {
    fn decode(&mut self, payload: &[u8], batch: &mut Batch) -> Result<(), Unreadable> {
        let mut bytes = Bytes(payload);
        let mut read = || -> Option<([u64; 4], Sampling)> {
            let before = [
                bytes.number()?,
                bytes.number()?,
                bytes.number()?,
                bytes.number()?,
            ];
            let sampling = Sampling {
                hz: bytes.small()?,
                torn: bytes.number()?,
                lost: bytes.number()?,
                cost_ns: bytes.number()?,
                looks: 0,
            };
            Some((before, sampling))
        };
        let ([texts, frames, stacks, looks], sampling) = read().ok_or(Unreadable)?;
        self.arrive(texts, frames, stacks, looks)
            .ok_or(Unreadable)?;
        let mut samples = match batch.samples.take() {
            Some(samples) => samples,
            None => Samples {
                series: self.series,
                ..Samples::default()
            },
        };
        let mut last = None;
        let mut result = Ok(());
        while !bytes.0.is_empty() {
            if self
                .entry(&mut bytes, &mut last, batch, &mut samples)
                .is_none()
            {
                result = Err(Unreadable);
                break;
            }
        }
        samples.sampling = Sampling {
            looks: self.looks.saturating_sub(self.lost),
            lost: sampling.lost.saturating_add(self.lost),
            ..sampling
        };
        batch.samples = Some(samples);
        result
    }
}

/// What is left of a block.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
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

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}
