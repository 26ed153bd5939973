//! Whether one set of samples tends to be larger than another, and by what factor: ranks only.

use super::{ALPHA, INTERVAL_MIN, TEST_MIN, sorted};

/// Up to this many samples together the distribution of the rank sum is counted out. Above, it is normal to within what
/// a verdict could notice.
const EXACT_MAX: usize = 50;

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The Mann-Whitney U test: how often two sets of one distribution would lie at least as far apart, in
/// either direction. Equal samples share their ranks. `None` with fewer than [`TEST_MIN`] on either side.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len().min(b.len()) < TEST_MIN {
        return None;
    }
    let groups = Groups::of(a, b);
    Some(if a.len() + b.len() <= EXACT_MAX {
        groups.exact()
    } else {
        groups.normal()
    })
}

/// Samples of both sides in order, equal ones together.
struct Groups {
    /// For each distinct value: how many samples have it, and twice their common rank.
    ties: Vec<(usize, usize)>,
    /// Samples of the first side.
    first: usize,
    /// All samples.
    all: usize,
    /// Twice the sum of the ranks of the first side.
    rank_sum: usize,
}

impl Groups {
    fn of(a: &[f64], b: &[f64]) -> Groups {
        let mut all: Vec<(f64, bool)> = a.iter().map(|&s| (s, true)).collect();
        all.extend(b.iter().map(|&s| (s, false)));
        all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
        let mut groups = Groups {
            ties: Vec::new(),
            first: a.len(),
            all: all.len(),
            rank_sum: 0,
        };
        let mut before = 0;
        for tie in all.chunk_by(|x, y| x.0 == y.0) {
            // Ranks before + 1 to before + n have the mean before + (n + 1) / 2.
            let rank = 2 * before + tie.len() + 1;
            groups.rank_sum += rank * tie.iter().filter(|s| s.1).count();
            groups.ties.push((tie.len(), rank));
            before += tie.len();
        }
        groups
    }

    /// Counts all ways to choose the first side's samples by the rank sum they have.
    fn exact(&self) -> f64 {
        let sums = self.all * (self.all + 1) + 1;
        // ways[chosen][twice the rank sum]
        let mut ways = vec![vec![0.0_f64; sums]; self.first + 1];
        ways[0][0] = 1.0;
        for &(size, rank) in &self.ties {
            // From the most chosen down, so that each group is used once.
            for chosen in (1..=self.first).rev() {
                let mut choices = 1.0;
                for take in 1..=size.min(chosen) {
                    choices *= (size + 1 - take) as f64 / take as f64;
                    let (fewer, more) = ways.split_at_mut(chosen);
                    let from = &fewer[chosen - take];
                    let shift = take * rank;
                    for sum in shift..sums {
                        if from[sum - shift] != 0.0 {
                            more[0][sum] += choices * from[sum - shift];
                        }
                    }
                }
            }
        }
        let ways = &ways[self.first];
        let all: f64 = ways.iter().sum();
        let low: f64 = ways[..=self.rank_sum].iter().sum();
        let high: f64 = ways[self.rank_sum..].iter().sum();
        (2.0 * low.min(high) / all).min(1.0)
    }

    /// The normal approximation, its variance corrected for ties and its distance for continuity.
    fn normal(&self) -> f64 {
        let (n, all) = (self.first as f64, self.all as f64);
        let m = all - n;
        let tied: f64 = self
            .ties
            .iter()
            .map(|&(size, _)| (size as f64).powi(3) - size as f64)
            .sum();
        let variance = n * m / 12.0 * ((all + 1.0) - tied / (all * (all - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let u = self.rank_sum as f64 / 2.0 - n * (n + 1.0) / 2.0;
        let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
        erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
    }
}

/// The complementary error function of what is not negative (Abramowitz and Stegun, Handbook of Mathematical Functions). It is
/// the series 7.1.6. For large `x` that cancels: there it is the continued fraction 7.1.14.
fn erfc(x: f64) -> f64 {
    let root_pi = std::f64::consts::PI.sqrt();
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        1.0 - 2.0 / root_pi * (-x * x).exp() * sum
    } else {
        let fraction = (1..100)
            .rev()
            .fold(x, |rest, n| x + f64::from(n) / 2.0 / rest);
        (-x * x).exp() / root_pi / fraction
    }
}

/// The factor by which samples of `b` are larger than those of `a`, as a 95 % interval. It is the test above turned
/// round (Hodges and Lehmann), so it holds 1 where the test shows nothing. Its ends are ratios of a sample of `b` to
/// one of `a`. `None` with fewer than [`INTERVAL_MIN`] on either side.
pub fn ratio_interval(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    if a.len().min(b.len()) < INTERVAL_MIN {
        return None;
    }
    let outside = ratios_outside(a.len(), b.len());
    if outside == 0 {
        return None;
    }
    let (a, b) = (sorted(a), sorted(b));
    let all = a.len() * b.len();
    Some((
        nth_ratio(&a, &b, outside),
        nth_ratio(&a, &b, all + 1 - outside),
    ))
}

/// The interval begins with this one of the sorted ratios, from 1. It is the greatest for which U stays below it on at
/// most [`ALPHA`] of all orders, both sides together.
fn ratios_outside(n: usize, m: usize) -> usize {
    let (nf, mf) = (n as f64, m as f64);
    if n + m > EXACT_MAX {
        let spread = (nf * mf * (nf + mf + 1.0) / 12.0).sqrt();
        return (nf * mf / 2.0 - Z * spread).floor().max(0.0) as usize;
    }
    // Orders of n and m samples by U. The last sample belongs to the second side (it adds nothing to U of the first),
    // or to the first (it is above all m).
    let most = n * m;
    let mut orders = vec![vec![0.0_f64; most + 1]; m + 1];
    for row in &mut orders {
        row[0] = 1.0;
    }
    for _ in 0..n {
        let fewer = std::mem::replace(&mut orders, vec![vec![0.0; most + 1]]);
        orders[0][0] = 1.0;
        for j in 1..=m {
            let mut row = orders[j - 1].clone();
            for (orders, above) in row.iter_mut().skip(j).zip(&fewer[j]) {
                *orders += above;
            }
            orders.push(row);
        }
    }
    let all: f64 = orders[m].iter().sum();
    let mut below = 0.0;
    orders[m]
        .iter()
        .take_while(|&&count| {
            below += count;
            2.0 * below / all <= ALPHA
        })
        .count()
}

/// The `n`th of all ratios b / a in order, from 1, without writing them down. It halves the values that a ratio can
/// have: positive floating point numbers are in the order of their bits.
fn nth_ratio(a: &[f64], b: &[f64], n: usize) -> f64 {
    let up_to = |ratio: f64| {
        let mut from = 0;
        let mut count = 0;
        for &b in b {
            // The larger b, the larger a must be; ratios fall as a rises.
            while from < a.len() && b / a[from] > ratio {
                from += 1;
            }
            count += a.len() - from;
        }
        count
    };
    let (mut low, mut high) = (0, f64::MAX.to_bits());
    while low < high {
        let middle = low.midpoint(high);
        if up_to(f64::from_bits(middle)) >= n {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(low)
}

#[cfg(test)]
mod tests {
    use super::erfc;

    /// From Python's `math.erfc`.
    #[test]
    fn the_error_function_is_that_of_the_c_library() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.1, 0.8875370839817152),
            (0.5, 0.4795001221869535),
            (1.0, 0.15729920705028513),
            (2.0, 0.004677734981047265),
            (2.499, 0.0004091357557446054),
            (2.5, 0.0004069520174449589),
            (3.0, 2.2090496998585438e-05),
            (5.0, 1.5374597944280351e-12),
            (10.0, 2.088487583762545e-45),
            (26.0, 5.663192408856143e-296),
        ] {
            let found = erfc(x);
            assert!((found / expected - 1.0).abs() < 1e-11, "{x}: {found}");
        }
    }
}
