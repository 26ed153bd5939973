//! Details put into lines: the name first, then facts one after another.

use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;

use super::Details;
use crate::tui::draw::prelude::*;

impl Details {
    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let inner = area.inner(Margin::new(1, 0));
        if self.name.is_none() && self.facts.is_empty() {
            let lines = pen::wrap(&self.prose, usize::from(inner.width));
            let is_cut = lines.len() > usize::from(inner.height);
            for (i, (line, at)) in lines.iter().zip(pen::lines(inner)).enumerate() {
                let last = is_cut && i + 1 == usize::from(inner.height);
                let more = if last { " …" } else { "" };
                let text = pen::cut(&format!("{line}{more}"), usize::from(inner.width));
                pen::text(buf, at, 0, &text, theme.fg(Role::Dim));
            }
            return;
        }
        let mut flow = Flow {
            lines: pen::lines(inner).collect(),
            line: 0,
            x: 0,
            left_at: 0,
            is_cut: false,
        };
        self.put_name(theme, &mut flow, inner, buf);
        self.put_all(theme, flow, usize::from(inner.width), buf);
    }

    fn put_name(&self, theme: &Theme, flow: &mut Flow, inner: Rect, buf: &mut Buffer) {
        // As many lines for the name as the facts leave, and one at least.
        let facts = self.facts.iter().map(|fact| pen::width(fact) + 3);
        let for_facts = facts
            .sum::<usize>()
            .div_ceil(usize::from(inner.width).max(1));
        let for_name = usize::from(inner.height)
            .saturating_sub(for_facts.max(1))
            .max(1);
        if let Some((name, role)) = &self.name {
            let (left, right) = theme.edges();
            flow.put(buf, &left.to_string(), theme.fg(*role), false);
            let room = usize::from(inner.width).saturating_sub(3);
            let most = room * for_name;
            // The end of a long name tells as much as its beginning.
            let name = pen::cut_middle(name, most);
            for (i, part) in pen::pieces(&name, room).into_iter().enumerate() {
                if i > 0 {
                    flow.next_line();
                    flow.put(buf, " ", theme.fg(*role), false);
                }
                flow.put(buf, &part, theme.bg(*role), false);
            }
            flow.put(buf, &format!("{right} "), theme.fg(*role), false);
        }
    }

    /// Puts the facts behind the name, and a mark where there are more than have room.
    fn put_all(&self, theme: &Theme, mut flow: Flow, width: usize, buf: &mut Buffer) {
        // What is longer than a line is broken between words; where that takes too many lines, all that is long.
        let is_cut = |facts: &[String], broken| {
            let mut tried = flow.clone();
            put_facts(
                theme,
                &mut tried,
                (facts, broken),
                &mut Buffer::empty(*buf.area()),
            );
            tried.is_cut
        };
        let broken = if is_cut(&self.facts, width) {
            width / 3
        } else {
            width
        };
        // Behind a sentence that has room a part of the next one says less than nothing.
        let before = self.facts.len().saturating_sub(1);
        let is_last =
            before > 0 && is_cut(&self.facts, broken) && !is_cut(&self.facts[..before], broken);
        let facts = &self.facts[..self.facts.len() - usize::from(is_last)];
        put_facts(theme, &mut flow, (facts, broken), buf);
        let end = match is_last {
            true => flow.lines.get(flow.line).map(|it| (*it, flow.x)),
            false => flow
                .lines
                .last()
                .filter(|_| flow.is_cut)
                .map(|it| (*it, flow.left_at)),
        };
        if let Some((line, x)) = end {
            let x = x.min(line.width.saturating_sub(1));
            pen::cell(buf, line, x, '…', theme.fg(Role::Text));
        }
    }
}

/// Puts facts into lines; those of `broken` columns and more go on in the next line.
fn put_facts(
    theme: &Theme,
    flow: &mut Flow,
    (facts, broken): (&[String], usize),
    buf: &mut Buffer,
) {
    for (i, fact) in facts.iter().enumerate() {
        let words: Vec<&str> = match pen::width(fact) < broken {
            true => vec![fact],
            false => fact.split(' ').collect(),
        };
        if i > 0 && flow.fits(words[0]) {
            flow.put(buf, "· ", theme.fg(Role::Dim), false);
        }
        for word in words {
            flow.put(buf, &format!("{word} "), theme.fg(Role::Text), true);
        }
    }
}

/// Words put one after another, on the next line where they would not fit.
#[derive(Clone)]
struct Flow {
    lines: Vec<Rect>,
    line: usize,
    x: u16,
    /// Where the line before ended.
    left_at: u16,
    /// That there was more than the lines have room for.
    is_cut: bool,
}

impl Flow {
    fn next_line(&mut self) {
        if self.line < self.lines.len() {
            self.left_at = self.x;
        }
        self.line += 1;
        self.x = 0;
    }

    fn fits(&self, text: &str) -> bool {
        let width = self.lines.get(self.line).map_or(0, |l| l.width);
        usize::from(self.x) + 2 + pen::width(text) <= usize::from(width)
    }

    fn put(&mut self, buf: &mut Buffer, text: &str, style: Style, can_break: bool) {
        let Some(area) = self.lines.get(self.line).copied() else {
            self.is_cut = true;
            return;
        };
        let room = usize::from(area.width.saturating_sub(self.x));
        if can_break && pen::width(text.trim_end()) > room && self.x > 0 {
            self.next_line();
            self.put(buf, text, style, false);
            return;
        }
        self.x = pen::text(buf, area, self.x, text, style);
    }
}
