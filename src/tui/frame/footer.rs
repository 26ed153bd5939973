//! The last line: totals at the left, hints at the right, and the word on the last action.

use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::offered::is_offered;
use crate::tui::action::Context;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::pen;
use crate::tui::keys;
use crate::tui::state::prompt::Asks;
use crate::tui::state::search::Needle;
use crate::tui::state::{Scope, State};
use crate::tui::theme::{Role, Theme};
use crate::tui::view::Views;
use activity::units;
use analysis::breakdown::Breakdown;
use analysis::variants::measure::speedup;

/// The footer, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Footer {
    /// Parts at the left, the most important first.
    totals: Vec<Total>,
    hints: Vec<(KeyCode, &'static str)>,
    /// Hints that are kept besides help and quit: in a list to go on and to order, else the first.
    kept: usize,
}

/// Columns below which hints take what totals leave.
const NARROW: usize = 72;

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

impl Footer {
    /// Prepares it.
    #[must_use]
    pub fn new(state: &State, views: &Views, hints: Option<Context>) -> Self {
        let mut totals = match &state.messages.flash {
            Some(text) => vec![Total::new(text, Role::Warning)],
            None => totals(state, views),
        };
        totals.splice(0..0, typed(state, views));
        // Where there is no rule that it could stand on.
        if Layout::of(state).details_rule.is_empty() && views.is_home() {
            let words = state.hidden_words();
            totals.splice(0..0, words.map(|words| Total::new(words, Role::Warning)));
        }
        let hints = hints.map_or_else(Vec::new, |context| {
            keys::hints(context, |action| is_offered(action, state, views)).collect()
        });
        let is_list = hints.get(1).is_some_and(|it| it.0 == KeyCode::Char('o'));
        Footer {
            totals,
            hints,
            kept: 1 + usize::from(is_list),
        }
    }
}

/// What is looked for, and how much of it there is: "/gemm 3 of 154".
fn typed(state: &State, views: &Views) -> Option<Total> {
    if let Some(prompt) = state.prompt.as_ref().filter(|it| it.asks == Asks::Lanes) {
        let all = state.lanes.all();
        let seen = all - state.lanes.hidden();
        let text = format!("{}{}▏ {seen} of {all} lanes", prompt.sign(), prompt.text);
        return Some(Total::new(text, Role::Accent));
    }
    let filter = views.list(state).map(|list| &list.filter);
    let (kept, count) = match filter {
        Some(filter) => (filter.text(), filter.is_on().then(|| filter.words())),
        None if views.is_home() && !state.run.is_none() => (
            state.search.text(),
            state.search.is_on().then(|| search_words(state)),
        ),
        None => return None,
    };
    let text = match &state.prompt {
        Some(prompt) => format!("{}{}▏", prompt.sign(), prompt.text),
        None if count.is_none() => return None,
        None => format!("/{}", pen::cut(kept, 24)),
    };
    let long = match count {
        Some(count) => format!("{text} {count}"),
        None => text,
    };
    Some(Total::new(long, Role::Accent))
}

/// "3 of 154", "154 and 2 lanes", or why there is none.
fn search_words(state: &State) -> String {
    let (search, run) = (&state.search, &state.run);
    if let Some(why) = search.needle().and_then(Needle::error) {
        return why.to_owned();
    }
    let tally = search.tally(run, &state.camera, &state.rows, &state.selection);
    let Some(tally) = tally else {
        return "searching …".to_owned();
    };
    let count = |n: usize| units::count(n as u64);
    let mut parts = Vec::new();
    match (tally.at, tally.records) {
        (Some(at), all) => parts.push(format!("{} of {}", count(at), count(all))),
        (None, 0) => {}
        (None, all) => parts.push(count(all)),
    }
    match tally.lanes {
        0 => {}
        1 => parts.push("1 lane".to_owned()),
        n => parts.push(format!("{} lanes", count(n))),
    }
    if parts.is_empty() {
        parts.push("none".to_owned());
    }
    let elsewhere = tally.whole - tally.records - tally.hidden;
    if tally.hidden > 0 {
        parts.push(format!("{} without a row", count(tally.hidden)));
    }
    if tally.records == 0 && elsewhere > 0 {
        parts.push(format!("{} in the whole run", count(tally.whole)));
    }
    parts.join(", ")
}

fn totals(state: &State, views: &Views) -> Vec<Total> {
    let mut totals = Vec::new();
    let window = state.camera.figures_span(&state.run);
    if window.is_empty() || state.run.is_none() {
        return totals;
    }
    let stretch = match state.camera.scope {
        Scope::Pass(_) => Breakdown::together(&state.run.trace, window),
        Scope::Whole => Breakdown::each(&state.run.trace, window),
    };
    let is_zoomed = state.camera.is_zoomed(&state.run);
    let prefix = if is_zoomed { "in view " } else { "" };
    let length = units::duration(window.len());
    let (of, of_short) = match stretch.devices {
        0 | 1 => (String::new(), String::new()),
        // A list's own keys have that room.
        n if !views.is_home() => (format!(" of {n} GPUs' time"), String::new()),
        n => (format!(" of {n} GPUs' time"), format!(" of {n} GPUs")),
    };
    let shares = format!(
        "idle {} · compute {} · copy {}",
        units::percent(stretch.share(stretch.idle())),
        units::percent(stretch.share(stretch.compute)),
        units::percent(stretch.share(stretch.copy)),
    );
    let long = format!("{prefix}{length} · {shares}{of}");
    totals.push(Total::new(long, Role::Text).short(format!("{shares}{of_short}")));
    totals.extend(faster(state));
    totals.extend(
        views
            .notes(state)
            .map(|note| Total::new(note.text, note.role)),
    );
    totals
}

/// "2.43× faster than sequential": against the variant that it is compared with.
fn faster(state: &State) -> Option<Total> {
    let run = &state.run;
    let current = run.measured.of_variant(state.camera.variant(run)?)?;
    let speedup = speedup(&run.passes, current, &run.measured.variants)?;
    let base = run.passes.baseline(current.position)?;
    let base = &run.passes.variants[base].name;
    let role = if speedup.factor >= 1.0 {
        Role::Good
    } else {
        Role::Warning
    };
    // Which one is faster stands in the header.
    Some(Total::new(speedup.words(Some(base)), role).short(speedup.words(None)))
}

impl Footer {
    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let width = usize::from(area.width);
        // The most useful hints are kept besides help and quit, where there is room for anything else.
        let others = self.hints.len().saturating_sub(2);
        let foremost = self.hints.iter().take(others.min(self.kept));
        let hint = |hints: &mut dyn Iterator<Item = &(KeyCode, &'static str)>| -> usize {
            let columns = |(key, word): &(KeyCode, &'static str)| {
                pen::width(&keys::label(*key, theme.is_ascii)) + pen::width(word) + 3
            };
            hints.map(columns).sum()
        };
        // Two columns lie between them and the totals.
        let kept = 2 + hint(&mut foremost.chain(&self.hints[others..]));
        let kept = if width >= NARROW { kept } else { 0 };
        let room = width.saturating_sub(kept);
        let needed = |text: fn(&Total) -> &String| -> usize {
            let columns = self.totals.iter().map(|t| pen::width(text(t)) + 3);
            columns.sum::<usize>().saturating_sub(1)
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
        // Help and quit are the last to go, the most useful of the others come first.
        let room = width.saturating_sub(usize::from(x) + 2);
        let (others, last) = self.hints.split_at(self.hints.len().saturating_sub(2));
        let mut shown: Vec<(String, &str)> = Vec::new();
        let (mut used, mut lasts) = (0, 0);
        for (i, (key, word)) in last.iter().rev().chain(others).enumerate() {
            let key = keys::label(*key, theme.is_ascii);
            let needed = pen::width(&key) + pen::width(word) + 3;
            if used + needed > room {
                break;
            }
            used += needed;
            if i < last.len() {
                shown.insert(0, (key, word));
                lasts += 1;
            } else {
                let at = shown.len() - lasts;
                shown.insert(at, (key, word));
            }
        }
        let mut x = width.saturating_sub(used) as u16;
        let (key_style, word_style): (Style, Style) =
            (theme.bold(Role::Accent), theme.fg(Role::Dim));
        for (key, word) in shown {
            x = pen::text(buf, area, x, &key, key_style);
            x = pen::text(buf, area, x + 1, word, word_style) + 2;
        }
    }
}
