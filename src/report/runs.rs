//! The variants of a run in a report's text: their figures, their phases and memory, what was expected of them.

use std::iter;

use super::page::{Page, Tone};
use super::table::{Column, Table};
use super::{Checked, VariantReport};
use activity::Ns;
use activity::text::{plural, printable};
use activity::units::{bytes, duration, percent, rate};
use figures::VariantFigures;
use figures::passes::point_text;
use figures::tables::NameRow;
use figures::variants::measure::Speedup;
use scenario::figures::Kind;

/// Phases that get a column; more would not fit beside a name.
const PHASES: usize = 4;

/// "streamed", "pinned bytes=1 MiB".
pub(super) fn name(v: &VariantReport) -> String {
    printable(&v.figures.label())
}

/// The variants that a report tells of: one screen has those at the last value of a sweep.
pub(super) fn shown<'a>(
    page: &Page,
    variants: &'a [VariantReport],
) -> impl Iterator<Item = &'a VariantReport> + use<'a> {
    let point = |v: &VariantReport| v.figures.variant.point;
    let last = variants
        .iter()
        .rev()
        .find_map(point)
        .filter(|_| page.is_brief);
    let is_shown = move |point: Option<i64>| last.is_none() || point.is_none() || point == last;
    variants.iter().filter(move |v| is_shown(point(v)))
}

/// The figures of each variant; the points of a sweep under their variant's name.
pub(super) fn section(page: &mut Page, variants: &[VariantReport]) {
    if page.is_brief && !variants.is_empty() {
        return brief(page, variants);
    }
    page.title("Variants");
    if variants.is_empty() {
        page.wrapped("none was measured");
        return;
    }
    let repeats = |v: &VariantReport| v.figures.repeats;
    let is_one = variants.iter().all(|v| repeats(v) == repeats(&variants[0]));
    let columns = Variant::columns();
    let mut table = Table::of(&columns);
    rows(&mut table, variants, |v| {
        let row = Variant::new(v, (!is_one).then_some(v.figures.repeats));
        columns.iter().skip(1).map(|it| (it.text)(&row)).collect()
    });
    page.table(&table);
    let of = match (is_one, repeats(&variants[0])) {
        (true, 1) => "one pass each".to_owned(),
        (true, n) => format!("the median of {}", plural(n as u64, "repeat")),
        (false, _) => "the median repeat".to_owned(),
    };
    page.wrapped(&format!(
        "{of}; makespan: first operation's start to the last one's end; speed-up: over the variant it is compared \
         with, by makespan, or by wall time where the makespan does not tell; H2D, D2H in GB/s"
    ));
    precisions(page, variants);
    phases(page, variants);
    works(page, variants);
}

/// How well repeats tell the median, where the scenario asks.
fn precisions(page: &mut Page, variants: &[VariantReport]) {
    for v in variants {
        if let Some(text) = v.figures.precision() {
            page.wrapped(&format!("{}: {text}", name(v)));
        }
    }
}

/// What kernels declare of their work, beside what counters saw of it.
fn works(page: &mut Page, variants: &[VariantReport]) {
    let share = |it: Option<f64>| it.map_or_else(|| "—".to_owned(), percent);
    let of_variant = |v: &VariantReport| {
        let rows = v.work.iter().map(|it| {
            [
                format!("{} {}", name(v), printable(&it.kernel)),
                share(it.declared_dram_share),
                share(it.dram_share),
                share(it.declared_flops_share),
                share(it.issue_share),
                share(it.tensor_share),
                it.class.label().to_owned(),
            ]
        });
        rows.collect::<Vec<_>>()
    };
    let rows: Vec<[String; 7]> = shown(page, variants).flat_map(of_variant).collect();
    if rows.is_empty() {
        return;
    }
    page.title("Shares of the GPU's peaks");
    page.cells(
        ["", "bytes", "DRAM", "FLOP", "issue", "tensor", "class"],
        rows,
    );
    page.wrapped("declared: bytes, FLOP; counted, in all repeats: DRAM, issue, tensor");
}

/// A row each, without what only a long text has room for.
fn brief(page: &mut Page, variants: &[VariantReport]) {
    let shown: Vec<&VariantReport> = shown(page, variants).collect();
    let last = shown.last().map(|v| &v.figures.variant);
    let value = last.and_then(|it| it.value());
    let at = value.map_or_else(String::new, |it| format!(" at {it}"));
    page.title(&format!("Variants{at} (H2D, D2H in GB/s)"));
    let mut columns = Variant::columns();
    columns.retain(|it| it.width > 0);
    let mut table = Table::of(&columns);
    for v in shown {
        let row = Variant::new(v, None);
        let cells = columns.iter().skip(1).map(|it| (it.text)(&row));
        let name = printable(&v.figures.variant.name);
        table.row(iter::once(name).chain(cells));
    }
    page.table(&table);
    precisions(page, variants);
    works(page, variants);
}

/// A variant in a table.
pub struct Variant<'a> {
    pub figures: &'a VariantFigures,
    /// Its repeats, where variants differ in them.
    pub repeats: Option<usize>,
    /// How much faster it is than the one it is compared with.
    pub faster: String,
    /// What the run before took, and what this one takes by the same clock.
    pub before: Option<(Ns, Ns)>,
}

impl<'a> Variant<'a> {
    fn new(v: &'a VariantReport, repeats: Option<usize>) -> Self {
        Variant {
            figures: &v.figures,
            repeats,
            faster: v.speedup.as_ref().map(Speedup::text).unwrap_or_default(),
            before: None,
        }
    }

    /// What a table tells of variants.
    #[rustfmt::skip]
    pub fn columns() -> Vec<Column<Self>> {
        let column = Column::<Self>::new;
        vec![
            column("variant", 8, |it| printable(&it.figures.label())),
            column("repeats", 0, |it| it.repeats.map_or_else(String::new, |n| n.to_string())),
            column("makespan", 9, |it| it.figure(Kind::Makespan)),
            column("wall", 9, |it| it.figure(Kind::Wall)).dim().spare(1),
            column("speed-up", 12, |it| it.faster.clone()),
            column("ops", 0, |it| it.figure(Kind::Ops)),
            column("idle", 6, |it| it.figure(Kind::Idle)),
            column("overlap", 7, |it| it.figure(Kind::Overlap)),
            column("H2D", 8, |it| it.rate(Kind::H2dGbps)).unit("GB/s").spare(1),
            column("D2H", 8, |it| it.rate(Kind::D2hGbps)).unit("GB/s").spare(1),
            column("run before", 10, |it| it.before.map_or_else(String::new, |(before, _)| duration(before))).dim(),
            column("change", 9, |it| it.change().map_or_else(String::new, |it| format!("{:+.1} %", it * 100.0))),
        ]
    }

    fn figure(&self, kind: Kind) -> String {
        let value = self.figures.value(kind);
        value.map_or_else(|| "—".to_owned(), |value| kind.spec().unit.show(value))
    }

    fn rate(&self, kind: Kind) -> String {
        self.figures.value(kind).map(rate).unwrap_or_default()
    }

    /// How much longer it took than in the run before, as a part of that.
    pub fn change(&self) -> Option<f64> {
        let (before, now) = self.before?;
        Some(now as f64 / before as f64 - 1.0)
    }
}

/// A row for each variant; the points of a sweep stand under a line with the variant's name.
fn rows<'a>(
    table: &mut Table,
    variants: &'a [VariantReport],
    cells: impl Fn(&'a VariantReport) -> Vec<String>,
) {
    let mut above = None;
    for v in variants {
        let variant = &v.figures.variant;
        let first = match variant.point {
            Some(point) => {
                if above != Some(&variant.name) {
                    table.heading(printable(&variant.name));
                    above = Some(&variant.name);
                }
                format!("  {}", point_text(point, variant.unit))
            }
            None => name(v),
        };
        let mut row = vec![first];
        row.extend(cells(v));
        table.row(row);
    }
}

/// What the host's phases took and how much memory was in use, where that tells variants apart.
fn phases(page: &mut Page, variants: &[VariantReport]) {
    let mut names: Vec<&str> = Vec::new();
    for phase in variants.iter().flat_map(|v| &v.figures.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let memory = |v: &VariantReport| v.figures.peak_memory;
    let is_telling = variants.iter().any(|v| memory(v) != memory(&variants[0]));
    if names.is_empty() && !is_telling {
        return;
    }
    page.title(match (names.is_empty(), is_telling) {
        (false, true) => "Phases of the host, and device memory",
        (false, false) => "Phases of the host",
        _ => "Device memory",
    });
    let left_out = names.split_off(names.len().min(PHASES));
    let mut header = vec![String::new()];
    header.extend(names.iter().map(|name| printable(name)));
    header.push(if is_telling { "memory at most" } else { "" }.to_owned());
    let mut table = Table::new(header);
    rows(&mut table, variants, |v| {
        let total = |name: &&str| {
            let of_name = |phase: &&NameRow| phase.name == **name;
            let phase = v.figures.phases.iter().find(of_name);
            phase.map_or_else(|| "—".to_owned(), |phase| duration(phase.total_ns))
        };
        let mut row: Vec<String> = names.iter().map(total).collect();
        row.push(match memory(v) {
            Some(peak) if is_telling => bytes(peak),
            _ => String::new(),
        });
        row
    });
    page.table(&table);
    if !left_out.is_empty() {
        page.wrapped(&format!(
            "… and {}: {}",
            plural(left_out.len() as u64, "phase"),
            printable(&left_out.join(", "))
        ));
    }
}

/// What the scenario expects, each with what was measured.
pub(super) fn expectations(page: &mut Page, expectations: &[Checked]) {
    if expectations.is_empty() {
        return;
    }
    page.title("Expectations");
    let is_told = |e: &&Checked| !(page.is_brief && e.ok);
    let (told, held): (Vec<_>, Vec<_>) = expectations.iter().partition(is_told);
    if !held.is_empty() {
        let words = format!(
            "{} of {} hold",
            held.len(),
            plural(expectations.len() as u64, "expectation")
        );
        page.item((Tone::Good, "ok    "), &[&words]);
    }
    for e in told {
        let measured = match &e.why {
            Some(why) if e.not_judged => why.clone(),
            Some(why) => format!("not measured: {why}"),
            None => format!("{}{}", e.shown, e.at),
        };
        let (tone, mark) = match e.ok {
            true => (Tone::Good, "ok    "),
            false if e.not_judged => (Tone::Plain, "not judged"),
            false => (Tone::Bad, "FAILED"),
        };
        let line = format!(
            "{} {}: {measured}",
            printable(&e.what),
            printable(&e.expected)
        );
        page.item((tone, mark), &[&line]);
    }
}
