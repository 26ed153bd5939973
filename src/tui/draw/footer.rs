//! The last line: totals at the left, hints at the right, and the word on the last action.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget;

use super::pen;
use crate::activity::units;
use crate::tui::action::View;
use crate::tui::app::passes::Figures;
use crate::tui::app::{App, LineKind};
use crate::tui::keys;
use crate::tui::theme::{Role, Theme};

/// The footer, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Footer<'a> {
    theme: &'a Theme,
    /// Parts at the left, the most important first.
    totals: Vec<Total>,
    hints: Vec<(String, &'static str)>,
}

/// Columns that the hints for help and quit keep, on terminals that have this many times four.
const KEPT: usize = 18;

/// A part at the left.
#[derive(Clone, Debug)]
struct Total {
    /// In full.
    long: String,
    /// Where there is less room.
    short: String,
    role: Role,
}

impl Total {
    fn new(text: impl Into<String>, role: Role) -> Self {
        let long: String = text.into();
        Total {
            short: long.clone(),
            long,
            role,
        }
    }

    fn short(self, short: String) -> Self {
        Total { short, ..self }
    }
}

impl<'a> Footer<'a> {
    /// Prepares it.
    #[must_use]
    pub fn new(app: &App, theme: &'a Theme) -> Self {
        let totals = match &app.flash {
            Some(text) => vec![Total::new(text, Role::Warning)],
            None => totals(app),
        };
        let mut hints: Vec<(String, &'static str)> = keys::hints(app.context())
            .map(|(key, word)| (keys::label(key, theme.is_ascii), word))
            .collect();
        if app.is_help_open {
            hints.clear();
        }
        Footer {
            theme,
            totals,
            hints,
        }
    }
}

fn totals(app: &App) -> Vec<Total> {
    let mut totals = Vec::new();
    let window = app.figures_span();
    if window.is_empty() || app.is_picking() {
        return totals;
    }
    let figures = Figures::of(&app.trace, window);
    let prefix = if app.is_zoomed() { "in view " } else { "" };
    let length = units::duration(window.len());
    let shares = format!(
        "idle {} · compute {} · copy {}",
        units::percent(figures.share(figures.idle)),
        units::percent(figures.share(figures.compute)),
        units::percent(figures.share(figures.copy)),
    );
    let long = format!("{prefix}{length} · {shares}");
    totals.push(Total::new(long, Role::Text).short(shares));
    totals.extend(speedup(app));
    let findings = app.findings.list.len();
    if findings > 0 && app.view != View::Findings {
        let word = if findings == 1 { "finding" } else { "findings" };
        totals.push(Total::new(format!("⚠ {findings} {word}"), Role::Warning));
    }
    let warnings = app.log.count(LineKind::Warning);
    if warnings > 0 && app.view != View::Log {
        let word = if warnings == 1 { "warning" } else { "warnings" };
        totals.push(Total::new(format!("⚠ {warnings} {word}"), Role::Warning));
    }
    totals
}

/// "streamed is 2.43× sequential": against the first variant at the same value of the sweep.
fn speedup(app: &App) -> Option<Total> {
    let current = app.variant()?;
    let variants = &app.passes.variants;
    let point = variants.get(current)?.point;
    let base = variants.iter().position(|v| v.point == point)?;
    if base == current {
        return None;
    }
    let (base_time, time) = (app.passes.makespan(base)?, app.passes.makespan(current)?);
    let factor = base_time as f64 / time.max(1) as f64;
    let role = if factor >= 1.0 {
        Role::Good
    } else {
        Role::Warning
    };
    let (name, base) = (&variants[current].name, &variants[base].name);
    let factor = match factor {
        f if f < 9.995 => format!("{f:.2}"),
        f if f < 99.95 => format!("{f:.1}"),
        f => units::count(f.round() as u64),
    };
    let short = format!("{factor}× {base}");
    Some(Total::new(format!("{name} is {short}"), role).short(short))
}

impl Widget for &Footer<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let theme = self.theme;
        let width = usize::from(area.width);
        let kept = if width >= 4 * KEPT { KEPT } else { 0 };
        let room = width.saturating_sub(kept);
        let needed = |text: fn(&Total) -> &String| -> usize {
            self.totals.iter().map(|t| pen::width(text(t)) + 3).sum()
        };
        let text: fn(&Total) -> &String = if needed(|t| &t.long) <= room {
            |t| &t.long
        } else {
            |t| &t.short
        };
        let mut x = 1;
        let separator = format!(" {} ", theme.glyph('│'));
        for (i, total) in self.totals.iter().enumerate() {
            let text = pen::plain(theme, text(total));
            if i > 0 {
                if usize::from(x) + 3 + pen::width(&text) > room {
                    continue;
                }
                x = pen::text(buf, area, x, &separator, theme.fg(Role::Rule));
            }
            let style = if i == 0 {
                theme.fg(total.role)
            } else {
                theme.bold(total.role)
            };
            // A long message leaves room for the hints too: help must be found on the first screen.
            let text = pen::cut(&text, room.saturating_sub(usize::from(x)));
            x = pen::text(buf, area, x, &pen::plain(theme, &text), style);
        }
        // As many hints as fit; the last ones (help, quit) are the last to go.
        let room = width.saturating_sub(usize::from(x) + 2);
        let mut shown: Vec<&(String, &str)> = Vec::new();
        let mut used = 0;
        for hint in self.hints.iter().rev() {
            let needed = pen::width(&hint.0) + pen::width(hint.1) + 3;
            if used + needed > room {
                break;
            }
            used += needed;
            shown.push(hint);
        }
        let mut x = width.saturating_sub(used) as u16;
        let (key_style, word_style): (Style, Style) =
            (theme.bold(Role::Accent), theme.fg(Role::Dim));
        for (key, word) in shown.into_iter().rev() {
            x = pen::text(buf, area, x, key, key_style);
            x = pen::text(buf, area, x + 1, word, word_style) + 2;
        }
    }
}
