//! What was seen of a process or a machine from outside, to bytes and back, as the table of [`super`] says.

use super::Fields;
use super::definitions::{begin, lossy, text};
use super::{Entry, Field, Unreadable};
use crate::{
    Frame, GpuIdentity, GpuLimits, GroupWindow, Hardware, Metric, Ns, Occupant, OffCpu, Owner,
    Reading, SampleDef, SampledThread, Sampling, Span, StackSample, StallSamples, ThreadWindow,
    Uuid, WatchCost, fields,
};

const LOOK: u8 = 32;
const READING: u8 = 33;
const THREAD: u8 = 34;
const GROUP: u8 = 35;
const OCCUPANTS: u8 = 36;
const SAMPLE: u8 = 37;
/// The tag of frames.
pub const FRAME: u8 = 80;
/// That of stacks.
pub const STACK: u8 = 81;
const SAMPLING: u8 = 82;
const GPU: u8 = 83;
const LIMITS: u8 = 84;
const NOTE: u8 = 85;
const COST: u8 = 86;
const STALLS: u8 = 87;
const NODES: u8 = 88;

fields! {
    Sampling { hz @ 4, torn @ 8, lost @ 16, cost_ns @ 24 }
    ThreadWindow { thread @ 4, running @ 24, waiting @ 32 }
    GroupWindow { periods @ 24, throttled_periods @ 32, throttled @ 40, cores @ 48 }
    GpuIdentity { index @ 4, uuid @ 16 }
    GpuLimits { tells_slowdowns @ 4, uuid @ 16 }
    Reading { uuid @ 24, reasons @ 40 }
    WatchCost { rounds @ 8, cpu_ns @ 16, wall_ns @ 24, lost @ 32 }
}

/// More than any total or size that was measured: those fit when they are summed up.
const BELIEVED: u64 = 1 << 52;
/// What a note is about.
const ABOUT_HARDWARE: u8 = 0;
const ABOUT_THREADS: u8 = 1;

/// Appends an entry of something that was seen in `span`, with `rest` and its length behind the `fixed` bytes.
fn timed<'b>(
    bytes: &'b mut Vec<u8>,
    tag: u8,
    span: Span,
    fixed: usize,
    rest: &[u8],
) -> &'b mut [u8] {
    let out = begin(bytes, tag, fixed, &[(4, rest)]);
    span.start.put(out, 8);
    span.end.put(out, 16);
    out
}

fn note(bytes: &mut Vec<u8>, about: u8, text: &str) {
    about.put(begin(bytes, NOTE, 16, &[(8, text.as_bytes())]), 4);
}

/// Appends a text of at most 255 bytes behind its length.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(255)];
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

pub(super) fn encode(entry: &Entry<'_>, bytes: &mut Vec<u8>) {
    match entry {
        Entry::SampleDef(SampleDef::Frame { id, frame }) => {
            let texts = [(12, frame.file.as_bytes()), (16, frame.function.as_bytes())];
            let out = begin(bytes, FRAME, 20, &texts);
            id.put(out, 4);
            frame.line.put(out, 8);
        }
        Entry::SampleDef(SampleDef::Stack { id, caller, frame }) => {
            [*id, *caller, *frame].put(begin(bytes, STACK, 16, &[]), 4);
        }
        Entry::SampleDef(SampleDef::Nodes(nodes)) => {
            let mut rest = Vec::with_capacity(12 * nodes.len());
            for (node, stack) in nodes {
                rest.extend(node.to_le_bytes());
                rest.extend(stack.to_le_bytes());
            }
            begin(bytes, NODES, 8, &[(4, &rest)]);
        }
        Entry::StackSample(look) => {
            let seen = look.changed.iter().flat_map(|it| {
                let stack = it.stack << 1 | u32::from(it.is_running);
                [it.thread, stack].map(u32::to_le_bytes)
            });
            let seen: Vec<u8> = seen.flatten().collect();
            timed(bytes, LOOK, Span::at(look.time), 24, &seen);
        }
        Entry::Sampling(it) => it.put_fields(begin(bytes, SAMPLING, 32, &[])),
        Entry::Hardware(it) => hardware(it, bytes),
        Entry::OffCpu(OffCpu::Thread(it)) => {
            it.put_fields(timed(bytes, THREAD, it.span, 40, &[]));
        }
        Entry::OffCpu(OffCpu::Group(it)) => {
            it.put_fields(timed(bytes, GROUP, it.span, 56, &[]));
        }
        Entry::OffCpu(OffCpu::Note(text)) => note(bytes, ABOUT_THREADS, text),
        // Records and definitions are encoded where they are read.
        _ => {}
    }
}

fn hardware(hardware: &Hardware, bytes: &mut Vec<u8>) {
    let mut rest = Vec::new();
    match hardware {
        Hardware::Gpu(gpu) => {
            gpu.put_fields(begin(bytes, GPU, 32, &[(8, gpu.name.as_bytes())]));
        }
        Hardware::Limits(limits) => {
            for (metric, most) in &limits.most {
                rest.push(metric.code());
                rest.extend(most.to_le_bytes());
            }
            let mut lacks = Vec::new();
            for (metric, why) in &limits.lacks {
                lacks.push(metric.code());
                put_text(&mut lacks, why);
            }
            limits.put_fields(begin(bytes, LIMITS, 32, &[(8, &rest), (12, &lacks)]));
        }
        Hardware::Reading(reading) | Hardware::Sample(reading) => {
            for (metric, value) in &reading.values {
                rest.push(metric.code());
                rest.extend((*value as f32).to_le_bytes());
            }
            let tag = match hardware {
                Hardware::Sample(_) => SAMPLE,
                _ => READING,
            };
            reading.put_fields(timed(bytes, tag, reading.span, 48, &rest));
        }
        Hardware::Occupants { uuid, time, all } => {
            for it in all {
                rest.extend(it.pid.to_le_bytes());
                rest.push(it.owner.code());
                rest.extend(it.memory.unwrap_or(u64::MAX).to_le_bytes());
                put_text(&mut rest, &it.name);
            }
            uuid.put(timed(bytes, OCCUPANTS, Span::at(*time), 40, &rest), 24);
        }
        Hardware::Note(text) => note(bytes, ABOUT_HARDWARE, text),
        Hardware::Cost(cost) => cost.put_fields(begin(bytes, COST, 40, &[])),
        Hardware::Stalls(it) => {
            for (reason, samples) in &it.reasons {
                rest.extend(samples.to_le_bytes());
                put_text(&mut rest, reason);
            }
            // What came later stands behind, where readers of before do not look.
            let mut file = Vec::new();
            put_text(&mut file, &it.file);
            let texts = [(16, it.kernel.as_bytes()), (20, &rest[..]), (4, &file)];
            let out = begin(bytes, STALLS, 24, &texts);
            it.lost.put(out, 8);
            it.line.put(out, 4);
        }
    }
}

pub(super) fn decode(tag: u8, bytes: &[u8]) -> Result<Entry<'_>, Unreadable> {
    let entry = match tag {
        LOOK => read_look(bytes),
        FRAME => frame(bytes),
        STACK => <[u32; 3]>::get(bytes, 4)
            .map(|[id, caller, frame]| Entry::SampleDef(SampleDef::Stack { id, caller, frame })),
        NODES => text(bytes, 8, 4)
            .and_then(|rest| list(rest, |it| Some((take(it)?, take(it)?))))
            .map(|nodes| Entry::SampleDef(SampleDef::Nodes(nodes))),
        SAMPLING => sampling(bytes).map(Entry::Sampling),
        THREAD => thread(bytes).map(|it| Entry::OffCpu(OffCpu::Thread(it))),
        GROUP => group(bytes).map(|it| Entry::OffCpu(OffCpu::Group(it))),
        READING => reading(bytes).map(|it| Entry::Hardware(Hardware::Reading(it))),
        SAMPLE => reading(bytes).map(|it| Entry::Hardware(Hardware::Sample(it))),
        OCCUPANTS => occupied(bytes).map(Entry::Hardware),
        GPU => gpu(bytes).map(Entry::Hardware),
        LIMITS => limits(bytes).map(Entry::Hardware),
        COST => WatchCost::fields(bytes).map(|it| Entry::Hardware(Hardware::Cost(it))),
        STALLS => stalls(bytes).map(|it| Entry::Hardware(Hardware::Stalls(it))),
        NOTE => text(bytes, 16, 8).map(lossy).map(|text| match bytes[4] {
            ABOUT_HARDWARE => Entry::Hardware(Hardware::Note(text)),
            _ => Entry::OffCpu(OffCpu::Note(text)),
        }),
        _ if super::is_record(bytes) => return Err(Unreadable::UnknownRecord),
        _ => return Err(Unreadable::UnknownDefinition),
    };
    entry.ok_or(Unreadable::Damaged)
}

/// A span that does not end before it starts: lengths never overflow.
fn span(bytes: &[u8]) -> Option<Span> {
    let (start, end) = (Field::get(bytes, 8)?, Field::get(bytes, 16)?);
    (start <= end && start >= 0).then_some(Span { start, end })
}

/// The next of the values that stand one behind the other.
fn take<T: Field>(rest: &mut &[u8]) -> Option<T> {
    let value = T::get(rest, 0)?;
    *rest = rest.get(size_of::<T>()..)?;
    Some(value)
}

/// The next text of at most 255 bytes.
fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::from(take::<u8>(rest)?);
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(lossy(text))
}

/// All that stand one behind the other up to the end.
fn list<T>(mut rest: &[u8], one: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(one(&mut rest)?);
    }
    Some(all)
}

fn frame<'a>(bytes: &[u8]) -> Option<Entry<'a>> {
    let file = text(bytes, 20, 12)?;
    let frame = Frame {
        file: lossy(file),
        function: lossy(text(bytes, 20 + file.len(), 16)?),
        line: Field::get(bytes, 8)?,
    };
    let id = Field::get(bytes, 4)?;
    Some(Entry::SampleDef(SampleDef::Frame { id, frame }))
}

fn read_look<'a>(bytes: &[u8]) -> Option<Entry<'a>> {
    let changed = list(text(bytes, 24, 4)?, |rest| {
        let (thread, stack) = (take(rest)?, take::<u32>(rest)?);
        Some(SampledThread {
            thread,
            stack: stack >> 1,
            is_running: stack & 1 == 1,
        })
    })?;
    let time = span(bytes)?.start;
    Some(Entry::StackSample(StackSample { time, changed }))
}

/// Totals that fit when they are summed up.
fn sampling(bytes: &[u8]) -> Option<Sampling> {
    let it = Sampling::fields(bytes)?;
    (it.torn.max(it.lost).max(it.cost_ns) <= BELIEVED).then_some(it)
}

fn thread(bytes: &[u8]) -> Option<ThreadWindow> {
    let it = ThreadWindow {
        span: span(bytes)?,
        ..Fields::fields(bytes)?
    };
    // Of one thread: its clock and the window's are read one after the other.
    let most = it.span.len().saturating_add(1_000_000_000);
    let fits = |it: Ns| (0..=most).contains(&it);
    (fits(it.running) && fits(it.waiting)).then_some(it)
}

fn group(bytes: &[u8]) -> Option<GroupWindow> {
    let it = GroupWindow {
        span: span(bytes)?,
        ..Fields::fields(bytes)?
    };
    // All processors of the group together.
    let most = it
        .span
        .len()
        .saturating_add(1_000_000_000)
        .saturating_mul(1 << 12);
    let fits = (0..=most).contains(&it.throttled) && (0.0..=1e6).contains(&it.cores);
    fits.then_some(it)
}

/// Values of metrics, without those that are not known and those that cannot be.
fn values(bytes: &[u8], value: impl Fn(&mut &[u8]) -> Option<f64>) -> Option<Vec<(Metric, f64)>> {
    let mut all = metrics(bytes, value)?;
    all.retain(|(metric, value)| metric.can_be(*value));
    Some(all)
}

/// What is told of metrics, without those that are not known.
fn metrics<T>(bytes: &[u8], value: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<(Metric, T)>> {
    let all = list(bytes, |rest| Some((take(rest)?, value(rest)?)))?;
    let known = all
        .into_iter()
        .filter_map(|(code, value)| Some((Metric::from_code(code)?, value)));
    Some(known.collect())
}

fn reading(bytes: &[u8]) -> Option<Reading> {
    Some(Reading {
        span: span(bytes)?,
        values: values(text(bytes, 48, 4)?, |rest| take::<f32>(rest).map(f64::from))?,
        ..Fields::fields(bytes)?
    })
}

fn occupied(bytes: &[u8]) -> Option<Hardware> {
    let (uuid, time): (Uuid, _) = (Field::get(bytes, 24)?, span(bytes)?.start);
    let all = list(text(bytes, 40, 4)?, |rest| {
        Some(Occupant {
            pid: take(rest)?,
            owner: Owner::from_code(take(rest)?).unwrap_or(Owner::Unknown),
            memory: Some(take(rest)?).filter(|bytes| *bytes <= BELIEVED),
            name: take_text(rest)?,
        })
    })?;
    Some(Hardware::Occupants { uuid, time, all })
}

fn gpu(bytes: &[u8]) -> Option<Hardware> {
    Some(Hardware::Gpu(GpuIdentity {
        name: lossy(text(bytes, 32, 8)?),
        ..Fields::fields(bytes)?
    }))
}

fn limits(bytes: &[u8]) -> Option<Hardware> {
    let most = text(bytes, 32, 8)?;
    Some(Hardware::Limits(GpuLimits {
        most: values(most, take)?,
        lacks: metrics(text(bytes, 32 + most.len(), 12)?, take_text)?,
        ..Fields::fields(bytes)?
    }))
}

fn stalls(bytes: &[u8]) -> Option<StallSamples> {
    let kernel = text(bytes, 24, 16)?;
    let listed = text(bytes, 24 + kernel.len(), 20)?;
    let reasons = list(listed, |rest| {
        let samples = take(rest)?;
        Some((take_text(rest)?, samples))
    })?;
    let mut behind = &bytes[24 + kernel.len() + listed.len()..];
    Some(StallSamples {
        file: take_text(&mut behind).unwrap_or_default(),
        line: Field::get(bytes, 4)?,
        kernel: lossy(kernel),
        lost: Field::get(bytes, 8)?,
        reasons,
    })
}
