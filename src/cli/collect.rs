//! Collects a feed to its end, without a screen: progress on standard error, everything into a trace.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use activity::Batch;
use activity::feed::{Failure, FailureKind, Feed, Message, Outcome, Progress, SourceStatus};
use activity::text::printable;
use trace::{SourceInfo, Trace};

/// Progress is printed no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The same for what is waited for, where no terminal overwrites it.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Collects everything that `feed` sends into a trace, which evicts its oldest records where it takes more than `limit` bytes.
///
/// Progress and notices go to standard error, progress only when that is a terminal. A source that
/// ends without a last message has panicked, which is a failure.
pub(super) fn collect(feed: Feed, source: SourceInfo, limit: Option<usize>) -> (Trace, Outcome) {
    let mut trace = Trace::new(source);
    trace.set_limit(limit);
    let outcome = take_all(&feed, true, |batch| trace.apply(batch));
    (trace, outcome)
}

/// The same for files, but hands everything to `take`. Notices that warn of nothing need `--verbose`.
pub(super) fn collect_into(feed: &Feed, take: impl FnMut(Batch)) -> Outcome {
    take_all(feed, super::args::screen_args().verbose, take)
}

fn take_all(feed: &Feed, says_notices: bool, mut take: impl FnMut(Batch)) -> Outcome {
    let mut line = ProgressLine::default();
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => take(batch),
            Message::Status(all) => line.tell(&all),
            Message::Progress(progress) => line.show(&progress),
            Message::Notice { is_warning, text } => {
                line.clear();
                if is_warning {
                    eprint_line(&format!("warning: {text}"));
                } else if says_notices {
                    eprint_line(&text);
                }
            }
            Message::Output { line: text, .. } => {
                line.clear();
                eprint_line(&text);
            }
            Message::Finished(outcome) => {
                line.clear();
                return outcome;
            }
        }
    }
    line.clear();
    Outcome::Failed(Failure::new(
        FailureKind::Machine,
        "the source of the timeline ended without a word; this is a bug in cuptop",
        "",
    ))
}

fn eprint_line(text: &str) {
    // Text of a file or a program must not reach the terminal as it is.
    let text = printable(text);
    let _ = writeln!(std::io::stderr().lock(), "cuptop: {text}");
}

/// One line that each update overwrites.
#[derive(Debug, Default)]
pub(super) struct ProgressLine {
    shown: Option<Instant>,
    /// When it was told what is waited for.
    told: Option<Instant>,
}

impl ProgressLine {
    pub(super) fn show(&mut self, progress: &Progress) {
        if std::io::stderr().is_terminal()
            && self.shown.is_none_or(|t| t.elapsed() >= PROGRESS_EVERY)
        {
            let share = progress.done.saturating_mul(100) / progress.total.max(1);
            self.write(&format!("{} {share} %", progress.what));
        }
    }

    /// Says what is waited for as long as it is.
    fn tell(&mut self, all: &[SourceStatus]) {
        let Some(it) = all.iter().find(|it| it.is_alarming) else {
            return self.clear();
        };
        if std::io::stderr().is_terminal() {
            self.write(&it.text);
        } else if self.told.is_none_or(|t| t.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            eprint_line(&it.text);
        }
    }

    fn write(&mut self, text: &str) {
        self.shown = Some(Instant::now());
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\u{1b}[K{}", printable(text));
        let _ = err.flush();
    }

    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
