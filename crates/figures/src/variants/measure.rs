//! How each figure of the table ([`scenario::figures`]) is measured.

use serde::{Serialize, Serializer};

use super::VariantFigures;
use crate::device::{DeviceFigures, Peaks};
use crate::passes::Passes;
use activity::stats::median_time;
use activity::units::{gb_per_s, share};
use activity::{Direction, Ns};
use scenario::figures::{FIGURES, Figure, Kind, Operand};
use scenario::plan::{LaunchSpec, OpKind, Plan, VariantPlan};

/// A figure of a variant and its value, in the figure's base unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Which.
    pub figure: Figure,
    pub value: f64,
}

/// The variants of a run, to be measured one against the other.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What was run, where that is known: what kernels declare stands there.
    pub plan: Option<&'a Plan>,
    /// The variants that were measured.
    pub variants: &'a [VariantFigures],
    /// What their GPU can do.
    pub peaks: Peaks,
}

/// Why a share of the peak has no value on a GPU of which nobody knows the peak.
pub const NO_PEAK: &str = "this GPU's peaks are not known; `cuptop calibrate` finds them";

impl Run<'_> {
    /// A figure of one of the variants.
    ///
    /// # Errors
    /// Why it has none, in words.
    pub fn measure(&self, of: &VariantFigures, figure: &Figure) -> Result<f64, String> {
        let name = &figure.operand;
        let over = |time: fn(&VariantFigures) -> Result<f64, String>| {
            let is_other = |v: &&VariantFigures| {
                v.variant.name == *name
                    && v.variant.point == of.variant.point
                    && v.variant.nth == of.variant.nth
            };
            let was_run = || {
                let planned = self.plan.map(|plan| plan.variants.iter());
                planned.is_some_and(|mut all| {
                    all.any(|v| v.name == *name && v.point == of.variant.point)
                })
            };
            let verb = if was_run() { "measured" } else { "run" };
            let other = self.variants.iter().find(is_other);
            let other = other.ok_or_else(|| format!("`{name}` was not {verb}"))?;
            Ok(time(other)? / time(of)?)
        };
        let of_link = |peak: Option<f64>, kind| {
            let peak = peak.ok_or(NO_PEAK)?;
            Ok(measure(of, None, &Figure::new(kind, ""))? / peak)
        };
        match figure.kind {
            Kind::SpeedupOver => over(makespan),
            Kind::WallSpeedupOver => over(wall),
            Kind::Step => match median_time(&of.makespans_ns) {
                Some(step @ 1..) => Ok(step as f64),
                _ => makespan(of),
            },
            Kind::IdleBy => idle_by(of, name),
            Kind::H2dShare => of_link(self.peaks.h2d, Kind::H2dGbps),
            Kind::D2hShare => of_link(self.peaks.d2h, Kind::D2hGbps),
            Kind::PeakShare => {
                let Peaks { memory, flops, .. } = self.peaks;
                let (Some(memory), Some(flops)) = (memory, flops) else {
                    return Err(NO_PEAK.to_owned());
                };
                let plan = of.planned(self.plan);
                let share =
                    |kind, peak: f64| Ok(measure(of, plan, &Figure::new(kind, &**name))? / peak);
                let parts = [(Kind::KernelGbps, memory), (Kind::KernelFlops, flops)];
                let parts = parts.map(|(kind, peak): (Kind, f64)| share(kind, peak));
                match parts {
                    [Ok(a), Ok(b)] => Ok(a.max(b)),
                    [a, b] => a.or(b),
                }
            }
            _ => measure(of, of.planned(self.plan), figure),
        }
    }
}

/// Every figure of a variant that it has by itself, in the order of the table.
pub fn all(of: &VariantFigures, plan: Option<&VariantPlan>) -> Vec<Measured> {
    let mut found = Vec::new();
    for spec in FIGURES {
        let operands: Vec<&str> = match spec.operand {
            Operand::None => vec![""],
            Operand::Variant | Operand::Cause => Vec::new(),
            Operand::Kernel => plan
                .map(|plan| plan.kernels.iter().map(|k| k.name.as_str()).collect())
                .unwrap_or_default(),
            Operand::Range => of.phases.iter().map(|p| p.name.as_str()).collect(),
        };
        for operand in operands {
            let figure = Figure::new(spec.kind, operand);
            if let Ok(value) = measure(of, plan, &figure) {
                found.push(Measured { figure, value });
            }
        }
    }
    found
}

/// A figure that a variant has by itself.
fn measure(
    of: &VariantFigures,
    plan: Option<&VariantPlan>,
    figure: &Figure,
) -> Result<f64, String> {
    let name = figure.operand.as_str();
    let gbps = |direction: Direction| {
        let (bytes, time) = of.copied(direction);
        gb_per_s(bytes, time).ok_or_else(|| format!("nothing was copied {}", direction.label()))
    };
    match figure.kind {
        Kind::SpeedupOver
        | Kind::WallSpeedupOver
        | Kind::PeakShare
        | Kind::Step
        | Kind::IdleBy
        | Kind::H2dShare
        | Kind::D2hShare => Err("it is not of the variant alone".to_owned()),
        Kind::Makespan => makespan(of),
        Kind::Wall => Ok(of.wall_ns as f64),
        Kind::Idle => match of.makespan_ns {
            0 => Err("nothing ran on a GPU".to_owned()),
            whole => Ok(share(of.idle_ns, whole)),
        },
        Kind::Overlap => match of.sum(|d| d.copy_ns) {
            0 => Err("nothing was copied".to_owned()),
            copy => Ok(share(of.sum(|d| d.overlap_ns), copy)),
        },
        Kind::H2dGbps => gbps(Direction::H2D),
        Kind::D2hGbps => gbps(Direction::D2H),
        Kind::D2dGbps => gbps(Direction::D2D),
        Kind::P2pGbps => gbps(Direction::P2P),
        Kind::KernelGbps => {
            let (bytes, time) = kernel_rate(plan, of, name, "bytes", |l| l.bytes)?;
            Ok(bytes / time)
        }
        Kind::KernelFlops => {
            let (flops, time) = kernel_rate(plan, of, name, "flops", |l| l.flops)?;
            Ok(flops / time * 1e9)
        }
        Kind::PeakMemory => of
            .peak_memory
            .map(|bytes| bytes as f64)
            .ok_or_else(|| "no allocation was recorded".to_owned()),
        Kind::Phase => of
            .phases
            .iter()
            .find(|phase| phase.name == name)
            .map(|phase| phase.total_ns as f64)
            .ok_or_else(|| format!("no phase `{name}` was recorded")),
        Kind::Ops => each(of, |d| d.ops),
        Kind::Kernels => each(of, |d| d.kernels),
    }
}

/// The part of the makespan for which devices were idle for causes of this group.
fn idle_by(of: &VariantFigures, group: &str) -> Result<f64, String> {
    let all = of.devices.iter().flat_map(|it| &it.idle);
    let known: Ns = all.clone().map(|it| it.total_ns).sum();
    if known < of.sum(|d| d.idle_ns) {
        return Err("why the GPU was idle is not known".to_owned());
    }
    let idle = all.filter(|it| it.group.id() == group);
    let idle = idle.map(|it| it.total_ns).sum();
    Ok(share(idle, makespan(of)? as Ns * of.devices.len() as Ns))
}

/// A count of single operations, which graphs that were recorded as a whole do not tell.
fn each(of: &VariantFigures, count: impl Fn(&DeviceFigures) -> u64) -> Result<f64, String> {
    match of.sum(|d| d.graphs) {
        0 => Ok(of.sum(count) as f64),
        graphs => Err(format!(
            "{graphs} launches of graphs were recorded as a whole, without what is in them"
        )),
    }
}

fn makespan(of: &VariantFigures) -> Result<f64, String> {
    if of.makespan_ns > 0 {
        Ok(of.makespan_ns as f64)
    } else {
        Err(format!("nothing ran on a GPU in `{}`", of.variant.name))
    }
}

fn wall(of: &VariantFigures) -> Result<f64, String> {
    if of.wall_ns > 0 {
        Ok(of.wall_ns as f64)
    } else {
        Err("the repeat took no time".to_owned())
    }
}

/// What the launches of a kernel declare in one pass, and the time that its kernels took.
fn kernel_rate(
    plan: Option<&VariantPlan>,
    of: &VariantFigures,
    name: &str,
    what: &str,
    declared: impl Fn(&LaunchSpec) -> Option<u64>,
) -> Result<(f64, f64), String> {
    let plan = plan.ok_or_else(|| format!("what `{name}` declares is not known"))?;
    let kernel = |launch: usize| &plan.kernels[plan.launches[launch].kernel];
    let entry = plan
        .kernels
        .iter()
        .find(|k| k.name == name)
        .map(|k| k.entry.as_str())
        .ok_or_else(|| format!("no kernel `{name}`"))?;
    // Two kernels of the scenario may share an entry point; then only their configurations tell them apart.
    let is_shared = plan
        .kernels
        .iter()
        .any(|k| k.entry == entry && k.name != name);
    let mut planned = 0u64;
    let mut sum = 0u64;
    let mut configurations = Vec::new();
    for launch in launched(plan).filter(|&l| kernel(l).name == name) {
        let spec = &plan.launches[launch];
        planned += 1;
        sum += declared(spec).ok_or_else(|| format!("`{name}` does not declare its {what}"))?;
        configurations.push((spec.grid, spec.block));
    }
    configurations.sort_unstable();
    configurations.dedup();
    let is_other = |l: usize| {
        let spec = &plan.launches[l];
        kernel(l).entry == entry
            && kernel(l).name != name
            && configurations.contains(&(spec.grid, spec.block))
    };
    if is_shared && launched(plan).any(is_other) {
        return Err(format!(
            "another kernel with the entry point `{entry}` was launched alike"
        ));
    }
    let mut recorded = 0u64;
    let mut time: Ns = 0;
    for launched in &of.shapes {
        let shape = &launched.shape;
        let is_mine = of
            .kernels
            .iter()
            .any(|k| k.id == shape.name && k.name == entry)
            && (!is_shared || configurations.contains(&(shape.grid, shape.block)));
        if is_mine {
            recorded += launched.count;
            time += launched.total_ns;
        }
    }
    if recorded != planned {
        return Err(format!(
            "{planned} launches of `{name}` were planned and {recorded} recorded"
        ));
    }
    if time <= 0 {
        return Err(format!("`{name}` was not launched"));
    }
    Ok((sum as f64, time as f64))
}

/// Every launch of one pass, those of graphs included.
fn launched(plan: &VariantPlan) -> impl Iterator<Item = usize> + '_ {
    plan.operations().filter_map(|op| match op.kind {
        OpKind::Launch { launch, .. } => Some(launch),
        _ => None,
    })
}

/// Less than that is no difference to speak of.
pub const SAME: f64 = 0.01;

/// How much faster a variant is than the one it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speedup {
    /// The other variant, with the sweep's value.
    pub over: String,
    /// Which time tells.
    #[serde(serialize_with = "clock_name")]
    pub by: Kind,
    /// The other's time over this one's.
    pub factor: f64,
}

fn clock_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.spec().name)
}

impl Speedup {
    /// "2.43× faster than sequential", "847× faster than cold by the CPU's time".
    pub fn words(&self) -> String {
        let clock = match self.by {
            Kind::Makespan => "",
            _ => " by the CPU's time",
        };
        let over = self.over.split(' ').next().unwrap_or_default();
        let factor = activity::units::factor(self.factor);
        format!("{factor} faster than {over}{clock}")
    }

    /// "2.43×", and whose time it is where that is not the GPU's: "847× wall".
    pub fn text(&self) -> String {
        let factor = activity::units::factor(self.factor);
        match self.by {
            Kind::Makespan => factor,
            by => format!("{factor} {}", by.spec().name),
        }
    }
}

/// How much faster a variant is than its baseline; `None` for the baseline itself, or if no clock tells.
///
/// The makespan tells where it is most of the host's time in all that are compared with one. The CPU's time does where
/// one has no GPU work, or that time is mostly something else (a context, a compiler, own work).
pub fn speedup(
    passes: &Passes,
    of: &VariantFigures,
    figures: &[VariantFigures],
) -> Option<Speedup> {
    let base = passes.baseline(of.position)?;
    let base = figures.iter().find(|v| v.position == base)?;
    // Speed-ups by two clocks would not fit the bars of one table.
    let is_beside = |v: &&VariantFigures| passes.baseline(v.position) == Some(base.position);
    let mut beside = figures.iter().filter(is_beside);
    let is_told = base.is_explained() && beside.all(VariantFigures::is_explained);
    let (by, base_time, time) = if is_told {
        (Kind::Makespan, base.makespan_ns, of.makespan_ns)
    } else {
        (Kind::Wall, base.wall_ns, of.wall_ns)
    };
    (base_time > 0 && time > 0).then(|| Speedup {
        over: base.label(),
        by,
        factor: base_time as f64 / time as f64,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn scenarios_name_the_groups_of_causes_as_reports_do() {
        let all = causes::Group::ALL.map(causes::Group::id);
        assert_eq!(scenario::figures::CAUSES.as_slice(), all);
    }
}
