//! What arrives from the feed.

use std::cmp::Ordering::Equal;

use super::{App, ErrorPanel, LineKind, Opening, Status};
use crate::report::standing::Standing;
use crate::tui::frame::overlay::Overlay;
use crate::tui::state::{LineFrom, NOT_ATTACHED};
use activity::feed::{Failure, Message, Outcome};
use activity::text::printable;
use activity::units;
use figures::VariantFigures;
use live::attach::Refused;
use live::job::Job;
use live::machine::Machine;

impl App {
    pub fn take(&mut self, message: Message) {
        let run = &mut self.state.model.run;
        let messages = &mut self.state.messages;
        match message {
            Message::Batch(batch) => {
                let was_whole = run.trace.evicted().is_none();
                run.trace.apply(batch);
                if was_whole && run.trace.evicted().is_some() {
                    let text = "memory is at its limit (--memory): single records of the oldest stretch are let go, their \
                                sums stay";
                    messages.noticed(LineFrom::Cuptop, true, text);
                }
            }
            Message::Progress(progress) => {
                let is_done = progress.done >= progress.total;
                run.progress = (!is_done).then_some(progress);
            }
            Message::Output { is_error, line } => messages.printed(is_error, &line),
            Message::Notice { is_warning, text } => {
                messages.noticed(LineFrom::Cuptop, is_warning, &text);
            }
            Message::Status(all) => {
                run.standing = all;
                run.stood += 1;
            }
            Message::Finished(outcome) => self.finish(outcome),
        }
    }

    /// Takes what runs on this machine now.
    pub fn see(&mut self, machine: Machine) {
        self.state.model.machine = machine;
        if let Overlay::Attach(target) = self.overlay
            && self.state.model.target(target).is_none()
        {
            self.overlay = Overlay::None;
            self.state.say("the process has ended");
        }
    }

    /// Takes how the jobs stand that are looked at.
    pub fn see_jobs(&mut self, seen: Result<Vec<Job>, Refused>) {
        let all = |jobs: Vec<Job>| jobs.into_iter().map(Standing::of).collect();
        let why = |it: Refused| printable(&format!("{}. {}", it.message, it.help));
        self.state.model.seen_jobs = Some(seen.map(all).map_err(why));
    }

    /// A run could not be started; what is on screen stays.
    pub fn fail(&mut self, failure: &Failure) {
        let title = if self.state.model.run.trace.revision() > 0 {
            self.state.messages.outdated(failure);
            "it did not run · below is the last run that did"
        } else {
            "it did not run"
        };
        self.state.messages.error = Some(ErrorPanel::new(title, failure));
    }

    /// A process could not be attached to; the list stays.
    pub fn refuse(&mut self, failure: &Failure) {
        self.state.messages.error = Some(ErrorPanel::new(NOT_ATTACHED, failure));
    }

    /// Says of a run that was run again which variant changed most, else what the one on screen came to.
    pub(super) fn say_rerun(&mut self) {
        let run = &self.state.model.run;
        if !self.tells_rerun || run.is_running() || !run.measured.is_current(&run.passes, false) {
            return;
        }
        self.tells_rerun = false;
        let time = |it: &VariantFigures| match it.makespan_ns {
            0 => it.wall_ns,
            makespan => makespan,
        };
        let before = |now: &VariantFigures| {
            let mut all = run.previous.iter();
            all.find(|it| it.label() == now.label()).map(time)
        };
        // By how many times it takes longer, or shorter.
        let change = |now: &VariantFigures| {
            before(now).map_or(0.0, |it| (time(now).max(1) as f64 / it.max(1) as f64).ln())
        };
        let here = |it: &&VariantFigures| self.state.variant() == Some(it.position);
        let rank = |it: &&VariantFigures| (change(it).abs(), here(it));
        let all = run.measured.variants.iter();
        let Some(now) = all.max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Equal)) else {
            return;
        };
        let before = before(now).map_or_else(String::new, |it| match change(now).exp() - 1.0 {
            0.0 => ", as before".to_owned(),
            by => {
                let sign = if by < 0.0 { "-" } else { "+" };
                let by = units::percent(by.abs());
                format!(", was {} ({sign}{by})", units::duration(it))
            }
        });
        let (number, label) = (run.number, now.label());
        let time = units::duration(time(now));
        let text = printable(&format!("ran again, run {number}: {label} {time}{before}"));
        let log = &mut self.state.messages.log;
        log.push(LineKind::Plain, &text);
        self.state.say(text);
    }

    /// The feed has ended, with a last word or without one.
    pub fn finish(&mut self, outcome: Outcome) {
        let run = &mut self.state.model.run;
        if !run.is_running() {
            return;
        }
        run.progress = None;
        run.standing.clear();
        let messages = &mut self.state.messages;
        if let Outcome::Failed(failure) = &outcome {
            messages.log.push(LineKind::Error, &failure.message);
            let title = if run.trace.revision() > 0 {
                "the run failed · below is what was recorded until then"
            } else {
                "the run failed"
            };
            messages.error = Some(ErrorPanel::new(title, failure));
        }
        run.status = Status::Ended(outcome);
        let opening = std::mem::take(&mut self.opening);
        if opening != Opening::default()
            && let Err(text) = self.open_at(&opening)
        {
            self.state.say(text);
        }
    }
}
