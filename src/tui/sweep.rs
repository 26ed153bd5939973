//! A figure over the swept parameter, one curve a variant.

use super::app::Run;
use super::app::passes::Pass;
use super::figure::Figure;
use super::theme::{KERNEL_COLORS, Role};
use crate::activity::{Ns, RangeKind, Span};
use crate::scenario::expect;
use crate::scenario::plan::{OpKind, Plan, VariantPlan};
use crate::trace::{LaneKind, Measure, Trace};

/// One variant's line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The variant.
    pub name: String,
    /// Its colour.
    pub role: Role,
    /// The points by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// Two curves that change places.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// The one that is greater before.
    pub above: String,
    /// The one that is greater behind.
    pub below: String,
    /// Where.
    pub x: f64,
}

/// A chart's data.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What x is called.
    pub x_title: String,
    /// What y is.
    pub figure: Figure,
    /// Whether x wants a logarithmic axis.
    pub is_log: bool,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Where they cross.
    pub crossings: Vec<Crossing>,
    /// The hardware's bounds, when x is FLOP a byte: bytes per second and FLOP per second.
    pub roof: Option<(f64, f64)>,
}

/// What the kernels of one pass declare to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating point operations; 0 when not declared.
    pub flops: u64,
    /// Bytes of device memory; 0 when not declared.
    pub bytes: u64,
}

/// The work of each variant of a plan.
#[must_use]
pub fn work(plan: &Plan) -> Vec<Work> {
    plan.variants.iter().map(work_of).collect()
}

fn work_of(variant: &VariantPlan) -> Work {
    let of_launch = |work: &mut Work, launch: usize| {
        if let Some(launch) = variant.launches.get(launch) {
            work.flops = work.flops.saturating_add(launch.flops.unwrap_or(0));
            work.bytes = work.bytes.saturating_add(launch.bytes.unwrap_or(0));
        }
    };
    let mut graphs = vec![Work::default(); variant.graphs.len()];
    for (work, graph) in graphs.iter_mut().zip(&variant.graphs) {
        for op in &graph.ops {
            if let OpKind::Launch { launch, .. } = op.kind {
                of_launch(work, launch);
            }
        }
    }
    let mut work = Work::default();
    for op in &variant.ops {
        match op.kind {
            OpKind::Launch { launch, .. } => of_launch(&mut work, launch),
            OpKind::GraphLaunch { graph, .. } => {
                if let Some(inside) = graphs.get(graph) {
                    work.flops = work.flops.saturating_add(inside.flops);
                    work.bytes = work.bytes.saturating_add(inside.bytes);
                }
            }
            _ => {}
        }
    }
    work
}

/// The chart of the run so far, when its scenario sweeps. `choice` goes through
/// the figures that there are, beginning with the one that the scenario's expectations speak of.
#[must_use]
pub fn sweep(run: &Run, choice: usize) -> Option<Sweep> {
    let plan = run.plan.as_deref()?;
    let swept = plan.sweep.as_ref()?;
    let first = main_figure(plan);
    let mut figures = vec![first];
    figures.extend(Figure::ALL.into_iter().filter(|f| *f != first));
    let mut charts: Vec<Sweep> = figures
        .into_iter()
        .filter_map(|figure| chart(run, figure, swept.is_log, &swept.param))
        .collect();
    if charts.is_empty() {
        return None;
    }
    let at = choice % charts.len();
    Some(charts.swap_remove(at))
}

/// The figure that the scenario is about: that of its first expectation that a chart can show.
/// Expectations of FLOP/s make it a roofline, which has the others in it; expectations of a phase say
/// that the phase is what the scenario measures.
fn main_figure(plan: &Plan) -> Figure {
    let is_flops = |e: &expect::Expectation| matches!(e.figure, expect::Figure::KernelFlops(_));
    if plan.expectations.iter().any(is_flops) {
        return Figure::Flops;
    }
    let is_phase = |e: &expect::Expectation| matches!(e.figure, expect::Figure::Phase(_));
    if plan.expectations.iter().any(is_phase) {
        return Figure::Phases;
    }
    plan.expectations
        .iter()
        .find_map(|e| match &e.figure {
            expect::Figure::SpeedupOver(_) | expect::Figure::Makespan => Some(Figure::Makespan),
            expect::Figure::WallSpeedupOver(_) | expect::Figure::Wall => Some(Figure::Wall),
            expect::Figure::Gbps(direction) => Some(Figure::Rate(*direction)),
            expect::Figure::KernelGbps(_) => Some(Figure::Memory),
            expect::Figure::KernelFlops(_) => Some(Figure::Flops),
            _ => None,
        })
        .unwrap_or(Figure::Makespan)
}

fn chart(run: &Run, figure: Figure, is_log: bool, param: &str) -> Option<Sweep> {
    let is_roofline = figure == Figure::Flops && run.work.iter().any(|w| w.bytes > 0);
    let mut curves: Vec<Curve> = Vec::new();
    for (i, variant) in run.passes.variants.iter().enumerate() {
        let work = run.work.get(i).copied().unwrap_or_default();
        let (Some(point), Some(pass)) = (variant.point, run.passes.representative(i)) else {
            continue;
        };
        let pass = &run.passes.list[pass];
        if pass.is_open || !pass.is_measured {
            continue;
        }
        let Some(y) = value(&run.trace, pass, figure, work).filter(|y| *y > 0.0) else {
            continue;
        };
        let x = if is_roofline {
            if work.bytes == 0 {
                continue;
            }
            work.flops as f64 / work.bytes as f64
        } else {
            point as f64
        };
        match curves.iter_mut().find(|c| c.name == variant.name) {
            Some(curve) => curve.points.push((x, y)),
            None => curves.push(Curve {
                name: variant.name.clone(),
                role: curve_role(curves.len()),
                points: vec![(x, y)],
            }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    if curves.is_empty() {
        return None;
    }
    let roof = match (run.peaks.memory, run.peaks.flops) {
        (Some(memory), Some(flops)) if is_roofline => Some((memory * 1e9, flops)),
        _ => None,
    };
    Some(Sweep {
        x_title: if is_roofline {
            "FLOP a byte".to_owned()
        } else {
            crate::trace::printable(param)
        },
        figure,
        is_log: is_log || is_roofline,
        crossings: crossings(&curves, &compared(run.plan.as_deref())),
        curves,
        roof,
    })
}

fn value(trace: &Trace, pass: &Pass, figure: Figure, work: Work) -> Option<f64> {
    let rate = |amount: u64| {
        let time = total(trace, Measure::Compute, pass.operations?);
        (amount > 0 && time > 0).then(|| amount as f64 / time as f64)
    };
    match figure {
        Figure::Makespan => Some(pass.operations?.len() as f64),
        Figure::Wall => Some(pass.span.len() as f64),
        Figure::Phases => phases(trace, pass.span),
        Figure::Rate(direction) => {
            let window = pass.operations?;
            let time = total(trace, Measure::Direction(direction), window);
            let bytes: f64 = (0..trace.devices().len())
                .map(|device| trace.bytes_moved(device, direction, window))
                .sum();
            (time > 0).then(|| bytes / time as f64)
        }
        Figure::Memory => rate(work.bytes),
        Figure::Flops => rate(work.flops).map(|per_ns| per_ns * 1e9),
    }
}

/// Time within the phases of a pass; `None` when it names none.
fn phases(trace: &Trace, pass: Span) -> Option<f64> {
    let time: Ns = trace
        .lanes()
        .iter()
        .filter(|lane| {
            let kind = lane.key().kind;
            matches!(kind, LaneKind::Range { kind, .. } if kind == RangeKind::Phase)
        })
        .map(|lane| lane.busy(pass))
        .sum();
    (time > 0).then_some(time as f64)
}

fn total(trace: &Trace, measure: Measure, window: Span) -> Ns {
    trace
        .devices()
        .iter()
        .map(|device| device.usage.time(measure, window))
        .sum()
}

fn curve_role(index: usize) -> Role {
    match index {
        0 => Role::H2D,
        1 => Role::Kernel(2),
        2 => Role::Kernel(0),
        3 => Role::D2H,
        n => Role::Kernel((n % usize::from(KERNEL_COLORS)) as u8),
    }
}

/// The variants that the scenario compares, by its expectations.
fn compared(plan: Option<&Plan>) -> Vec<(&str, &str)> {
    let pair = |e| {
        let expect::Expectation {
            variant, figure, ..
        }: &expect::Expectation = e;
        match figure {
            expect::Figure::SpeedupOver(other) | expect::Figure::WallSpeedupOver(other) => {
                Some((variant.as_str(), other.as_str()))
            }
            _ => None,
        }
    };
    plan.map_or_else(Vec::new, |p| {
        p.expectations.iter().filter_map(pair).collect()
    })
}

/// Where curves change places (those of `compared`, or all when that is empty), between points at the same x, on straight lines in the logarithms.
fn crossings(curves: &[Curve], compared: &[(&str, &str)]) -> Vec<Crossing> {
    let mut found = Vec::new();
    for (i, a) in curves.iter().enumerate() {
        for b in &curves[i + 1..] {
            let (a_name, b_name) = (a.name.as_str(), b.name.as_str());
            let is_compared = compared.contains(&(a_name, b_name))
                || compared.contains(&(b_name, a_name))
                || compared.is_empty();
            if !is_compared {
                continue;
            }
            let both: Vec<(f64, f64)> = a
                .points
                .iter()
                .filter_map(|(x, y)| {
                    let (_, other) = b.points.iter().find(|(other, _)| other == x)?;
                    Some((*x, y.ln() - other.ln()))
                })
                .collect();
            for pair in both.windows(2) {
                let ((x0, d0), (x1, d1)) = (pair[0], pair[1]);
                if d0 * d1 < 0.0 && x0 > 0.0 {
                    let share = d0 / (d0 - d1);
                    let x = (x0.ln() + share * (x1.ln() - x0.ln())).exp();
                    let (above, below) = if d0 > 0.0 { (a, b) } else { (b, a) };
                    found.push(Crossing {
                        above: above.name.clone(),
                        below: below.name.clone(),
                        x,
                    });
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            role: Role::H2D,
            points: points.to_vec(),
        }
    }

    #[test]
    fn curves_cross_where_their_logarithms_do() {
        // y = x against y = 100: they meet at 100, whatever lies between the points.
        let rising = curve("rising", &[(10.0, 10.0), (1000.0, 1000.0)]);
        let flat = curve("flat", &[(10.0, 100.0), (1000.0, 100.0)]);
        let other = [("rising", "another")];
        assert!(crossings(&[rising.clone(), flat.clone()], &other).is_empty());
        let found = crossings(&[rising, flat], &[("flat", "rising")]);
        assert_eq!(found.len(), 1);
        assert!((found[0].x - 100.0).abs() < 1e-9);
        assert_eq!(
            (found[0].above.as_str(), found[0].below.as_str()),
            ("flat", "rising")
        );
    }

    #[test]
    fn curves_that_share_no_x_do_not_cross() {
        let a = curve("a", &[(1.0, 1.0), (3.0, 3.0)]);
        let b = curve("b", &[(2.0, 5.0), (4.0, 1.0)]);
        assert!(crossings(&[a, b], &[]).is_empty());
    }
}
