//! A figure over the swept parameter, one curve a variant.

use super::state::Run;
use super::theme::Role;
use figures::VariantFigures;
use figures::passes::point_text;
use scenario::expect;
use scenario::figures::{Figure, Kind};
use scenario::plan::{self, Plan};
use scenario::value::Unit as PointUnit;

/// One variant's line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub name: String,
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
    /// What both come to there.
    pub y: f64,
}

/// A chart's data.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What x is called.
    pub x_title: String,
    /// What x counts.
    pub x_unit: PointUnit,
    /// What y is.
    pub figure: Figure,
    /// Whether x wants a logarithmic axis.
    pub is_log: bool,
    pub curves: Vec<Curve>,
    pub crossings: Vec<Crossing>,
    /// The hardware's bounds, when x is FLOP a byte: bytes per second and FLOP per second.
    pub roof: Option<(f64, f64)>,
}

impl Sweep {
    pub fn title(&self) -> String {
        let name = self.figure.name().replace("_gbps", " GB/s");
        let name = name.replace("h2d", "H2D").replace("d2h", "D2H");
        activity::text::printable(&name.replace('_', " "))
    }

    /// A value of y in words.
    pub fn show(&self, y: f64) -> String {
        self.figure.spec().unit.show(y)
    }

    /// A value of x in words.
    pub fn show_x(&self, x: f64) -> String {
        match self.x_unit {
            PointUnit::None => activity::units::number(x),
            unit => point_text(x.round() as i64, unit),
        }
    }

    /// Whether less is better.
    pub fn is_less_better(&self) -> bool {
        self.figure.spec().bound.starts_with("<=")
    }
}

/// The chart of the run so far, when its scenario sweeps. `choice` goes through
/// the figures that the variants have, beginning with the one that the scenario's expectations speak of.
pub fn sweep(run: &Run, choice: usize) -> Option<Sweep> {
    let plan = run.plan.as_deref()?;
    let swept = plan.sweep.as_ref()?;
    let mut figures: Vec<&Figure> = Vec::new();
    let variants = run.measured.variants.iter();
    for measured in variants.flat_map(|v| &v.figures) {
        if measured.value > 0.0 && !figures.contains(&&measured.figure) {
            figures.push(&measured.figure);
        }
    }
    figures.sort_by_key(|figure| figure.kind as usize);
    let first = main_figure(plan);
    if let Some(at) = figures.iter().position(|figure| **figure == first) {
        let main = figures.remove(at);
        figures.insert(0, main);
    }
    let charts = figures.len();
    let figure = *figures.get(choice.checked_rem(charts)?)?;
    chart(run, figure, swept)
}

/// The figure that the scenario is about. Expectations of FLOP/s make it a roofline, which has the others in it.
/// Expectations of a phase say that the scenario measures that phase. Else it is what the first expectation speaks of;
/// of a speed-up, the time behind it.
fn main_figure(plan: &Plan) -> Figure {
    let of = |kind: Kind| plan.expectations.iter().find(|e| e.figure.kind == kind);
    let main = of(Kind::KernelFlops)
        .or_else(|| of(Kind::Phase))
        .or(plan.expectations.first());
    match main.map(|e| &e.figure) {
        Some(figure) if figure.kind == Kind::WallSpeedupOver => Figure::new(Kind::Wall, ""),
        Some(figure) if figure.other().is_none() => figure.clone(),
        _ => Figure::new(Kind::Makespan, ""),
    }
}

fn chart(run: &Run, figure: &Figure, swept: &plan::Sweep) -> Option<Sweep> {
    let value = |v: &VariantFigures, figure: &Figure| {
        let found = v.figures.iter().find(|m| m.figure == *figure)?;
        Some(found.value).filter(|value| *value > 0.0)
    };
    // FLOP/s over FLOP a byte is a roofline, where the kernel says both.
    let bytes = Figure::new(Kind::KernelGbps, &*figure.operand);
    let variants = &run.measured.variants;
    let is_roofline =
        figure.kind == Kind::KernelFlops && variants.iter().any(|v| value(v, &bytes).is_some());
    let mut curves: Vec<Curve> = Vec::new();
    for variant in variants {
        let (Some(point), Some(y)) = (variant.variant.point, value(variant, figure)) else {
            continue;
        };
        let x = match value(variant, &bytes) {
            Some(gbps) if is_roofline => y / (gbps * 1e9),
            None if is_roofline => continue,
            _ => point as f64,
        };
        let name = &variant.variant.name;
        match curves.iter_mut().find(|c| c.name == *name) {
            Some(curve) => curve.points.push((x, y)),
            None => curves.push(Curve {
                name: name.clone(),
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
    let peaks = run.gpus.peaks(&run.trace);
    let roof = match (peaks.memory, peaks.flops) {
        (Some(memory), Some(flops)) if is_roofline => Some((memory * 1e9, flops)),
        _ => None,
    };
    let (x_title, x_unit) = match is_roofline {
        true => ("FLOP a byte".to_owned(), PointUnit::None),
        false => (activity::text::printable(&swept.param), swept.unit),
    };
    Some(Sweep {
        x_title,
        x_unit,
        figure: figure.clone(),
        is_log: swept.is_log || is_roofline,
        crossings: crossings(&curves, &compared(run.plan.as_deref())),
        curves,
        roof,
    })
}

fn curve_role(index: usize) -> Role {
    // Hues that are far from each other, as long as there are any.
    use Role::{D2D, D2H, H2D, Kernel, Memset, P2P};
    const ROLES: [Role; 8] = [H2D, Kernel(2), Kernel(0), D2H, D2D, P2P, Kernel(1), Memset];
    ROLES[index % ROLES.len()]
}

/// The variants that the scenario compares, by its expectations.
fn compared<'a>(plan: Option<&'a Plan>) -> Vec<(&'a str, &'a str)> {
    let expectations = plan.map_or(&[][..], |plan| &plan.expectations);
    let pair = |e: &'a expect::Expectation| Some((e.variant.as_str(), e.figure.other()?));
    expectations.iter().filter_map(pair).collect()
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
            let both: Vec<(f64, f64, f64)> = a
                .points
                .iter()
                .filter_map(|(x, y)| {
                    let (_, other) = b.points.iter().find(|(other, _)| other == x)?;
                    Some((*x, y.ln(), y.ln() - other.ln()))
                })
                .collect();
            for pair in both.windows(2) {
                let ((x0, y0, d0), (x1, y1, d1)) = (pair[0], pair[1]);
                if d0 * d1 < 0.0 && x0 > 0.0 {
                    let share = d0 / (d0 - d1);
                    let between = |a: f64, b: f64| (a + share * (b - a)).exp();
                    let (above, below) = if d0 > 0.0 { (a, b) } else { (b, a) };
                    found.push(Crossing {
                        above: above.name.clone(),
                        below: below.name.clone(),
                        x: between(x0.ln(), x1.ln()),
                        y: between(y0, y1),
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
        assert!((found[0].x - 100.0).abs() < 1e-9 && (found[0].y - 100.0).abs() < 1e-9);
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
