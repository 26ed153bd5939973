//! Two sides, each of one run or several: whether one is faster and what shows it ([`Answer`]), where the
//! difference lies, what changed, and then the figures of both ([`Comparison`]).
//!
//! [`side`] measures the runs of a side, [`answer`] compares them, [`comparable`] says why they may not be
//! the same thing, [`words`] writes it down.

mod answer;
mod changes;
mod comparable;
mod side;
#[cfg(test)]
mod tests;
mod words;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::table::Table;
use super::text::{Options, Page, Tone, variant_name};
use super::{Report, Source};
use crate::activity::units::{bytes, count, duration, percent, rate};
use crate::activity::{Direction, Ns};
use crate::analysis::DeviceFigures;
use crate::analysis::tables::NameRow;

pub use answer::{Answer, FailOver, Part, Row, Samples};
pub use side::{Run, Subject};

/// Two timelines side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Where the first is from.
    pub a: Source,
    /// Where the second is from.
    pub b: Source,
    /// Operations whose time or number changed, the greatest change of time first.
    pub operations: Vec<OperationChange>,
    /// Figures of both, by device or by variant.
    pub groups: Vec<Group>,
}

/// Figures of one device or one variant in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Of what ("GPU 0", "streamed").
    pub of: String,
    /// Its figures.
    pub figures: Vec<FigureChange>,
}

/// One figure in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// Which figure ("busy_ns").
    pub figure: &'static str,
    /// In the first; `None` when it has none.
    pub a: Option<f64>,
    /// In the second.
    pub b: Option<f64>,
    /// The second over the first; `None` when either is missing or the first is 0.
    pub ratio: Option<f64>,
    #[serde(skip)]
    unit: Unit,
}

/// What the numbers of a figure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Ns,
    Bytes,
    Count,
    Rate,
    Share,
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
    #[must_use]
    pub fn new(a: &Report, b: &Report) -> Self {
        Comparison {
            a: a.source.clone(),
            b: b.source.clone(),
            operations: operations(a, b),
            groups: groups(a, b),
        }
    }

    /// As JSON, on several lines.
    ///
    /// # Errors
    /// Never; the serializer's signature has it.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// As text, every line ended.
    #[must_use]
    pub fn text(&self, options: &Options) -> String {
        let mut page = Page::new(options);
        self.sources(&mut page);
        if !self.operations.is_empty() {
            page.title("Changed operations");
            page.table(&changes::table(&self.operations, options.rows));
            let left = self.operations.len().saturating_sub(options.rows);
            if left > 0 {
                page.line(&format!("  … and {left} more"));
            }
        }
        self.tables(&mut page);
        page.out
    }

    /// Where both are from.
    fn sources(&self, page: &mut Page) {
        for (name, source) in [("A", &self.a), ("B", &self.b)] {
            let title = crate::trace::printable(&source.title);
            let line = format!("{name}  {title} ({})", source.kind);
            let line = page.paint(Tone::Title, &line);
            page.line(&line);
            if source.simulated {
                let mark = page.paint(
                    Tone::Bad,
                    "   SIMULATED: a model of a GPU, not a measurement",
                );
                page.line(&mark);
            }
        }
    }

    /// The figures of both; what is 0 on both sides is left out.
    fn tables(&self, page: &mut Page) {
        let is_zero = |v: Option<f64>| v.is_none_or(|v| v == 0.0);
        for group in &self.groups {
            page.title(&group.of);
            let mut table = Table::new(["", "A", "B", "B / A"]);
            let figures = group.figures.iter();
            for f in figures.filter(|f| !(is_zero(f.a) && is_zero(f.b))) {
                let show = |v: Option<f64>| v.map_or_else(|| "—".to_owned(), |v| f.unit.show(v));
                table.row([
                    f.figure.trim_end_matches("_ns").replace('_', " "),
                    show(f.a),
                    show(f.b),
                    f.ratio.map(rate).unwrap_or_default(),
                ]);
            }
            page.table(&table);
        }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Ns => duration(value as Ns),
            Unit::Bytes => bytes(value as u64),
            Unit::Count => count(value as u64),
            Unit::Rate => format!("{} GB/s", rate(value)),
            Unit::Share => percent(value),
        }
    }
}

/// Figures as they come out of one side, in order.
type Figures = Vec<(&'static str, Unit, Option<f64>)>;

fn groups(a: &Report, b: &Report) -> Vec<Group> {
    let of_run = |report: &Report| -> Vec<(String, Figures)> {
        report
            .variants
            .iter()
            .flatten()
            .map(|v| (variant_name(v), variant_figures(v)))
            .collect()
    };
    let of_trace = |report: &Report| -> Vec<(String, Figures)> {
        let group = |f: &DeviceFigures| (format!("GPU {}", f.device), device_figures(f));
        report.devices.iter().map(group).collect()
    };
    let is_run = |report: &Report| report.variants.as_ref().is_some_and(|v| !v.is_empty());
    let (a, b) = if is_run(a) && is_run(b) {
        (of_run(a), of_run(b))
    } else {
        (of_trace(a), of_trace(b))
    };
    let only_b = b
        .iter()
        .filter(|(name, _)| !a.iter().any(|(n, _)| n == name));
    a.iter()
        .chain(only_b)
        .map(|(name, figures)| {
            let side = |side: &[(String, Figures)], i: usize| {
                let (_, figures) = side.iter().find(|(n, _)| n == name)?;
                figures[i].2
            };
            let figures = figures.iter().enumerate().map(|(i, &(figure, unit, _))| {
                let (a, b) = (side(&a, i), side(&b, i));
                FigureChange {
                    figure,
                    a,
                    b,
                    ratio: a.zip(b).filter(|(a, _)| *a != 0.0).map(|(a, b)| b / a),
                    unit,
                }
            });
            Group {
                of: name.clone(),
                figures: figures.collect(),
            }
        })
        .collect()
}

fn device_figures(f: &DeviceFigures) -> Figures {
    let ns = |value: Ns| Some(value as f64);
    let number = |value: u64| Some(value as f64);
    let mut all = vec![
        ("span_ns", Unit::Ns, ns(f.span_ns)),
        ("busy_ns", Unit::Ns, ns(f.busy_ns)),
        ("idle_ns", Unit::Ns, ns(f.idle_ns)),
        ("compute_ns", Unit::Ns, ns(f.compute_ns)),
        ("copy_ns", Unit::Ns, ns(f.copy_ns)),
        ("overlap_ns", Unit::Ns, ns(f.overlap_ns)),
        ("ops", Unit::Count, number(f.ops)),
        ("kernels", Unit::Count, number(f.kernels)),
        ("longest_gap_ns", Unit::Ns, ns(f.gaps.longest_ns)),
    ];
    let directions = [
        ("h2d_bytes", "h2d_gbps", &f.h2d),
        ("d2h_bytes", "d2h_gbps", &f.d2h),
        ("d2d_bytes", "d2d_gbps", &f.d2d),
        ("p2p_bytes", "p2p_gbps", &f.p2p),
    ];
    for (moved, gbps, d) in directions {
        all.push((moved, Unit::Bytes, number(d.bytes)));
        all.push((gbps, Unit::Rate, d.gbps));
    }
    all
}

fn variant_figures(v: &super::VariantReport) -> Figures {
    let f = &v.figures;
    vec![
        ("makespan_ns", Unit::Ns, Some(v.makespan_ns as f64)),
        ("wall_ns", Unit::Ns, Some(v.wall_ns as f64)),
        ("ops", Unit::Count, Some(f.ops() as f64)),
        ("idle", Unit::Share, f.idle()),
        ("overlap", Unit::Share, f.overlap()),
        ("h2d_gbps", Unit::Rate, f.gbps(Direction::H2D)),
        ("d2h_gbps", Unit::Rate, f.gbps(Direction::D2H)),
        ("peak_memory", Unit::Bytes, v.peak_memory.map(|b| b as f64)),
    ]
}

fn operations(a: &Report, b: &Report) -> Vec<OperationChange> {
    let mut all: FxHashMap<String, [(u64, Ns); 2]> = FxHashMap::default();
    for (side, report) in [a, b].into_iter().enumerate() {
        let mut add = |name: &str, count: u64, total: Ns| {
            let sides = all.entry(name.to_owned()).or_default();
            sides[side].0 += count;
            sides[side].1 += total;
        };
        for NameRow {
            name,
            count,
            total_ns,
            ..
        } in &report.kernels
        {
            add(name, *count, *total_ns);
        }
        for device in &report.devices {
            for direction in Direction::NAMED {
                if let Some(d) = device.direction(direction).filter(|d| d.count > 0) {
                    add(direction.label(), d.count, d.sum_ns);
                }
            }
        }
    }
    let mut changes: Vec<OperationChange> = all
        .into_iter()
        .filter(|(_, [a, b])| a != b)
        .map(|(name, [a, b])| OperationChange {
            name,
            count_a: a.0,
            count_b: b.0,
            total_a_ns: a.1,
            total_b_ns: b.1,
            change_ns: b.1 - a.1,
        })
        .collect();
    changes.sort_by(|x, y| (y.change_ns.abs(), &x.name).cmp(&(x.change_ns.abs(), &y.name)));
    changes
}
