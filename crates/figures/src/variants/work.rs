//! What kernels declare of their work, beside what counters saw of it.

use serde::Serialize;

use super::VariantFigures;
use super::measure::Run;
use crate::class::{Class, NEAR};
use crate::shapes::Use;
use activity::units::percent;
use scenario::figures::{Figure, Kind};
use scenario::plan::KernelSpec;

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
    let work = declared(run, of).filter_map(|declared| {
        let row = of
            .kernels
            .iter()
            .find(|row| row.name == declared.kernel.entry)?;
        let counted = Use::of(&row.shapes)?;
        let Declared {
            kernel,
            dram,
            flops,
        } = declared;
        let (declared_dram_share, declared_flops_share) = (dram, flops);
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

/// Gives the kernels of a variant that was simulated the class which their declared work has: nothing counts there.
pub fn classify(run: &Run<'_>, of: &mut VariantFigures) {
    let found: Vec<(String, Class, String)> = declared(run, of)
        .filter_map(|it| {
            let (class, limit) = it.class()?;
            Some((it.kernel.entry.clone(), class, limit))
        })
        .collect();
    for (entry, class, limit) in found {
        let rows = of.kernels.iter_mut().filter(|row| row.name == entry);
        let shapes = rows.flat_map(|row| &mut row.shapes);
        for shape in shapes.filter(|it| it.class == Class::Unknown) {
            (shape.class, shape.limit) = (class, limit.clone());
        }
    }
}

/// What a kernel declares, as parts of the GPU's peaks in the time that it took.
struct Declared<'a> {
    kernel: &'a KernelSpec,
    dram: Option<f64>,
    flops: Option<f64>,
}

impl Declared<'_> {
    /// What limits it by that; `None` where it declares nothing.
    fn class(&self) -> Option<(Class, String)> {
        let told =
            |share: f64, name: &str| format!("declared {name} at {} of the peak", percent(share));
        let (dram, flops) = (self.dram.unwrap_or(0.0), self.flops.unwrap_or(0.0));
        self.dram.or(self.flops)?;
        Some(match (dram >= NEAR, flops >= NEAR) {
            (_, true) if flops >= dram => (Class::Compute, told(flops, "operations")),
            (true, _) => (Class::Memory, told(dram, "bytes")),
            _ if flops > dram => (Class::Latency, told(flops, "operations")),
            _ => (Class::Latency, told(dram, "bytes")),
        })
    }
}

/// The kernels of a variant that declare something. Two with one entry point cannot be told apart.
fn declared<'a>(run: &'a Run<'_>, of: &'a VariantFigures) -> impl Iterator<Item = Declared<'a>> {
    let kernels = of.planned(run.plan).map(|it| it.kernels.as_slice());
    let kernels = kernels.unwrap_or_default();
    let is_alone =
        |kernel: &&KernelSpec| kernels.iter().filter(|it| it.entry == kernel.entry).count() == 1;
    let share = |kernel: &KernelSpec, kind, peak: Option<f64>| {
        let value = run.measure(of, &Figure::new(kind, &*kernel.name)).ok()?;
        Some(value / peak?)
    };
    kernels.iter().filter(is_alone).map(move |kernel| Declared {
        kernel,
        dram: share(kernel, Kind::KernelGbps, run.peaks.memory),
        flops: share(kernel, Kind::KernelFlops, run.peaks.flops),
    })
}
