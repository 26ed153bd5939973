//! A framed panel that lies above what is on screen: the help, an error.

use ratatui::style::Style;
use ratatui::widgets::{Block, BorderType, Clear, Padding, Widget};

use crate::tui::draw::prelude::*;

/// A line of a panel: parts with their styles.
pub type PanelLine = Vec<(String, Style)>;

/// A framed panel, as large as its lines need and the screen allows.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    pub theme: &'a Theme,
    /// In the frame's upper edge.
    pub title: String,
    /// In the frame's lower edge.
    pub foot: &'static str,
    pub role: Role,
    pub lines: Vec<PanelLine>,
}

impl Panel<'_> {
    /// Draws it above what is there.
    pub fn draw(&self, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(*buf.area());
        if area.width < 4 || area.height < 3 {
            return;
        }
        let place = self.place(area);
        Clear.render(place, buf);
        let theme = self.theme;
        let frame = theme.fg(self.role);
        let block = Block::bordered().border_type(BorderType::Rounded);
        let block = block.padding(Padding::horizontal(1)).style(frame);
        let inner = block.inner(place);
        block.render(place, buf);
        let top = Rect::new(place.x, place.y, place.width - 1, 1);
        let title = format!(" {} ", self.title);
        pen::text(buf, top, 2, &title, theme.bold(self.role));
        if !self.foot.is_empty() {
            let bottom = Rect::new(place.x, place.bottom() - 1, place.width - 1, 1);
            let foot = format!(" {} ", self.foot);
            let x = usize::from(place.width).saturating_sub(foot.len() + 2) as u16;
            pen::text(buf, bottom, x, &foot, theme.fg(Role::Dim));
        }
        for (line, at) in self.lines.iter().zip(pen::lines(inner)) {
            let mut x = 0;
            for (text, style) in line {
                x = pen::text(buf, at, x, text, *style);
            }
        }
    }

    fn place(&self, area: Rect) -> Rect {
        let longest = self.lines.iter().map(|line| line_width(line)).max();
        let title = pen::width(&self.title).max(self.foot.len()) + 2;
        let width = (longest.unwrap_or(0).max(title) + 4).min(usize::from(area.width)) as u16;
        let height = (self.lines.len() + 2).min(usize::from(area.height)) as u16;
        let x = area.x + (area.width - width) / 2;
        // What is wrong leaves room to see what it is about.
        let y = match self.role {
            Role::Bad => area.y,
            _ => area.y + (area.height - height) / 2,
        };
        Rect::new(x, y, width, height)
    }
}

fn line_width(line: &[(String, Style)]) -> usize {
    line.iter().map(|(text, _)| pen::width(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_any_area() {
        let theme = Theme::default();
        let line = vec![("a line that is long".to_owned(), Style::new())];
        let panel = Panel {
            theme: &theme,
            title: "title".to_owned(),
            foot: "esc closes",
            role: Role::Bad,
            lines: vec![line; 10],
        };
        for (width, height) in [(0, 0), (1, 1), (3, 9), (4, 3), (12, 4), (80, 24)] {
            let area = Rect::new(0, 0, width, height);
            let mut buf = Buffer::empty(area);
            panel.draw(area, &mut buf);
        }
    }
}
