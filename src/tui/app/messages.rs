//! What arrives from the feed.

use super::{App, ErrorPanel, LineKind, Status};
use crate::activity::feed::{Failure, Message, Outcome};
use crate::tui::action::View;

impl App {
    /// Takes a message of the feed. Returns whether the picture may have changed.
    pub fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Batch(batch) => self.trace.apply(batch),
            Message::Progress(progress) => {
                let is_done = progress.total.is_some_and(|total| progress.done >= total);
                self.progress = (!is_done).then_some(progress);
            }
            Message::Output { is_error, line } => {
                let kind = if is_error {
                    LineKind::Error
                } else {
                    LineKind::Plain
                };
                self.output.push(self.elapsed, kind, &line);
                self.stay_at_end(View::Output, self.output.lines().len());
            }
            Message::Notice { is_warning, text } => {
                let kind = if is_warning {
                    LineKind::Warning
                } else {
                    LineKind::Plain
                };
                self.log.push(self.elapsed, kind, &text);
                self.stay_at_end(View::Log, self.log.lines().len());
                if is_warning {
                    self.flash = Some(crate::trace::printable(&text));
                }
            }
            Message::Finished(outcome) => self.finish(outcome),
        }
        true
    }

    /// A run could not be started; what is on screen stays.
    pub fn fail(&mut self, failure: &Failure) {
        let title = if self.trace.revision() > 0 {
            "it did not run · below is the last run that did"
        } else {
            "it did not run"
        };
        let text = in_full(failure);
        self.error = Some(ErrorPanel { title, text });
    }

    /// A cursor on the last line goes along when a list grows to `count` lines.
    fn stay_at_end(&mut self, view: View, count: usize) {
        if self.view == view && self.cursor + 2 >= count {
            self.cursor = count.saturating_sub(1);
        }
    }

    /// The feed has ended, with a last word or without one.
    pub fn finish(&mut self, outcome: Outcome) {
        if !self.is_running() {
            return;
        }
        self.progress = None;
        if let Outcome::Failed(failure) = &outcome {
            let text = in_full(failure);
            self.log
                .push(self.elapsed, LineKind::Error, &failure.message);
            let title = if self.trace.revision() > 0 {
                "the run failed · below is what was recorded until then"
            } else {
                "the run failed"
            };
            self.error = Some(ErrorPanel { title, text });
        }
        let is_swept = self.plan.as_ref().is_some_and(|p| p.sweep.is_some());
        if is_swept && outcome == Outcome::Complete {
            self.flash = Some("the sweep is measured: 5 shows its chart".to_owned());
        }
        self.status = Status::Ended(outcome);
        self.needs_choice = self.is_following;
        self.prepared = None;
    }
}

/// What failed and what would help, line by line.
fn in_full(failure: &Failure) -> String {
    let lines = |text: &str| {
        let line = |line: &str| crate::trace::printable(&line.replace('\t', "    "));
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let mut text = lines(&failure.message);
    if !failure.help.is_empty() {
        text.push_str("\n\n");
        text.push_str(&lines(&failure.help));
    }
    text
}
