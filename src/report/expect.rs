//! Checks a run's figures against the scenario's `[expect]`.
//!
//! A figure that cannot be measured is a failed expectation that says why.

use serde::Serialize;

use crate::activity::units;
use crate::activity::{Direction, Ns};
use crate::analysis::VariantFigures;
use crate::scenario::expect::{Compare, Expectation, Figure};
use crate::scenario::plan::{LaunchSpec, OpKind, Plan, VariantPlan};

/// One expectation and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The left side as written.
    pub what: String,
    /// The right side as written.
    pub expected: String,
    /// The figure in its own unit (a share, GB/s, FLOP/s, ns, bytes, a count); over several values of
    /// a sweep the one that is furthest from what is expected. `None` when it cannot be measured.
    pub measured: Option<f64>,
    /// Whether it holds.
    pub ok: bool,
    /// The sweep's value that `measured` is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<i64>,
    /// Why it cannot be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `measured` for people ("55.1 GB/s").
    pub shown: String,
}

/// Checks every expectation of `plan` against the figures of its run.
#[must_use]
pub fn check(plan: &Plan, variants: &[&VariantFigures]) -> Vec<Checked> {
    let run = Run { plan, variants };
    plan.expectations.iter().map(|e| run.check(e)).collect()
}

struct Run<'a> {
    plan: &'a Plan,
    variants: &'a [&'a VariantFigures],
}

/// A figure, or why there is none.
type Measured = Result<f64, String>;

impl Run<'_> {
    fn check(&self, e: &Expectation) -> Checked {
        let wanted: Vec<usize> = (0..self.plan.variants.len())
            .filter(|&i| {
                let v = &self.plan.variants[i];
                v.name == e.variant && (e.point.is_none() || v.point == e.point)
            })
            .collect();
        let mut worst: Option<(Option<i64>, Measured)> = None;
        for index in wanted {
            let measured = match self.figures_at(index) {
                Some(figures) => self.measure(&self.plan.variants[index], figures, &e.figure),
                None => Err(format!("`{}` was not measured", e.variant)),
            };
            let is_worse = match (&worst, &measured) {
                (None, _) => true,
                (Some((_, Err(_))), _) => false,
                (Some((_, Ok(_))), Err(_)) => true,
                (Some((_, Ok(old))), Ok(new)) => is_further(e.compare, *new, *old),
            };
            if is_worse {
                worst = Some((self.plan.variants[index].point, measured));
            }
        }
        let (point, measured) =
            worst.unwrap_or_else(|| (e.point, Err(format!("`{}` was not run", e.variant))));
        Checked {
            what: e.what.clone(),
            expected: e.expected.clone(),
            ok: measured
                .as_ref()
                .is_ok_and(|&m| e.compare.holds(m, e.value)),
            point,
            shown: measured
                .as_ref()
                .map_or_else(|_| "—".to_owned(), |&m| show(&e.figure, m)),
            measured: measured.as_ref().ok().copied(),
            why: measured.err(),
        }
    }

    fn figures_at(&self, index: usize) -> Option<&VariantFigures> {
        let name = &self.plan.variants[index].name;
        self.variants
            .iter()
            .find(|v| v.passes.index == index && v.passes.name == *name)
            .copied()
    }

    /// The variant called `name` at the same value of the sweep.
    fn other(&self, name: &str, point: Option<i64>) -> Result<&VariantFigures, String> {
        let index = self
            .plan
            .variants
            .iter()
            .position(|v| v.name == name && v.point == point)
            .ok_or_else(|| format!("`{name}` was not run"))?;
        self.figures_at(index)
            .ok_or_else(|| format!("`{name}` was not measured"))
    }

    fn measure(&self, plan: &VariantPlan, v: &VariantFigures, figure: &Figure) -> Measured {
        match figure {
            Figure::SpeedupOver(name) => {
                let other = makespan(self.other(name, plan.point)?)?;
                Ok(other / makespan(v)?)
            }
            Figure::WallSpeedupOver(name) => {
                let other = self.other(name, plan.point)?.wall_ns as f64;
                if v.wall_ns > 0 {
                    Ok(other / v.wall_ns as f64)
                } else {
                    Err("the repeat took no time".to_owned())
                }
            }
            Figure::Overlap => v.overlap().ok_or_else(|| "nothing was copied".to_owned()),
            Figure::Idle => v.idle().ok_or_else(nothing_ran),
            Figure::Makespan => makespan(v),
            Figure::Wall => Ok(v.wall_ns as f64),
            Figure::Gbps(direction) => v.gbps(*direction).ok_or_else(|| nothing_copied(*direction)),
            Figure::KernelGbps(name) => {
                let (bytes, time) = kernel_rate(plan, v, name, "bytes", |l| l.bytes)?;
                Ok(bytes / time)
            }
            Figure::KernelFlops(name) => {
                let (flops, time) = kernel_rate(plan, v, name, "flops", |l| l.flops)?;
                Ok(flops / time * 1e9)
            }
            Figure::PeakMemory => v
                .peak_memory
                .map(|bytes| bytes as f64)
                .ok_or_else(|| "no allocation was recorded".to_owned()),
            Figure::Phase(name) => v
                .phases
                .iter()
                .find(|p| p.name == *name)
                .map(|p| p.total_ns as f64)
                .ok_or_else(|| format!("no phase `{name}` was recorded")),
            Figure::Ops => Ok(v.ops() as f64),
            Figure::Kernels => Ok(v.kernel_count() as f64),
        }
    }
}

/// Whether `new` is further from what is expected than `old`.
fn is_further(compare: Compare, new: f64, old: f64) -> bool {
    match compare {
        Compare::AtLeast | Compare::Above => new < old,
        Compare::AtMost | Compare::Below => new > old,
    }
}

fn makespan(v: &VariantFigures) -> Measured {
    if v.makespan_ns > 0 {
        Ok(v.makespan_ns as f64)
    } else {
        Err(format!("nothing ran on a GPU in `{}`", v.passes.name))
    }
}

fn nothing_ran() -> String {
    "nothing ran on a GPU".to_owned()
}

fn nothing_copied(direction: Direction) -> String {
    format!("nothing was copied {}", direction.label())
}

/// What the launches of a kernel declare in one pass, and the time that its kernels took.
fn kernel_rate(
    plan: &VariantPlan,
    v: &VariantFigures,
    name: &str,
    what: &str,
    declared: impl Fn(&LaunchSpec) -> Option<u64>,
) -> Result<(f64, f64), String> {
    let of = |launch: usize| &plan.kernels[plan.launches[launch].kernel];
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
    for launch in launched(plan).filter(|&l| of(l).name == name) {
        let spec = &plan.launches[launch];
        planned += 1;
        sum += declared(spec).ok_or_else(|| format!("`{name}` does not declare its {what}"))?;
        configurations.push((spec.grid, spec.block));
    }
    configurations.sort_unstable();
    configurations.dedup();
    let is_other = |l: usize| {
        let spec = &plan.launches[l];
        of(l).entry == entry
            && of(l).name != name
            && configurations.contains(&(spec.grid, spec.block))
    };
    if is_shared && launched(plan).any(is_other) {
        return Err(format!(
            "another kernel with the entry point `{entry}` was launched alike"
        ));
    }
    let mut recorded = 0u64;
    let mut time: Ns = 0;
    for kernel in &v.shapes {
        let shape = &kernel.shape;
        let is_mine = v
            .kernels
            .iter()
            .any(|k| k.id == shape.name && k.name == entry)
            && (!is_shared || configurations.contains(&(shape.grid, shape.block)));
        if is_mine {
            recorded += kernel.count;
            time += kernel.total_ns;
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
    let launch_of = |kind: &OpKind| match kind {
        OpKind::Launch { launch, .. } => Some(*launch),
        _ => None,
    };
    plan.ops.iter().flat_map(move |op| {
        let inside = match op.kind {
            OpKind::GraphLaunch { graph, .. } => plan.graphs[graph].ops.as_slice(),
            _ => std::slice::from_ref(op),
        };
        inside.iter().filter_map(move |op| launch_of(&op.kind))
    })
}

/// A figure for people.
fn show(figure: &Figure, value: f64) -> String {
    match figure {
        Figure::SpeedupOver(_) | Figure::WallSpeedupOver(_) => format!("{} ×", units::rate(value)),
        Figure::Overlap | Figure::Idle => units::percent(value),
        Figure::Makespan | Figure::Wall | Figure::Phase(_) => units::duration(value as Ns),
        Figure::Gbps(_) | Figure::KernelGbps(_) => format!("{} GB/s", units::rate(value)),
        Figure::KernelFlops(_) => format!("{} GFLOP/s", units::rate(value / 1e9)),
        Figure::PeakMemory => units::bytes(value as u64),
        Figure::Ops | Figure::Kernels => units::count(value as u64),
    }
}
