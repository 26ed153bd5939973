//! The line of a program that is watched: records a second, its steps over the last minute, and who is slow.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};
use activity::{Ns, units};
use trace::describe;

/// The line, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct PulseLine {
    rate: String,
    step: String,
    /// The times of steps, second by second.
    steps: Vec<Option<Ns>>,
    slow: String,
}

impl PulseLine {
    pub fn new(state: &State) -> Self {
        let pulse = &state.pulse;
        let step = pulse.steps.back().copied().flatten();
        let slow = pulse.idlest.map(|(device, share)| {
            let gpu = describe::device_id(&state.run.trace, device);
            format!("least busy: {gpu}, {}", units::percent(share))
        });
        PulseLine {
            rate: match pulse.steps.is_empty() {
                true => "counting records …".to_owned(),
                false => format!("{} records/s", units::count(pulse.rate)),
            },
            step: step.map_or_else(String::new, |it| format!("step {}", units::duration(it))),
            steps: pulse.steps.iter().copied().collect(),
            slow: slow.unwrap_or_default(),
        }
    }

    pub fn draw(&self, theme: &Theme, line: Rect, buf: &mut Buffer) {
        if line.is_empty() {
            return;
        }
        let (text, dim) = (theme.fg(Role::Text), theme.fg(Role::Dim));
        let mut x = pen::text(buf, line, 1, &self.rate, text) + 2;
        if !self.step.is_empty() {
            x = pen::text(buf, line, x, &self.step, text) + 1;
            let most = self.steps.iter().flatten().max().copied().unwrap_or(1);
            for step in &self.steps {
                let share = step.map_or(0.0, |it| it as f64 / most.max(1) as f64);
                let block = theme.block(Theme::eighths(share));
                pen::cell(buf, line, x, block, theme.fg(Role::Accent));
                x += 1;
            }
            x = pen::text(buf, line, x + 1, "last minute", dim) + 2;
        }
        pen::text(buf, line, x, &self.slow, dim);
    }
}
