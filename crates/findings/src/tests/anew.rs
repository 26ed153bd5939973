//! What is done anew each time, and in more bytes than it needs.

use super::limits::Busy;
use super::*;

/// Of kernels of a millisecond in all, ten times: `wide` takes nine tenths.
fn of(wide: &str, other: &str) -> Option<Finding> {
    let mut busy = Busy::default();
    for _ in 0..10 {
        busy.kernel(wide, 2_904, 9, None);
        busy.kernel(other, 2_904, 1, None);
    }
    busy.found("double-precision")
}

#[test]
fn arrays_that_became_double_take_twice_the_bytes() {
    let mixed = "cupy_multiply__float32_float64_float64";
    let fft = "void regular_fft<2048u, EPT<8u>, unsigned int, double, Host>(kernel_arguments)";
    let found = of(fft, mixed).expect("double");
    // Half of 10 ms.
    assert_eq!(
        (found.bound_ns, found.severity),
        (5_000_000, Severity::Warning)
    );
    assert!(found.title.contains("(100 %)") && found.title.contains("makes double of both"));
    // Nobody mixed anything: it may be wanted.
    assert!(of(fft, "cupy_multiply__float64_float64_float64").is_none());
    let single = "void regular_fft<2048u, EPT<8u>, unsigned int, float, Host>(kernel_arguments)";
    assert!(of(single, "cupy_multiply__float32_float32_float32").is_none());
    // Few of all are; a program's own kernels are as it wants them.
    assert!(of("cupy_multiply__float32_float32_float32", "sum").is_none());
    assert!(
        of(
            "step(double*, double*)",
            "cupy_add__float32_float32_float32"
        )
        .is_none()
    );
}

#[test]
fn a_sparse_tensor_that_is_coalesced_each_time_is_told() {
    let of = |times: usize, name: &str| {
        let mut busy = Busy::default();
        for _ in 0..10 {
            busy.kernel(
                "at::cub::merge_sort::DeviceMergeSortMergeKernel<long>",
                2_904,
                4,
                None,
            );
            busy.kernel("cusparse::csrmm_alg1_kernel<float>", 2_904, 2, None);
        }
        for _ in 0..times {
            busy.kernel(name, 2_904, 4, None);
        }
        busy.found("coalescing")
    };
    let adds = "void at::native::apply::coalesceValuesKernel<float, float>(long*)";
    // 4 ms of sorting and 4 of adding up.
    assert_eq!(of(10, adds).map(|it| it.bound_ns), Some(8_000_000));
    // Once is what is advised; and who sorts has other reasons.
    assert!(of(1, adds).is_none());
    assert!(of(10, "at::native::index_elementwise_kernel<float>").is_none());
}
