//! What was said: notices, the output of the program, the last error, a word on the last action.

use std::iter;

use super::journal::{Journal, LineFrom, LineKind};
use activity::feed::Failure;
use activity::text::printable;

/// Something that was noticed as a run was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartNotice {
    /// That it is probably not what was meant; else it is a line of the log.
    pub is_warning: bool,
    /// That nothing orders two operations that use the same memory; without a warning the scenario is there to show it.
    pub is_race: bool,
    /// Its first line says it; the others lay it out.
    pub text: String,
}

/// The title of the error that a process was not attached to.
pub const NOT_ATTACHED: &str = "not attached";

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPanel {
    pub title: &'static str,
    /// The whole of it, line by line.
    pub text: String,
}

impl ErrorPanel {
    /// What failed and what would help.
    pub fn new(title: &'static str, failure: &Failure) -> Self {
        let lines = |text: &str| {
            let line = |line: &str| printable(&line.replace('\t', "    "));
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        };
        let mut text = lines(&failure.message);
        if !failure.help.is_empty() {
            text.push_str("\n\n");
            text.push_str(&lines(&failure.help));
        }
        ErrorPanel { title, text }
    }
}

/// What was said.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Notices, and what the watched program printed.
    pub log: Journal,
    /// What went wrong last; lies above the last good run.
    pub error: Option<ErrorPanel>,
    /// That the file of the scenario is broken, or the run before is shown for another reason, until the next
    /// one starts.
    pub broken: Option<String>,
    /// The races that were found in the scenario when it was started: the sentence, then both lines and the cure.
    pub races: Vec<Vec<String>>,
    /// Those that the scenario is there to show, without the sentence.
    pub shown_races: Vec<String>,
    /// A word on the last action, until the next one.
    pub flash: Option<String>,
    /// Whether that was noticed, and answers no key.
    pub is_notice: bool,
}

impl Messages {
    /// Another run begins. What was said of the start before goes: what still holds is said again. What else was noticed
    /// stays to be read, and warns no more.
    pub(super) fn begin(&mut self) {
        let lines = &mut self.log.lines;
        lines.retain(|it| it.from != LineFrom::Start);
        let warnings = lines.iter_mut().filter(|it| it.kind == LineKind::Warning);
        warnings.for_each(|it| it.kind = LineKind::Plain);
        self.error = None;
        self.broken = None;
        self.races.clear();
        self.shown_races.clear();
        self.flash = None;
    }

    pub(crate) fn printed(&mut self, is_error: bool, line: &str) {
        let kind = [LineKind::Plain, LineKind::Error][usize::from(is_error)];
        self.log.add(LineFrom::Program, kind, line);
    }

    /// The next start failed; what is on screen is older than that.
    pub(crate) fn outdated(&mut self, failure: &Failure) {
        let mut lines = failure.message.lines().map(str::trim);
        let what = lines.next().unwrap_or_default();
        let what = what.strip_prefix("error: ").unwrap_or(what);
        // Diagnostics say where: "--> mine.toml:24:1".
        let place = lines.find_map(|line| line.strip_prefix("--> "));
        let what = match place {
            Some(place) => format!("{place}: {what}"),
            None => format!("it did not run again: {what}"),
        };
        self.broken = Some(printable(&format!("{what}; the run before is shown")));
    }

    /// Takes what was said as a run was started.
    pub(crate) fn said(&mut self, said: &StartNotice) {
        let mut lines = said.text.lines().filter(|line| !line.trim().is_empty());
        let Some(first) = lines.next() else {
            return;
        };
        let rest: Vec<String> = lines.map(printable).collect();
        self.noticed(LineFrom::Start, said.is_warning, first);
        for line in &rest {
            self.log.add(LineFrom::Start, LineKind::Plain, line);
        }
        if said.is_race && said.is_warning {
            let first = first.strip_prefix("warning: ").unwrap_or(first);
            self.races
                .push(iter::once(printable(first)).chain(rest).collect());
        } else if said.is_race {
            self.shown_races.extend(rest);
        }
    }

    pub(crate) fn noticed(&mut self, from: LineFrom, is_warning: bool, text: &str) {
        let kind = [LineKind::Plain, LineKind::Warning][usize::from(is_warning)];
        self.log.add(from, kind, text);
        if is_warning {
            (self.flash, self.is_notice) = (Some(printable(text)), true);
        }
    }
}
