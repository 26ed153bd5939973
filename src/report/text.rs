//! The report for people: figures, tables, findings, expectations.

use clap::ValueEnum as _;

use super::operations::Operations;
pub use super::page::{Options, Parts, Section};
use super::page::{Page, Tone};
use super::ranks::tells;

use super::{Report, VariantReport, idle, pairs, runs};
use activity::text::{NAME_MAX, cut_middle, listed, plural, printable};
use activity::units::{bytes, count, duration, percent, rate, share};
use activity::{Direction, Ns};
use advice::verdict::{Answered, Bound, Verdict};
use figures::DeviceFigures;
use figures::busy::KernelTime;
use figures::tables::NameRow;
use findings::{Change, Finding, Rule, Severity, fold};
use trace::short;

/// What a timeline is that no GPU was involved in.
pub(super) const SIMULATED: &str = "SIMULATED: a model of a GPU, not a measurement";

/// The first lines of a GPU: its span, how busy it was, with what.
const BRIEF_LINES: usize = 3;

/// Without work for this part of its own span, while others had some, a GPU is said to have been idle then, too.
const OUTSIDE: f64 = 0.05;

/// Findings of a report of one screen.
const BRIEF_FINDINGS: usize = 3;

/// The report as text, every line ended.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options);
    heading(&mut page, report);
    super::verdicts::section(&mut page, report);
    let is_run = report.variants.as_ref().is_some_and(|v| !v.is_empty());
    // Calls of a run are those that fill buffers and warm up: nobody's matter but of who asks.
    let all = Section::value_variants().iter();
    let all = all.filter(|it| !is_run || **it != Section::Calls);
    let wanted: Vec<Section> = match options.parts {
        Parts::All => all.clone().copied().collect(),
        Parts::Summary => summary(report, is_run),
        Parts::Only(of) => {
            let all = Section::value_variants().iter().copied();
            all.filter(|it| of & it.bit() != 0).collect()
        }
    };
    for section in &wanted {
        let before = page.out.len();
        write(&mut page, report, *section);
        if page.out.len() == before && options.parts != Parts::All && !page.is_brief {
            page.wrapped(&format!("{}: nothing of that here", section.name()));
        }
    }
    if page.is_brief && !options.markdown {
        let is_more = |it: &&Section| {
            let parts = Parts::Only(it.bit());
            let mut page = Page::new(&Options { parts, ..*options });
            write(&mut page, report, **it);
            !wanted.contains(it) && !page.out.is_empty()
        };
        let more: Vec<String> = all.filter(is_more).map(|it| it.name()).collect();
        let only = match more.is_empty() {
            true => String::new(),
            false => format!(", or some of it: --only {}", more.join(",")),
        };
        page.closing(&format!("more: --all{only}"));
    }
    page.finish()
}

/// The sections that a report of one screen has: the table that the verdict is about, and the findings.
fn summary(report: &Report, is_run: bool) -> Vec<Section> {
    let figures: &[Section] = match report.job {
        _ if is_run => &[Section::Variants],
        Some(_) => &[Section::Ranks],
        None if is_of_kernels(report) => &[Section::Gpus, Section::Steps, Section::Kernels],
        None => &[Section::Gpus, Section::Steps],
    };
    let told = [Section::Expectations, Section::Findings];
    figures.iter().copied().chain(told).collect()
}

fn write(page: &mut Page, report: &Report, section: Section) {
    let variants = report.variants.as_deref().unwrap_or_default();
    match section {
        Section::Variants if report.variants.is_some() => {
            runs::section(page, variants);
            pairs::section(page, &report.pairs);
        }
        Section::Variants => {}
        Section::Expectations => {
            let expectations = report.expectations.as_deref().unwrap_or_default();
            runs::expectations(page, expectations);
        }
        // The timeline of a run holds warm-up and all variants one after another: each variant's own figures say more.
        Section::Gpus if variants.is_empty() => gpus(page, report),
        Section::Gpus => {}
        Section::Hardware => super::hardware::section(page, report),
        Section::Ranks => {
            if let Some(job) = &report.job {
                super::ranks::section(page, &report.ranks, job);
            }
        }
        Section::Lines => {
            super::lines::section(page, report);
            let (title, rows) = match report.launch_lines.is_empty() {
                true => ("CUDA graphs by source line", &report.graph_lines),
                false => ("GPU time by source line", &report.launch_lines),
            };
            names(page, title, rows, |it| {
                it.iter().map(ToString::to_string).collect()
            });
        }
        Section::Steps => super::steps::section(page, report),
        Section::Kernels => {
            let title = match variants.is_empty() {
                true => "Kernels",
                false => "Kernels of all variants, warm-up included",
            };
            names(page, title, &report.kernels, short::unique);
            let told: Vec<_> = named(report).collect();
            remarks(page, &told);
            stalls(page, &told);
        }
        Section::Findings => findings(page, report),
        Section::Calls => calls(page, report),
    }
}

/// What stands out of the kernels that take most time, a line for those of which it is the same.
fn remarks(page: &mut Page, of: &[(&NameRow, String)]) {
    let told: Vec<_> = of.iter().filter(|it| !it.0.remarks.is_empty()).collect();
    for (at, (row, _)) in told.iter().enumerate() {
        let is_same = |it: &&&(&NameRow, String)| it.0.remarks == row.remarks;
        if !told[..at].iter().any(|it| is_same(&it)) {
            let names: Vec<&str> = told
                .iter()
                .filter(is_same)
                .map(|it| it.1.as_str())
                .collect();
            let names = match names.len() {
                0..=ALIKE => listed(&names),
                many => format!("{} and {} more", names[..2].join(", "), many - 2),
            };
            page.wrapped(&format!("{names}: {}", row.remarks.join(" · ")));
        }
    }
}

/// So many kernels are named of which one thing is told.
const ALIKE: usize = 3;

/// The kernels that take most time, with their short names.
fn named(report: &Report) -> impl Iterator<Item = (&NameRow, String)> {
    let names: Vec<&str> = report.kernels.iter().map(|it| it.name.as_str()).collect();
    let shown = short::unique(&names).into_iter();
    let shown = shown.map(|it| cut_middle(&printable(&it), NAME_MAX));
    report.kernels.iter().zip(shown).take(MOST)
}

/// So many kernels have lines of their own below their table.
const MOST: usize = 8;

/// What the kernels that take most time waited for.
fn stalls(page: &mut Page, of: &[(&NameRow, String)]) {
    for (row, name) in of {
        let stalls = row.stalls.as_ref();
        if let Some((it, said)) = stalls.and_then(|it| Some((it, it.sentence()?))) {
            let samples = format!(" ({} samples)", count(it.mix.samples));
            let samples = if it.declared { "" } else { &samples };
            page.wrapped(&format!("{name}: {said}{samples}"));
        }
    }
}

/// What each GPU did, as far as a job's report tells of it.
fn gpus(page: &mut Page, report: &Report) {
    let is_told = |of: &&DeviceFigures| tells(report, |rank| rank.device_index == of.index);
    let (told, others): (Vec<_>, Vec<_>) = report.devices.iter().partition(is_told);
    for device in told {
        device_figures(page, report, device);
    }
    if let Some(line) = kernel_line(report).filter(|_| page.is_brief) {
        page.wrapped(&line);
    }
    let others = others.len() as u64;
    if others > 0 {
        page.title(&format!("{}: see --json", plural(others, "more GPU")));
    }
}

/// What bounds the GPU is what its kernels do: their table is shown.
fn is_of_kernels(report: &Report) -> bool {
    // What leads before a GPU's own verdict does not change what that is of.
    let own = report
        .verdicts
        .get(1)
        .filter(|_| report.verdicts.len() == 2);
    let own = own.or(report.verdicts.first()).map(|it| it.bound_by);
    matches!(own, Some(Bound::Compute | Bound::Memory))
}

/// Which kernels take most, where there is no table of them and they run for this part of the time.
fn kernel_line(report: &Report) -> Option<String> {
    const WORTH: f64 = 0.1;
    let sum = |of: fn(&DeviceFigures) -> Ns| report.devices.iter().map(of).sum::<Ns>();
    let ran = sum(|it| it.compute_ns);
    let part = share(ran, sum(DeviceFigures::recorded_ns));
    let rows: Vec<_> = named(report).take(3).collect();
    let rows = &rows[..rows.iter().filter(|it| it.0.share >= WORTH).count()];
    let remarks = |row: &NameRow| match row.remarks.is_empty() {
        true => String::new(),
        false => format!(" ({})", row.remarks.join(" · ")),
    };
    let are_alike = rows.len() > 1 && rows.iter().all(|it| it.0.remarks == rows[0].0.remarks);
    let told = rows.iter().map(|(row, name)| {
        let own = if are_alike {
            String::new()
        } else {
            remarks(row)
        };
        format!("{} in {name}{own}", percent(row.share))
    });
    let mut told = told.collect::<Vec<_>>().join(", ");
    if are_alike {
        told += &remarks(rows[0].0).replace(" (", " (all: ");
    }
    let is_told = part >= WORTH && !told.is_empty() && !is_of_kernels(report);
    let all = report.kernels.iter().map(|it| it.total_ns).sum();
    is_told.then(|| format!("{}: {told}", KernelTime::new(all, ran).name()))
}

/// What the host called, for how long it waited, and the memory that it allocated.
fn calls(page: &mut Page, report: &Report) {
    let title = match report.variants.as_ref().is_none_or(Vec::is_empty) {
        true => "CPU's CUDA calls",
        false => "CPU's CUDA calls, set-up and warm-up included",
    };
    names(page, title, &report.calls, |calls| {
        calls.iter().map(|name| (*name).to_owned()).collect()
    });
    if report.sync_ns > 0 {
        let time = duration(report.sync_ns);
        page.wrapped(&format!("the host waited for the GPU for {time}"));
    }
    if let Some(peak) = report.peak_memory {
        page.wrapped(&format!("device memory: {} at most", bytes(peak)));
    }
}

/// What the report is about, and whether it can be believed.
fn heading(page: &mut Page, report: &Report) {
    let title = printable(&report.source.title);
    let mut line = cut_middle(&title, page.width);
    if line.is_empty() {
        line = report.source.kind.to_owned();
    }
    page.title(&line);
    page.source(report.source.kind, report.source.path.as_deref());
    if report.source.simulated {
        page.painted(Tone::Bad, SIMULATED);
    }
    for line in report.let_go.iter().flat_map(|it| it.lines()) {
        page.wrapped(&line);
    }
    for line in report.recording.iter().map(|it| it.line()) {
        page.wrapped(&line);
    }
    let health = &report.health.source;
    let received = format!("{} records received", count(health.received));
    if health.losses() == 0 {
        if !page.is_brief {
            page.wrapped(&format!("{received}, none lost"));
        }
        return;
    }
    let reasons = [
        ("dropped by CUPTI", health.dropped),
        ("not written or read", health.lost),
        ("of unknown kind", health.unknown),
        ("without a time", health.no_timestamp),
        ("ended before they started", health.end_before_start),
        ("with a time outside the session", health.bad_clock),
    ];
    let reasons = reasons.iter().filter(|(_, n)| *n > 0);
    let reasons = reasons.map(|(why, n)| format!("{} {why}", count(*n)));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    page.wrapped(&received);
    page.painted(Tone::Bad, &format!("INCOMPLETE: {reasons}"));
}

fn device_figures(page: &mut Page, report: &Report, f: &DeviceFigures) {
    let unused = match f.unused {
        0 => String::new(),
        1 => " (one more like it is unused)".to_owned(),
        more => format!(" ({more} more like it are unused)"),
    };
    page.title(&cut_middle(
        format!("GPU {} {}{unused}", f.device, f.name).trim_end(),
        page.width,
    ));
    let bound = report.verdicts.first().map(|it| it.bound_by);
    for line in device_lines(report, f).iter().take(page.most(BRIEF_LINES)) {
        page.wrapped(line);
    }
    let of_kernels = is_of_kernels(report);
    let of_copies = matches!(bound, Some(Bound::Copy | Bound::Peer));
    if !page.is_brief || !(of_kernels || of_copies) {
        idle::table(page, f);
    }
    if copies(f) > 0 && (!page.is_brief || of_copies) {
        copy_table(page, report, f);
    }
}

/// Copies of all directions.
fn copies(f: &DeviceFigures) -> u64 {
    f.ops - f.kernels - f.memsets - f.graphs
}

/// What a device did, in sentences.
fn device_lines(report: &Report, f: &DeviceFigures) -> Vec<String> {
    let of_span = |ns: Ns| format!("{} ({})", duration(ns), percent(share(ns, f.recorded_ns())));
    let graphs = match f.graphs {
        0 => String::new(),
        n => format!(", {}", plural(n, "whole graph")),
    };
    // A marked step may begin long before its first operation.
    let is_of = |it: &&Verdict| it.device == Some(f.device) && it.scope.of == Answered::Marked;
    let marked = report.verdicts.iter().find(is_of);
    let before = marked.map_or(0, |it| f.span.start - it.scope.start_ns);
    let before = match before as f64 > OUTSIDE * f.recorded_ns() as f64 {
        true => format!("nothing for {} of its step, then ", duration(before)),
        false => String::new(),
    };
    let mut lines = vec![
        format!(
            "{before}{} from the first operation to the last: {}, {}, {}{graphs}, on {}",
            duration(f.span_ns),
            plural(f.kernels, "kernel"),
            plural(copies(f), "copy"),
            plural(f.memsets, "memset"),
            plural(f.stream_count as u64, "stream"),
        ),
        format!("busy {} · idle {}", of_span(f.busy_ns), of_span(f.idle_ns)),
        format!(
            "computing {} · copying {}{}{}",
            of_span(f.compute_ns),
            of_span(f.copy_ns),
            match f.busy_ns - (f.compute_ns + f.copy_ns - f.overlap_ns) {
                ns if f.graphs == 0 && ns > f.compute_ns + f.copy_ns =>
                    format!(" · setting memory {}", of_span(ns)),
                _ => String::new(),
            },
            f.overlap_share().map_or_else(String::new, |s| format!(
                " · overlap {}, {} of the copying",
                duration(f.overlap_ns),
                percent(s)
            )),
        ),
    ];
    if f.not_recorded_ns > 0 {
        lines.push(format!(
            "not recorded: {}; shares are of the other {}",
            duration(f.not_recorded_ns),
            duration(f.recorded_ns()),
        ));
    }
    if (f.before_ns + f.behind_ns) as f64 > OUTSIDE * f.recorded_ns() as f64 {
        let [before, behind] = [f.before_ns, f.behind_ns].map(duration);
        lines.push(format!(
            "other GPUs worked for {before} before its first operation, and for {behind} behind its last one"
        ));
    }
    lines.extend(gap_line(f));
    lines.extend(launch_line(report, f));
    if let Some(no_api) = f.no_api.filter(|n| *n > 0) {
        lines.push(format!(
            "{} without a host call on the timeline",
            plural(no_api, "operation")
        ));
    }
    lines
}

fn gap_line(f: &DeviceFigures) -> Option<String> {
    let gaps = f.gaps;
    (gaps.longest_ns > 0).then(|| {
        format!(
            "gaps: {} over 10 µs, {} over 100 µs, {} over 1 ms, the longest {}",
            count(gaps.over_10us),
            count(gaps.over_100us),
            count(gaps.over_1ms),
            duration(gaps.longest_ns),
        )
    })
}

fn launch_line(report: &Report, f: &DeviceFigures) -> Option<String> {
    let l = report.launches.iter().find(|l| l.device == f.device)?;
    (l.delay.count > 0).then(|| {
        format!(
            "launch delay: p50 {}, p90 {}, p99 {}, {} at most; queue depth up to {}",
            duration(l.delay.p50_ns),
            duration(l.delay.p90_ns),
            duration(l.delay.p99_ns),
            duration(l.delay.max_ns),
            count(l.queue.max),
        )
    })
}

/// What copies of each direction came to.
fn copy_table(page: &mut Page, report: &Report, f: &DeviceFigures) {
    let rows = Direction::NAMED.into_iter().filter_map(|direction| {
        let d = f.direction(direction).filter(|d| d.count > 0)?;
        let peak = report.peaks.rate(direction);
        let of_peak = d.gbps.zip(peak).map(|(rate, peak)| percent(rate / peak));
        Some([
            direction.label().to_owned(),
            count(d.count),
            bytes(d.bytes),
            duration(d.busy_ns),
            d.gbps.map_or_else(|| "—".to_owned(), rate),
            of_peak.unwrap_or_default(),
        ])
    });
    page.cells(
        ["copies", "count", "bytes", "busy", "GB/s", "of peak"],
        rows,
    );
}

fn names(page: &mut Page, title: &str, rows: &[NameRow], shown: impl Fn(&[&str]) -> Vec<String>) {
    if rows.is_empty() {
        return;
    }
    page.title(title);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let rows = rows
        .iter()
        .zip(shown(&names))
        .map(|(row, name)| Operations {
            times: NameRow {
                name,
                ..row.clone()
            },
            bytes: 0.0,
        });
    page.rows(&Operations::columns(), rows);
}

/// A start that takes so many times as long as all that ran has a place of its own.
const START_TIMES: Ns = 10;

/// What the findings of a start are under.
const START_UP: &str = "Start-up";

fn findings(page: &mut Page, report: &Report) {
    let variants = report.variants.as_deref().unwrap_or_default();
    let mut lists: Vec<(String, Vec<Finding>)> = folded(variants);
    for (name, _) in &mut lists {
        *name = format!("Findings in {}", printable(name));
    }
    if variants.is_empty() {
        let start_up = report.start_up_findings.clone();
        let looked = steps_looked_at(&report.findings).unwrap_or_default();
        lists.push((format!("Findings{looked}"), report.findings.clone()));
        lists.push((START_UP.to_owned(), start_up.unwrap_or_default()));
    }
    let mut left = page.most(BRIEF_FINDINGS);
    let all: usize = lists.iter().map(|(_, findings)| findings.len()).sum();
    // A start that takes many times as long as all that the GPU did is told, whatever else there is.
    let span = report.devices.iter().map(|f| f.span_ns).max().unwrap_or(0);
    let is_long =
        |it: &(String, Vec<Finding>)| it.1.iter().any(|it| it.bound_ns / START_TIMES > span);
    let start = lists.last().filter(|it| it.0 == START_UP && is_long(it));
    let mut kept = usize::from(page.is_brief && start.is_some());
    for (title, findings) in lists {
        kept *= usize::from(title != START_UP);
        let some = &findings[..findings.len().min(left - kept)];
        left -= some.len();
        // A run's one screen has room for its variants, whose cures stand beside them.
        let has_change = !page.is_brief || variants.is_empty();
        finding_list(page, &title, some, has_change);
    }
    if page.is_brief && all > BRIEF_FINDINGS {
        page.wrapped(&format!(
            "… and {} more: --only findings",
            all - BRIEF_FINDINGS
        ));
    }
}

/// ": times and shares are of steps 17 to 73 of 80 (570 µs, all of usual length)", where findings are of a part. Rules look at one stretch, where odd steps lie between.
pub fn steps_looked_at(findings: &[Finding]) -> Option<String> {
    let mut of = findings.iter().filter(|it| it.rule != Rule::OddSteps);
    let of = of.find_map(|it| it.step)?;
    let (steps, all) = (count(of.count as u64), duration(of.all));
    Some(match of.count < of.of {
        true => {
            let numbers = [of.first + 1, of.first + of.count, of.found];
            let [first, last, found] = numbers.map(|it| count(it as u64));
            // Odd steps are told of all.
            let which = match findings.first().map(|it| it.rule) {
                Some(Rule::OddSteps) => {
                    format!("first of all {found} steps, then of steps {first} to {last}")
                }
                _ => format!("times and shares are of steps {first} to {last} of {found}"),
            };
            format!(": {which} ({all}, all of usual length)")
        }
        false => format!(" in the {steps} steady steps ({all})"),
    })
}

/// The findings of a run by variant: points of a sweep in one line.
pub(super) fn folded(variants: &[VariantReport]) -> Vec<(String, Vec<Finding>)> {
    fold::variants(variants.iter().map(VariantReport::named))
}

fn finding_list(page: &mut Page, title: &str, findings: &[Finding], has_change: bool) {
    if findings.is_empty() {
        return;
    }
    page.title(title);
    for finding in findings {
        let mark = match finding.severity {
            Severity::Warning => (Tone::Warn, "!"),
            Severity::Info => (Tone::Dim, "\u{b7}"),
        };
        let title = format!(
            "{}{} [{}]",
            finding.headline(),
            finding.worth(),
            finding.rule.name()
        );
        let change: Vec<String> = finding
            .change
            .iter()
            .filter(|_| has_change)
            .map(Change::to_string)
            .collect();
        let mut told = vec![title.as_str(), &finding.advice];
        let refusal = finding.refusal();
        told.extend(change.iter().map(String::as_str).chain([refusal.as_str()]));
        page.item(mark, &told);
    }
    let bounds = findings.iter().filter(|it| {
        it.severity == Severity::Warning && it.predicted.is_none() && !it.is_no_matter_of_time()
    });
    if bounds.count() > 1 {
        page.wrapped("What several could save may be the same time: do not add it up.");
    }
    if let Some(predicted) = findings.iter().find_map(|it| it.predicted.as_ref()) {
        page.wrapped(&predicted.certainty());
    }
}
