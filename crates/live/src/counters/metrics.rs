//! What is sampled.

use activity::Metric;

/// A metric, what turns NVIDIA's numbers into ours, and NVIDIA's names for it: that of most chips first.
pub(super) struct WantedMetric {
    pub(super) metric: Metric,
    pub(super) scale: f64,
    names: &'static [&'static str],
}

macro_rules! wanted {
    ($($metric:ident $scale:ident $($name:literal)+;)*) => {
        [$(WantedMetric { metric: Metric::$metric, scale: $scale, names: &[$($name),+] }),*]
    };
}

const ONE: f64 = 1.0;
const PERCENT: f64 = 0.01;
const MEGA: f64 = 1e-6;

/// Most wanted first: what one pass does not hold with those before it is left out. The tensor cores' `_realtime` is the same
/// count by another way, where the first needs a pass of its own.
pub(super) const WANTED: [WantedMetric; 12] = wanted! {
    Sm PERCENT "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
    Dram PERCENT "dram__throughput.avg.pct_of_peak_sustained_elapsed";
    Tensor PERCENT "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
        "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed";
    Issue PERCENT "sm__issue_active.avg.pct_of_peak_sustained_elapsed";
    DramRead ONE "dram__bytes_read.sum.per_second";
    DramWrite ONE "dram__bytes_write.sum.per_second";
    L2 ONE "lts__t_bytes.sum.per_second";
    Clock MEGA "gpc__cycles_elapsed.avg.per_second";
    // What the GPU reads comes to it.
    PcieIn ONE "pcie__read_bytes.sum.per_second";
    PcieOut ONE "pcie__write_bytes.sum.per_second";
    NvlinkIn ONE "nvlrx__bytes.sum.per_second";
    NvlinkOut ONE "nvltx__bytes.sum.per_second";
};

/// Samples a second from which on only what tells most is counted: of all twelve, some 8,000 a second are decoded and evaluated.
const MANY: u32 = 6_000;

/// What is asked for at a rate.
pub(super) fn names(hz: Option<u32>) -> Vec<&'static [&'static str]> {
    let most = match hz {
        Some(MANY..) => 3,
        _ => WANTED.len(),
    };
    WANTED[..most].iter().map(|it| it.names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupti_sys::pm::{Choice, PmApi};
    use std::ffi::CString;

    /// By NVIDIA's own library, which needs no GPU to say what a pass holds: these chips' sets are what
    /// docs/HARDWARE.md tells.
    #[test]
    #[ignore = "needs a libcupti, named by CUPTOP_TEST_CUPTI"]
    fn one_pass_holds_what_is_wanted_on_every_chip_of_a_data_centre() {
        let list = std::env::var_os("CUPTOP_TEST_CUPTI").expect("CUPTOP_TEST_CUPTI names them");
        for path in std::env::split_paths(&list).filter(|it| !it.as_os_str().is_empty()) {
            let api = PmApi::open(&path).expect("PM sampling");
            for (chip, left_out) in [
                ("GA100", &[][..]),
                ("GH100", &[]),
                ("GB100", &[Metric::PcieIn, Metric::PcieOut]),
                ("AD102", &[Metric::NvlinkIn, Metric::NvlinkOut]),
                ("TU102", &[Metric::Dram, Metric::Tensor]),
            ] {
                let name = CString::new(chip).expect("a name");
                let choice = Choice::of(api, &name, None, &names(None)).expect("a choice");
                assert_eq!(choice.config.passes, 1);
                let has = |place| choice.metrics.iter().any(|it| it.0 == place);
                let missing: Vec<Metric> = (0..WANTED.len())
                    .filter(|&place| !has(place))
                    .map(|place| WANTED[place].metric)
                    .collect();
                assert_eq!(missing, left_out, "{chip} {}", path.display());
            }
            let name = CString::new("XX999").expect("a name");
            assert!(Choice::of(api, &name, None, &names(None)).is_err());
        }
    }
}
