//! An answer in words: for a terminal, and for a pull request.

use super::{CompareReport, ComparedRow, Samples};
use crate::report::compare::PartKind;
use crate::report::compare::changes::{self, signed};
use crate::report::compare::side::ComparedRun;
use crate::report::page::{Options, Page, Tone};

use activity::Ns;
use activity::stats::TEST_MIN;
use activity::text::{plural, printable};
use activity::units::{duration, percent};

/// A ratio this near to 1 is no difference where nothing else tells: "1.00×" would be written of it.
const SAME: f64 = 0.005;
/// A change of idle or compute time is said in the first line from this share of the whole change on.
const TOLD_MIN: f64 = 0.05;
/// So many reasons why the sides are not the same are said again behind a long page.
const WARNED: usize = 1;
/// So is a change of the overlap by this share of the copy time.
const OVERLAP_MIN: f64 = 0.05;

/// The first line.
pub(super) fn headline(rows: &[ComparedRow]) -> String {
    match rows {
        [] => "nothing to compare".to_owned(),
        [row] if row.wholes.is_some() => of_steps(row),
        [row] => {
            let evidence = evidence(row);
            match verdict(row) {
                Some(faster) => format!("B is {faster}{evidence}{}", clues(row)),
                None => "no difference shown".to_owned() + &evidence,
            }
        }
        rows => {
            let differing = rows.iter().filter_map(|r| Some((r, verdict(r)?)));
            let told: Vec<String> = differing
                .map(|(r, v)| format!("{v} in {}{}", printable(&r.of), evidence(r)))
                .collect();
            match rows.len() - told.len() {
                _ if told.is_empty() => {
                    format!(
                        "no difference shown in any of {}",
                        plural(rows.len() as u64, "variant")
                    )
                }
                0 => format!("B is {}", told.join(", ")),
                same => format!(
                    "B is {}; no difference shown in {same} more",
                    told.join(", ")
                ),
            }
        }
    }
}

/// Of runs in which most kernels differ, but whose steps are known: how long those take may be told beside each other.
pub(super) fn different(row: &ComparedRow, sides: [&[ComparedRun]; 2]) -> String {
    let step = |runs: &[ComparedRun]| runs.first()?.step().map(|it| it.median.window.len());
    let [Some(a), Some(b)] = sides.map(step) else {
        return headline(std::slice::from_ref(row));
    };
    let [whole_a, whole_b] = row.spans.map(|it| duration(it.len()));
    let (a, b) = (duration(a), duration(b));
    format!("A and B run different kernels: steps take {a} and {b}, runs {whole_a} and {whole_b}")
}

/// Runs whose ratio is this much from that of their steps hold more than steps.
const WHOLE_APART: f64 = 0.05;

/// "B is 26 % faster per step (14.46 → 10.68 ms), one run a side, single steps range from 18 % faster to 34 % faster".
fn of_steps(row: &ComparedRow) -> String {
    let [a, b] = [&row.a, &row.b].map(|side| side.median_ns.round() as Ns);
    let mut text = match (verdict(row), row.between_steps) {
        // Between two runs it is not known whether there is one.
        (None, None) => "no difference shown".to_owned(),
        _ => format!("B is {} per step", change(row.ratio)),
    };
    text += &format!(" ({})", precise(a, b));
    if let Some((least, greatest)) = row.between_steps {
        text += ", one run a side";
        if row.a.count > 1 || row.b.count > 1 {
            let [from, to] = match row.ratio < 1.0 {
                true => [greatest, least],
                false => [least, greatest],
            };
            text += &format!(
                ", single steps range from {} to {}",
                change(from),
                change(to)
            );
        }
    }
    text += &evidence(row);
    if let Some([a, b]) = row.wholes {
        let whole = b as f64 / a.max(1) as f64;
        if (whole / row.ratio - 1.0).abs() > WHOLE_APART {
            text += &format!("; the whole run is {} ({})", change(whole), precise(a, b));
        }
    }
    text + &clues(row)
}

/// "26 % faster" for a ratio of 0.74, "3.12× faster" beyond a factor of two.
fn change(ratio: f64) -> String {
    match ratio {
        r if (r - 1.0).abs() < SAME => "equally fast".to_owned(),
        r if r <= 0.5 => format!("{:.2}× faster", 1.0 / r),
        r if r < 1.0 => format!("{} faster", percent(1.0 - r)),
        r if r < 2.0 => format!("{} slower", percent(r - 1.0)),
        r => format!("{r:.2}× slower"),
    }
}

/// Two times with two digits behind the point, in the unit of the larger: "14.46 → 10.68 ms".
fn precise(a: Ns, b: Ns) -> String {
    let (unit, size) = unit(a.max(b));
    format!("{:.2} → {:.2} {unit}", a as f64 / size, b as f64 / size)
}

/// "2.43× faster", where that is shown, or where there are too few samples to show anything.
pub(super) fn verdict(row: &ComparedRow) -> Option<String> {
    let is_same = (row.ratio - 1.0).abs() < SAME;
    if row.shown == Some(false) || row.shown.is_none() && is_same {
        return None;
    }
    let (factor, word) = if row.ratio < 1.0 {
        (1.0 / row.ratio, "faster")
    } else {
        (row.ratio, "slower")
    };
    // What is shown may be small.
    let digits = if factor < 1.01 { 4 } else { 2 };
    Some(format!("{factor:.digits$}× {word}"))
}

/// " (p=0.002, 95 % interval 2.41× to 2.45×)"; nothing where there is none.
fn evidence(row: &ComparedRow) -> String {
    let Some(p) = row.p else {
        return String::new();
    };
    let p = if p < 0.001 {
        "p<0.001".to_owned()
    } else {
        format!("p={p:.3}")
    };
    match (row.low, row.high) {
        (Some(low), Some(high)) => {
            let (low, high) = if row.ratio < 1.0 {
                (1.0 / high, 1.0 / low)
            } else {
                (low, high)
            };
            format!(" ({p}, 95 % interval {low:.3}× to {high:.3}×)")
        }
        _ => format!(" ({p})"),
    }
}

/// ": overlap 0 → 81 %, idle 528 → 3.5 µs".
fn clues(row: &ComparedRow) -> String {
    let whole: Ns = row.why.iter().map(|p| p.change_ns).sum();
    let mut told = Vec::new();
    let [a, b] = row.overlap;
    if (a - b).abs() >= OVERLAP_MIN {
        told.push(format!("overlap {:.0} → {:.0} %", a * 100.0, b * 100.0));
    }
    let sum = |is_meant: fn(PartKind) -> bool| -> (Ns, Ns) {
        let meant = row.why.iter().filter(|p| is_meant(p.cause));
        meant.fold((0, 0), |(a, b), p| (a + p.a_ns, b + p.b_ns))
    };
    let idle = sum(PartKind::is_idle);
    let compute = sum(|of| of == PartKind::Compute);
    let copy = sum(|of| of == PartKind::Copy);
    // Copies that overlap each other take less time together, which the overlap has said.
    let parts = [("idle", idle), ("compute", compute), ("copy", copy)];
    let has_overlap = !told.is_empty();
    let parts = parts
        .iter()
        .filter(|(name, _)| !(has_overlap && *name == "copy"));
    for (name, (a, b)) in parts {
        if (b - a).abs() as f64 >= TOLD_MIN * whole.abs() as f64 && a != b {
            told.push(format!("{name} {}", from_to(*a, *b)));
        }
    }
    if told.is_empty() {
        return String::new();
    }
    format!(": {}", told.join(", "))
}

/// Two times in the unit of the larger: "528 → 3.5 µs".
fn from_to(a: Ns, b: Ns) -> String {
    let (unit, size) = unit(a.abs().max(b.abs()));
    let show = |ns: Ns| {
        let value = ns as f64 / size;
        match value.abs() {
            0.0 => "0".to_owned(),
            v if v < 9.95 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    };
    format!("{} → {} {unit}", show(a), show(b))
}

fn unit(largest: Ns) -> (&'static str, f64) {
    match largest {
        0..1_000 => ("ns", 1.0),
        1_000..1_000_000 => ("µs", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

/// "3.34 ms ± 1 %", and the number of samples where there is no interval.
fn samples(side: &Samples) -> String {
    let median = duration(side.median_ns.round() as Ns);
    match side.summary.spread() {
        Some(spread) => format!("{median} ± {}", percent(spread)),
        None => median,
    }
}

/// "-58.9 %" or "~", as benchstat writes it, with p and the numbers of samples.
fn delta(row: &ComparedRow) -> String {
    let change = match row.shown {
        Some(false) => "~".to_owned(),
        _ => format!("{:+.2} %", (row.ratio - 1.0) * 100.0),
    };
    let n = match (row.a.count, row.b.count) {
        (a, b) if a == b => format!("n={a}"),
        (a, b) => format!("n={a}+{b}"),
    };
    match row.p {
        Some(p) => format!("{change} (p={p:.3} {n})"),
        None if row.a.count.max(row.b.count) > 1 => format!("{change} ({n})"),
        None => change,
    }
}

impl CompareReport {
    /// What the samples are, and what they cannot say.
    fn about(&self) -> String {
        let of = match self.samples {
            "runs" => "samples are whole runs".to_owned(),
            "one run" => "only one run a side: how much runs differ is not known".to_owned(),
            kind => format!(
                "only one run a side (samples are its {kind}): how much runs differ is not known"
            ),
        };
        let need = self.rows.iter().filter_map(|r| r.need).max();
        let need = need.map_or_else(String::new, |n| {
            let figure = if n <= TEST_MIN {
                "whether chance explains the difference"
            } else {
                "a 95 % interval"
            };
            format!(" · {n} samples a side or more tell {figure} (compare A1,A2,… B1,B2,…)")
        });
        let floor = self.rows.iter().filter_map(|r| r.floor);
        let floor = floor.reduce(f64::max).map_or_else(String::new, |f| {
            format!(" · noise floor (A compared with A): up to {}", percent(f))
        });
        format!("{of}{need}{floor}")
    }

    /// Why the two sides may not be the same thing, in so many lines at most.
    fn warn(&self, page: &mut Page, most: usize) {
        for warning in self.warnings.iter().take(most) {
            page.wrapped(&format!("! not the same on both sides: {warning}"));
        }
    }

    /// As text, every line ended.
    pub fn text(&self, options: &Options) -> String {
        let mut page = Page::new(options);
        let tone = match self.rows.as_slice() {
            [row] if row.shown == Some(true) && row.ratio > 1.0 => Tone::Bad,
            [row] if row.shown == Some(true) => Tone::Good,
            _ => Tone::Title,
        };
        page.lead(tone, &self.text);
        self.warn(&mut page, usize::MAX);
        page.wrapped(&self.about());
        if let Some(tried) = &self.tried {
            page.wrapped(&tried.text);
        }
        if let Some(fail_over) = &self.fail_over {
            let tone = if fail_over.regressed.is_empty() {
                Tone::Warn
            } else {
                Tone::Bad
            };
            page.painted(tone, &fail_over.text);
        }
        let rows = self.rows.iter();
        let rows = rows.map(|row| {
            [
                printable(&row.of),
                samples(&row.a),
                samples(&row.b),
                delta(row),
            ]
        });
        let mean = self.geometric_mean.map(|mean| {
            let change = format!("{:+.2} %", (mean - 1.0) * 100.0);
            ["geometric mean", "", "", &change].map(str::to_owned)
        });
        page.cells(["", "A", "B", "B against A"], rows.chain(mean));
        for row in &self.rows {
            let of = |what: &str| match self.rows.len() {
                1 => what.to_owned(),
                _ => format!("{what} in {}", printable(&row.of)),
            };
            if !row.why.is_empty() {
                page.title(&of("Where the difference lies"));
                why(&mut page, row);
            }
            if !row.changed.is_empty() {
                page.title(&of(
                    "Changed operations (durations summed, also of what ran at once)",
                ));
                changes::section(&mut page, &row.changed);
            }
        }
        page.title("Figures");
        self.figures.sources(&mut page);
        self.figures.tables(&mut page);
        // Of a longer page the first lines are gone from a screen.
        if !options.markdown {
            page.title("In short");
            page.painted(tone, &self.text);
            self.warn(&mut page, WARNED);
            self.figures.sources(&mut page);
            let about = self.about();
            page.wrapped(about.split(" · ").next().unwrap_or_default());
            let tried = self.tried.iter().map(|it| it.text.as_str());
            let next = "both above each other: the same command with --screen";
            { tried.chain([next]) }.for_each(|it| page.wrapped(it));
        }
        page.finish()
    }
}

fn why(page: &mut Page, row: &ComparedRow) {
    let rows = row.why.iter().map(|it| {
        // Its row says that it is taken off: what it is has no sign.
        let sign = if it.cause == PartKind::Overlap { -1 } else { 1 };
        let [a, b] = [it.a_ns, it.b_ns].map(|ns| duration(sign * ns));
        [it.cause.label(), a, b, signed(it.change_ns)]
    });
    let whole: Ns = row.why.iter().map(|p| p.change_ns).sum();
    let together = ["together", "", "", &signed(whole)].map(str::to_owned);
    page.cells(["", "A", "B", "change"], rows.chain([together]));
}
