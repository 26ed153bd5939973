//! The bundled scenarios, what the one under the cursor is about, and what else there is to do: what is on screen before
//! a run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Cell, List};
use super::{Request, View};
use crate::tui::action::{Action, Context};
use crate::tui::draw::pen;
use crate::tui::state::{Choice, State, Wanted};
use crate::tui::theme::{Role, Theme};
use activity::text::printable;

/// Lines of the view below which only the list is shown.
const LOW: u16 = 8;
/// Columns from which the preview stands beside the list.
const WIDE: u16 = 110;
/// Columns of the list then.
const LIST: u16 = 46;

/// What else there is: cuptop is more than its lessons.
const ELSE: &[(&str, &str)] = &[
    (
        "cuptop trace -- python train.py",
        "watch a program of your own",
    ),
    (
        "cuptop open trace.json.gz",
        "a PyTorch, Nsight Systems or cuptop trace",
    ),
    ("cuptop new mine", "a scenario of your own"),
];

#[derive(Debug, Default)]
pub(super) struct Picker {
    choices: Vec<Choice>,
    /// Those that the filter lets through, in order.
    shown: Vec<usize>,
    preview: Vec<(String, Role, bool)>,
    area: Rect,
}

impl Picker {
    /// A picker of these scenarios.
    #[must_use]
    pub(super) fn new(choices: Vec<Choice>) -> Self {
        Picker {
            choices,
            ..Picker::default()
        }
    }

    /// Where the list stands, and where the preview.
    fn areas(&self, area: Rect) -> (Rect, Rect) {
        if area.height < LOW {
            return (area, Rect::default());
        }
        if area.width >= WIDE {
            let list = Rect {
                width: LIST,
                ..area
            };
            let preview = Rect {
                x: area.x + LIST + 2,
                width: area.width - LIST - 3,
                ..area
            };
            return (list, preview);
        }
        // Below the list, all of which stays on screen where there is room for that.
        let least = (area.height / 2).max(5);
        let wanted = self.preview.len() as u16 + 1;
        let rest = area.height.saturating_sub(self.shown.len() as u16 + 1);
        let height = wanted.min(rest.max(area.height - least));
        let list = Rect {
            height: area.height - height,
            ..area
        };
        let preview = Rect {
            x: area.x + 1,
            y: list.bottom() + 1,
            width: area.width.saturating_sub(2),
            height: height.saturating_sub(1),
        };
        (list, preview)
    }

    /// What the scenario on line `at` is about, in lines of `columns`.
    fn preview(&self, at: usize, columns: usize) -> Vec<(String, Role, bool)> {
        let mut lines: Vec<(String, Role, bool)> = Vec::new();
        let mut add = |text: &str, role: Role, is_bold: bool| {
            for line in pen::wrap(&printable(text), columns) {
                lines.push((line, role, is_bold));
            }
        };
        if let Some(choice) = self.chosen(at) {
            add(&choice.title, Role::Text, true);
            add(&choice.about, Role::Text, false);
            if !choice.look_for.is_empty() {
                add(&format!("Look for: {}", choice.look_for), Role::Dim, false);
            }
            if !choice.variants.is_empty() {
                add(
                    &format!("Variants: {}", choice.variants),
                    Role::Range,
                    false,
                );
            }
        }
        lines.push((String::new(), Role::Text, false));
        for (command, does) in ELSE {
            let line = pen::cut(&format!("{command:<32}{does}"), columns);
            lines.push((line, Role::Dim, false));
        }
        lines
    }

    fn chosen(&self, at: usize) -> Option<&Choice> {
        self.choices.get(*self.shown.get(at)?)
    }
}

impl View for Picker {
    fn context(&self) -> Context {
        Context::Picker
    }

    fn has_list(&self) -> bool {
        !self.choices.is_empty()
    }

    fn offers(&self, action: Action) -> bool {
        self.has_list() && action != Action::Sort
    }

    fn prepare(&mut self, list: &mut List, _state: &State, area: Rect) {
        // Where a scenario was named there is nothing to choose from.
        if self.has_list() {
            let heading = "enter runs one, esc comes back, / filters";
            list.empty = "no scenario has this";
            list.heading = vec![Cell::rest(heading, Role::Dim)];
        }
        let lets = |choice: &Choice| {
            let texts = [
                &choice.name,
                &choice.title,
                &choice.about,
                &choice.look_for,
                &choice.variants,
            ];
            list.filter.lets(texts)
        };
        let all = self.choices.iter().enumerate();
        self.shown = all.filter(|(_, c)| lets(c)).map(|(i, _)| i).collect();
        list.filter.count(self.shown.len(), self.choices.len());
        list.cursor = list.cursor.min(self.shown.len().saturating_sub(1));
        let is_wide = area.width >= WIDE;
        let columns = match is_wide {
            true => area.width - LIST - 3,
            false => area.width.saturating_sub(2),
        };
        self.preview = self.preview(list.cursor, usize::from(columns));
        let (above, preview) = self.areas(area);
        self.area = preview;
        // What else there is comes last, and is the last to go.
        let about = self.preview.len() - ELSE.len();
        let room = usize::from(preview.height).saturating_sub(ELSE.len());
        if about > room {
            self.preview.drain(room.saturating_sub(1)..about - 1);
            if let Some((text, ..)) = room.checked_sub(2).and_then(|at| self.preview.get_mut(at)) {
                let kept = text.trim_end_matches(['.', ',']);
                *text = pen::cut(&format!("{kept} …"), usize::from(columns));
            }
        }
        let longest = self.choices.iter().map(|c| c.name.len()).max();
        let name = longest.unwrap_or(0) as u16;
        let (choices, shown) = (&self.choices, &self.shown);
        list.fill(above, shown.len(), |i| {
            let choice = &choices[shown[i]];
            let about = if is_wide {
                &choice.title
            } else {
                &choice.about
            };
            vec![
                Cell::left(&choice.name, name, Role::Accent),
                Cell::rest(printable(about), Role::Text),
            ]
        });
    }

    fn draw(&self, list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let (above, _) = self.areas(area);
        list.draw(theme, above, buf);
        for ((text, role, is_bold), line) in self.preview.iter().zip(pen::lines(self.area)) {
            let style = match is_bold {
                true => theme.bold(*role),
                false => theme.fg(*role),
            };
            pen::text(buf, line, 0, &pen::plain(theme, text), style);
        }
    }

    fn choose(&mut self, at: usize, _state: &State) -> Option<Request> {
        let choice = self.chosen(at)?;
        Some(Request::Start(Wanted::Scenario(choice.name.clone())))
    }
}
