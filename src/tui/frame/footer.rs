//! The last line: totals at the left, hints at the right, and the word on the last action.

use super::offered::is_offered;
use crate::tui::action::{Action, Context};
use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::keys::{self, Binding};
use crate::tui::state::State;
use crate::tui::state::prompt::{Asks, Prompt};
use crate::tui::state::search::Needle;
use crate::tui::view::{Note, VIEWS, Views};
use activity::{text::counted, units};
use causes::Bound;

/// The footer, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Footer {
    /// Parts at the left, the most important first.
    totals: Vec<Note>,
    /// Whether the first of them is what was typed or said, which goes before hints.
    is_said: bool,
    /// Help and quit at the end.
    hints: Vec<&'static Binding>,
    /// The view that says more of what bounds the run, its number in the bar, and how many hints stand before it.
    next: Option<(usize, usize, usize)>,
    /// What the key that orders lists does here.
    order: Option<&'static str>,
}

/// Hints that stay besides help and quit, with totals and with something that was said.
const KEPT: [usize; 2] = [5, 0];

/// Columns for help, how to quit, and the two keys that lead on.
const KEYS_MIN: usize = 44;

/// What stands where on the line.
struct Arranged {
    /// Column, text, and its colour.
    totals: Vec<(u16, String, Role)>,
    /// Column, key, word, and what it does.
    hints: Vec<(u16, String, &'static str, Action)>,
}

impl Footer {
    pub fn new(state: &State, views: &Views, hints: Option<Context>) -> Self {
        let typed = typed(state, views);
        let messages = &state.messages;
        // What was noticed is in the log, too, which says so in a word: keys go before a long sentence.
        let mut totals = totals(state, views);
        // How long what is in view is goes before it, too.
        let before = totals.first().map_or(0, |it| pen::width(&it.text) + 2);
        let has_room =
            |it: &str| before + pen::width(it) + KEYS_MIN <= usize::from(state.size.width);
        let flash = messages.flash.as_ref();
        let flash = flash.filter(|it| !messages.is_notice || has_room(it));
        let mut is_said = flash.is_some() || typed.is_some();
        if let Some(text) = flash {
            totals.truncate(usize::from(messages.is_notice));
            totals.push(Note::new(text, Role::Warning));
        }
        totals.splice(0..0, typed);
        // Where there is no rule that it could stand on. What somebody hides by name goes before hints.
        if Layout::of(state).details_rule.is_empty() && views.is_home() {
            let is_asked = !state.rows.lanes.text.is_empty();
            let words = state.hidden_words().map(|it| Note::new(it, Role::Dim));
            is_said |= is_asked && words.is_some();
            let at = if is_asked { 0 } else { totals.len() };
            totals.splice(at..at, words);
        }
        let is_offered = |action| is_offered(action, state, views);
        Footer {
            is_said,
            totals,
            hints: hints.map_or_else(Vec::new, |context| keys::hints(context, is_offered)),
            next: hints.and_then(|context| next(state, views, context)),
            order: views.order_word(state),
        }
    }
}

/// Where one goes on from the timeline: to the ranks where one is late, to what could be better, else to the kernels. Of
/// a CPU that works on between launches the longest gap tells more.
fn next(state: &State, views: &Views, context: Context) -> Option<(usize, usize, usize)> {
    let answer = state.answer()?;
    let bound = answer.verdicts.first().map(|it| it.bound_by)?;
    let title = match bound {
        _ if context != Context::Timeline => return None,
        Bound::Peer if views.bar(state).any(|it| VIEWS[it].title == "ranks") => "ranks",
        _ if answer.findings.is_empty() => "operations",
        _ => "findings",
    };
    let mut bar = views.bar(state).zip(1..);
    let (view, number) = bar.find(|(view, _)| VIEWS[*view].title == title)?;
    Some((view, number, usize::from(bound == Bound::Host)))
}

/// What is looked for, and how much of it there is: "/gemm 3 of 154".
fn typed(state: &State, views: &Views) -> Option<Note> {
    let is_asked = |it: &&Prompt| matches!(it.asks, Asks::Lanes | Asks::Picture);
    if let Some(prompt) = state.prompt.as_ref().filter(is_asked) {
        let all = state.rows.lanes.all();
        let seen = all - state.rows.lanes.left_out;
        let how = match prompt.text.as_str() {
            _ if prompt.asks == Asks::Picture => ".svg, .txt".to_owned(),
            "" => "a name keeps rows with it, not:name hides them".to_owned(),
            _ => format!("{seen} of {all} lanes"),
        };
        let text = format!("{}{}▏ {how}", prompt.sign(), prompt.text);
        return Some(Note::new(text, Role::Accent));
    }
    let filter = views.list(state).map(|list| &list.filter);
    let (kept, count) = match filter {
        Some(filter) => (&filter.text, filter.is_on().then(|| filter.words())),
        None if views.is_home() && !state.model.run.is_none() => (
            &state.focus.search.text,
            state.focus.search.is_on().then(|| search_words(state)),
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
    Some(Note::new(long, Role::Accent))
}

/// "3 of 154", "154 and 2 lanes", or why there is none.
fn search_words(state: &State) -> String {
    let search = &state.focus.search;
    if let Some(why) = search.needle().and_then(Needle::error) {
        return why.to_owned();
    }
    let Some(tally) = search.tally(state) else {
        return "searching …".to_owned();
    };
    let count = |n: usize| units::count(n as u64);
    let mut parts = Vec::new();
    match (tally.at, tally.records) {
        (Some(at), all) => parts.push(format!("{} of {}", count(at), count(all))),
        (None, 0) => {}
        (None, all) => parts.push(count(all)),
    }
    if tally.lanes > 0 {
        parts.push(counted(tally.lanes as u64, "lane", "lanes"));
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

fn totals(state: &State, views: &Views) -> Vec<Note> {
    let mut totals = Vec::new();
    let window = state.figures_span();
    if window.is_empty() || state.model.run.is_none() {
        return totals;
    }
    // What it went to stands below the first GPU.
    if views.is_home() {
        let length = units::duration(window.len());
        // Where less than what is in view is the GPU's, shares are of that.
        let words = match 10 * window.len() < 9 * state.focus.camera.viewport.window.len() {
            true => format!("shares are of {length} with GPU work"),
            false => format!("{length} in view"),
        };
        totals.push(Note::new(words, Role::Text));
    }
    totals.extend(views.notes(state));
    totals
}

/// A hint: key, word, and what it does.
type Hint = (String, &'static str, Action);

/// A number before a view is its key and no count of what it shows.
fn apart(key: &str) -> u16 {
    u16::from(!key.ends_with(':'))
}

fn columns((key, word, _): &Hint) -> usize {
    pen::width(key) + pen::width(word) + 2 + usize::from(apart(key))
}

/// The first hints, `most` of them at most, that have room in so many columns beside help and quit, the last ones.
fn fit(hints: &[Hint], room: usize, most: usize) -> Vec<&Hint> {
    let (others, last) = hints.split_at(hints.len().saturating_sub(2));
    let mut used: usize = last.iter().map(columns).sum();
    let is_there = |hint: &&Hint| {
        used += columns(hint);
        used <= room
    };
    let shown = others.iter().take(most).take_while(is_there);
    shown.chain(last).collect()
}

impl Footer {
    /// The most useful first.
    fn hints(&self, theme: &Theme) -> Vec<Hint> {
        let hint = |b: &&'static Binding| {
            let order = self.order.filter(|_| b.action == Action::Sort);
            let key = keys::label(b.key, theme.is_ascii);
            (key, order.unwrap_or(b.hint), b.action)
        };
        let mut hints: Vec<Hint> = self.hints.iter().map(hint).collect();
        // Who has jumped wants to know the way back.
        if let Some(at) = hints.iter().position(|it| it.2 == Action::Return) {
            let back = hints.remove(at);
            hints.insert(hints.len().min(1), back);
        }
        if let Some((view, number, after)) = self.next {
            let hint = (format!("{number}:"), VIEWS[view].title, Action::Show(view));
            hints.insert(after.min(hints.len()), hint);
        }
        hints
    }

    fn arrange(&self, theme: &Theme, width: u16) -> Arranged {
        let width = usize::from(width);
        let all = self.hints(theme);
        let taken = |hints: &[&Hint]| hints.iter().map(|it| columns(it)).sum::<usize>();
        let kept = fit(&all, width, KEPT[usize::from(self.is_said)]);
        let (totals, end) = self.arrange_totals(width.saturating_sub(4 + taken(&kept)));
        let shown = fit(&all, width.saturating_sub(end + 3), usize::MAX);
        let mut x = width.saturating_sub(taken(&shown));
        let mut hints = Vec::new();
        for hint in shown {
            let (key, word, action) = hint.clone();
            let next = x + columns(hint);
            if next <= width {
                hints.push((x as u16, key, word, action));
            }
            x = next;
        }
        Arranged { totals, hints }
    }

    /// The totals that have room in so many columns, each with its column and colour, and where they end.
    fn arrange_totals(&self, room: usize) -> (Vec<(u16, String, Role)>, usize) {
        let (mut x, mut totals) = (1, Vec::new());
        for (i, total) in self.totals.iter().enumerate() {
            let mut text = total.text.clone();
            let between = if x > 1 { 3 } else { 0 };
            if self.is_said && i == 0 {
                text = pen::cut(&text, room.saturating_sub(x));
            } else if x + between + pen::width(&text) > room {
                continue;
            }
            let at = x + between;
            x = at + pen::width(&text);
            totals.push((at as u16, text, total.role));
        }
        (totals, x)
    }

    /// What the hint at column `x` of a line of this width does.
    pub fn hint_at(&self, width: u16, x: u16) -> Option<Action> {
        let hints = self.arrange(&Theme::default(), width).hints;
        let hint = hints.iter().rev().find(|hint| hint.0 <= x);
        hint.map(|hint| hint.3)
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let Arranged { totals, hints } = self.arrange(theme, area.width);
        for (i, (x, text, role)) in totals.iter().enumerate() {
            if i > 0 {
                pen::text(buf, area, x - 2, "│", theme.fg(Role::Rule));
            }
            pen::text(buf, area, *x, text, theme.text(*role, i > 0));
        }
        for (x, key, word, _) in &hints {
            let x = pen::text(buf, area, *x, key, theme.bold(Role::Accent));
            pen::text(buf, area, x + apart(key), word, theme.fg(Role::Dim));
        }
    }
}
