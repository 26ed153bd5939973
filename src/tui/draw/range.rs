//! An axis of a chart, linear or logarithmic, and its round values.

/// One axis: how values become shares of its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) is_log: bool,
}

impl Range {
    /// The range of some values, logarithmic only where all are positive.
    pub(super) fn of(values: impl Iterator<Item = f64>, is_log: bool) -> Option<Range> {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|v| v.is_finite()) {
            min = min.min(value);
            max = max.max(value);
        }
        if min > max {
            return None;
        }
        let is_log = is_log && min > 0.0;
        if min == max {
            (min, max) = if is_log {
                (min / 2.0, max * 2.0)
            } else {
                (min - 1.0, max + 1.0)
            };
        }
        Some(Range { min, max, is_log })
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.is_log {
            (value / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        }
    }

    /// The value at a share.
    pub(super) fn value(&self, share: f64) -> f64 {
        if self.is_log {
            self.min * (self.max / self.min).powf(share)
        } else {
            self.min + share * (self.max - self.min)
        }
    }

    /// Powers of two within, at most `count` of them, for a logarithmic axis.
    pub(super) fn binary_ticks(&self, count: usize) -> Vec<f64> {
        let (from, to) = (
            self.min.log2().ceil() as i32,
            self.max.log2().floor() as i32,
        );
        let every = (to - from) / count.max(1) as i32 + 1;
        (from..=to)
            .filter(|power| power.rem_euclid(every) == 0)
            .map(|power| 2f64.powi(power))
            .collect()
    }

    /// Round values within, about `count` of them.
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        let count = count.max(2) as f64;
        if self.is_log {
            let decades = (self.max / self.min).log10();
            let digits: &[f64] = match decades {
                d if d < count / 3.0 => &[1.0, 2.0, 5.0],
                _ => &[1.0],
            };
            let every = (decades / count).ceil().max(1.0) as i32;
            let (from, to) = (
                self.min.log10().floor() as i32,
                self.max.log10().ceil() as i32,
            );
            return (from..=to)
                .filter(|power| power.rem_euclid(every) == 0)
                .flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)))
                .filter(|v| (self.min..=self.max).contains(v))
                .collect();
        }
        let rough = (self.max - self.min) / count;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|d| d * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.min / step).ceil() as i64;
        (first..)
            .map(|i| i as f64 * step)
            .take_while(|v| *v <= self.max)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::units::number;

    #[test]
    fn axes_have_round_ticks() {
        let log = Range::of([3.0, 4_000.0].into_iter(), true).expect("values");
        assert_eq!(log.ticks(4), [10.0, 100.0, 1000.0]);
        let linear = Range::of([0.0, 57.0].into_iter(), false).expect("values");
        assert_eq!(linear.ticks(5), [0.0, 20.0, 40.0]);
        assert!((log.value(log.share(100.0)) - 100.0).abs() < 1e-9);
        let sizes = Range::of([4096.0, 268_435_456.0].into_iter(), true).expect("values");
        let ticks: Vec<String> = sizes.binary_ticks(6).into_iter().map(number).collect();
        assert_eq!(
            ticks,
            ["4096", "32 Ki", "256 Ki", "2 Mi", "16 Mi", "128 Mi"]
        );
        assert_eq!(Range::of(std::iter::empty(), true), None);
    }
}
