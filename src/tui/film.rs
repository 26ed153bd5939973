//! The screen of a replay, frame by frame, without a terminal or a clock.

use crate::report::KnownGpus;
use std::sync::Arc;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Size;

use super::action::Action;
use super::app::App;
use super::{Opening, Replay, Theme, render};
use activity::Batch;
use activity::feed::{Message, Outcome};
use scenario::plan::Plan;
use trace::SourceInfo;

/// A screen that is fed by hand.
#[derive(Debug)]
pub struct Film {
    app: App,
    theme: Theme,
}

impl Film {
    /// An empty timeline's.
    pub fn new(
        source: SourceInfo,
        plan: Option<Arc<Plan>>,
        gpus: KnownGpus,
        replay: Replay,
        theme: Theme,
        size: Size,
    ) -> Film {
        let mut app = App::new(Vec::new());
        app.state.size = size;
        app.start(source, plan, gpus);
        app.state.model.run.replay = Some(replay);
        Film { app, theme }
    }

    /// The screen after these batches, so long after it began: that of the variant that runs then.
    pub fn frame(&mut self, at: Duration, batches: Vec<Batch>) -> Buffer {
        self.app.tick(at);
        for batch in batches {
            self.app.take(Message::Batch(batch));
        }
        let screen = render(&mut self.app, &self.theme);
        let run = &self.app.state.model.run;
        let latest = run.passes.variants.len().checked_sub(1);
        if latest <= self.app.state.variant() {
            return screen;
        }
        self.app.act(Action::Variant(1));
        render(&mut self.app, &self.theme)
    }

    /// The last screen, with what is to be seen then.
    ///
    /// # Errors
    /// What was asked for and is not there, in a sentence.
    pub fn end(mut self, outcome: Outcome, opening: &Opening) -> Result<Buffer, String> {
        self.app.take(Message::Finished(outcome));
        self.app.open_at(opening)?;
        Ok(render(&mut self.app, &self.theme))
    }
}
