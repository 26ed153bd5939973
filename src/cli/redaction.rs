//! Redaction of reports and exports for other people: `--anonymous` leaves out who made them, where and how.

use activity::Batch;
use activity::anonymous::{Anonymous, LEFT_OUT};
use trace::SourceInfo;

/// How much of a timeline other people get.
#[derive(Debug, Default)]
pub(super) struct Redaction(Option<Anonymous>);

impl Redaction {
    /// Keeps everything, or (with `--anonymous`) leaves out names and tells the user so.
    pub(super) fn new(is_anonymous: bool) -> Redaction {
        if !is_anonymous {
            return Redaction(None);
        }
        super::say(LEFT_OUT);
        Redaction(Some(Anonymous::default()))
    }

    /// The same for another timeline. It does not tell the user again.
    pub(super) fn for_another(&self) -> Redaction {
        Redaction(self.0.is_some().then(Anonymous::default))
    }

    /// Redacts the timeline's label.
    pub(super) fn label(&self, source: SourceInfo) -> SourceInfo {
        match self.0 {
            None => source,
            Some(_) => SourceInfo {
                title: "a trace without names of people and machines".to_owned(),
                path: None,
                ..source
            },
        }
    }

    pub(super) fn apply(&mut self, mut batch: Batch) -> Batch {
        if let Some(anonymous) = &mut self.0 {
            anonymous.clean(&mut batch);
        }
        batch
    }
}
