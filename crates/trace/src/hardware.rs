//! What GPUs' counters and sensors reported, by GPU: windows of time with a value of each metric.

use super::Clock;
use super::windows::{Window, Windows};
use activity::text::printable;
use activity::{
    GpuLimits, Hardware, Metric, NameId, Ns, Occupant, Owner, Reading, Span, StallSamples, Uuid,
    WatchCost,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const METRICS: usize = Metric::ALL.len();
/// Processes of a GPU, and notes, that are kept: a recording may claim any number.
const OCCUPANTS_MAX: usize = 4096;
const NOTES_MAX: usize = 256;

/// Keeps a note, each once.
pub(super) fn note(notes: &mut Vec<String>, text: &str) {
    let text = printable(text);
    if notes.len() < NOTES_MAX && !notes.contains(&text) {
        notes.push(text);
    }
}

/// A window: the readings between two polls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuWindow {
    /// When it was.
    pub span: Span,
    /// Why clocks were throttled at its end: NVML's bits.
    pub reasons: u64,
    values: [f32; METRICS],
}

impl GpuWindow {
    /// The value of a metric; `None` where nobody read it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let value = self.values[usize::from(metric.code())];
        (!value.is_nan()).then_some(f64::from(value))
    }
}

/// Sums of one metric over windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MetricSum {
    /// Value times ns.
    area: f64,
    /// ns in which somebody read it.
    time: f64,
    most: f64,
}

impl MetricSum {
    fn add(&mut self, value: f64, time: f64) {
        let (area, most) = (value * time, value);
        self.join(&MetricSum { area, time, most });
    }

    fn join(&mut self, other: &MetricSum) {
        if other.time > 0.0 {
            self.most = if self.time > 0.0 {
                self.most.max(other.most)
            } else {
                other.most
            };
            self.area += other.area;
            self.time += other.time;
        }
    }
}

/// The mean and the maximum of a metric over some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Its mean over the time in which it was read.
    pub mean: f64,
    /// The greatest value of a window.
    pub max: f64,
}

impl Window for GpuWindow {
    type Sums = [MetricSum; METRICS];

    fn span(&self) -> Span {
        self.span
    }

    fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    fn add_to(&self, sums: &mut [MetricSum; METRICS]) {
        for (sum, value) in sums.iter_mut().zip(self.values) {
            if !value.is_nan() {
                sum.add(f64::from(value), self.span.len() as f64);
            }
        }
    }
}

/// A GPU.
#[derive(Clone, Debug, Default)]
pub struct GpuReadings {
    /// Its limits, as far as NVML told them.
    pub limits: GpuLimits,
    /// The process that reported it first: index into [`super::Trace::processes`].
    by: usize,
    /// Converts the reader's times to those of the timeline.
    clock: Clock,
    windows: Windows<GpuWindow>,
    /// What its counters counted, a thousand times as often; `None` of it where nobody samples them.
    samples: Windows<GpuWindow>,
    /// Each process that was ever listed on it, with the most memory that it had there.
    pub occupants: Vec<Occupant>,
}

impl GpuReadings {
    // Another recording of the same GPU that was opened beside may have windows of the same time: they are left out.
    fn add(&mut self, reading: &Reading, is_sample: bool) {
        let mut values = [f32::NAN; METRICS];
        for (metric, value) in &reading.values {
            values[usize::from(metric.code())] = *value as f32;
        }
        let window = GpuWindow {
            span: self.clock.span(reading.span),
            reasons: reading.reasons,
            values,
        };
        match is_sample {
            true => self.samples.add(window),
            false => self.windows.add(window),
        }
    }

    /// All windows in order of time. They do not overlap.
    pub fn windows(&self) -> impl Iterator<Item = &GpuWindow> {
        self.windows.iter()
    }

    /// The same of its counters' samples.
    pub fn samples(&self) -> impl Iterator<Item = &GpuWindow> {
        self.samples.iter()
    }

    /// Those samples that share time with `scope`.
    pub fn samples_within(&self, scope: Span) -> impl Iterator<Item = &GpuWindow> {
        self.samples.within(scope).map(|(window, _)| window)
    }

    /// The windows that hold a metric: its samples, or where there are none what NVML said.
    pub fn windows_of(&self, metric: Metric) -> impl Iterator<Item = &GpuWindow> {
        let from = if has(&self.samples, metric) {
            &self.samples
        } else {
            &self.windows
        };
        from.iter()
    }

    /// The window at a moment: a sample that holds the metric, or what NVML said then.
    pub fn at(&self, metric: Metric, time: Ns) -> Option<&GpuWindow> {
        let moment = Span::new(time, time.saturating_add(1));
        let samples = self.samples.within(moment).map(|it| it.0);
        let mut samples = samples.filter(|it| it.value(metric).is_some());
        samples
            .next()
            .or_else(|| self.windows.within(moment).map(|(window, _)| window).next())
    }

    /// The first start to the last end.
    pub fn span(&self) -> Option<Span> {
        self.windows.span()
    }

    /// What a metric came to within `scope`, by its samples where there are some; a window across its edge counts in proportion.
    /// `None` where it was not read.
    pub fn level(&self, metric: Metric, scope: Span) -> Option<Level> {
        level(&self.samples, metric, scope).or_else(|| level(&self.windows, metric, scope))
    }

    /// Whether a window holds two readings of a metric by more than half at least: what is shorter they say nothing of.
    pub fn resolves(&self, metric: Metric, scope: Span) -> bool {
        let holds = |windows: &Windows<GpuWindow>| {
            let all = windows.within(scope);
            let held =
                all.filter(|(it, time)| 2 * time > it.span.len() && it.value(metric).is_some());
            held.take(2).count() == 2
        };
        let has_samples = || level(&self.samples, metric, scope).is_some();
        holds(&self.samples) || (!has_samples() && holds(&self.windows))
    }

    /// How long one of the reasons in `bits` held clocks down within `scope`, in ns, and how long somebody read them.
    pub fn slowed(&self, bits: u64, scope: Span) -> (Ns, Ns) {
        let mut slowed = 0;
        let mut looked = 0;
        for (window, time) in self.windows.within(scope) {
            looked += time;
            if window.reasons & bits != 0 {
                slowed += time;
            }
        }
        (slowed, looked)
    }

    /// Whether any window has a value of this metric.
    pub fn has(&self, metric: Metric) -> bool {
        has(&self.samples, metric) || has(&self.windows, metric)
    }

    /// Whether its counters were sampled.
    pub fn is_sampled(&self) -> bool {
        self.samples.span().is_some()
    }

    /// Why a metric is missing, in words; `None` when it is there, or nobody asked for it.
    pub fn lack(&self, metric: Metric) -> Option<&str> {
        let mut lacks = self.limits.lacks.iter();
        lacks.find(|it| it.0 == metric).map(|it| it.1.as_str())
    }

    /// The greatest value that a metric can reach, where it is known: shares reach 1.
    pub fn most(&self, metric: Metric) -> Option<f64> {
        if metric.unit() == activity::MetricUnit::Share {
            return Some(1.0);
        }
        let mut most = self.limits.most.iter();
        most.find(|it| it.0 == metric).map(|it| it.1)
    }

    /// The processes of other programs.
    pub fn others(&self) -> impl Iterator<Item = &Occupant> {
        self.occupants.iter().filter(|it| it.owner == Owner::Other)
    }

    /// Moves its windows to another clock.
    fn retime(&mut self, clock: Clock) {
        let old = std::mem::replace(&mut self.clock, clock);
        let to = |span: Span| clock.span(Span::new(old.first(span.start), old.first(span.end)));
        self.windows.retime(to);
        self.samples.retime(to);
    }

    fn list(&mut self, all: Vec<Occupant>) {
        for mut it in all {
            it.name = printable(&it.name);
            match self.occupants.iter_mut().find(|known| known.pid == it.pid) {
                Some(known) => {
                    known.memory = known.memory.max(it.memory);
                    // The later record wins: a process's owner may become known late.
                    known.owner = it.owner;
                }
                None => self.occupants.push(it),
            }
            self.occupants.truncate(OCCUPANTS_MAX);
        }
    }
}

/// Whether any window has a value of this metric.
fn has(windows: &Windows<GpuWindow>, metric: Metric) -> bool {
    let index = usize::from(metric.code());
    let mut pieces = windows.pieces(Span::new(Ns::MIN, Ns::MAX));
    pieces.any(|it| it.sums[index].time > 0.0)
}

fn level(windows: &Windows<GpuWindow>, metric: Metric, scope: Span) -> Option<Level> {
    let index = usize::from(metric.code());
    let mut sum = MetricSum::default();
    for piece in windows.pieces(scope) {
        if piece.is_within(scope) {
            sum.join(&piece.sums[index]);
            continue;
        }
        for (window, time) in piece.within(scope) {
            if let Some(value) = window.value(metric) {
                sum.add(value, time as f64);
            }
        }
    }
    (sum.time > 0.0).then(|| Level {
        mean: sum.area / sum.time,
        max: sum.most,
    })
}

/// Samples by NVIDIA's name of what a warp waited for.
pub type StallReasons = BTreeMap<String, u64>;

/// All GPUs that somebody read.
#[derive(Clone, Debug, Default)]
pub struct HardwareReadings {
    gpus: Vec<GpuReadings>,
    /// Where each of them is.
    places: FxHashMap<Uuid, usize>,
    /// Why something is missing, each reason once.
    pub notes: Vec<String>,
    /// What watching cost.
    pub cost: WatchCost,
    /// What kernels waited for, by name: samples by reason, under NVIDIA's names.
    pub stalls: FxHashMap<NameId, StallReasons>,
    /// The same of the source lines that are known.
    pub stall_lines: FxHashMap<NameId, BTreeMap<(String, u32), StallReasons>>,
    /// Samples of that which were lost, at least.
    pub stalls_lost: u64,
}

impl HardwareReadings {
    /// Takes in what a process sent. `clock_of` gives the clock of a GPU that is new here.
    pub(super) fn take(&mut self, by: usize, it: Hardware, clock_of: impl Fn(Uuid) -> Clock) {
        match it {
            Hardware::Limits(mut limits) => {
                for lack in &mut limits.lacks {
                    lack.1 = printable(&lack.1);
                }
                let uuid = limits.uuid;
                self.gpu(uuid, by, clock_of).limits = limits;
            }
            Hardware::Reading(reading) => self.gpu(reading.uuid, by, clock_of).add(&reading, false),
            Hardware::Sample(it) => self.gpu(it.uuid, by, clock_of).add(&it, true),
            Hardware::Occupants { uuid, all, .. } => self.gpu(uuid, by, clock_of).list(all),
            // A device of the timeline.
            Hardware::Gpu(_) => {}
            Hardware::Note(text) => note(&mut self.notes, &text),
            // Of several recordings, the one that watched longest counts.
            Hardware::Cost(cost) if cost.wall_ns >= self.cost.wall_ns => self.cost = cost,
            // With the names of the timeline (`Trace::apply`).
            Hardware::Cost(_) | Hardware::Stalls(_) => {}
        }
    }

    /// Takes in what a kernel waited for.
    pub(super) fn take_stalls(&mut self, kernel: NameId, it: StallSamples) {
        // A recording may claim any number.
        self.stalls_lost = self.stalls_lost.saturating_add(it.lost);
        if it.reasons.is_empty() {
            return;
        }
        let lines = (it.line > 0).then(|| self.stall_lines.entry(kernel).or_default());
        let of_line = lines.map(|all| all.entry((printable(&it.file), it.line)).or_default());
        let sums = self.stalls.entry(kernel).or_default();
        for sums in of_line.into_iter().chain([sums]) {
            for (reason, samples) in &it.reasons {
                let sum = sums.entry(printable(reason)).or_default();
                *sum = sum.saturating_add(*samples);
            }
        }
    }

    /// Moves the readings of each GPU to its new clock. `clock_of` takes its UUID and the process that sent them.
    pub(super) fn retime(&mut self, clock_of: impl Fn(Uuid, usize) -> Clock) {
        for gpu in &mut self.gpus {
            let clock = clock_of(gpu.limits.uuid, gpu.by);
            if clock != gpu.clock {
                gpu.retime(clock);
            }
        }
    }

    /// Evicts windows that end before `time`.
    pub(super) fn evict_before(&mut self, time: Ns) {
        for gpu in &mut self.gpus {
            gpu.windows.evict_before(time);
            gpu.samples.evict_before(time);
        }
    }

    /// Bytes that windows take.
    pub(super) fn memory(&self) -> usize {
        let of = |it: &GpuReadings| it.windows.memory() + it.samples.memory();
        self.gpus.iter().map(of).sum()
    }

    fn gpu(&mut self, uuid: Uuid, by: usize, clock_of: impl Fn(Uuid) -> Clock) -> &mut GpuReadings {
        let gpus = &mut self.gpus;
        let at = *self.places.entry(uuid).or_insert_with(|| {
            let mut gpu = GpuReadings::default();
            gpu.limits.uuid = uuid;
            (gpu.by, gpu.clock) = (by, clock_of(uuid));
            gpus.push(gpu);
            gpus.len() - 1
        });
        &mut gpus[at]
    }

    /// The readings of a GPU.
    pub fn find(&self, uuid: Uuid) -> Option<&GpuReadings> {
        self.gpus.get(*self.places.get(&uuid)?)
    }

    /// Whether counters or sensors of any GPU were read at least once.
    pub fn was_read(&self) -> bool {
        let mut gpus = self.gpus.iter();
        gpus.any(|it| it.windows().next().is_some() || it.is_sampled())
    }

    /// Whether nothing was read, and there is nothing to report about it.
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty() && self.notes.is_empty() && self.stalls_lost == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(start: Ns, end: Ns, sm: Option<f64>, reasons: u64) -> Hardware {
        Hardware::Reading(Reading {
            uuid: [1; 16],
            span: Span::new(start, end),
            values: sm.map(|it| (Metric::Sm, it)).into_iter().collect(),
            reasons,
        })
    }

    #[test]
    fn processes_and_notes_without_end_take_no_room() {
        let notes = (0..2_000).map(|i| Hardware::Note(format!("{i}")));
        let process = |pid| Occupant {
            pid,
            owner: Owner::Other,
            memory: None,
            name: String::new(),
        };
        let all = (0..2 * OCCUPANTS_MAX as u32).map(process).collect();
        let uuid = [1; 16];
        let occupied = Hardware::Occupants { uuid, time: 0, all };
        let hardware = made(notes.chain([occupied]).collect());
        assert_eq!(hardware.notes.len(), NOTES_MAX);
        assert_eq!(hardware.gpus[0].occupants.len(), OCCUPANTS_MAX);
    }

    fn made(all: Vec<Hardware>) -> HardwareReadings {
        let mut readings = HardwareReadings::default();
        for it in all {
            readings.take(0, it, |_| Clock::default());
        }
        readings
    }

    #[test]
    fn what_was_not_read_is_no_zero() {
        let readings = made(vec![
            reading(0, 100, Some(0.5), 0),
            reading(100, 200, None, 0x4),
            reading(200, 300, Some(1.0), 0),
        ]);
        let gpu = readings.find([1; 16]).expect("there");
        let level = gpu.level(Metric::Sm, Span::new(0, 300)).expect("read");
        assert_eq!((level.mean, level.max), (0.75, 1.0));
        assert_eq!(gpu.level(Metric::Sm, Span::new(100, 200)), None);
        assert_eq!(gpu.level(Metric::Power, Span::new(0, 300)), None);
        assert!(gpu.has(Metric::Sm) && !gpu.has(Metric::Power));
        assert_eq!(gpu.slowed(0x4, Span::new(50, 150)), (50, 100));
        assert_eq!(
            gpu.at(Metric::Sm, 100).map(|it| it.value(Metric::Sm)),
            Some(None)
        );
        assert_eq!(gpu.at(Metric::Sm, 300), None);
    }

    #[test]
    fn samples_stand_before_what_nvml_said_of_the_same_time() {
        let sample = |start, end, sm| match reading(start, end, Some(sm), 0) {
            Hardware::Reading(it) => Hardware::Sample(it),
            other => other,
        };
        let readings = made(vec![
            reading(0, 100, Some(0.5), 0),
            sample(20, 22, 1.0),
            sample(22, 24, 0.25),
            reading(100, 200, Some(0.75), 0),
        ]);
        let gpu = readings.find([1; 16]).expect("there");
        let level = |from, to| {
            let it = gpu.level(Metric::Sm, Span::new(from, to)).expect("read");
            (it.mean, it.max)
        };
        assert_eq!(level(0, 100), (0.625, 1.0));
        assert_eq!(level(23, 24), (0.25, 0.25));
        assert_eq!(level(100, 200), (0.75, 0.75));
        let at = |time| gpu.at(Metric::Sm, time).and_then(|it| it.value(Metric::Sm));
        assert_eq!((at(21), at(50)), (Some(1.0), Some(0.5)));
        assert_eq!(gpu.windows_of(Metric::Sm).count(), 2);
    }

    #[test]
    fn a_window_holds_two_readings_or_they_say_nothing_of_it() {
        let readings = made(
            (0..4)
                .map(|i| reading(100 * i, 100 * i + 100, Some(0.5), 0))
                .collect(),
        );
        let gpu = readings.find([1; 16]).expect("there");
        let resolves = |from, to| gpu.resolves(Metric::Sm, Span::new(from, to));
        // Two whole ones, more than half of two, and less: of one, of halves, of a tenth.
        assert!(resolves(0, 200) && resolves(49, 151));
        assert!(!resolves(100, 200) && !resolves(50, 150) && !resolves(110, 120));
        assert!(!gpu.resolves(Metric::Power, Span::new(0, 400)));
    }

    #[test]
    fn windows_of_two_recordings_of_one_gpu_do_not_overlap() {
        let readings = made(vec![
            reading(0, 100, Some(0.1), 0),
            reading(300, 400, Some(0.3), 0),
            reading(150, 250, Some(0.2), 0),
            reading(90, 160, Some(0.9), 0),
        ]);
        let gpu = readings.find([1; 16]).expect("there");
        let starts: Vec<Ns> = gpu.windows().map(|it| it.span.start).collect();
        assert_eq!(starts, [0, 150, 300]);
    }

    #[test]
    fn an_owner_may_be_known_later_and_memory_is_the_most() {
        let listed = |memory, owner| Hardware::Occupants {
            uuid: [1; 16],
            time: 0,
            all: vec![Occupant {
                pid: 5,
                name: "a\u{1b}[31mb".to_owned(),
                memory: Some(memory),
                owner,
            }],
        };
        let readings = made(vec![listed(70, Owner::Unknown), listed(30, Owner::Other)]);
        let gpu = readings.find([1; 16]).expect("there");
        let others: Vec<_> = gpu.others().collect();
        assert_eq!((others.len(), others[0].memory), (1, Some(70)));
        assert!(!others[0].name.contains('\u{1b}'));
    }

    proptest! {
        /// Against a walk over all windows.
        #[test]
        fn levels_are_those_of_the_windows(
            steps in prop::collection::vec((0i64..5, 1i64..9, prop::option::of(0u8..100)), 1..900),
            from in 0i64..4000,
            length in 1i64..4000,
        ) {
            let scope = Span::new(from, from + length);
            let (mut at, mut area, mut time, mut most) = (0, 0.0, 0.0, f64::MIN);
            let mut all = Vec::new();
            for (gap, length, value) in steps {
                let span = Span::new(at + gap, at + gap + length);
                at = span.end;
                let value = value.map(|it| f64::from(it) / 64.0);
                all.push(reading(span.start, span.end, value, 0));
                let seen = (span.end.min(scope.end) - span.start.max(scope.start)).max(0) as f64;
                if let Some(value) = value && seen > 0.0 {
                    area += value * seen;
                    time += seen;
                    most = most.max(value);
                }
            }
            let readings = made(all);
            let found = readings.find([1; 16]).expect("there").level(Metric::Sm, scope);
            match found {
                None => prop_assert_eq!(time, 0.0),
                Some(level) => {
                    prop_assert!((level.mean - area / time).abs() < 1e-9);
                    prop_assert_eq!(level.max, most);
                }
            }
        }
    }
}
