//! The kind `hardware`: what GPUs' counters and sensors said. One file for the machine (process 0).
//!
//! A block is a row of entries: u8 tag, u16 length of what follows, and that. A reader skips tags that it does not know. A
//! text is a u8 length and UTF-8; a span is i64 start and i64 end, in nanoseconds of `CLOCK_REALTIME`; a metric is its u8
//! code ([`Metric`]).
//!
//! | tag | what |
//! |---|---|
//! | 1 | a GPU: 16 bytes UUID, u8 whether slowdowns can be told, u8 n, n times (metric, f64 the most that it can reach), u8 n, n times (metric, text why it is not there) |
//! | 2 | a look: 16 bytes UUID, span, u64 bits of NVML's clock event reasons, then to the end (metric, f32 value) |
//! | 3 | processes on a GPU: 16 bytes UUID, i64 when, then to the end (u32 pid, u8 whose: 0 the program's, 1 another's, 2 unknown; u64 bytes, all ones where unknown; text name) |
//! | 4 | why something is not there: text |
//! | 5 | what watching took so far: u64 rounds, ns of processor time, ns since its begin, windows lost |
//! | 6 | a GPU that no recording tells of: 16 bytes UUID, u32 number in NVML's order, text name |

use super::bytes::{Entries, Rest, each_entry};
use super::decoder::{Decoder, Unreadable};
use activity::{
    Batch, GpuIdentity, GpuLimits, Hardware, Metric, Occupant, Owner, Reading, WatchCost,
};

pub const KIND: &str = "hardware";
pub const VERSION: u32 = 1;

const LIMITS: u8 = 1;
const READING: u8 = 2;
const OCCUPANTS: u8 = 3;
const NOTE: u8 = 4;
const COST: u8 = 5;
const GPU: u8 = 6;

/// Entries as a block.
#[must_use]
pub fn encode(all: &[Hardware]) -> Vec<u8> {
    let mut entries = Entries::default();
    for one in all {
        match one {
            Hardware::Gpu(gpu) => entries.add(GPU, |out| {
                out.raw(&gpu.uuid);
                out.u32(gpu.index);
                out.text(&gpu.name);
            }),
            Hardware::Limits(limits) => entries.add(LIMITS, |out| {
                out.raw(&limits.uuid);
                out.u8(u8::from(limits.tells_slowdowns));
                // As many as there are metrics, at most.
                out.u8(limits.most.len() as u8);
                for (metric, most) in &limits.most {
                    out.u8(metric.code());
                    out.f64(*most);
                }
                out.u8(limits.lacks.len() as u8);
                for (metric, why) in &limits.lacks {
                    out.u8(metric.code());
                    out.text(why);
                }
            }),
            Hardware::Reading(reading) => entries.add(READING, |out| {
                out.raw(&reading.uuid);
                out.span(reading.span);
                out.u64(reading.reasons);
                for (metric, value) in &reading.values {
                    out.u8(metric.code());
                    out.f32(*value as f32);
                }
            }),
            Hardware::Occupants { uuid, time, all } => entries.add(OCCUPANTS, |out| {
                out.raw(uuid);
                out.i64(*time);
                for it in all {
                    out.u32(it.pid);
                    out.u8(match it.owner {
                        Owner::Program => 0,
                        Owner::Other => 1,
                        Owner::Unknown => 2,
                    });
                    out.u64(it.memory.unwrap_or(u64::MAX));
                    out.text(&it.name);
                }
            }),
            Hardware::Note(text) => entries.add(NOTE, |out| out.text(text)),
            Hardware::Cost(cost) => entries.add(COST, |out| {
                for number in [cost.rounds, cost.cpu_ns, cost.wall_ns, cost.lost] {
                    out.u64(number);
                }
            }),
        }
    }
    entries.into_bytes()
}

/// Reads such a file.
#[derive(Debug)]
pub(super) struct Readings;

impl Decoder for Readings {
    fn decode(&mut self, payload: &[u8], batch: &mut Batch) -> Result<(), Unreadable> {
        let is_sound = each_entry(payload, |tag, entry| {
            batch.hardware.extend(decode(tag, entry)?);
            Some(())
        });
        if is_sound { Ok(()) } else { Err(Unreadable) }
    }
}

/// `None` for what makes no sense; an empty answer for a tag that is not known.
fn decode(tag: u8, mut rest: Rest<'_>) -> Option<Option<Hardware>> {
    Some(Some(match tag {
        LIMITS => {
            let uuid = rest.raw()?;
            let tells_slowdowns = rest.u8()? != 0;
            let mut limits = GpuLimits {
                uuid,
                tells_slowdowns,
                ..GpuLimits::default()
            };
            for _ in 0..rest.u8()? {
                let (code, most) = (rest.u8()?, rest.f64()?);
                limits
                    .most
                    .extend(Metric::from_code(code).map(|it| (it, most)));
            }
            for _ in 0..rest.u8()? {
                let (code, why) = (rest.u8()?, rest.text()?);
                limits
                    .lacks
                    .extend(Metric::from_code(code).map(|it| (it, why)));
            }
            Hardware::Limits(limits)
        }
        READING => {
            let (uuid, span, reasons) = (rest.raw()?, rest.span()?, rest.u64()?);
            let mut values = Vec::with_capacity(Metric::ALL.len());
            while let Some(code) = rest.u8() {
                let value = f64::from(rest.f32()?);
                values.extend(Metric::from_code(code).map(|it| (it, value)));
            }
            Hardware::Reading(Reading {
                uuid,
                span,
                values,
                reasons,
            })
        }
        OCCUPANTS => {
            let (uuid, time) = (rest.raw()?, rest.i64()?);
            let mut all = Vec::new();
            while let Some(pid) = rest.u32() {
                let owner = match rest.u8()? {
                    0 => Owner::Program,
                    1 => Owner::Other,
                    _ => Owner::Unknown,
                };
                let memory = Some(rest.u64()?).filter(|bytes| *bytes != u64::MAX);
                let name = rest.text()?;
                all.push(Occupant {
                    pid,
                    name,
                    memory,
                    owner,
                });
            }
            Hardware::Occupants { uuid, time, all }
        }
        GPU => Hardware::Gpu(GpuIdentity {
            uuid: rest.raw()?,
            index: rest.u32()?,
            name: rest.text()?,
        }),
        NOTE => Hardware::Note(rest.text()?),
        COST => Hardware::Cost(WatchCost {
            rounds: rest.u64()?,
            cpu_ns: rest.u64()?,
            wall_ns: rest.u64()?,
            lost: rest.u64()?,
        }),
        _ => return Some(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::Span;
    use proptest::prelude::*;

    fn some() -> Vec<Hardware> {
        vec![
            Hardware::Limits(GpuLimits {
                uuid: [7; 16],
                most: vec![(Metric::Power, 700.0)],
                lacks: vec![(Metric::NvlinkIn, "not on this GPU".to_owned())],
                tells_slowdowns: true,
            }),
            Hardware::Reading(Reading {
                uuid: [7; 16],
                span: Span::new(5, 105),
                values: vec![(Metric::Sm, 0.25), (Metric::Clock, 1980.0)],
                reasons: 0x44,
            }),
            Hardware::Occupants {
                uuid: [7; 16],
                time: 9,
                all: vec![Occupant {
                    pid: 1234,
                    name: "pythön".to_owned(),
                    memory: None,
                    owner: Owner::Other,
                }],
            },
            Hardware::Note("no NVML".to_owned()),
            Hardware::Gpu(GpuIdentity {
                uuid: [7; 16],
                index: 3,
                name: "NVIDIA H200".to_owned(),
            }),
            Hardware::Cost(WatchCost {
                rounds: 1,
                cpu_ns: 2,
                wall_ns: 3,
                lost: 4,
            }),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let mut block = encode(&some());
        // A tag of a later version is skipped.
        block.extend([200, 2, 0, 1, 1]);
        let mut batch = Batch::default();
        Readings.decode(&block, &mut batch).expect("sound");
        assert_eq!(batch.hardware, some());
        // Bytes of a look at three metrics, by hand: 3 + 16 + 16 + 8 + 3 × 5.
        let three = Reading {
            values: vec![(Metric::Sm, 0.0); 3],
            ..Reading::default()
        };
        assert_eq!(encode(&[Hardware::Reading(three)]).len(), 58);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut block in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..400) {
            let _ = Readings.decode(&block, &mut Batch::default());
            let whole = encode(&some());
            block.splice(0..0, whole[..cut.min(whole.len())].iter().copied());
            let _ = Readings.decode(&block, &mut Batch::default());
        }
    }
}
