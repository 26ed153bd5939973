//! The list views, prepared from the app.

use ratatui::style::Style;

use super::list::{List, Part};
use super::pen;
use crate::activity::units;
use crate::analysis::findings::Severity;
use crate::trace::{describe, printable};
use crate::tui::app::{App, FindingLine, Journal, LineKind, VariantRow};
use crate::tui::table;
use crate::tui::theme::{Role, Theme};

fn left(text: impl Into<String>, columns: u16, style: Style) -> Part {
    Part {
        text: text.into(),
        style,
        columns,
        is_right: false,
    }
}

fn right(text: impl Into<String>, columns: u16, style: Style) -> Part {
    Part {
        is_right: true,
        ..left(text, columns, style)
    }
}

/// The bundled scenarios, a line each.
#[must_use]
pub fn picker<'a>(app: &App, theme: &'a Theme) -> List<'a> {
    let longest = app.choices.iter().map(|c| c.name.len()).max().unwrap_or(0);
    List {
        theme,
        heading: vec![left(
            "scenarios: enter runs one, then look at its variants with v",
            u16::MAX,
            theme.fg(Role::Dim),
        )],
        lines: app
            .choices
            .iter()
            .map(|c| {
                vec![
                    left(&c.name, longest as u16, theme.fg(Role::Accent)),
                    left(printable(&c.about), u16::MAX, theme.fg(Role::Text)),
                ]
            })
            .collect(),
        cursor: Some(app.cursor),
        empty: "no scenario is bundled",
    }
}

/// Operations grouped by name.
#[must_use]
pub fn operations<'a>(app: &App, theme: &'a Theme, width: u16) -> List<'a> {
    let groups = table::table(app);
    let all: i64 = groups.iter().map(|g| g.total).sum();
    let (text, dim) = (theme.fg(Role::Text), theme.fg(Role::Dim));
    let order = app.sort % table::ORDERS.len();
    let is_wide = width >= 100;
    let name = width.saturating_sub(if is_wide { 86 } else { 58 }).max(10);
    let mark = |column: &str| {
        let is_order = table::ORDERS[order] == column;
        let style = if is_order {
            theme.bold(Role::Accent)
        } else {
            dim
        };
        (column.to_owned(), style)
    };
    let head = |column: &str, columns: u16| {
        let (text, style) = mark(column);
        right(text, columns, style)
    };
    let mut heading = vec![
        left("operation", name, dim),
        head("count", 9),
        head("total", 9),
        right("share", 6, dim),
        head("average", 9),
    ];
    if is_wide {
        heading.push(right("shortest", 9, dim));
    }
    heading.push(head("longest", 9));
    if is_wide {
        heading.push(right("moved", 10, dim));
        heading.push(right("GB/s", 7, dim));
    }
    let lines = groups
        .iter()
        .map(|g| {
            let average = g.total / g.count.max(1) as i64;
            let mut parts = vec![
                left(&g.name, name, theme.fg(g.role)),
                right(units::count(g.count), 9, text),
                right(units::duration(g.total), 9, text),
                right(units::percent(g.total as f64 / all.max(1) as f64), 6, dim),
                right(units::duration(average), 9, text),
            ];
            if is_wide {
                parts.push(right(units::duration(g.least), 9, dim));
            }
            parts.push(right(units::duration(g.most), 9, text));
            if is_wide {
                let moved = match g.bytes {
                    0 => String::new(),
                    bytes => units::bytes(bytes),
                };
                let rate = units::gb_per_s(g.bytes, g.total)
                    .filter(|_| g.bytes > 0)
                    .map_or_else(String::new, units::rate);
                parts.push(right(moved, 10, dim));
                parts.push(right(rate, 7, text));
            }
            parts
        })
        .collect();
    List {
        theme,
        heading,
        lines,
        cursor: Some(app.cursor),
        empty: "no operation in scope",
    }
}

/// Notices, or what a program printed.
#[must_use]
pub fn journal<'a>(journal: &Journal, cursor: usize, theme: &'a Theme) -> List<'a> {
    let heading = match journal.dropped() {
        0 => Vec::new(),
        n => {
            let text = format!("{} older lines are not kept", units::count(n));
            vec![left(text, u16::MAX, theme.fg(Role::Dim))]
        }
    };
    List {
        theme,
        heading,
        lines: journal
            .lines()
            .iter()
            .map(|line| {
                let role = match line.kind {
                    LineKind::Plain => Role::Text,
                    LineKind::Warning => Role::Warning,
                    LineKind::Error => Role::Bad,
                };
                let at = line.at.as_secs_f64();
                vec![
                    right(format!("{at:.2} s"), 9, theme.fg(Role::Dim)),
                    left(&line.text, u16::MAX, theme.fg(role)),
                ]
            })
            .collect(),
        cursor: Some(cursor),
        empty: "nothing so far",
    }
}

/// Variants against the first one at the same value of the sweep, and this run against the one before.
#[must_use]
pub fn compare<'a>(app: &App, theme: &'a Theme, width: u16) -> List<'a> {
    let (text, dim) = (theme.fg(Role::Text), theme.fg(Role::Dim));
    let now = app.variant_figures();
    let longest = now.iter().map(|row| pen::width(&row.label)).max();
    let name = longest.unwrap_or(0).clamp(8, 30) as u16;
    let has_before = !app.previous.is_empty();
    let is_wide = width >= name + if has_before { 96 } else { 74 };
    let mut heading = vec![
        left("variant", name, dim),
        right("makespan", 9, dim),
        right("speed-up", 8, dim),
    ];
    if is_wide {
        heading.push(right("host time", 9, dim));
    }
    heading.extend([right("idle", 6, dim), right("overlap", 7, dim)]);
    if is_wide {
        heading.extend([right("H2D GB/s", 8, dim), right("D2H GB/s", 8, dim)]);
    }
    if has_before {
        heading.extend([right("run before", 10, dim), right("change", 9, dim)]);
    }
    let point = |row: &VariantRow| app.passes.variants.get(row.variant).and_then(|v| v.point);
    let line = |row: &VariantRow| {
        let base = now.iter().find(|other| point(other) == point(row));
        let speedup = match base {
            Some(base) if row.makespan > 0 => {
                format!("{:.2}×", base.makespan as f64 / row.makespan as f64)
            }
            _ => "-".to_owned(),
        };
        let figures = &row.figures;
        let hidden = figures
            .hidden()
            .map_or_else(|| "-".to_owned(), units::percent);
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), units::rate);
        let mut parts = vec![
            left(printable(&row.label), name, text),
            right(units::duration(row.makespan), 9, text),
            right(speedup, 8, text),
        ];
        if is_wide {
            parts.push(right(units::duration(row.wall), 9, dim));
        }
        let idle = units::percent(figures.share(figures.idle));
        parts.extend([right(idle, 6, text), right(hidden, 7, text)]);
        if is_wide {
            parts.push(right(rate(figures.h2d), 8, text));
            parts.push(right(rate(figures.d2h), 8, text));
        }
        let before = app.previous.iter().find(|other| other.label == row.label);
        if let Some(before) = before.filter(|before| before.makespan > 0) {
            let change = row.makespan as f64 / before.makespan as f64 - 1.0;
            // Within 2 % two runs of one program are the same.
            let role = match change {
                c if c < -0.02 => Role::Good,
                c if c > 0.02 => Role::Bad,
                _ => Role::Dim,
            };
            parts.push(right(units::duration(before.makespan), 10, dim));
            parts.push(right(
                format!("{:+.1} %", change * 100.0),
                9,
                theme.fg(role),
            ));
        }
        parts
    };
    List {
        theme,
        heading,
        lines: now.iter().map(line).collect(),
        cursor: Some(app.cursor),
        empty: "no variant has ended yet",
    }
}

/// What could be better, with the places that show it.
#[must_use]
pub fn findings<'a>(app: &App, theme: &'a Theme) -> List<'a> {
    let dim = theme.fg(Role::Dim);
    let line = |line: &FindingLine| match *line {
        FindingLine::Title(i) => {
            let finding = &app.findings.list[i];
            let role = match finding.severity {
                Severity::Warning => Role::Warning,
                Severity::Info => Role::Accent,
            };
            let saving = units::duration(finding.saving_ns);
            vec![
                left("⚠", 1, theme.bold(role)),
                left(
                    format!("{} · at most {saving} to save", printable(&finding.title)),
                    u16::MAX,
                    theme.bold(Role::Text),
                ),
            ]
        }
        FindingLine::Advice(i) => vec![
            left("", 1, dim),
            left(&app.findings.list[i].advice, u16::MAX, theme.fg(Role::Text)),
        ],
        FindingLine::Place(_, evidence) => {
            let start = units::duration(evidence.span.start - app.zero());
            let length = units::duration(evidence.span.len());
            vec![
                left("", 3, dim),
                left(format!("at {start} for {length}"), 32, dim),
                left(place(app, &evidence), u16::MAX, dim),
            ]
        }
    };
    List {
        theme,
        heading: Vec::new(),
        lines: app.findings.lines().iter().map(line).collect(),
        cursor: Some(app.cursor),
        empty: match (app.is_running(), app.findings.is_known()) {
            (true, _) => "findings are looked for when the run has ended",
            (false, true) => "nothing was found that could be better",
            (false, false) => "nothing was looked at",
        },
    }
}

fn place(app: &App, evidence: &crate::analysis::findings::Evidence) -> String {
    let Some(lane) = evidence.lane else {
        return "the device is idle".to_owned();
    };
    let lane_name = app
        .rows
        .iter()
        .find(|row| row.kind.lane() == Some(lane))
        .map_or_else(String::new, |row| format!("{} · ", row.label));
    let name = evidence.row.map_or_else(String::new, |row| {
        describe::activity(&app.trace, &app.trace.activity(lane, row).what)
    });
    format!("{lane_name}{name}")
        .trim_end_matches(" · ")
        .to_owned()
}

/// In place of a chart.
#[must_use]
pub fn no_sweep<'a>(app: &App, theme: &'a Theme) -> List<'a> {
    let is_swept = app.plan.as_ref().is_some_and(|p| p.sweep.is_some());
    List {
        theme,
        heading: Vec::new(),
        lines: Vec::new(),
        cursor: None,
        empty: if is_swept {
            "no point has been measured yet"
        } else {
            "this scenario has no [sweep]"
        },
    }
}
