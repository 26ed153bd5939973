//! Against tables, and against counting out every order of the samples.

use proptest::prelude::*;

use super::rank::{mann_whitney, ratio_interval};
use super::*;

#[test]
fn medians_and_quantiles() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    // 1.5 ns are 2.
    assert_eq!(median_time(&[2, 1]), Some(2));
    assert_eq!(median_time(&[8, 4, 1, 2]), Some(3));
    assert_eq!(median_time(&[]), None);
    assert_eq!(lower_median(&mut [8, 4, 1, 2]), Some(2));
    assert_eq!(lower_median(&mut [3, 1, 2]), Some(2));
    assert_eq!(lower_median(&mut []), None);
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(quantile(&hundred, 0.95), Some(95.0));
    assert_eq!(quantile(&[7.0], 0.95), Some(7.0));
    // Distances from 3: 2, 1, 0, 1, 97.
    assert_eq!(median_deviation(&[1.0, 2.0, 3.0, 4.0, 100.0]), Some(1.0));
    assert!((geometric_mean(&[1.0, 4.0, 16.0]).expect("a mean") - 4.0).abs() < 1e-12);
    assert_eq!(geometric_mean(&[1.0, 0.0]), None);
}

/// The places of the interval's ends among the sorted samples, from the usual table of order statistics
/// (the sign test's; also sums of binomial coefficients over 2^n).
#[test]
fn intervals_of_the_median_are_those_of_the_table() {
    let table = [
        (6, (1, 6)),
        (8, (1, 8)),
        (9, (2, 8)),
        (10, (2, 9)),
        (15, (4, 12)),
        (20, (6, 15)),
        (25, (8, 18)),
        (50, (18, 33)),
        (100, (40, 61)),
    ];
    for (n, (low, high)) in table {
        let samples: Vec<f64> = (1..=n).rev().map(f64::from).collect();
        let expected = (f64::from(low), f64::from(high));
        assert_eq!(median_interval(&samples), Some(expected), "{n} samples");
    }
    assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
    // Where 2^-n is no floating point number any more: 1938th and 2063rd, summed in whole numbers.
    let many: Vec<f64> = (1..=4000).map(f64::from).collect();
    assert_eq!(median_interval(&many), Some((1938.0, 2063.0)));
}

/// Expected values: every choice of the first side among all samples counted out by `itertools`, rank
/// sums in fractions; twice the smaller tail. The first is 2 of 70 orders.
#[test]
fn small_tests_are_exact_with_ties() {
    let cases: [(&[i32], &[i32], f64); 7] = [
        (&[1, 2, 3, 4], &[5, 6, 7, 8], 1.0 / 35.0),
        (&[1, 2, 3, 4, 7], &[5, 6, 8, 9, 10], 2.0 / 63.0),
        (&[19, 22, 16, 29, 24], &[20, 11, 17, 12], 1.0 / 9.0),
        (&[1, 1, 2, 2, 3], &[2, 3, 3, 4, 4, 5], 10.0 / 231.0),
        (&[5, 5, 5, 5], &[5, 5, 5, 5], 1.0),
        (
            &[10, 10, 10, 11, 12, 12],
            &[10, 13, 13, 14, 14, 15, 15],
            5.0 / 286.0,
        ),
        (&[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6], 1.0),
    ];
    for (a, b, expected) in cases {
        let of = |side: &[i32]| side.iter().map(|&s| f64::from(s)).collect::<Vec<_>>();
        let p = mann_whitney(&of(a), &of(b)).expect("enough samples");
        assert!((p - expected).abs() < 1e-12, "{a:?} {b:?}: {p}");
        let turned = mann_whitney(&of(b), &of(a)).expect("enough samples");
        assert!((p - turned).abs() < 1e-12, "{a:?} {b:?}");
    }
    assert_eq!(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0]), None);
}

/// 40 and 35 samples with ties: U = 449.5 by counting pairs, p from Python's `math.erfc`.
#[test]
fn large_tests_are_normal_with_ties_corrected() {
    let a: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 31)).collect();
    let b: Vec<f64> = (0..35).map(|i| f64::from(i * 11 % 37 + 4)).collect();
    let p = mann_whitney(&a, &b).expect("enough samples");
    assert!((p - 0.007_909_334_083_060_384).abs() < 1e-12, "{p}");
    assert_eq!(mann_whitney(&[5.0; 60], &[5.0; 60]), Some(1.0));
}

/// The table of U says 5 for 6 and 6 samples at 5 %, both sides: the interval is from the 6th to the
/// 31st of the 36 ratios, 20/13 and 26/11 here.
#[test]
fn ratios_come_from_the_table_of_u() {
    let a = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    let b = [20.0, 21.0, 23.0, 24.0, 26.0, 29.0];
    assert_eq!(ratio_interval(&a, &b), Some((20.0 / 13.0, 26.0 / 11.0)));
    assert_eq!(ratio_interval(&a[..5], &b), None);
    // The tables of U for 8 and 8 (13), 10 and 10 (23), 6 and 9 (10): the next one is the interval's end.
    for (n, m, u) in [(8, 8, 13), (10, 10, 23), (6, 9, 10), (7, 7, 8)] {
        let a: Vec<f64> = (0..n).map(|i| f64::from(i) / 1000.0 + 1.0).collect();
        let b: Vec<f64> = (0..m).map(|i| f64::from(i) * 10.0 + 100.0).collect();
        let mut ratios: Vec<f64> = b
            .iter()
            .flat_map(|b| a.iter().map(move |a| b / a))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let expected = (ratios[u], ratios[ratios.len() - 1 - u]);
        assert_eq!(ratio_interval(&a, &b), Some(expected), "{n} and {m}");
    }
}

#[test]
fn a_verdict_needs_both_the_test_and_the_interval() {
    let a = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0];
    let slower = a.map(|s| s * 1.1);
    let d = Difference::of(&a, &slower).expect("samples");
    assert_eq!(d.is_shown(), Some(true));
    assert_eq!(d.verdict(0.05), Verdict::Slower);
    // 10 % slower, but the interval's lower end is nearer than 10 %.
    assert_eq!(d.verdict(0.1), Verdict::NotShown);
    let turned = Difference::of(&slower, &a).expect("samples");
    assert_eq!(turned.verdict(0.05), Verdict::Faster);
    let few = Difference::of(&a[..5], &slower).expect("samples");
    assert_eq!((few.verdict(0.0), few.need), (Verdict::TooFew, Some(6)));
    let one = Difference::of(&[10.0], &[20.0]).expect("samples");
    assert_eq!((one.ratio, one.p, one.need), (2.0, None, Some(4)));
    assert_eq!(Difference::of(&[0.0], &[1.0]), None);
    assert_eq!(Difference::of(&[], &[1.0]), None);
}

#[test]
fn the_floor_is_what_halves_differ_by() {
    assert_eq!(floor(&[5.0; 8]), Some(0.0));
    assert_eq!(floor(&[1.0, 2.0, 3.0]), None);
    // A drift: the first half's median is 100, the second's 120.
    let drift = [100.0, 100.0, 100.0, 120.0, 120.0, 120.0];
    let found = floor(&drift).expect("a floor");
    assert!((found - 0.2).abs() < 1e-12, "{found}");
}

fn samples() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((1i32..40).prop_map(f64::from), 6..14)
}

proptest! {
    #[test]
    fn the_same_samples_never_differ(a in samples()) {
        let d = Difference::of(&a, &a).expect("samples");
        prop_assert_eq!(d.ratio, 1.0);
        prop_assert_eq!(d.is_shown(), Some(false));
        prop_assert_eq!(d.verdict(0.0), Verdict::NotShown);
        let (low, high) = d.interval.expect("an interval");
        prop_assert!(low <= 1.0 && 1.0 <= high);
    }

    /// The two ends without a list of ratios are those of the list.
    #[test]
    fn ratios_are_found_without_listing_them(a in samples(), b in samples()) {
        let (low, high) = ratio_interval(&a, &b).expect("an interval");
        let mut ratios: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b / a)).collect();
        ratios.sort_by(f64::total_cmp);
        let from = ratios.iter().position(|&r| r == low).expect("one of the ratios");
        let to = ratios.iter().rposition(|&r| r == high).expect("one of the ratios");
        prop_assert!(from < to || low == high);
        // Turned round, the interval is that of the turned ratio, to rounding.
        let (turned_low, turned_high) = ratio_interval(&b, &a).expect("an interval");
        prop_assert!((turned_low * high - 1.0).abs() < 1e-9 && (turned_high * low - 1.0).abs() < 1e-9);
    }
}
