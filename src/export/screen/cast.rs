//! Screens one after another, as asciinema plays them (its file format, version 2). A line of JSON tells about the
//! terminal. Each change has a line: seconds, "o", and what a terminal is sent.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use ratatui::style::{Color, Modifier};

use super::cells;

/// A recording of screens that is being written.
pub struct Cast<'a> {
    out: &'a mut dyn Write,
    /// What the terminal shows.
    shown: Option<Buffer>,
}

impl<'a> Cast<'a> {
    /// Begins one of screens of a size.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn begin(size: Size, title: &str, out: &'a mut dyn Write) -> io::Result<Self> {
        let header = serde_json::json!({
            "version": 2,
            "width": size.width,
            "height": size.height,
            "title": title,
            "env": {"TERM": "xterm-256color"},
        });
        writeln!(out, "{header}")?;
        Ok(Cast { out, shown: None })
    }

    /// The screen changes to this. Nothing is written where it is the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn frame(&mut self, at: Duration, screen: &Buffer) -> io::Result<()> {
        let mut sent = String::new();
        let before = match self.shown.take() {
            Some(before) if before.area == screen.area => before,
            _ => {
                // Empty, the cursor hidden.
                sent.push_str("\u{1b}[0m\u{1b}[2J\u{1b}[?25l");
                Buffer::empty(screen.area)
            }
        };
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in before.diff(screen) {
            if next != Some((x, y)) {
                let (row, column) = (y - screen.area.y + 1, x - screen.area.x + 1);
                let _ = write!(sent, "\u{1b}[{row};{column}H");
            }
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if style != Some(wanted) {
                let _ = write!(sent, "\u{1b}[{}m", codes(wanted));
                style = Some(wanted);
            }
            sent.push_str(cell.symbol());
            let columns = u16::try_from(activity::text::width(cell.symbol())).unwrap_or(1);
            next = Some((x + columns.max(1), y));
        }
        self.shown = Some(screen.clone());
        match sent.is_empty() {
            true => Ok(()),
            false => self.event(at, &sent),
        }
    }

    /// Ends it: the last screen stands until then.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self, at: Duration) -> io::Result<()> {
        self.event(at, "\u{1b}[0m")?;
        self.out.flush()
    }

    fn event(&mut self, at: Duration, sent: &str) -> io::Result<()> {
        let event = serde_json::json!([at.as_secs_f64(), "o", sent]);
        writeln!(self.out, "{event}")
    }
}

/// What of "38;5;208" and its like sets a style.
fn codes((fg, bg, modifier): (Color, Color, Modifier)) -> String {
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::SLOW_BLINK, 5),
        (Modifier::RAPID_BLINK, 6),
        (Modifier::REVERSED, 7),
        (Modifier::HIDDEN, 8),
        (Modifier::CROSSED_OUT, 9),
    ];
    let mut codes = String::from("0");
    for (flag, code) in modifiers {
        if modifier.contains(flag) {
            codes.push_str(&format!(";{code}"));
        }
    }
    codes.push_str(&color(fg, 0));
    codes.push_str(&color(bg, 10));
    codes
}

/// ";38;5;208": `offset` is 10 for backgrounds.
fn color(color: Color, offset: u8) -> String {
    match color {
        Color::Reset => String::new(),
        Color::Indexed(index) => format!(";{};5;{index}", 38 + offset),
        Color::Rgb(r, g, b) => format!(";{};2;{r};{g};{b}", 38 + offset),
        color => match cells::number(color).unwrap_or_default() {
            dark @ ..8 => format!(";{}", 30 + dark + offset),
            light => format!(";{}", 82 + light + offset),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn a_terminal_that_is_sent_it_shows_each_screen() {
        let mut first = Buffer::empty(Rect::new(0, 0, 12, 2));
        first.set_string(0, 0, "ab 世 c", Style::new().fg(Color::Rgb(1, 2, 3)));
        let mut second = first.clone();
        second.set_string(0, 1, "█ \u{2592}", Style::new().bg(Color::Blue));
        second.set_string(1, 0, "x", Style::new());
        let mut out = Vec::new();
        let mut cast = Cast::begin(Size::new(12, 2), "a \"title\"", &mut out).expect("written");
        let ms = Duration::from_millis;
        for (at, screen) in [(0, &first), (50, &first), (100, &second)] {
            cast.frame(ms(at), screen).expect("written");
        }
        cast.end(ms(2_000)).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(
            (&lines[0]["version"], &lines[0]["width"]),
            (&2.into(), &12.into())
        );
        assert_eq!(lines[0]["title"], "a \"title\"");
        // The screen that did not change is not there.
        let times: Vec<f64> = lines[1..].iter().filter_map(|l| l[0].as_f64()).collect();
        assert_eq!(times, [0.0, 0.1, 2.0]);
        let size = |n: u16| std::num::NonZero::new(n).expect("a size");
        let mut terminal = vt100::Parser::new(size(2), size(12), 0);
        let mut shown = Vec::new();
        for line in &lines[1..] {
            terminal.process(line[2].as_str().expect("a text").as_bytes());
            let screen = terminal.screen();
            shown.push(screen.rows(0, 12).collect::<Vec<_>>().join("\n"));
        }
        let trimmed: Vec<&str> = shown.iter().map(|s| s.trim_end()).collect();
        assert_eq!(trimmed, ["ab 世 c", "ax 世 c\n█ ▒", "ax 世 c\n█ ▒"]);
        let cell = terminal.screen().cell(0, 0).expect("a cell");
        assert_eq!(cell.fgcolor(), vt100::Color::Rgb(1, 2, 3));
    }
}
