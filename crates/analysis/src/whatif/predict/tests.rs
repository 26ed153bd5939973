//! The interval of a prediction, by hand.

use super::super::WhatIf;
use super::spread;
use crate::Facts;
use crate::program::GpuRates;
use crate::testing::Scene as Made;
use activity::{Ns, RangeKind};

/// Predicts a graph of three kernels of 1 us that are launched so far apart, on a GPU with round numbers.
fn graph(apart: Ns) -> Result<[Ns; 3], String> {
    let mut made = Made::new();
    for i in 0..3 {
        let at = apart * i;
        made.call("cudaLaunchKernel", at, at + apart.min(3_000));
        made.kernel("k", 7, at + 5_000, at + 6_000);
    }
    let trace = made.trace();
    let known = GpuRates {
        launch_call: Some(3_000),
        launch: Some([5_000, 4_000]),
        kernel_fixed: Some(500),
        graph_call: Some([1_000, 100]),
        graph_upload: Some(300),
        graph_node: Some(200),
        queued: Some([1_000; 4]),
        ..GpuRates::default()
    };
    let mut facts = Facts::new(&trace);
    facts.known = known;
    let whatif = WhatIf::new(&facts, None).expect("operations");
    assert_eq!(whatif.replay_error(), 0.0);
    let outcome = whatif.predict(&"graph".parse().expect("an edit")).outcome?;
    assert!(outcome.unknowns[0].contains("530 ns") && outcome.unknowns.len() == 1);
    // The greatest end is almost four times the least.
    assert!(outcome.is_open);
    Ok([outcome.low, outcome.predicted, outcome.high])
}

#[test]
fn what_no_record_tells_is_in_the_interval() {
    // 530 ns a node; 1 us each and 200 ns between them; one every 2.8 us.
    let expected = [3 * 530, 3 * 1_000 + 2 * 200, 2 * 2_800 + 1_000];
    assert_eq!(graph(10_000), Ok(expected));
}

#[test]
fn what_may_save_or_cost_is_refused() {
    // Launched every 2.5 us they take 6 us: fewer than the 6.6 us that the graph may take.
    let refused = graph(2_500).expect_err("refused");
    assert!(
        refused.starts_with("it would take 1.59 µs to 6.60 µs where 6.00 µs were measured"),
        "{refused}"
    );
}

#[test]
fn of_few_repeats_that_differ_by_more_than_a_factor_of_two_no_median_is_told() {
    // Repeats in which a kernel takes so long, and a copy before it 10 us, which are left out.
    let open = |kernels: &[Ns]| {
        let mut made = Made::new();
        for (i, &kernel) in kernels.iter().enumerate() {
            let at = i as Ns * 1_000_000;
            made.range(RangeKind::Repeat, "v", i as u32, at, at + 900_000);
            made.call("cudaLaunchKernel", at + 10, at + 3_000);
            made.kernel("first", 7, at + 5_000, at + 15_000);
            made.call("cudaLaunchKernel", at + 4_000, at + 7_000);
            made.kernel("second", 7, at + 16_000, at + 16_000 + kernel);
            made.call("cudaDeviceSynchronize", at + 8_000, at + 800_000);
        }
        made.range(
            RangeKind::Variant,
            "v",
            0,
            0,
            kernels.len() as Ns * 1_000_000,
        );
        let trace = made.trace();
        let facts = Facts::new(&trace);
        let whatif = WhatIf::new(&facts, Some("v")).expect("repeats");
        assert_eq!(whatif.samples().len(), kernels.len());
        let outcome = whatif
            .predict(&"drop:first".parse().expect("an edit"))
            .outcome;
        outcome.expect("predicted").is_open
    };
    assert!(open(&[2_000, 30_000, 90_000]));
    assert!(!open(&[30_000, 31_000, 59_000]));
    // A median of six says where the middle is, wherever the others are.
    assert!(!open(&[2_000, 30_000, 31_000, 32_000, 33_000, 90_000]));
}

#[test]
fn the_interval_of_many_steps_leaves_the_outermost_out() {
    // Of 40 the two least and the two greatest; of 19 none.
    let samples: Vec<Ns> = (1..=40).rev().collect();
    assert_eq!(spread(&samples), (3, 38));
    assert_eq!(spread(&samples[..19]), (22, 40));
}
