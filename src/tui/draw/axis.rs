//! The time axis.

use crate::tui::draw::prelude::*;
use crate::tui::time_scale::{Ticks, TimeScale};
use activity::{Ns, Span, units};

/// Ticks over the plot, counted from the first operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Axis {
    /// Window and columns.
    pub scale: TimeScale,
    /// What counts as zero.
    pub zero: Ns,
    /// What is selected: its place is marked, also when it is too short to be seen.
    pub mark: Option<Span>,
    /// What is measured: a line from end to end with its length.
    pub measured: Option<Span>,
    /// A mark that waits for its second.
    pub single: Option<Span>,
}

impl Axis {
    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let (tick, text) = (theme.fg(Role::Rule), theme.fg(Role::Dim));
        let (ticks, unit) = self.ticks();
        let middle = self.mark.map(|span| span.start + span.len() / 2);
        let mark = middle.and_then(|time| self.scale.column(time));
        let mut is_first = true;
        for time in ticks {
            let Some(x) = self.scale.column(self.zero + time) else {
                continue;
            };
            let mut label = unit.number(time, ticks.step);
            if is_first {
                label = format!("{label} {}", unit.name);
            }
            let end = usize::from(x) + 1 + pen::width(&label);
            if end > usize::from(area.width) {
                continue;
            }
            pen::cell(buf, area, x, '╷', tick);
            // Half a label would be another number.
            if mark.is_some_and(|mark| mark > x && usize::from(mark) < end) {
                continue;
            }
            is_first = false;
            pen::text(buf, area, x + 1, &label, text);
        }
        self.draw_marks(theme, area, buf);
        if let Some(x) = mark {
            let style = theme.bold(Role::Accent);
            pen::cell(buf, area, x, '▾', style);
        }
    }

    /// Ticks far enough apart for their labels, the first of which has the unit.
    fn ticks(&self) -> (Ticks, Unit) {
        let window = self.scale.window;
        let (start, end) = (window.start - self.zero, window.end - self.zero);
        let mut apart = 11;
        loop {
            let ticks = self.scale.ticks(self.zero, apart);
            let unit = Unit::of(ticks.step, end);
            let width = |time| pen::width(&unit.number(time, ticks.step));
            // A tick, the label, the unit, and air.
            let needed = width(start).max(width(end)) + unit.name.len() + 3;
            let needed = u16::try_from(needed).unwrap_or(u16::MAX);
            if needed <= apart || apart >= self.scale.columns {
                return (ticks, unit);
            }
            apart = needed;
        }
    }

    fn draw_marks(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let style = theme.bold(Role::Warning);
        if let Some(x) = self.single.and_then(|span| self.scale.column(span.start)) {
            pen::cell(buf, area, x, '◆', style);
        }
        let window = self.scale.window;
        let Some(span) = self
            .measured
            .filter(|span| span.overlaps(window) || window.contains(span.start))
        else {
            return;
        };
        let (first, last) = (
            self.scale.column(span.start),
            self.scale.column((span.end - 1).max(span.start)),
        );
        let (from, to) = (first.unwrap_or(0), last.unwrap_or(self.scale.columns - 1));
        for x in from..=to {
            pen::cell(buf, area, x, '─', style);
        }
        let label = format!(" {} ", units::duration(span.len()));
        let room = usize::from(to - from).saturating_sub(1);
        if pen::width(&label) <= room {
            let x = from + 1 + ((room - pen::width(&label)) / 2) as u16;
            pen::text(buf, area, x, &label, style);
        }
        // Ends that are on screen.
        if first.is_some() {
            pen::cell(buf, area, from, '├', style);
        }
        if last.is_some() {
            pen::cell(buf, area, to, '┤', style);
        }
    }
}

/// A unit for all labels of an axis.
#[derive(Clone, Copy, Debug)]
struct Unit {
    name: &'static str,
    ns: Ns,
}

impl Unit {
    /// The unit in which the greatest label has at most four digits before its point.
    fn of(step: Ns, greatest: Ns) -> Self {
        let units = [
            ("ns", 1),
            ("µs", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
        ];
        let fits = |ns: Ns| greatest.max(step) < 10_000 * ns;
        let (name, ns) = units
            .into_iter()
            .find(|(_, ns)| fits(*ns) && step * 10 >= *ns)
            .or_else(|| units.into_iter().find(|(_, ns)| fits(*ns)))
            .unwrap_or(units[3]);
        // "1.5 ms" reads better than "1500 µs".
        let better = units.into_iter().find(|(_, next)| *next == ns * 1000);
        match better {
            Some((name, next)) if greatest >= next && step * 100 >= next => Unit { name, ns: next },
            _ => Unit { name, ns },
        }
    }

    /// A label with as many decimals as the step needs.
    fn number(&self, time: Ns, step: Ns) -> String {
        let mut decimals = 0;
        let mut unit = self.ns;
        while unit > 1 && step % unit != 0 {
            unit /= 10;
            decimals += 1;
        }
        let value = time as f64 / self.ns as f64;
        if time == 0 {
            return "0".to_owned();
        }
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(window: Span, columns: u16) -> String {
        marked(window, columns, None)
    }

    fn marked(window: Span, columns: u16, mark: Option<Span>) -> String {
        let theme = Theme::default();
        let area = Rect::new(0, 0, columns, 1);
        let mut buf = Buffer::empty(area);
        let axis = Axis {
            scale: TimeScale::new(window, columns),
            zero: 0,
            mark,
            measured: None,
            single: None,
        };
        axis.draw(&theme, area, &mut buf);
        buf.content().iter().map(|c| c.symbol()).collect()
    }

    #[test]
    fn labels_stand_at_their_moments() {
        // 4 ms over 40 columns: a column is 0.1 ms.
        assert_eq!(
            draw(Span::new(0, 4_000_000), 40),
            "╷0 ms               ╷2                  "
        );
        assert_eq!(
            draw(Span::new(0, 1_500), 60),
            "╷0 µs               ╷0.5                ╷1.0                "
        );
        assert_eq!(draw(Span::new(0, 10), 0), "");
    }

    #[test]
    fn a_mark_leaves_no_half_of_a_label() {
        // The mark at 0.2 ms lies on the "m" of the first label, which has the unit: the next one has it then.
        let window = Span::new(0, 4_000_000);
        assert_eq!(
            marked(window, 40, Some(Span::new(100_000, 300_000))),
            "╷ ▾                 ╷2 ms               "
        );
        // On a tick it hides none.
        assert_eq!(
            marked(window, 40, Some(Span::at(2_000_000))),
            "╷0 ms               ▾2                  "
        );
    }

    #[test]
    fn labels_with_many_digits_stand_apart() {
        // 336.27 ms from the start, 2.1 us over 60 columns: a column is 35 ns, so that labels need four decimals.
        let drawn = draw(Span::new(336_270_000, 336_272_100), 60);
        let labels: Vec<&str> = drawn.split('╷').map(str::trim).collect();
        assert_eq!(
            labels,
            ["", "336.2700 ms", "336.2705", "336.2710", "336.2715"],
            "{drawn}"
        );
    }
}
