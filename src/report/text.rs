//! The report for people: figures, tables, findings, expectations.

use std::fmt::Write as _;

use super::operations::Operations;
pub use super::page::Options;
use super::page::{Page, Tone};
use super::table::Table;
use super::{Report, VariantReport, idle, runs};
use activity::text::{cut_middle, plural, printable, wrap};
use activity::units::{bytes, count, duration, percent, rate};
use activity::{Direction, Ns};
use analysis::DeviceFigures;
use analysis::figures::share;
use analysis::findings::{Finding, Severity, fold};
use analysis::tables::NameRow;
use trace::short;

/// The report as text, every line ended.
#[must_use]
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options);
    heading(&mut page, report);
    super::verdicts::section(&mut page, report);
    if let Some(variants) = &report.variants {
        runs::section(&mut page, variants);
    }
    if let Some(expectations) = &report.expectations {
        let variants = report.variants.as_deref().unwrap_or_default();
        runs::expectations(&mut page, expectations, variants);
    }
    // The timeline of a run holds warm-up and all variants one after another: each variant's own
    // figures above say more than those of the whole.
    if report.variants.as_ref().is_none_or(Vec::is_empty) {
        let told = super::ranks::told(report);
        let is_told = |index: usize| {
            let told = told.as_deref();
            told.is_none_or(|told| told.iter().any(|rank| rank.device_index == index))
        };
        for device in report.devices.iter().filter(|it| is_told(it.index)) {
            device_figures(&mut page, report, device);
        }
        let others = report.devices.iter().filter(|it| !is_told(it.index));
        let others = others.count() as u64;
        if others > 0 {
            page.title(&format!("{}: see --json", plural(others, "more GPU")));
        }
    }
    super::hardware::section(&mut page, report);
    if let Some(job) = &report.job {
        super::ranks::section(&mut page, &report.ranks, job);
    }
    super::lines::section(&mut page, report);
    super::steps::section(&mut page, report);
    // Of a run the whole is mostly what is done around its passes, and tells least of all.
    let is_run = report.variants.as_ref().is_some_and(|v| !v.is_empty());
    if is_run {
        names(
            &mut page,
            "Kernels of all variants, warm-up included",
            &report.kernels,
            short::unique,
        );
        findings(&mut page, report);
        calls(&mut page, report, "Host calls, set-up and warm-up included");
    } else {
        names(&mut page, "Kernels", &report.kernels, short::unique);
        calls(&mut page, report, "Host calls");
        findings(&mut page, report);
    }
    page.out
}

/// What the host called, for how long it waited, and the memory that it allocated.
fn calls(page: &mut Page, report: &Report, title: &str) {
    names(page, title, &report.calls, |calls| {
        calls.iter().map(|name| (*name).to_owned()).collect()
    });
    if report.sync_ns > 0 {
        let line = format!(
            "  the host waited for the GPU for {}",
            duration(report.sync_ns)
        );
        page.line(&line);
    }
    if let Some(peak) = report.peak_memory {
        page.line(&format!("  device memory: {} at most", bytes(peak)));
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
    let mut about = format!("  {}", report.source.kind);
    if let Some(path) = &report.source.path {
        let _ = write!(about, " · {}", printable(&path.display().to_string()));
    }
    page.line(&about);
    if report.source.simulated {
        let mark = page.paint(
            Tone::Bad,
            "  SIMULATED: a model of a GPU, not a measurement",
        );
        page.line(&mark);
    }
    for line in report.let_go.iter().flat_map(|it| it.lines()) {
        page.wrapped(&line);
    }
    for line in report.recording.iter().map(|it| it.line()) {
        page.wrapped(&line);
    }
    let health = &report.health.source;
    let received = format!("  {} records received", count(health.received));
    if health.losses() == 0 {
        page.line(&format!("{received}, none lost"));
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
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(why, n)| format!("{} {why}", count(*n)))
        .collect();
    let text = format!("INCOMPLETE: {}", reasons.join(", "));
    page.line(&received);
    for line in wrap(&text, page.width - 2) {
        let painted = page.paint(Tone::Bad, &format!("  {line}"));
        page.line(&painted);
    }
}

fn device_figures(page: &mut Page, report: &Report, f: &DeviceFigures) {
    page.title(&cut_middle(
        format!("GPU {} {}", f.device, f.name).trim_end(),
        page.width,
    ));
    for line in device_lines(report, f) {
        page.wrapped(&line);
    }
    idle::table(page, f);
    if copies(f) > 0 {
        page.table(&copy_table(report, f));
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
    let mut lines = vec![
        format!(
            "{} from the first operation to the last: {}, {}, {}{graphs}, on {}",
            duration(f.span_ns),
            plural(f.kernels, "kernel"),
            plural(copies(f), "copy"),
            plural(f.memsets, "memset"),
            plural(f.streams.len() as u64, "stream"),
        ),
        format!("busy {} · idle {}", of_span(f.busy_ns), of_span(f.idle_ns)),
        format!(
            "computing {} · copying {}{}",
            of_span(f.compute_ns),
            of_span(f.copy_ns),
            f.overlap_share().map_or_else(String::new, |s| format!(
                " · both {}, {} of the copying is hidden",
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
    let gaps = f.gaps;
    if gaps.longest_ns > 0 {
        lines.push(format!(
            "gaps: {} over 10 µs, {} over 100 µs, {} over 1 ms, the longest {}",
            count(gaps.over_10us),
            count(gaps.over_100us),
            count(gaps.over_1ms),
            duration(gaps.longest_ns),
        ));
    }
    if let Some(l) = report.launches.iter().find(|l| l.device == f.device)
        && l.delay.count > 0
    {
        lines.push(format!(
            "from call to start: {} (half), {} (90 %), {} (99 %), {} at most; queue up to {}",
            duration(l.delay.p50_ns),
            duration(l.delay.p90_ns),
            duration(l.delay.p99_ns),
            duration(l.delay.max_ns),
            count(l.queue.max),
        ));
    }
    if let Some(no_api) = f.no_api.filter(|n| *n > 0) {
        lines.push(format!(
            "{} without a host call on the timeline",
            plural(no_api, "operation")
        ));
    }
    lines
}

/// What copies of each direction came to.
fn copy_table(report: &Report, f: &DeviceFigures) -> Table {
    let mut table = Table::new(["copies", "count", "bytes", "busy", "GB/s", "of peak"]);
    for direction in Direction::NAMED {
        let Some(d) = f.direction(direction).filter(|d| d.count > 0) else {
            continue;
        };
        let of_peak = d
            .gbps
            .zip(report.peaks.rate(direction))
            .map(|(r, peak)| percent(r / peak));
        table.row([
            direction.label().to_owned(),
            count(d.count),
            bytes(d.bytes),
            duration(d.busy_ns),
            d.gbps.map_or_else(|| "—".to_owned(), rate),
            of_peak.unwrap_or_default(),
        ]);
    }
    table
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

fn findings(page: &mut Page, report: &Report) {
    let variants = report.variants.as_deref().unwrap_or_default();
    if variants.is_empty() {
        let (title, start_up) = match &report.start_up_findings {
            Some(start_up) => ("Findings in the steady steps", start_up.as_slice()),
            None => ("Findings", [].as_slice()),
        };
        finding_list(page, title, &report.findings);
        return finding_list(page, "Start-up", start_up);
    }
    for (name, findings) in folded(variants) {
        finding_list(
            page,
            &format!("Findings in {}", printable(&name)),
            &findings,
        );
    }
}

/// The findings of a run by variant: points of a sweep in one line.
pub(super) fn folded(variants: &[VariantReport]) -> Vec<(String, Vec<Finding>)> {
    fold::variants(variants.iter().map(VariantReport::named))
}

fn finding_list(page: &mut Page, title: &str, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.title(title);
    for finding in findings {
        let (tone, mark) = match finding.severity {
            Severity::Warning => (Tone::Warn, "  ! "),
            Severity::Info => (Tone::Dim, "  \u{b7} "),
        };
        let mark = page.paint(tone, mark);
        let title = format!(
            "{}{} [{}]",
            finding.headline(),
            finding.worth(),
            finding.rule
        );
        for (i, line) in wrap(&title, page.width - 4).iter().enumerate() {
            let lead = if i == 0 { mark.as_str() } else { "    " };
            page.line(&format!("{lead}{line}"));
        }
        for text in [&finding.advice, &finding.refusal()] {
            if text.is_empty() {
                continue;
            }
            for line in wrap(text, page.width - 4) {
                page.line(&format!("    {line}"));
            }
        }
    }
}
