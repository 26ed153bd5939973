//! Screens one after another, as asciinema plays them (its file format, version 2). A line of JSON tells about the
//! terminal. Each change has a line: seconds, "o", and what a terminal is sent.

use std::io::{self, Write};
use std::time::Duration;

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Size;

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
        // As other pictures it has the colours that its screens have, whatever the terminal here can do.
        crossterm::style::force_color_output(true);
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
        let mut sent = Vec::new();
        let mut terminal = CrosstermBackend::new(&mut sent);
        let shown = self.shown.replace(screen.clone());
        let shown = match shown.filter(|it| it.area == screen.area) {
            Some(shown) => shown,
            None => {
                terminal.clear()?;
                terminal.hide_cursor()?;
                Buffer::empty(screen.area)
            }
        };
        let changed = shown.diff(screen);
        if !changed.is_empty() {
            terminal.draw(changed.into_iter())?;
        }
        match sent.is_empty() {
            true => Ok(()),
            false => self.event(at, &String::from_utf8_lossy(&sent)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

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
