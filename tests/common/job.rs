//! A job of several ranks, made by rule: every rank works, then all meet in collectives. What clocks, lateness and transfers
//! are is given here, so that tests know what must be found.

use activity::{
    Activity, Batch, Def, DeviceInfo, HostCall, Kernel, LaunchShape, Place, ProcessInfo, Range,
    RangeKind, Span, What,
};
use trace::{SourceInfo, Trace};

/// How a rank's clock reads: `offset` at the job's begin, and `drift` for each ns since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) offset: i64,
    pub(crate) drift: f64,
}

impl Clock {
    pub(crate) fn read(&self, time: i64) -> i64 {
        BEGIN + time + self.offset + (self.drift * time as f64).round() as i64
    }
}

/// The true time at which a job begins.
pub(crate) const BEGIN: i64 = 1_790_000_000_000_000_000;

pub(crate) struct Job {
    pub(crate) ranks: usize,
    pub(crate) steps: usize,
    /// Kernels of a rank's own a step.
    pub(crate) kernels: usize,
    /// Collectives a step.
    pub(crate) collectives: usize,
    /// Whether collectives run beside the kernels, each as soon as its part of them is done, and only what follows waits for them.
    pub(crate) is_overlapped: bool,
    /// ns of each kernel, and of each transfer.
    pub(crate) work: i64,
    pub(crate) transfer: i64,
    /// What kernels' lengths and a collective's exits differ by at most, ns.
    pub(crate) jitter: i64,
    pub(crate) clock: fn(usize) -> Clock,
    /// Time for which a rank's host does something else before its work in a step.
    pub(crate) idle: fn(usize, usize) -> i64,
    /// How many times as long a rank's own kernels take.
    pub(crate) slow: fn(usize) -> f64,
    /// Whether a rank's own kernels have other shapes, as those of a batch of another size.
    pub(crate) is_other: fn(usize) -> bool,
    /// Whether all kernels of a rank's own are one.
    pub(crate) is_alike: bool,
    /// Steps that a rank's recording lacks at its begin.
    pub(crate) missing: fn(usize) -> usize,
    /// Whether there are host calls and a range around what the host does, too.
    pub(crate) has_host: bool,
    pub(crate) is_ranked: bool,
    /// Ranks of the job that are not recorded.
    pub(crate) absent: u32,
    /// Whether collectives are exchanges: kernels of sends and receives, which ranges of PyTorch's around their launches name.
    pub(crate) is_exchange: bool,
    pub(crate) host: fn(usize) -> String,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            ranks: 2,
            steps: 30,
            kernels: 8,
            collectives: 3,
            is_overlapped: false,
            work: 400_000,
            transfer: 250_000,
            jitter: 15_000,
            clock: |_| Clock::default(),
            idle: |_, _| 0,
            slow: |_| 1.0,
            is_other: |_| false,
            is_alike: false,
            missing: |_| 0,
            has_host: false,
            is_ranked: true,
            absent: 0,
            is_exchange: false,
            host: |_| String::new(),
        }
    }
}

/// What happened, beside what was recorded.
#[derive(Default)]
pub(crate) struct Truth {
    /// Of each step, by rank: when it began and when the first collective's kernel did.
    pub(crate) arrivals: Vec<Vec<i64>>,
    /// How long each step took.
    pub(crate) steps: Vec<i64>,
    /// By rank: time in collectives beyond the transfers.
    pub(crate) waits: Vec<i64>,
    /// True time of the end.
    pub(crate) end: i64,
}

/// Numbers that look like chance and are always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % limit.max(1)
    }
}

impl Job {
    /// The timeline as it is recorded, and the truth.
    pub(crate) fn make(&self) -> (Trace, Truth) {
        let mut trace = Trace::new(SourceInfo::default());
        let (batches, truth) = self.batches();
        for batch in batches {
            trace.apply(batch);
        }
        (trace, truth)
    }

    /// As what sources send.
    pub(crate) fn batches(&self) -> (Vec<Batch>, Truth) {
        let mut truth = Truth {
            waits: vec![0; self.ranks],
            ..Truth::default()
        };
        let mut batches: Vec<Batch> = (0..self.ranks).map(|rank| self.head(rank)).collect();
        let mut chance = Chance(7);
        let mut free = vec![0i64; self.ranks];
        let mut free_of_comm = vec![0i64; self.ranks];
        let mut before = 0;
        for step in 0..self.steps {
            let mut ready = Vec::new();
            // A step is launched at once, then its end is waited for.
            let mut calls = vec![i64::MAX; self.ranks];
            let mut done = vec![Vec::new(); self.ranks];
            for rank in 0..self.ranks {
                let mut at = free[rank] + 5_000;
                let idle = (self.idle)(rank, step);
                if self.has_host && idle > 0 {
                    self.host_work(&mut batches[rank], rank, step, Span::new(at, at + idle));
                }
                at += idle;
                for kernel in 0..self.kernels {
                    let length = (self.work as f64 * (self.slow)(rank)) as i64;
                    let length = length + chance.below(self.jitter);
                    let id = (step * (self.kernels + self.collectives) + kernel + 1) as u32;
                    let shape = kernel as u32 + 2;
                    let span = (at, at + length);
                    self.operation(
                        &mut batches[rank],
                        (rank, step),
                        &mut calls[rank],
                        span,
                        7,
                        shape,
                        id,
                    );
                    at += length + 1_000;
                    done[rank].push(at);
                }
                ready.push(at);
            }
            truth.arrivals.push(ready.clone());
            for collective in 0..self.collectives {
                if self.is_overlapped {
                    // When its part of the kernels was done, and the collective before it.
                    for rank in 0..self.ranks {
                        let kernels = (collective + 1) * self.kernels / self.collectives;
                        ready[rank] = done[rank][kernels - 1].max(free_of_comm[rank]);
                    }
                }
                let last = ready.iter().copied().max().unwrap_or(0);
                let end = last + self.transfer;
                for rank in 0..self.ranks {
                    let out = end + chance.below(self.jitter);
                    truth.waits[rank] += last - ready[rank];
                    let id = step * (self.kernels + self.collectives) + self.kernels + collective;
                    let span = (ready[rank], out);
                    self.operation(
                        &mut batches[rank],
                        (rank, step),
                        &mut calls[rank],
                        span,
                        20,
                        1,
                        id as u32 + 1,
                    );
                    ready[rank] = out + 2_000 + chance.below(self.jitter);
                    free_of_comm[rank] = ready[rank];
                }
            }
            for (rank, free) in ready.iter().enumerate().filter(|_| self.has_host) {
                self.sync(
                    &mut batches[rank],
                    rank,
                    step,
                    Span::new(calls[rank] + 500, free - 1_000),
                );
            }
            free = ready;
            let now = free.iter().copied().max().unwrap_or(0);
            truth.steps.push(now - before);
            before = now;
        }
        truth.end = before;
        (batches, truth)
    }

    fn head(&self, rank: usize) -> Batch {
        let name = |id, text: &str| Def::Name {
            id,
            text: text.to_owned(),
        };
        let shape = |id, name, grid| Def::Shape {
            id,
            shape: LaunchShape {
                name,
                grid: [grid, 1, 1],
                ..LaunchShape::default()
            },
        };
        // Each kernel of a step is another, unless they are to be alike.
        let least = if (self.is_other)(rank) { 1_000 } else { 1 };
        let grid = |kernel: u32| least + if self.is_alike { 0 } else { kernel };
        let kernels = (0..self.kernels as u32).map(|kernel| shape(kernel + 2, 0, grid(kernel)));
        let collective = match self.is_exchange {
            true => "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
            false => "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        };
        Batch {
            process: rank as u32,
            defs: [
                Def::Process(ProcessInfo {
                    pid: 1_000 + rank as u32,
                    rank: self.is_ranked.then_some(rank as u32),
                    world: Some(self.ranks as u32 + self.absent),
                    host: (self.host)(rank),
                    ..ProcessInfo::default()
                }),
                Def::Device(DeviceInfo {
                    id: 0,
                    uuid: Some([
                        (rank as u8).wrapping_add(1),
                        (rank >> 8) as u8,
                        9,
                        9,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        1,
                    ]),
                    ..Default::default()
                }),
                name(0, "gemm"),
                name(1, collective),
                name(2, "cudaLaunchKernel"),
                name(3, "next(loader)"),
                name(4, "nccl:all_to_all"),
                name(5, "cudaDeviceSynchronize"),
                shape(1, 1, 24),
            ]
            .into_iter()
            .chain(kernels)
            .collect(),
            ..Batch::default()
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a record has that many parts")]
    fn operation(
        &self,
        batch: &mut Batch,
        (rank, step): (usize, usize),
        launched: &mut i64,
        (start, end): (i64, i64),
        stream: u32,
        shape: u32,
        correlation: u32,
    ) {
        if step < (self.missing)(rank) {
            return;
        }
        let clock = (self.clock)(rank);
        let read = |time| clock.read(time);
        let place = Place {
            device: 0,
            context: 1,
            stream,
        };
        let call = (start - 4_500).min(*launched);
        *launched = call + 3_000;
        if self.has_host {
            batch.items.push(Activity {
                span: Span::new(read(call), read(call + 2_500)),
                correlation,
                what: What::Call(HostCall {
                    thread: 1,
                    name: 2,
                    code: 0,
                }),
            });
        }
        if self.is_exchange && shape == 1 {
            batch
                .items
                .push(range(4, Span::new(read(call - 100), read(call + 2_600))));
        }
        batch.items.push(Activity {
            span: Span::new(read(start), read(end)),
            correlation,
            what: What::Kernel(Kernel {
                place,
                shape,
                graph: 0,
                node: 0,
            }),
        });
    }

    /// Waits for the GPU.
    fn sync(&self, batch: &mut Batch, rank: usize, step: usize, span: Span) {
        if step < (self.missing)(rank) {
            return;
        }
        let read = |time| (self.clock)(rank).read(time);
        batch.items.push(Activity {
            span: Span::new(read(span.start), read(span.end)),
            correlation: 0,
            what: What::Call(HostCall {
                thread: 1,
                name: 5,
                code: 0,
            }),
        });
    }

    fn host_work(&self, batch: &mut Batch, rank: usize, step: usize, span: Span) {
        if step < (self.missing)(rank) {
            return;
        }
        let clock = (self.clock)(rank);
        let read = |time: i64| clock.read(time - 4_600);
        batch
            .items
            .push(range(3, Span::new(read(span.start), read(span.end))));
    }
}

/// A range of the thread that launches.
fn range(name: u32, span: Span) -> Activity {
    Activity {
        span,
        correlation: 0,
        what: What::Range(Range {
            kind: RangeKind::Nvtx,
            name,
            thread: 1,
            index: 0,
        }),
    }
}

/// A rank with collectives alone, each with its start and length, us, and its kernel's name; all-gathers are on a stream of their own.
#[allow(dead_code, reason = "not every test has such")]
pub(crate) fn collectives(rank: u32, kernels: &[(i64, i64, &str)]) -> Batch {
    let mut batch = Batch {
        process: rank,
        defs: vec![
            Def::Process(ProcessInfo {
                pid: 1_000 + rank,
                rank: Some(rank),
                ..ProcessInfo::default()
            }),
            Def::Device(DeviceInfo {
                id: rank,
                ..DeviceInfo::default()
            }),
        ],
        ..Batch::default()
    };
    for (i, &(start, length, name)) in kernels.iter().enumerate() {
        let id = i as u32;
        let text = name.to_owned();
        let shape = LaunchShape {
            name: id,
            ..LaunchShape::default()
        };
        batch.defs.push(Def::Name { id, text });
        batch.defs.push(Def::Shape { id, shape });
        batch.items.push(Activity {
            span: Span::new(BEGIN + start * 1_000, BEGIN + (start + length) * 1_000),
            correlation: 0,
            what: What::Kernel(Kernel {
                place: Place {
                    device: rank,
                    context: 1,
                    stream: if name.contains("AllGather") { 203 } else { 84 },
                },
                shape: id,
                graph: 0,
                node: 0,
            }),
        });
    }
    batch
}
