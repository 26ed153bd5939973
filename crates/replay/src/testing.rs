//! A GPU with round numbers.

use crate::program::GpuRates;

/// A GPU with round numbers. Nobody measured graphs on it.
pub fn known() -> GpuRates {
    GpuRates {
        source: "made up".to_owned(),
        h2d_gbps: Some(50.0),
        d2h_gbps: Some(50.0),
        copy_fixed: Some([1_000, 1_000]),
        copy_call: Some(2_000),
        sync_call: Some(500),
        launch_call: Some(3_000),
        launch: Some([5_000, 4_000]),
        kernel_fixed: Some(500),
        queued: Some([1_000, 1_000, 1_000, 1_000]),
        event: Some(1_000),
        wake: Some(2_000),
        ..GpuRates::default()
    }
}

/// The same GPU, on which somebody measured graphs.
pub fn known_with_graphs() -> GpuRates {
    GpuRates {
        graph_call: Some([1_000, 100]),
        graph_upload: Some(300),
        graph_node: Some(200),
        ..known()
    }
}
