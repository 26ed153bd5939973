//! The variants of a scenario with their times, on the rule under the header behind the tabs.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};
use activity::text::printable;
use activity::units;
use figures::VariantFigures;
use figures::variants::measure::speedup;
use scenario::figures::Kind;

/// Columns between two of them: " │ ".
const BETWEEN: usize = 3;
/// Columns of each end: "‹ " where there are more, or as much air.
const END: usize = 2;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
struct VariantTab {
    /// Index into the run's variants.
    variant: usize,
    /// "streamed 3.85 ms 2.16×".
    text: String,
}

/// Those at the value of the sweep that is on screen, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantStrip {
    items: Vec<VariantTab>,
    /// Which of them is on screen.
    current: Option<usize>,
}

impl VariantStrip {
    /// Prepares them; nothing where there is one only.
    pub fn new(state: &State) -> Self {
        let run = &state.model.run;
        let all = &run.measured.variants;
        let on_screen = state.variant();
        let point = match on_screen {
            Some(variant) => run.passes.variants.get(variant).and_then(|v| v.point),
            None => all.last().and_then(|v| v.variant.point),
        };
        let shown: Vec<&VariantFigures> = all.iter().filter(|v| v.variant.point == point).collect();
        if shown.len() < 2 {
            return VariantStrip::default();
        }
        let faster: Vec<_> = shown.iter().map(|v| speedup(&run.passes, v, all)).collect();
        // One clock for all of them: that of the host where it tells for one.
        let is_wall = faster.iter().flatten().any(|s| s.by == Kind::Wall);
        let items = shown.iter().zip(faster).map(|(v, faster)| {
            let time = if is_wall { v.wall_ns } else { v.makespan_ns };
            let mut text = format!("{} {}", v.variant.name, units::duration(time));
            if let Some(faster) = faster {
                text = format!("{text} {}", units::factor(faster.factor));
            }
            VariantTab {
                variant: v.position,
                text: printable(&text),
            }
        });
        VariantStrip {
            items: items.collect(),
            current: shown.iter().position(|v| Some(v.position) == on_screen),
        }
    }

    /// Which of them fit in `room` columns: the one on screen, and of its neighbours as many as there is room for.
    fn fitting(&self, room: usize) -> Range<usize> {
        let width = |items: Range<usize>| {
            let texts = self.items[items.clone()]
                .iter()
                .map(|i| pen::width(&i.text));
            texts.sum::<usize>() + BETWEEN * items.len().saturating_sub(1) + 2 * END
        };
        let at = self.current.unwrap_or(0);
        let mut shown = at..(at + 1).min(self.items.len());
        if shown.is_empty() || width(shown.clone()) > room {
            return 0..0;
        }
        loop {
            let before = shown.clone();
            if shown.end < self.items.len() && width(shown.start..shown.end + 1) <= room {
                shown.end += 1;
            }
            if shown.start > 0 && width(shown.start - 1..shown.end) <= room {
                shown.start -= 1;
            }
            if shown == before {
                return shown;
            }
        }
    }

    /// Where each of those that fit stands on a line from column `from` to `to`, at its end.
    fn places(&self, from: u16, to: u16) -> Vec<(u16, usize)> {
        let shown = self.fitting(usize::from(to.saturating_sub(from)));
        let mut x = to.saturating_sub(END as u16);
        let mut places = Vec::new();
        for i in shown.rev() {
            x = x.saturating_sub(pen::width(&self.items[i].text) as u16);
            places.push((x, i));
            x = x.saturating_sub(BETWEEN as u16);
        }
        places.reverse();
        places
    }

    /// The variant at column `x` of the line.
    pub fn variant_at(&self, from: u16, to: u16, x: u16) -> Option<usize> {
        let is_at = |&&(start, i): &&(u16, usize)| {
            let width = pen::width(&self.items[i].text) as u16;
            (start..start + width).contains(&x)
        };
        let places = self.places(from, to);
        let (_, i) = places.iter().find(is_at)?;
        Some(self.items[*i].variant)
    }

    /// Draws them on a line from column `from` on.
    pub fn draw(&self, theme: &Theme, from: u16, line: Rect, buf: &mut Buffer) {
        let places = self.places(from, line.width);
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return;
        };
        let (rule, dim) = (theme.fg(Role::Rule), theme.fg(Role::Dim));
        let more = |is_more: bool, sign: char| if is_more { sign } else { ' ' };
        pen::cell(buf, line, first.0 - 2, more(first.1 > 0, '‹'), dim);
        pen::cell(buf, line, first.0 - 1, ' ', dim);
        for &(x, i) in &places {
            if i != first.1 {
                pen::text(buf, line, x - 3, " │ ", rule);
            }
            let style = match Some(i) == self.current {
                // As the tab of the view on screen.
                true => theme.bold(Role::Accent),
                false => dim,
            };
            pen::text(buf, line, x, &self.items[i].text, style);
        }
        let has_more = last.1 + 1 < self.items.len();
        pen::cell(buf, line, line.width - 2, ' ', dim);
        pen::cell(buf, line, line.width - 1, more(has_more, '›'), dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(current: usize) -> VariantStrip {
        let texts = ["one 1 ms", "two 2 ms", "three 3 ms"];
        let items = texts.iter().enumerate().map(|(i, text)| VariantTab {
            variant: 10 + i,
            text: (*text).to_owned(),
        });
        VariantStrip {
            items: items.collect(),
            current: Some(current),
        }
    }

    fn drawn(strip: &VariantStrip, from: u16, width: u16) -> String {
        let line = Rect::new(0, 0, width, 1);
        let mut buf = Buffer::empty(line);
        pen::fill(&mut buf, line, '-', theme().fg(Role::Rule));
        strip.draw(&theme(), from, line, &mut buf);
        buf.content().iter().map(|cell| cell.symbol()).collect()
    }

    fn theme() -> Theme {
        Theme::default()
    }

    #[test]
    fn as_many_as_fit_stand_around_the_one_on_screen() {
        let all = "-----  one 1 ms │ two 2 ms │ three 3 ms  ";
        assert_eq!(drawn(&strip(0), 5, 41), all);
        assert_eq!(
            drawn(&strip(0), 15, 41),
            "------------------  one 1 ms │ two 2 ms ›"
        );
        assert_eq!(
            drawn(&strip(2), 15, 41),
            "----------------‹ two 2 ms │ three 3 ms  "
        );
        assert_eq!(
            drawn(&strip(1), 29, 41),
            "-----------------------------‹ two 2 ms ›"
        );
        // Not a part of one.
        assert_eq!(drawn(&strip(1), 30, 41), "-".repeat(41));
    }

    #[test]
    fn what_is_clicked_is_what_stands_there() {
        let (strip, width) = (strip(0), 41);
        let line: Vec<char> = drawn(&strip, 5, width).chars().collect();
        for x in 0..width {
            let hit = strip.variant_at(5, width, x);
            let word: String = line[usize::from(x)..].iter().collect();
            for (i, text) in ["one 1 ms", "two 2 ms", "three 3 ms"].iter().enumerate() {
                if word.starts_with(text) {
                    assert_eq!(hit, Some(10 + i));
                }
            }
            if matches!(line[usize::from(x)], '-' | '│') {
                assert_eq!(hit, None);
            }
        }
    }
}
