//! What of some values is no chance.

/// Lateness of less than this part of the run is ordinary unevenness where nothing says why, or on a few steps here and there. GPUs of one
/// kind differ by so much (see `kernels`).
pub(super) const ORDINARY: f64 = 0.05;
/// A part of what a rank is behind by that is the reason of it.
pub(super) const MOST: f64 = 0.5;
/// So many standard errors of a mean are no chance.
pub(super) const CLEAR: f64 = 3.0;

/// Whether the mean is above 0 by more than chance makes of steps that scatter like these. Steps beside each other are alike, as who is
/// ahead stays so for a while. So the means of runs of steps scatter by more than as many single ones.
pub(super) fn is_clear(by_step: &[f64]) -> bool {
    let run = by_step.len().isqrt().max(1);
    let means: Vec<f64> = by_step.chunks_exact(run).map(mean).collect();
    mean(by_step) > CLEAR * standard_error(by_step).max(standard_error(&means))
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len().max(1) as f64
}

/// That of the mean; 0 of less than two values.
fn standard_error(of: &[f64]) -> f64 {
    let squares = of.iter().map(|it| (it - mean(of)).powi(2)).sum::<f64>();
    (squares / (of.len().max(2) - 1) as f64 / of.len().max(1) as f64).sqrt()
}

/// The steps on which lateness is out of the ordinary; none when it is much the same on all. In order of lateness the
/// widest distance parts them from the others: half of the greatest lateness at least.
pub(super) fn late_steps(by: &[f64], noise: f64, step: f64) -> Vec<usize> {
    let mut sorted = by.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&most) = sorted.last() else {
        return Vec::new();
    };
    let apart = |two: &&[f64]| two[1] - two[0];
    let widest = sorted
        .windows(2)
        .max_by(|a, b| apart(a).total_cmp(&apart(b)));
    let least = (most / 2.0).max(2.0 * noise).max(0.02 * step);
    let Some(&[_, from]) = widest.filter(|two| apart(two) >= least) else {
        return Vec::new();
    };
    let late: Vec<usize> = (0..by.len()).filter(|&i| by[i] >= from).collect();
    let all: f64 = late.iter().map(|&i| by[i]).sum();
    let is_most = all >= MOST * by.iter().sum::<f64>();
    if is_most && late.len() * 2 <= by.len() {
        late
    } else {
        Vec::new()
    }
}
