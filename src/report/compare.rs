//! Two sides, each of one run or several. It says whether one is faster and what shows it ([`CompareReport`]), where the
//! difference lies, and what changed. Then come the figures of both ([`Comparison`]).
//!
//! `side` measures the runs of a side, `answer` compares them, `comparable` says why they may not be
//! the same thing, `words` writes it down.

mod answer;
mod changes;
mod comparable;
mod side;
#[cfg(test)]
mod tests;
mod tried;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::page::{Page, Tone};
use super::runs::name as variant_name;

use super::{Report, Source, VariantReport};
use activity::units::{Unit, rate};
use activity::{Direction, Ns};
use figures::DeviceFigures;
use figures::tables::NameRow;

pub use answer::{CompareReport, ComparedRow};
pub use side::{ComparedRun, PartKind};

/// Two timelines side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Where the first is from.
    pub a: Source,
    /// Where the second is from.
    pub b: Source,
    /// Operations of the whole timelines whose time or number changed, the greatest change of time first.
    pub operations: Vec<OperationChange>,
    /// Figures of both, by device or by variant.
    pub groups: Vec<Group>,
}

/// Figures of one device or one variant in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Of what ("GPU 0", "streamed").
    pub of: String,
    pub figures: Vec<FigureChange>,
}

/// One figure in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// Which figure ("busy_ns").
    pub figure: String,
    /// In the first; `None` when it has none.
    pub a: Option<f64>,
    /// In the second.
    pub b: Option<f64>,
    /// The second over the first; `None` when either is missing or the first is 0.
    pub ratio: Option<f64>,
    #[serde(skip)]
    unit: Unit,
}

/// One kind of operation in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationChange {
    /// The kernel's name, or the copies' direction.
    pub name: String,
    /// How many in the first.
    pub count_a: u64,
    /// How many in the second.
    pub count_b: u64,
    /// Sum of durations in the first.
    pub total_a_ns: Ns,
    /// Sum of durations in the second.
    pub total_b_ns: Ns,
    /// How much more time the second took.
    pub change_ns: Ns,
}

impl Comparison {
    /// Sets two reports side by side.
    pub fn new(a: &Report, b: &Report) -> Self {
        Comparison {
            a: a.source.clone(),
            b: b.source.clone(),
            operations: changes::find(
                &operations(&a.kernels, &a.devices),
                &operations(&b.kernels, &b.devices),
            ),
            groups: groups(a, b),
        }
    }

    /// Where both are from.
    fn sources(&self, page: &mut Page) {
        for (name, source) in [("A", &self.a), ("B", &self.b)] {
            let title = activity::text::printable(&source.title);
            let line = format!("{name}  {title} ({})", source.kind);
            page.painted(Tone::Title, &line);
            if source.simulated {
                page.painted(Tone::Bad, super::text::SIMULATED);
            }
        }
    }

    /// The figures of both; what is 0 on both sides is left out.
    fn tables(&self, page: &mut Page) {
        let is_zero = |v: Option<f64>| v.is_none_or(|v| v == 0.0);
        for group in &self.groups {
            page.title(&group.of);
            let figures = group.figures.iter();
            let figures = figures.filter(|f| !(is_zero(f.a) && is_zero(f.b)));
            let rows = figures.map(|f| {
                let show = |v: Option<f64>| v.map_or_else(|| "—".to_owned(), |v| f.unit.show(v));
                let name = f.figure.trim_end_matches("_ns").replace('_', " ");
                let name = activity::text::printable(&name);
                [
                    name,
                    show(f.a),
                    show(f.b),
                    f.ratio.map(rate).unwrap_or_default(),
                ]
            });
            page.cells(["", "A", "B", "B / A"], rows);
        }
    }
}

/// What stands for one device or one variant on one side.
struct SideFigures {
    of: String,
    figures: Vec<(String, Unit, Option<f64>)>,
}

/// Operations by name: how many, and the sum of their durations.
type OperationSums = FxHashMap<String, (u64, Ns)>;

fn groups(a: &Report, b: &Report) -> Vec<Group> {
    let is_run = |report: &Report| report.variants.as_ref().is_some_and(|v| !v.is_empty());
    let are_runs = is_run(a) && is_run(b);
    let entries = |report: &Report| -> Vec<SideFigures> {
        match are_runs {
            true => report.variants.iter().flatten().map(variant_side).collect(),
            false => report.devices.iter().map(device_side).collect(),
        }
    };
    let (a, b) = (entries(a), entries(b));
    let named = |sides: &[SideFigures], name: &str| sides.iter().position(|side| side.of == name);
    let both = a.iter().map(|side| {
        let other = named(&b, &side.of).map(|at| &b[at]);
        group(Some(side), other)
    });
    let only_b = b.iter().filter(|side| named(&a, &side.of).is_none());
    both.chain(only_b.map(|side| group(None, Some(side))))
        .collect()
}

fn group(a: Option<&SideFigures>, b: Option<&SideFigures>) -> Group {
    let mut figures: Vec<FigureChange> = Vec::new();
    let sides = || [a, b].into_iter().flatten();
    for (name, unit, _) in sides().flat_map(|side| &side.figures) {
        if figures.iter().any(|known| known.figure == *name) {
            continue;
        }
        let value = |side: Option<&SideFigures>| side?.figures.iter().find(|it| it.0 == *name)?.2;
        let (a, b) = (value(a), value(b));
        let known = a.zip(b).filter(|(a, _)| *a != 0.0);
        figures.push(FigureChange {
            figure: name.clone(),
            a,
            b,
            ratio: known.map(|(a, b)| b / a),
            unit: *unit,
        });
    }
    let of = sides().next();
    Group {
        of: of.map_or_else(String::new, |side| side.of.clone()),
        figures,
    }
}

fn variant_side(v: &VariantReport) -> SideFigures {
    let figures = v.figures.figures.iter();
    SideFigures {
        of: variant_name(v),
        figures: figures
            .map(|m| (m.figure.name(), m.figure.spec().unit, Some(m.value)))
            .collect(),
    }
}

fn device_side(f: &DeviceFigures) -> SideFigures {
    let ns = |name: &str, value: Ns| (name.to_owned(), Unit::Time, Some(value as f64));
    let number = |name: &str, value: u64| (name.to_owned(), Unit::Count, Some(value as f64));
    let mut figures = vec![
        ns("span_ns", f.span_ns),
        ns("busy_ns", f.busy_ns),
        ns("idle_ns", f.idle_ns),
        ns("compute_ns", f.compute_ns),
        ns("copy_ns", f.copy_ns),
        ns("overlap_ns", f.overlap_ns),
        number("ops", f.ops),
        number("kernels", f.kernels),
        ns("longest_gap_ns", f.gaps.longest_ns),
    ];
    for (way, d) in [
        ("h2d", &f.h2d),
        ("d2h", &f.d2h),
        ("d2d", &f.d2d),
        ("p2p", &f.p2p),
    ] {
        figures.push((format!("{way}_bytes"), Unit::Bytes, Some(d.bytes as f64)));
        figures.push((format!("{way}_gbps"), Unit::Rate, d.gbps));
    }
    let of = format!("GPU {}", f.device);
    SideFigures { of, figures }
}

/// Kernels by name and copies by direction.
fn operations(kernels: &[NameRow], devices: &[DeviceFigures]) -> OperationSums {
    let kernels = kernels
        .iter()
        .map(|k| (k.name.clone(), (k.count, k.total_ns)));
    let mut all: OperationSums = kernels.collect();
    for device in devices {
        for direction in Direction::NAMED {
            if let Some(d) = device.direction(direction).filter(|d| d.count > 0) {
                let sum = all.entry(direction.label().to_owned()).or_default();
                *sum = (sum.0 + d.count, sum.1 + d.sum_ns);
            }
        }
    }
    all
}
