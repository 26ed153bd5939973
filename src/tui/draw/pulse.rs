//! The line of a program that is watched: records a second, its steps over the last minute, and who is slow.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};
use activity::units;
use trace::describe;

pub fn draw(state: &State, theme: &Theme, line: Rect, buf: &mut Buffer) {
    if line.is_empty() {
        return;
    }
    let (pulse, text, dim) = (
        &state.model.pulse,
        theme.fg(Role::Text),
        theme.fg(Role::Dim),
    );
    let rate = match pulse.steps.is_empty() {
        true => "counting records …".to_owned(),
        false => format!("{} records/s", units::count(pulse.rate)),
    };
    let mut x = pen::text(buf, line, 1, &rate, text) + 2;
    if let Some(step) = pulse.steps.back().copied().flatten() {
        let step = format!("step {}", units::duration(step));
        x = pen::text(buf, line, x, &step, text) + 1;
        let most = pulse.steps.iter().flatten().max().copied().unwrap_or(1);
        for step in &pulse.steps {
            let share = step.map_or(0.0, |it| it as f64 / most.max(1) as f64);
            let block = theme.block(Theme::eighths(share));
            pen::cell(buf, line, x, block, theme.fg(Role::Accent));
            x += 1;
        }
        x = pen::text(buf, line, x + 1, "last minute", dim) + 2;
    }
    if let Some((device, share)) = pulse.idlest {
        let gpu = describe::device_id(&state.model.run.trace, device);
        let slow = format!("least busy: {gpu}, {}", units::percent(share));
        pen::text(buf, line, x, &slow, dim);
    }
}
