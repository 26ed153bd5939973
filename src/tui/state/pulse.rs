//! How a program that is watched goes on: records a second, the time of a step, and the least busy GPU.

use std::time::Duration;

use super::run::Run;
use activity::{Ns, Span};
use trace::Measure;

/// Without a record for this long none come.
const QUIET: Duration = Duration::from_secs(3);
/// So many seconds are told of a server.
const SECONDS: usize = 24;
/// GPUs that are looked at.
const MOST: usize = 64;

/// What was seen in the last second.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    run: u64,
    /// The second that is on, and the records before it.
    second: u64,
    before: u64,
    /// Records so far, and when the last one came.
    received: u64,
    last: Duration,
    /// Records of the second before; `None` in the first.
    pub rate: Option<u64>,
    /// The time of a step, where it is known.
    pub step: Option<Ns>,
    /// Tokens a second of a server, a pair of least and most each second, the last one last.
    pub tokens: Vec<(f64, f64)>,
    /// Of several GPUs the one that was least busy in the second before, and its share of it.
    pub idlest: Option<(usize, f64)>,
}

impl Pulse {
    /// Looks at a run that goes on, whose steps take so long and make so many tokens a second.
    pub(super) fn beat(&mut self, run: &Run, step: Option<Ns>, tokens: Option<(f64, f64)>) {
        let received = run.trace.health().received;
        if self.run != run.number {
            *self = Pulse {
                run: run.number,
                second: run.elapsed.as_secs(),
                before: received,
                last: run.elapsed,
                ..Pulse::default()
            };
        }
        if received != self.received {
            (self.received, self.last) = (received, run.elapsed);
        }
        let second = run.elapsed.as_secs();
        if second <= self.second {
            return;
        }
        self.rate = Some(received.saturating_sub(self.before) / (second - self.second));
        (self.second, self.before) = (second, received);
        self.step = step;
        self.tokens.extend(tokens);
        let old = self.tokens.len().saturating_sub(SECONDS);
        self.tokens.drain(..old);
        let end = run.trace.operations_extent().map_or(0, |it| it.end);
        let window = Span::new(end - 1_000_000_000, end);
        let devices = run.trace.devices().iter().take(MOST).enumerate();
        let busy = devices.map(|(i, of)| (i, of.usage.time(Measure::Busy, window) as f64 / 1e9));
        self.idlest = busy
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|_| run.trace.devices().len() > 1);
    }

    /// For how long no record has come, where that is long.
    pub fn quiet(&self, run: &Run) -> Option<Duration> {
        let since = run.elapsed.saturating_sub(self.last);
        (self.run == run.number && since >= QUIET).then_some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::state::Status;
    use activity::{Batch, Health};

    #[test]
    fn a_second_has_its_rate_and_its_step() {
        let mut run = Run {
            number: 1,
            status: Status::Running,
            ..Run::default()
        };
        let mut pulse = Pulse::default();
        pulse.beat(&run, None, None);
        for second in 1..=70 {
            run.trace.apply(Batch {
                health: Some(Health {
                    received: 500 * second,
                    ..Health::default()
                }),
                ..Batch::default()
            });
            run.elapsed = Duration::from_secs(second);
            pulse.beat(&run, Some(second as Ns), Some((second as f64, 70.0)));
        }
        assert_eq!((pulse.rate, pulse.step), (Some(500), Some(70)));
        let ends = pulse.tokens.first().zip(pulse.tokens.last());
        assert_eq!(
            (ends, pulse.tokens.len()),
            (Some((&(47.0, 70.0), &(70.0, 70.0))), 24)
        );
        assert_eq!(pulse.quiet(&run), None);
        // Nothing comes any more.
        run.elapsed = Duration::from_secs(75);
        pulse.beat(&run, None, None);
        assert_eq!(pulse.rate, Some(0));
        assert_eq!(pulse.quiet(&run), Some(Duration::from_secs(5)));
    }
}
