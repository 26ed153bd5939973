//! The figures of the variants, worked out beside the screen.

use super::analyst::{Analyst, Question};
use super::run::Run;
use figures::variants::RunFigures;

/// The question what the variants of a run measured.
#[derive(Debug, Default)]
pub(super) struct Measuring {
    /// About whether the run goes on: its end changes what is known of passes.
    question: Question<bool, RunFigures>,
}

impl Measuring {
    /// Puts the figures that have come into the run, and asks for those of its passes that have none yet.
    pub(super) fn prepare(&mut self, analyst: &Analyst, run: &mut Run) {
        if self.question.poll() {
            self.hand_over(run);
        }
        let is_running = run.is_running();
        // Before the first record there is nothing to be asked.
        if run.is_none() || run.measured.is_current(&run.passes, is_running) {
            return;
        }
        let (mut figures, passes) = (run.measured.clone(), run.passes.clone());
        let plan = run.plan.clone();
        let has_come = self
            .question
            .ask(analyst, run, is_running, move |trace, _| {
                figures.update(trace, &passes, plan.as_deref(), is_running);
                figures
            });
        if has_come {
            self.hand_over(run);
        }
    }

    fn hand_over(&self, run: &mut Run) {
        if let Some(figures) = self.question.last(run).cloned() {
            run.figure(figures);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::KnownGpus;
    use std::time::{Duration, Instant};

    use crossbeam_channel::bounded;

    use super::*;
    use crate::tui::fixture;
    use crate::tui::state::Status;
    use activity::feed::Outcome;

    /// Two variants: `sequential` takes 4.3 ms, `streamed` 2.2 ms.
    fn run(status: Status) -> Run {
        let mut run = Run::new(fixture::trace(), None, KnownGpus::default(), status);
        let is_running = run.is_running();
        run.passes.update(&run.trace, None, is_running);
        run
    }

    fn makespans(run: &Run) -> Vec<i64> {
        run.measured
            .variants
            .iter()
            .map(|v| v.makespan_ns / 1_000)
            .collect()
    }

    #[test]
    fn without_threads_figures_are_there_at_once_and_nothing_is_asked_twice() {
        let mut run = run(Status::Ended(Outcome::Complete));
        let (mut measuring, analyst) = (Measuring::default(), Analyst::default());
        measuring.prepare(&analyst, &mut run);
        assert_eq!(makespans(&run), [4_300, 2_200]);
        assert_eq!(run.figured, 1);
        measuring.prepare(&analyst, &mut run);
        assert_eq!(run.figured, 1);
    }

    #[test]
    fn of_a_large_run_the_last_figures_stay_until_the_next_ones_come() {
        let (wake, answers) = bounded(1);
        let analyst = Analyst::start(&wake).expect("threads");
        let mut run = run(Status::Ended(Outcome::Complete));
        let mut measuring = Measuring::default();
        measuring.question.at_once(0);
        measuring.prepare(&analyst, &mut run);
        assert_eq!(run.figured, 0, "the screen does not wait");
        let until = Instant::now() + Duration::from_secs(20);
        while run.figured == 0 {
            assert!(Instant::now() < until, "no answer");
            let _ = answers.recv_timeout(Duration::from_millis(20));
            measuring.prepare(&analyst, &mut run);
        }
        assert_eq!(makespans(&run), [4_300, 2_200]);
    }
}
