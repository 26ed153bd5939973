//! What is handed to other people: reports and exports, with who made them, where and how left out where that is asked for.

use activity::Batch;
use activity::anonymous::{Anonymous, LEFT_OUT};
use trace::SourceInfo;

/// How much of a timeline is handed on.
#[derive(Debug, Default)]
pub(super) struct Handed(Option<Anonymous>);

impl Handed {
    /// All of it, or (`--anonymous`) without names, which is said.
    pub(super) fn on(is_anonymous: bool) -> Handed {
        if !is_anonymous {
            return Handed(None);
        }
        super::eprint(&format!("cuptop: {LEFT_OUT}\n"));
        Handed(Some(Anonymous::default()))
    }

    /// The same of another timeline. It has been said.
    pub(super) fn another(&self) -> Handed {
        Handed(self.0.is_some().then(Anonymous::default))
    }

    /// The timeline's label.
    pub(super) fn source(&self, source: SourceInfo) -> SourceInfo {
        match self.0 {
            None => source,
            Some(_) => SourceInfo {
                title: "a trace without names of people and machines".to_owned(),
                path: None,
                ..source
            },
        }
    }

    /// A batch of it.
    pub(super) fn batch(&mut self, mut batch: Batch) -> Batch {
        if let Some(anonymous) = &mut self.0 {
            anonymous.clean(&mut batch);
        }
        batch
    }
}
