//! A list with a heading and a cursor, scrolled so that the cursor is on screen. It knows its own
//! geometry, so keys and mouse mean the same lines as the eye.

use std::ops::Range;

use crate::tui::action::Action;
use crate::tui::draw::prelude::*;
use crate::tui::state::search::Needle;
use crate::tui::theme::{ColorLevel, Role, Theme};

/// Lines that a turn of the wheel moves the cursor.
const WHEEL: isize = 3;
/// Lines of a page.
const PAGE: isize = 10;

/// A cell of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    role: Role,
    is_bold: bool,
    columns: u16,
    is_right: bool,
    /// In the place of a text: heights in eighths, one a column, each with its colour.
    levels: Vec<(u8, Role)>,
}

impl Cell {
    /// A text that stands at the left of its columns; what is longer is cut.
    pub fn left(text: impl Into<String>, columns: u16, role: Role) -> Self {
        Cell {
            text: text.into(),
            role,
            is_bold: false,
            columns,
            is_right: false,
            levels: Vec::new(),
        }
    }

    /// Heights in eighths, one a column, each with its colour.
    pub fn levels(levels: Vec<(u8, Role)>) -> Self {
        Cell {
            levels,
            ..Cell::rest("", Role::Text)
        }
    }

    /// A text that stands at the right of its columns.
    pub fn right(text: impl Into<String>, columns: u16, role: Role) -> Self {
        Cell {
            is_right: true,
            ..Cell::left(text, columns, role)
        }
    }

    /// A text over all that is left of the line.
    pub fn rest(text: impl Into<String>, role: Role) -> Self {
        Cell::left(text, u16::MAX, role)
    }

    /// The same, bold.
    pub fn bold(mut self) -> Self {
        self.is_bold = true;
        self
    }
}

/// What an action did to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The line under the cursor was taken.
    Line,
    /// At most the cursor moved.
    Nothing,
    /// It is not for lists.
    NotMine,
}

#[derive(Clone, Debug, Default)]
pub struct List {
    pub cursor: usize,
    /// Above the lines; none when empty.
    pub heading: Vec<Cell>,
    /// What stands there instead when there is no line.
    pub empty: &'static str,
    /// What its lines must have to be shown.
    pub filter: Filter,
    /// Which of the view's orders its lines stand in.
    pub order: usize,
    /// What is under the cursor in full, for the details; `None` for what is selected on the timeline.
    pub in_full: Option<String>,
    /// What the details say instead where the line has the rest.
    pub rest: Option<String>,
    count: usize,
    first: usize,
    /// The lines that are on screen.
    lines: Vec<Vec<Cell>>,
    body: Rect,
}

impl List {
    /// What the details say of it.
    pub fn details(&self) -> Option<&str> {
        self.rest.as_deref().or(self.in_full.as_deref())
    }

    /// Has words for having no line: that the answer is being worked out, that the filter leaves none, or why there is none.
    pub fn say(&mut self, is_open: bool, filtered: &'static str, empty: &'static str) {
        self.empty = match (is_open, self.filter.is_on()) {
            (true, _) => "computing …",
            (false, true) => filtered,
            (false, false) => empty,
        };
    }

    /// Takes its place on the screen with `count` lines, and makes those that are seen there.
    pub fn fill(&mut self, area: Rect, count: usize, line: impl FnMut(usize) -> Vec<Cell>) {
        let heading = u16::from(!self.heading.is_empty()).min(area.height);
        self.body = Rect {
            y: area.y + heading,
            height: area.height - heading,
            ..area
        };
        self.count = count;
        self.cursor = self.cursor.min(count.saturating_sub(1));
        self.lines = self.seen().map(line).collect();
    }

    /// The lines on screen: the cursor is on the last of them at most.
    fn seen(&mut self) -> Range<usize> {
        let room = usize::from(self.body.height);
        self.first = (self.cursor + 1).saturating_sub(room);
        self.first..self.count.min(self.first + room)
    }

    /// Moves the cursor, or takes the line under it. A click on the line where the cursor is takes it.
    pub fn act(&mut self, action: Action) -> Chosen {
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-PAGE),
            Action::PageDown => self.step(PAGE),
            Action::First => self.cursor = 0,
            Action::Last => self.cursor = self.count.saturating_sub(1),
            Action::Wheel { is_in: true, .. } => self.step(-WHEEL),
            Action::Wheel { is_in: false, .. } => self.step(WHEEL),
            Action::Choose => return Chosen::Line,
            Action::Click { y, .. } => match self.line_at(y) {
                Some(line) if line == self.cursor => return Chosen::Line,
                Some(line) => self.cursor = line,
                None => {}
            },
            _ => return Chosen::NotMine,
        }
        Chosen::Nothing
    }

    fn step(&mut self, by: isize) {
        let last = self.count.saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
    }

    /// The line at line `y` of the screen.
    fn line_at(&self, y: u16) -> Option<usize> {
        let line = usize::from(y.checked_sub(self.body.y)?);
        (line < self.lines.len()).then_some(self.first + line)
    }

    /// What stands above the columns at a place of the screen.
    pub fn heading_at(&self, x: u16, y: u16) -> Option<&str> {
        let mut end = self.body.x + 2;
        let mut cells = self.heading.iter().filter(|_| y + 1 == self.body.y);
        let cell = cells.find(|cell| {
            end = end.saturating_add(cell.columns).saturating_add(2);
            x < end
        });
        cell.map(|it| it.text.as_str())
    }

    /// Draws it where it was placed.
    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(*buf.area());
        if area.is_empty() {
            return;
        }
        if !self.heading.is_empty() {
            draw(&self.heading, Rect { height: 1, ..area }, theme, false, buf);
        }
        let body = self.body.intersection(area);
        if self.lines.is_empty() {
            pen::text(buf, body, 2, self.empty, theme.fg(Role::Dim));
        }
        for ((i, cells), line) in self.lines.iter().enumerate().zip(pen::lines(body)) {
            draw(cells, line, theme, self.first + i == self.cursor, buf);
        }
        self.draw_rest(theme, area, buf);
    }

    /// How many lines are below: on the rule under the list, where there is one, else behind its heading.
    fn draw_rest(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let below = self.count.saturating_sub(self.first + self.lines.len());
        if below == 0 {
            return;
        }
        let text = format!(" {below} more below ");
        let columns = text.len() as u16 + 2;
        let (y, ground) = if self.body.bottom() >= buf.area().bottom() {
            return;
        } else if buf[(area.x, self.body.bottom())].symbol() == "─" {
            (self.body.bottom(), "─")
        } else {
            (area.y, " ")
        };
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        let Some(x) = line.width.checked_sub(columns) else {
            return;
        };
        let is_free = |x: u16| buf[(area.x + x, y)].symbol() == ground;
        if (y != area.y || !self.heading.is_empty()) && (x..x + columns).all(is_free) {
            pen::text(buf, line, x, &text, theme.fg(Role::Dim));
        }
    }
}

/// What lines must have to be shown, and how many do.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub text: String,
    needle: Option<Needle>,
    shown: usize,
    all: usize,
}

impl Filter {
    /// Shows lines with something else; all of them when the text is empty.
    pub fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.needle = Needle::new(text);
    }

    /// Whether lines may be left out.
    pub fn is_on(&self) -> bool {
        self.needle.is_some()
    }

    /// Whether any of the texts of a line has it.
    pub fn lets<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> bool {
        let Some(needle) = &self.needle else {
            return true;
        };
        texts.into_iter().any(|text| needle.is_in(text.as_ref()))
    }

    /// Notes how many lines it leaves of all.
    pub fn count(&mut self, shown: usize, all: usize) {
        (self.shown, self.all) = (shown, all);
    }

    /// "3 of 31", or why nothing can be found.
    pub fn words(&self) -> String {
        match self.needle.as_ref().and_then(Needle::error) {
            Some(why) => why.to_owned(),
            None => format!("{} of {}", self.shown, self.all),
        }
    }
}

fn draw(cells: &[Cell], line: Rect, theme: &Theme, is_at: bool, buf: &mut Buffer) {
    if is_at {
        pen::cell(buf, line, 0, '▸', theme.bold(Role::Accent));
    }
    let mut x = 2;
    for cell in cells {
        let columns = cell.columns.min(line.width.saturating_sub(x));
        let text = pen::cut(&cell.text, usize::from(columns));
        let spare = usize::from(columns).saturating_sub(pen::width(&text)) as u16;
        let at = if cell.is_right { x + spare } else { x };
        let style = theme.text(cell.role, is_at || cell.is_bold);
        pen::text(buf, line, at, &text, style);
        for (i, &(eighths, role)) in (0..columns).zip(&cell.levels) {
            // Without colours what is a warning has a sign.
            let is_sign = theme.level == ColorLevel::None && role == Role::Warning;
            let glyph = match is_sign {
                true => '!',
                false => theme.block(eighths.min(8)),
            };
            if eighths > 0 {
                pen::cell(buf, line, x + i, glyph, theme.fg(role));
            }
        }
        x = x.saturating_add(columns).saturating_add(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of `count` lines on the screen's lines 2 to 6, the first of them its heading.
    fn list(count: usize, cursor: usize) -> List {
        let mut list = List {
            cursor,
            heading: vec![Cell::rest("heading", Role::Dim)],
            ..List::default()
        };
        list.fill(Rect::new(0, 2, 20, 5), count, |i| {
            vec![Cell::rest(format!("line {i}"), Role::Text)]
        });
        list
    }

    fn screen(list: &List) -> Vec<String> {
        let mut buf = Buffer::empty(Rect::new(0, 0, 20, 8));
        list.draw(&Theme::default(), Rect::new(0, 2, 20, 5), &mut buf);
        let lines = buf.content().chunks(20);
        lines
            .map(|line| line.iter().map(|c| c.symbol()).collect::<String>())
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn only_what_is_seen_is_made_and_the_cursor_is_among_it() {
        let mut made = Vec::new();
        let mut list = list(100, 50);
        list.fill(Rect::new(0, 2, 20, 5), 100, |i| {
            made.push(i);
            Vec::new()
        });
        assert_eq!(made, [47, 48, 49, 50]);
    }

    #[test]
    fn what_is_clicked_is_what_is_drawn_there() {
        for cursor in [0, 3, 4, 9] {
            let drawn = screen(&list(10, cursor));
            for (y, line) in drawn.iter().enumerate() {
                let mut list = list(10, cursor);
                let before = list.cursor;
                let took = list.act(Action::Click { x: 3, y: y as u16 });
                let number = line.split("line ").nth(1).and_then(|n| n.parse().ok());
                match number {
                    Some(n) if n == before => assert_eq!(took, Chosen::Line),
                    Some(n) => assert_eq!((took, list.cursor), (Chosen::Nothing, n)),
                    None => assert_eq!((took, list.cursor), (Chosen::Nothing, before)),
                }
            }
        }
    }

    #[test]
    fn the_cursor_stays_on_the_list() {
        let mut list = list(3, 0);
        list.act(Action::Up);
        assert_eq!(list.cursor, 0);
        list.act(Action::PageDown);
        assert_eq!(list.cursor, 2);
        list.fill(Rect::new(0, 2, 20, 5), 2, |_| Vec::new());
        assert_eq!(list.cursor, 1);
        list.fill(Rect::new(0, 0, 0, 0), 0, |_| Vec::new());
        assert_eq!((list.cursor, list.act(Action::Down)), (0, Chosen::Nothing));
    }
}
