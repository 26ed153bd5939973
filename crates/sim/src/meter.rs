//! What the counters of a device would have seen, in samples that each hold the mean of its time.

use activity::{Hardware, Metric, Ns, Reading, Span, Uuid};

/// What the model counts. No kernel of it uses tensor cores.
const COUNTED: [Metric; 6] = [
    Metric::Sm,
    Metric::Issue,
    Metric::Tensor,
    Metric::Dram,
    Metric::PcieIn,
    Metric::PcieOut,
];

/// A value for each of them, in their units.
pub(super) type Levels = [f64; COUNTED.len()];

/// Samples of a time in which nothing changes: more would say the same.
const MOST: Ns = 64;

/// A device's counters.
#[derive(Debug)]
pub(super) struct Meter {
    uuid: Uuid,
    /// Time of a sample.
    period: Ns,
    /// When the sample began that is not over.
    start: Ns,
    /// Level times ns since then.
    area: Levels,
    taken: Vec<Hardware>,
}

/// The id of a device whose counters are sampled: the samples go by it.
pub(super) fn uuid(device: u32) -> Uuid {
    u128::from(device + 1).to_be_bytes()
}

impl Meter {
    pub(super) fn new(device: u32, hz: u32, start: Ns) -> Meter {
        Meter {
            uuid: uuid(device),
            period: 1_000_000_000 / Ns::from(hz.max(1)),
            start,
            area: Levels::default(),
            taken: Vec::new(),
        }
    }

    /// Counts a time in which nothing changed.
    pub(super) fn count(&mut self, span: Span, levels: Levels) {
        // The idle time of a device is one sample, however long it is.
        let is_idle = levels.iter().all(|it| *it == 0.0);
        let each = (span.len() / self.period / MOST).max(1);
        let mut at = span.start.max(self.start);
        while at < span.end {
            // What began under other levels lasts a period, and so does the end.
            let whole = match at == self.start {
                true => (span.end - at) / self.period,
                false => 1,
            };
            let periods = if is_idle { whole } else { whole.min(each) };
            let end = self.start + self.period * periods.max(1);
            let until = end.min(span.end);
            for (area, level) in self.area.iter_mut().zip(levels) {
                *area += level * (until - at) as f64;
            }
            if until == end {
                self.close(end);
            }
            at = until;
        }
    }

    fn close(&mut self, end: Ns) {
        let span = Span::new(self.start, end);
        let means = self.area.map(|area| area / span.len() as f64);
        self.taken.push(Hardware::Sample(Reading {
            uuid: self.uuid,
            span,
            values: COUNTED.into_iter().zip(means).collect(),
            reasons: 0,
        }));
        (self.start, self.area) = (end, Levels::default());
    }

    /// The samples since the last call.
    pub(super) fn take(&mut self) -> Vec<Hardware> {
        std::mem::take(&mut self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dram(share: f64) -> Levels {
        let mut levels = Levels::default();
        levels[3] = share;
        levels
    }

    /// At 10 kHz a sample takes 100 us: 30 us at 0.5, 60 us at 1.0 and 10 us idle are 0.75; then idle time until 1,050 us is
    /// 9 periods in one sample, and the rest of 50 us, with 50 us at 0.2, is 0.1.
    #[test]
    fn a_sample_is_the_mean_of_its_time() {
        let mut meter = Meter::new(0, 10_000, 0);
        meter.count(Span::new(0, 30_000), dram(0.5));
        meter.count(Span::new(30_000, 90_000), dram(1.0));
        meter.count(Span::new(90_000, 1_050_000), dram(0.0));
        meter.count(Span::new(1_050_000, 1_100_000), dram(0.2));
        let samples: Vec<_> = meter.take().into_iter().filter_map(known).collect();
        assert_eq!(
            samples,
            [
                (0, 100_000, 0.75),
                (100_000, 1_000_000, 0.0),
                (1_000_000, 1_100_000, 0.1)
            ]
        );
    }

    /// 6.4 s at 20 kHz would be 128,000 samples: 64 of 2,000 periods, and the one that had begun before. The last 10 us are of one
    /// that is not over.
    #[test]
    fn a_long_time_without_a_change_has_few_samples() {
        let mut meter = Meter::new(0, 20_000, 0);
        meter.count(Span::new(0, 10_000), dram(0.5));
        meter.count(Span::new(10_000, 6_400_060_000), dram(0.5));
        let samples: Vec<_> = meter.take().into_iter().filter_map(known).collect();
        assert_eq!(samples.len(), 65);
        assert_eq!(samples[1], (50_000, 100_050_000, 0.5));
    }

    fn known(it: Hardware) -> Option<(Ns, Ns, f64)> {
        let Hardware::Sample(it) = it else {
            return None;
        };
        let dram = it.values.iter().find(|it| it.0 == Metric::Dram)?.1;
        Some((it.span.start, it.span.end, (dram * 1e9).round() / 1e9))
    }
}
