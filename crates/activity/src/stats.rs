//! Statistics of samples of which nothing is assumed: medians, their intervals, and whether two sets differ.
//!
//! The conventions are those of Go's `benchstat`. A set of samples is described by its median and an interval between
//! two of its own samples. The interval holds the true median with 95 % confidence, whatever the distribution. The
//! Mann-Whitney U test ([`rank`]) compares two sets, and a difference is only called one when it is shown. [`TEST_MIN`]
//! samples a side are the fewest for which the test can say p < 0.05 at all. [`INTERVAL_MIN`] are the fewest whose
//! least and greatest are such an interval.

pub mod rank;

use rank::{mann_whitney, ratio_interval};

use crate::Ns;

/// A difference is shown when chance alone would give it less often than this.
pub const ALPHA: f64 = 0.05;
/// Fewest samples a side for p < 0.05: of 3 and 3 the most extreme order has p = 0.1.
pub const TEST_MIN: usize = 4;
/// Fewest samples for a 95 % interval of the median: that of 5 samples covers 93.75 %.
pub const INTERVAL_MIN: usize = 6;

/// Samples of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Their median.
    pub median: f64,
    /// The 95 % interval of the median; `None` for fewer than [`INTERVAL_MIN`].
    pub interval: Option<(f64, f64)>,
}

impl Summary {
    /// Describes samples in any order; `None` when there is none.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        Some(Summary {
            count: samples.len(),
            median: median(samples)?,
            interval: median_interval(samples),
        })
    }

    /// The larger distance of the interval's ends from the median, as a share of the median ("± 3 %").
    pub fn spread(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        (self.median > 0.0).then(|| (self.median - low).max(high - self.median) / self.median)
    }
}

/// How the samples of B compare with those of A. All of them must be above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median of B over median of A.
    pub ratio: f64,
    /// The 95 % interval of that ratio; `None` with fewer than [`INTERVAL_MIN`] on either side.
    pub interval: Option<(f64, f64)>,
    /// How often chance alone would give as much; `None` with fewer than [`TEST_MIN`] on either side.
    pub p: Option<f64>,
    /// How many samples a side are needed for what is missing; `None` when nothing is.
    pub need: Option<usize>,
}

/// What is shown of a difference against a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// B takes longer by more than the threshold.
    Slower,
    /// B takes less time by more than the threshold.
    Faster,
    /// There are samples enough, and no such difference is shown.
    NotShown,
    /// There are too few samples to say.
    TooFew,
}

impl Difference {
    /// Compares two sets of samples; `None` when either is empty or holds a sample that is not above 0.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Difference> {
        if a.iter().chain(b).any(|&s| s.is_nan() || s <= 0.0) {
            return None;
        }
        let ratio = median(b)? / median(a)?;
        let fewest = a.len().min(b.len());
        Some(Difference {
            ratio,
            interval: ratio_interval(a, b),
            p: mann_whitney(a, b),
            need: (fewest < INTERVAL_MIN).then_some(if fewest < TEST_MIN {
                TEST_MIN
            } else {
                INTERVAL_MIN
            }),
        })
    }

    /// Whether a difference is shown at all: p below [`ALPHA`]. `None` when there are too few samples.
    pub fn is_shown(&self) -> Option<bool> {
        self.p.map(|p| p < ALPHA)
    }

    /// What is shown of it. A difference needs p below [`ALPHA`], and the nearer end of its interval beyond
    /// `threshold`, a share of A's time (0.05 for 5 %).
    pub fn verdict(&self, threshold: f64) -> Verdict {
        let (Some(p), Some((low, high))) = (self.p, self.interval) else {
            return Verdict::TooFew;
        };
        if p < ALPHA && low > 1.0 + threshold {
            Verdict::Slower
        } else if p < ALPHA && high < 1.0 - threshold {
            Verdict::Faster
        } else {
            Verdict::NotShown
        }
    }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median; of an even number the mean of the two in the middle.
pub fn median(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() {
        return None;
    }
    let (half, is_odd) = (samples.len() / 2, samples.len() % 2 == 1);
    let mut samples = samples.to_vec();
    let (below, &mut upper, _) = samples.select_nth_unstable_by(half, f64::total_cmp);
    if is_odd {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(lower, upper))
}

/// The median of times, to the nanosecond.
pub fn median_time(times: &[Ns]) -> Option<Ns> {
    let samples: Vec<f64> = times.iter().map(|&time| time as f64).collect();
    median(&samples).map(|median| median.round() as Ns)
}

/// The median of a list of times; of an even number the shorter of the two in the middle. It puts the list in another order.
pub fn lower_median(times: &mut [Ns]) -> Option<Ns> {
    let middle = times.len().checked_sub(1)? / 2;
    Some(*times.select_nth_unstable(middle).1)
}

/// The least sample that at least this share of all samples does not exceed (nearest rank).
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(samples);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Median distance from the median.
pub fn median_deviation(samples: &[f64]) -> Option<f64> {
    let middle = median(samples)?;
    let distances: Vec<f64> = samples.iter().map(|s| (s - middle).abs()).collect();
    median(&distances)
}

/// The geometric mean; `None` when there is no sample or one that is not above 0.
pub fn geometric_mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() || samples.iter().any(|&s| s.is_nan() || s <= 0.0) {
        return None;
    }
    let logs: f64 = samples.iter().map(|s| s.ln()).sum();
    Some((logs / samples.len() as f64).exp())
}

/// The two samples between which the true median lies with at least 95 % confidence, whatever the distribution. The
/// number of samples below it is binomial with one half.
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let outside = samples_outside(samples.len())?;
    let sorted = sorted(samples);
    Some((sorted[outside], sorted[sorted.len() - 1 - outside]))
}

/// How many samples at each end the interval leaves out: the most for which both tails together stay
/// within [`ALPHA`].
fn samples_outside(count: usize) -> Option<usize> {
    let n = count as f64;
    // The chance that exactly k of n samples lie below, as a logarithm: 2^-n is 0 from n = 1075 on.
    let mut log = -n * std::f64::consts::LN_2;
    let mut below = log.exp();
    let mut outside = None;
    for k in 0..count {
        if 2.0 * below > ALPHA {
            break;
        }
        outside = Some(k);
        log += ((n - k as f64) / (k as f64 + 1.0)).ln();
        below += log.exp();
    }
    outside
}

/// How far apart halves of one set of samples lie, as a share: what a comparison finds between a thing and itself. The
/// difference of medians that 95 % of 200 random halvings do not exceed. A larger one between the first half and the
/// second (a drift) counts instead. `None` for fewer than [`TEST_MIN`].
pub fn floor(samples: &[f64]) -> Option<f64> {
    const HALVINGS: usize = 200;
    /// Sums over more samples than this would take longer than they tell.
    const SAMPLES_MAX: usize = 1000;
    if samples.len() < TEST_MIN {
        return None;
    }
    let stride = samples.len().div_ceil(SAMPLES_MAX);
    let mut samples: Vec<f64> = samples.iter().copied().step_by(stride).collect();
    let apart = |samples: &[f64]| {
        let (first, second) = samples.split_at(samples.len() / 2);
        let (first, second) = (median(first)?, median(second)?);
        (first > 0.0 && second > 0.0).then(|| (first / second).max(second / first) - 1.0)
    };
    let drift = apart(&samples)?;
    // The same samples must give the same floor, so the shuffles come from a fixed seed (xorshift).
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut halvings = Vec::with_capacity(HALVINGS);
    for _ in 0..HALVINGS {
        for i in (1..samples.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            samples.swap(i, (state % (i as u64 + 1)) as usize);
        }
        halvings.push(apart(&samples)?);
    }
    Some(quantile(&halvings, 0.95)?.max(drift))
}

#[cfg(test)]
mod tests;
