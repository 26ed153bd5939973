//! How one clock runs against another: an offset and a drift, found so that single outliers do not move them.

use activity::Ns;
use activity::stats;
pub(crate) use trace::Clock as Line;

/// Points from which a drift is taken; with fewer it is 0.
const DRIFT_MIN: usize = 8;
/// A drift is believed that makes the points lie closer in so many parts of the time, …
const PARTS: usize = 4;
/// … of those with so many points, …
const PART_MIN: usize = 3;
/// … and that is so many times its standard error.
const ERRORS: f64 = 2.0;
/// Points of which all pairs are looked at.
const PAIRS: usize = 150;

/// A line through times on this clock and on the other. It is the median of the slopes between them (Theil and Sen),
/// then weighted by how far each lies off (Tukey's biweight). `None` without points.
///
/// With a line that is `about` right it goes without the median of all slopes, which takes most of the time.
pub(super) fn through(points: &[(Ns, Ns)], about: Option<&Line>) -> Option<Line> {
    let &(first, to) = points.first()?;
    let base = to.saturating_sub(first);
    let at = first.midpoint(points.last()?.0);
    // Against the first point, so that numbers stay small: hours between clocks are common.
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|&(x, y)| {
            let offset = y.saturating_sub(x).saturating_sub(base);
            (x.saturating_sub(at) as f64, offset as f64)
        })
        .collect();
    let mut drift = if points.len() < DRIFT_MIN {
        0.0
    } else {
        about.map_or_else(|| slope(&points), |line| line.drift)
    };
    let off = |drift: f64| {
        points
            .iter()
            .map(|(x, y)| y - drift * x)
            .collect::<Vec<_>>()
    };
    let mut offset = stats::median(&off(drift))?;
    if points.len() >= DRIFT_MIN {
        for _ in 0..5 {
            (offset, drift) = weighted(&points, offset, drift);
        }
        let even = stats::median(&off(0.0))?;
        if !is_proven(&points, (offset, drift), even) {
            (offset, drift) = (even, 0.0);
        }
    }
    Some(Line {
        at,
        offset: base.saturating_add(offset.round() as Ns),
        drift,
    })
}

/// Whether a drift is one of the clocks. What lies close together in time may have any slope by chance. So the points must lie closer
/// over the whole time than with the offset alone, and no part of it further off than any did.
fn is_proven(points: &[(f64, f64)], (offset, drift): (f64, f64), even: f64) -> bool {
    let [first, last] = [f64::min, f64::max].map(|of| {
        let times = points.iter().map(|it| it.0);
        times.reduce(of).unwrap_or(0.0)
    });
    let mut parts: [[Vec<f64>; 2]; PARTS] = Default::default();
    for (x, y) in points {
        let part = (x - first) / (last - first).max(1.0) * PARTS as f64;
        let [with, without] = &mut parts[(part as usize).min(PARTS - 1)];
        with.push(y - offset - drift * x);
        without.push(y - even);
    }
    let off = |which: usize| -> (f64, f64) {
        let parts = parts.iter().filter(|part| part[0].len() >= PART_MIN);
        let medians = parts.filter_map(|part| Some(stats::median(&part[which])?.powi(2)));
        medians.fold((0.0, 0.0), |(sum, most), it| (sum + it, it.max(most)))
    };
    let (with, without) = (off(0), off(1));
    let left = parts.iter().flat_map(|part| &part[0]);
    let spread: Vec<f64> = left.map(|it| it.abs()).collect();
    let spread = 1.4826 * stats::median(&spread).unwrap_or(0.0);
    let mean = points.iter().map(|it| it.0).sum::<f64>() / points.len() as f64;
    let around: f64 = points.iter().map(|it| (it.0 - mean).powi(2)).sum();
    with.0 < without.0 && with.1 < without.1 && drift.abs() * around.sqrt() >= ERRORS * spread
}

/// The median slope of at most [`PAIRS`] points spread over all.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().min(PAIRS);
    let some: Vec<(f64, f64)> = (0..count)
        .map(|i| points[i * (points.len() - 1) / (count - 1).max(1)])
        .collect();
    let mut slopes = Vec::with_capacity(count * count / 2);
    for (i, a) in some.iter().enumerate() {
        for b in &some[i + 1..] {
            if b.0 > a.0 {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    stats::median(&slopes).unwrap_or(0.0)
}

/// One round of least squares with Tukey's weights: points beyond 4.7 deviations have none.
fn weighted(points: &[(f64, f64)], offset: f64, drift: f64) -> (f64, f64) {
    let off = |(x, y): &(f64, f64)| y - offset - drift * x;
    let Some(spread) = stats::median(&points.iter().map(|p| off(p).abs()).collect::<Vec<_>>())
    else {
        return (offset, drift);
    };
    let limit = (4.685 * 1.4826 * spread).max(1.0);
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in points {
        let far = off(point) / limit;
        if far.abs() >= 1.0 {
            continue;
        }
        let weight = (1.0 - far * far).powi(2);
        w += weight;
        wx += weight * point.0;
        wy += weight * point.1;
        wxx += weight * point.0 * point.0;
        wxy += weight * point.0 * point.1;
    }
    let below = w * wxx - wx * wx;
    if w < 3.0 || below <= 0.0 {
        return (offset, drift);
    }
    let drift = (w * wxy - wx * wy) / below;
    ((wy - drift * wx) / w, drift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y = x + 2 h + 1.7 ms - 20 ppm of x, every hundredth point off by 5 ms, the others by up to 30 us.
    #[test]
    fn a_line_is_found_among_outliers() {
        let hours: Ns = 7_200_000_000_000;
        let points: Vec<(Ns, Ns)> = (0..1_000i64)
            .map(|i| {
                let x = 1_790_000_000_000_000_000 + i * 10_000_000;
                let noise = (i * 7919) % 60_001 - 30_000;
                let far = if i % 100 == 7 { 5_000_000 } else { 0 };
                let drift = i * 10_000_000 / 50_000;
                (x, x + hours + 1_700_000 - drift + noise + far)
            })
            .collect();
        let line = through(&points, None).expect("a line");
        assert!((line.drift + 20e-6).abs() < 1e-6, "{line:?}");
        let (x, i) = (points[500].0, 500i64);
        let truth = x + hours + 1_700_000 - i * 200;
        assert!((line.apply(x) - truth).abs() < 5_000, "{line:?}");
        assert!((line.invert(line.apply(x)) - x).abs() <= 1);
        let back = Line {
            offset: -line.offset,
            at: line.at + line.offset,
            drift: 1.0 / (1.0 + line.drift) - 1.0,
        };
        assert!((line.then(&back).apply(x) - x).abs() <= 2);
    }

    /// Clocks that agree from the first to the last point, nearly all of which lie in the last tenth. There ends lie apart by up to 6 us
    /// more the later they are; with such a slope the first would lie off by 60. It is believed where they do.
    #[test]
    fn a_slope_of_a_short_stretch_is_no_drift() {
        let late = (0..100i64).map(|i| (900_000_000 + i * 1_000_000, i * 60 + i * 7_919 % 700));
        for (drift, expected) in [(0, 0.0), (60, 60e-6)] {
            let early = (0..8i64).map(|i| {
                let x = i * 100_000_000;
                (x, (x - 900_000_000) / 1_000_000 * drift + i * 37 % 200)
            });
            let points = early.chain(late.clone()).map(|(x, y)| (x, x + y));
            let line = through(&points.collect::<Vec<_>>(), None).expect("a line");
            assert!((line.drift - expected).abs() < 3e-6, "{line:?}");
        }
    }

    #[test]
    fn few_points_make_an_offset_alone() {
        let line = through(&[(0, 10), (100, 130), (200, 212)], None).expect("a line");
        assert_eq!((line.offset, line.drift), (12, 0.0));
        assert!(through(&[], None).is_none());
    }
}
