//! What kernels declare of their work, beside what counters saw of it.

use serde::Serialize;

use super::VariantFigures;
use super::measure::Run;
use crate::class::Class;
use crate::shapes::Use;
use scenario::figures::{Figure, Kind};

/// A kernel of a scenario that declares its work and was sampled. Shares are those of the GPU's peaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Its name in the scenario.
    pub kernel: String,
    /// What its declared bytes, in its time, take of the memory's bandwidth.
    pub declared_dram_share: Option<f64>,
    /// What its declared operations take of the arithmetic in single precision.
    pub declared_flops_share: Option<f64>,
    pub dram_share: Option<f64>,
    pub issue_share: Option<f64>,
    pub tensor_share: Option<f64>,
    pub class: Class,
}

/// Those of a variant. Their samples are from all its measured passes.
pub fn of_variant(run: &Run<'_>, of: &VariantFigures) -> Vec<Work> {
    let kernels = of.planned(run.plan).map(|it| it.kernels.as_slice());
    let kernels = kernels.unwrap_or_default();
    let work = kernels.iter().filter_map(|kernel| {
        // Samples go by entry point.
        if kernels.iter().filter(|it| it.entry == kernel.entry).count() > 1 {
            return None;
        }
        let row = of.kernels.iter().find(|row| row.name == kernel.entry)?;
        let counted = Use::of(&row.shapes)?;
        let share = |kind, peak: Option<f64>| {
            let value = run.measure(of, &Figure::new(kind, &*kernel.name)).ok()?;
            Some(value / peak?)
        };
        let declared_dram_share = share(Kind::KernelGbps, run.peaks.memory);
        let declared_flops_share = share(Kind::KernelFlops, run.peaks.flops);
        (declared_dram_share.is_some() || declared_flops_share.is_some()).then(|| Work {
            kernel: kernel.name.clone(),
            declared_dram_share,
            declared_flops_share,
            dram_share: counted.dram,
            issue_share: counted.issue,
            tensor_share: counted.tensor,
            class: counted.class,
        })
    });
    work.collect()
}
