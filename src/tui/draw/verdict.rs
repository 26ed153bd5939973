//! The line under the header: what bounds what is on screen, and what that was told from.

use super::header::clock;
use crate::tui::draw::prelude::*;
use crate::tui::state::State;
use crate::tui::state::answers::Answer;
use activity::text::printable;
use advice::verdict::{Bound, nothing_ran};
use findings::Severity;
use trace::SourceKind;

/// Where the class ends with which a headline begins: before its colon. A cure behind a headline without one may have a colon, too.
fn class(headline: &str) -> usize {
    let end = headline.find(':').filter(|at| *at <= CLASS_MAX);
    end.unwrap_or(0)
}

/// No class has more columns: "straggler rank 1", "GPU-bound on 8 GPUs".
const CLASS_MAX: usize = 24;

/// The line, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct VerdictLine {
    /// The verdict in a word ("host-bound"), where there is one.
    head: String,
    role: Role,
    /// The rest of it.
    text: String,
    /// What the run is made of beside that: on a line of its own, where there is room.
    beside: String,
    /// When it was found; the first ones are left out where there is no room.
    about: Vec<String>,
}

impl VerdictLine {
    pub fn new(state: &State) -> Self {
        let run = &state.model.run;
        if run.is_none() {
            return VerdictLine::default();
        }
        let quiet = |text: &str| VerdictLine {
            about: vec![text.to_owned()],
            ..VerdictLine::default()
        };
        if run.is_being_read() {
            return quiet("still being read: what bounds it is told of the whole");
        }
        // Of a scenario that was stopped before it measured anything there is what it does around that.
        let is_measured = run.passes.list.iter().any(|pass| pass.is_measured);
        if run.plan.is_some() && !run.is_running() && !is_measured {
            return quiet("it ended before a repeat was measured");
        }
        let Some(answer) = state.answer() else {
            return if state.model.answers.is_open() || run.is_running() {
                quiet("computing …")
            } else {
                VerdictLine::default()
            };
        };
        let Some((headline, role)) = headline(state, answer) else {
            let is_traced = run.trace.source.kind == SourceKind::Traced;
            let is_to_come = run.is_running() && run.trace.source.kind != SourceKind::Attached;
            return quiet(if state.model.answers.is_open() && !run.is_running() {
                "computing …"
            } else if is_to_come && is_traced && run.trace.processes().is_empty() {
                "waiting: no process of the program has used CUDA yet …"
            } else if is_to_come {
                "waiting for the first operations …"
            } else {
                nothing_ran(&run.trace)
            });
        };
        let (head, text) = headline.split_at(class(&headline));
        VerdictLine {
            head: head.to_owned(),
            role,
            text: text.to_owned(),
            beside: beside(answer),
            about: about(answer, state),
        }
    }

    /// Lines that the headline takes in `room` columns, and with what is told beside it.
    pub fn lines(state: &State, room: usize) -> [u16; 2] {
        let answer = state.answer();
        let headline = answer.and_then(|answer| headline(state, answer));
        let beside = answer.map_or(0, |answer| {
            sentences(&beside(answer), room, BESIDE).len() as u16
        });
        headline.map_or([1; 2], |(text, _)| {
            let lines = broken(&text, room).len().max(1) as u16;
            [lines, lines + beside]
        })
    }

    pub fn draw(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let width = usize::from(area.width);
        if self.head.is_empty() && self.text.is_empty() {
            let about = self.about.join(" ");
            pen::text(buf, area, 1, &about, theme.fg(Role::Dim));
            return;
        }
        if area.height > 1 {
            self.draw_lines(theme, area, buf);
            return;
        }
        let x = pen::text(buf, area, 1, &self.head, theme.bold(self.role));
        let room = width.saturating_sub(usize::from(x) + 1);
        let spare = room.saturating_sub(pen::width(&self.text));
        let text = pen::cut(&self.text, room);
        pen::text(buf, area, x, &text, theme.fg(Role::Text));
        let about = (0..self.about.len())
            .map(|first| self.about[first..].join(" · "))
            .find(|about| pen::width(about) + 2 <= spare);
        if let Some(about) = about {
            let x = width - 1 - pen::width(&about);
            pen::text(buf, area, x as u16, &about, theme.fg(Role::Dim));
        }
    }
}

impl VerdictLine {
    /// Over several lines.
    fn draw_lines(&self, theme: &Theme, area: Rect, buf: &mut Buffer) {
        let room = usize::from(area.width).saturating_sub(2);
        let whole = format!("{}{}", self.head, self.text);
        let pieces = fitted(&whole, room, usize::from(area.height));
        for (piece, line) in pieces.iter().zip(pen::lines(area)) {
            pen::text(buf, line, 1, piece, theme.fg(Role::Text));
        }
        let rest = || pen::lines(area).skip(pieces.len());
        let told = sentences(&self.beside, room, rest().count());
        for (told, line) in told.iter().zip(rest()) {
            pen::text(buf, line, 1, &pen::cut(told, room), theme.fg(Role::Dim));
        }
        // Its word stands out, as on one line.
        pen::text(buf, area, 1, &self.head, theme.bold(self.role));
    }
}

/// Lines for what the run is made of beside what the headline says.
const BESIDE: usize = 2;

/// Sentences in so many lines at most. One less says more than a part of one.
fn sentences(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut told = text;
    while let Some((first, _)) = told
        .rsplit_once(" · ")
        .filter(|_| pen::wrap(told, room).len() > most)
    {
        told = first;
    }
    match told.is_empty() || most == 0 {
        true => Vec::new(),
        false => pen::clauses(told, room, most),
    }
}

/// A headline in so many lines, which ends with a whole clause. What would help stays: what is said behind it goes first, and then clauses
/// before it.
fn fitted(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut parts: Vec<&str> = text.split(" · ").collect();
    let mut lines = broken(text, room);
    while lines.len() > most && parts.len() > 2 {
        parts.pop();
        lines = broken(&parts.join(" · "), room);
    }
    match parts[..] {
        _ if lines.len() <= most => lines,
        [what, cure] if pen::wrap(cure, room).len() < most => {
            let cure = pen::wrap(cure, room);
            let mut lines = pen::clauses(what, room - 2, most - cure.len());
            lines
                .last_mut()
                .into_iter()
                .for_each(|it| it.push_str(" ·"));
            [lines, cure].concat()
        }
        _ => pen::clauses(&parts.join(" · "), room, most),
    }
}

/// A headline in lines. What the best cure brings begins the second one, where the whole does not fit one line.
fn broken(text: &str, room: usize) -> Vec<String> {
    let lines = pen::wrap(text, room);
    match text.rsplit_once(" · ") {
        Some((what, cure))
            if lines.len() == 2 && pen::width(what) + 2 <= room && pen::width(cure) <= room =>
        {
            vec![format!("{what} ·"), cure.to_owned()]
        }
        _ => lines,
    }
}

/// What bounds the run; of two that are compared which one is faster.
fn headline(state: &State, answer: &Answer) -> Option<(String, Role)> {
    if let Some(beside) = &state.model.run.beside {
        let role = match beside.pairs.first().filter(|it| it.told().is_some()) {
            Some(pair) if pair.ratio < 1.0 => Role::Good,
            Some(_) => Role::Warning,
            None => Role::Text,
        };
        return Some((printable(&beside.headline), role));
    }
    let verdict = answer.verdicts.first()?;
    // A busy GPU is used well only where nothing is found that could be better.
    let mut found = answer.findings.iter();
    let is_fine = !found.any(|it| it.severity == Severity::Warning);
    let role = match verdict.bound_by {
        Bound::Compute | Bound::Memory if is_fine => Role::Good,
        Bound::Nothing | Bound::Unknown => Role::Text,
        _ => Role::Warning,
    };
    Some((verdict.headline(), role))
}

/// "every 20th step takes 727 ms more in torch.save: 12 % of the time · start-up 11.0 s"
fn beside(answer: &Answer) -> String {
    let verdict = answer.verdicts.first().into_iter();
    // What recording made of the shares goes before all else that is said of them.
    let told = verdict.flat_map(|it| it.distorted.iter().chain(&it.beside));
    printable(&told.map(String::as_str).collect::<Vec<_>>().join(" · "))
}

/// "as of 0:03.2"
fn about(answer: &Answer, state: &State) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(time) = answer.as_of {
        parts.push(format!("as of {}", clock(time)));
    }
    if !state.model.run.is_running() && answer.as_of.is_some() && state.model.answers.is_open() {
        parts.push("computing …".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{class, fitted, sentences};

    #[test]
    fn what_a_run_is_made_of_beside_is_told_by_whole_sentences() {
        let text = "start-up 6.44 s · GPU idle 30 % of each step · 2 s outside CUDA";
        let both = [
            "start-up 6.44 s · GPU idle 30 % of",
            "each step · 2 s outside CUDA",
        ];
        assert_eq!(sentences(text, 34, 2), both);
        assert_eq!(
            sentences(text, 22, 2),
            ["start-up 6.44 s · GPU", "idle 30 % of each step"]
        );
        assert_eq!(sentences(text, 34, 1), ["start-up 6.44 s"]);
        assert!(sentences(text, 34, 0).is_empty() && sentences("", 34, 2).is_empty());
    }

    #[test]
    fn a_headline_without_a_class_has_no_head() {
        assert_eq!(class("GPU-bound: kernels run 90 %"), "GPU-bound".len());
        let odd = "1 step takes 20.0 ms more in save_checkpoint: 38 % of the time";
        assert_eq!(class(odd), 0);
    }

    #[test]
    fn a_headline_that_is_too_long_ends_with_a_whole_clause() {
        let text = "CPU-bound: GPU idle 73 % of each 36.4 to 203 ms step, 57 % waiting for \
                    the next batch of 36.8 MiB · preparing batches ahead and more: up to 52.2 ms a step";
        let what = "CPU-bound: GPU idle 73 % of each 36.4 to 203 ms step";
        let cure = "preparing batches ahead and more: up to 52.2 ms a step";
        assert_eq!(fitted(text, 78, 3).join(" "), text);
        // The change before its reason, and never a part of it.
        assert_eq!(fitted(text, 78, 2), [format!("{what} ·"), cure.to_owned()]);
        let odd = "every 12th step takes 66.7 ms more, with 54 operations more: 81 % of the time · \
                   ending that saves at most 4.59 ms a step · the others are launch-bound (1.11 ms)";
        let [takes, saves, _] = [0, 1, 2].map(|at| odd.split(" · ").nth(at).expect("three"));
        assert_eq!(fitted(odd, 78, 2).join(" "), format!("{takes} · {saves}"));
    }
}
