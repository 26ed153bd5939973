//! What is on screen before a run. It lists what runs on this machine's GPUs, the traces of this folder, and the bundled scenarios.
//! Beside them stands what is under the cursor, and what else there is to do.

use std::path::PathBuf;

use ratatui::layout::Constraint::{Fill, Length};
use ratatui::layout::{Layout, Margin, Rect};

use super::list::{Cell, List};
use super::{Request, View, age, running};
use crate::board::Entry;
use crate::tui::action::{Action, Context};
use crate::tui::draw::prelude::*;
use crate::tui::state::{Choice, NextRun, State, Target};
use activity::text::printable;
use activity::units::bytes;
use live::machine::Machine;

/// Lines of the view below which only the list is shown.
const LOW: u16 = 8;
/// Columns from which the preview stands beside the list.
const WIDE: u16 = 110;
/// Columns of the list then.
const LIST: u16 = 46;
/// Columns of a trace's name at most.
const TRACE: usize = 32;

/// What else there is: cuptop is more than its lessons.
const ELSE: [(&str, &str); 3] = [
    (
        "cuptop trace python train.py",
        "watch a program of your own",
    ),
    (
        "cuptop open trace.json.gz",
        "a trace of PyTorch, Nsight or cuptop",
    ),
    ("cuptop new mine", "a scenario of your own"),
];

/// What the lines under a GPU are.
const BELOW: &str = "Below it are its processes: number, user, GPU memory, share of its computing time, time since start, command.";

/// What a line is of, by what it keeps while others come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PickerLine {
    /// A GPU, by NVML's number.
    Gpu(u32),
    /// A GPU's number, and a process on it.
    Process(u32, u32),
    Trace(PathBuf),
    Choice(usize),
}

#[derive(Debug, Default)]
pub(super) struct Picker {
    choices: Vec<Choice>,
    /// Those that the filter lets through, in order.
    lines: Vec<PickerLine>,
    /// Where the cursor is to go.
    next: Option<PickerLine>,
    has_gpus: bool,
    has_traces: bool,
    /// A trace that is to be compared with another.
    marked: Option<PathBuf>,
    preview: Vec<(String, Role, bool)>,
    area: Rect,
}

impl Picker {
    /// A picker of these scenarios.
    pub(super) fn new(choices: Vec<Choice>) -> Self {
        Picker {
            choices,
            ..Picker::default()
        }
    }

    /// The lines that the filter lets through, and how many there are. A GPU stands above its processes.
    fn filtered(
        &self,
        list: &List,
        machine: &Machine,
        board: &[Entry],
    ) -> (Vec<PickerLine>, usize) {
        let filter = &list.filter;
        let (mut lines, mut all) = (Vec::new(), self.choices.len() + board.len());
        for gpu in &machine.gpus {
            let shown = gpu.processes.iter();
            let mut shown = shown
                .filter(|it| filter.lets(running::texts(it)))
                .peekable();
            if shown.peek().is_some() || filter.lets([&gpu.name]) {
                lines.push(PickerLine::Gpu(gpu.index));
            }
            lines.extend(shown.map(|it| PickerLine::Process(gpu.index, it.pid)));
            all += 1 + gpu.processes.len();
        }
        let traces = board.iter();
        let traces = traces.filter(|it| filter.lets([it.name(), it.words()]));
        lines.extend(traces.map(|it| PickerLine::Trace(it.path.clone())));
        let lets =
            |it: &Choice| filter.lets([&it.name, &it.title, &it.about, &it.look_for, &it.variants]);
        let choices = self.choices.iter().enumerate();
        lines.extend(
            choices
                .filter(|(_, it)| lets(it))
                .map(|(i, _)| PickerLine::Choice(i)),
        );
        (lines, all)
    }

    /// Makes the lines anew. The cursor stays on what it is on, and leaves a process that is gone for its GPU.
    fn renew(&mut self, list: &mut List, machine: &Machine, board: &[Entry]) {
        // Who has not moved when the GPUs or the traces come is on the first of them: on nothing that runs.
        let (had_gpus, had_traces) = (self.has_gpus, self.has_traces);
        (self.has_gpus, self.has_traces) = (!machine.gpus.is_empty(), !board.is_empty());
        let has_come = self.has_gpus && !had_gpus || self.has_traces && !had_traces;
        if has_come && list.cursor == 0 {
            self.lines.clear();
        }
        let next = self.next.take();
        let at = next.or_else(|| self.lines.get(list.cursor).cloned());
        let (lines, all) = self.filtered(list, machine, board);
        list.filter.count(lines.len(), all);
        let place = |line: &PickerLine| lines.iter().position(|it| it == line);
        let found = at.and_then(|line| match (place(&line), line) {
            (None, PickerLine::Process(gpu, _)) => place(&PickerLine::Gpu(gpu)),
            (found, _) => found,
        });
        list.cursor = found.unwrap_or(0);
        self.lines = lines;
    }

    /// Whether the preview stands beside the list. Lines of processes and of traces need all the width.
    fn is_wide(&self, area: Rect) -> bool {
        area.width >= WIDE && !self.has_gpus && !self.has_traces
    }

    fn cells(&self, line: &PickerLine, state: &State, area: Rect) -> Vec<Cell> {
        let machine = &state.model.machine;
        match line {
            PickerLine::Trace(path) => {
                let entry = state.model.board.iter().find(|it| it.path == *path);
                let names = state.model.board.iter().map(|it| it.name().chars().count());
                let width = names.max().unwrap_or(0).min(TRACE);
                entry.map_or_else(Vec::new, |it| self.trace(it, width as u16))
            }
            PickerLine::Gpu(gpu) => {
                let gpu = machine.gpus.iter().find(|it| it.index == *gpu);
                gpu.map_or_else(Vec::new, |it| running::gpu(it, area.width))
            }
            PickerLine::Process(gpu, pid) => {
                let found = machine.process(*gpu, *pid);
                found.map_or_else(Vec::new, |it| running::process(it.1))
            }
            PickerLine::Choice(choice) => {
                let choice = &self.choices[*choice];
                let longest = self.choices.iter().map(|c| c.name.len()).max();
                let about = match self.is_wide(area) {
                    true => choice.title.as_str(),
                    false => choice.about.split(". ").next().unwrap_or_default(),
                };
                vec![
                    Cell::left(&choice.name, longest.unwrap_or(0) as u16, Role::Accent),
                    Cell::rest(printable(about), Role::Text),
                ]
            }
        }
    }

    fn trace(&self, entry: &Entry, columns: u16) -> Vec<Cell> {
        let is_marked = self.marked.as_ref() == Some(&entry.path);
        let mark = if is_marked { "[marked] " } else { "" };
        let role = match &entry.told {
            Some(_) => Role::Text,
            None => Role::Dim,
        };
        vec![
            Cell::left(printable(&entry.name()), columns, Role::Accent),
            Cell::right(age(entry.age()), 6, Role::Dim),
            Cell::rest(format!("{mark}{}", printable(&entry.words())), role),
        ]
    }

    /// Where the list stands, and where the preview.
    fn areas(&self, area: Rect) -> [Rect; 2] {
        if area.height < LOW {
            return [area, Rect::default()];
        }
        if self.is_wide(area) {
            let columns = [Length(LIST), Length(2), Fill(1), Length(1)];
            let [list, _, preview, _] = Layout::horizontal(columns).areas(area);
            return [list, preview];
        }
        let least = (area.height / 2).max(5);
        let wanted = self.preview.len() as u16 + 1;
        let rest = area.height.saturating_sub(self.lines.len() as u16 + 1);
        let height = wanted.min(rest.max(area.height - least));
        let lines = [Fill(1), Length(1), Length(height - 1)];
        let [list, _, preview] = Layout::vertical(lines).areas(area);
        [list, preview.inner(Margin::new(1, 0))]
    }

    /// What line `at` is about, in lines of `columns`.
    fn preview(&self, at: usize, state: &State, columns: usize) -> Vec<(String, Role, bool)> {
        let machine = &state.model.machine;
        let mut lines: Vec<(String, Role, bool)> = Vec::new();
        let mut add = |text: &str, role: Role, is_bold: bool| {
            for line in pen::wrap(&printable(text), columns) {
                lines.push((line, role, is_bold));
            }
        };
        match self.lines.get(at) {
            Some(PickerLine::Gpu(_)) => add(BELOW, Role::Text, false),
            Some(PickerLine::Process(gpu, pid)) => {
                let found = machine.process(*gpu, *pid);
                let said = found.map_or_else(Vec::new, |it| running::sentences(it.1));
                said.iter().for_each(|text| add(text, Role::Text, false));
            }
            Some(PickerLine::Trace(path)) => {
                let entry = state.model.board.iter().find(|it| it.path == *path);
                if let Some(entry) = entry {
                    add(&entry.words(), Role::Text, true);
                    let gain = entry.told.as_ref().and_then(|it| it.gain.as_deref());
                    gain.iter().for_each(|text| add(text, Role::Text, false));
                    add(&bytes(entry.size), Role::Dim, false);
                }
                let said = match self.marked {
                    Some(_) => "Space compares the marked trace with this one.",
                    None => {
                        "Enter opens it. Space marks it; space on another one compares the two."
                    }
                };
                add(said, Role::Text, false);
            }
            _ => {}
        }
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
        match self.lines.get(at)? {
            PickerLine::Choice(choice) => self.choices.get(*choice),
            _ => None,
        }
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

    fn prepare(&mut self, list: &mut List, state: &State, area: Rect) {
        let model = &state.model;
        self.renew(list, &model.machine, &model.board);
        // Where a scenario was named there is nothing to choose from.
        if self.has_list() {
            let heading = match (self.has_gpus, model.board.is_empty()) {
                (true, true) => "what runs here, then lessons; / filters",
                (true, false) => {
                    "what runs here, then this folder's traces, then lessons; / filters"
                }
                (false, true) => "enter opens one, esc comes back, / filters",
                (false, false) => "this folder's traces, newest first, then lessons; / filters",
            };
            list.empty = "nothing here has this";
            list.heading = vec![Cell::rest(heading, Role::Dim)];
        }
        let columns = match self.is_wide(area) {
            true => area.width - LIST - 3,
            false => area.width.saturating_sub(2),
        };
        self.preview = self.preview(list.cursor, state, usize::from(columns));
        let [above, preview] = self.areas(area);
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
        list.fill(above, self.lines.len(), |i| {
            self.cells(&self.lines[i], state, area)
        });
    }

    fn draw(&self, list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let [above, _] = self.areas(area);
        list.draw(theme, above, buf);
        for ((text, role, is_bold), line) in self.preview.iter().zip(pen::lines(self.area)) {
            pen::text(buf, line, 0, text, theme.text(*role, *is_bold));
        }
    }

    fn choose(&mut self, at: usize, state: &State) -> Option<Request> {
        let mut line = self.lines.get(at)?.clone();
        if let PickerLine::Gpu(gpu) = line {
            let is_below =
                |it: &&PickerLine| matches!(it, PickerLine::Process(of, _) if *of == gpu);
            let below: Vec<&PickerLine> = self.lines.iter().filter(is_below).collect();
            line = (*below.first()?).clone();
            self.next = Some(line.clone());
            // Of several one is to be chosen.
            if below.len() > 1 {
                return None;
            }
        }
        match line {
            PickerLine::Process(gpu, pid) => Some(Request::Ask(Target {
                gpu,
                pid,
                began: state.model.machine.process(gpu, pid)?.1.began(),
            })),
            PickerLine::Trace(path) => Some(Request::Start(NextRun::Open(path))),
            _ => Some(Request::Start(NextRun::Scenario(
                self.chosen(at)?.name.clone(),
            ))),
        }
    }

    /// Marks a trace, or compares the one that is marked with another: the older one is what it is compared with.
    fn act(&mut self, at: usize, action: Action, state: &mut State) -> Option<Request> {
        if action != Action::Mark {
            return None;
        }
        let Some(PickerLine::Trace(path)) = self.lines.get(at) else {
            state.say("space marks one of this folder's traces, to compare two");
            return None;
        };
        match self.marked.take() {
            None => {
                self.marked = Some(path.clone());
                state.say("marked: space on another trace compares the two");
            }
            Some(other) if other == *path => state.say("no longer marked"),
            Some(other) => {
                let place = |of: &PathBuf| state.model.board.iter().position(|it| it.path == *of);
                let mut two = [other, path.clone()];
                // The newest comes first.
                two.sort_by_key(|it| std::cmp::Reverse(place(it)));
                return Some(Request::Start(NextRun::Compare(two)));
            }
        }
        None
    }
}
