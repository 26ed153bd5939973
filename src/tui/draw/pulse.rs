//! The line of a program that is watched: records a second, the time of a step, a server's tokens a second, and who is slow.

use crate::report::steps::tokens_per_s;
use crate::tui::draw::prelude::*;
use crate::tui::state::State;
use activity::units;
use trace::describe;

pub fn draw(state: &State, theme: &Theme, line: Rect, buf: &mut Buffer) {
    let (pulse, text, dim) = (
        &state.model.pulse,
        theme.fg(Role::Text),
        theme.fg(Role::Dim),
    );
    let rate = match pulse.rate {
        None => "counting records …".to_owned(),
        Some(rate) => format!("{} records/s", units::count(rate)),
    };
    let mut x = pen::text(buf, line, 1, &rate, text) + 2;
    if let Some(step) = pulse.step {
        let step = format!("step {}", units::duration(step));
        x = pen::text(buf, line, x, &step, text) + 2;
    }
    if let Some(&rate) = pulse.tokens.last() {
        let most = pulse
            .tokens
            .iter()
            .fold(1.0, |most: f64, it| most.max(it.1));
        let bar = |it: &(f64, f64)| theme.block((it.1 / most * 8.0) as u8);
        let bars: String = pulse.tokens.iter().map(bar).collect();
        x = pen::text(buf, line, x, &tokens_per_s(rate), text) + 1;
        x = pen::text(buf, line, x, &bars, dim) + 2;
    }
    if let Some((device, share)) = pulse.idlest {
        let gpu = describe::device_id(&state.model.run.trace, device);
        let slow = format!("least busy: {gpu}, {}", units::percent(share));
        pen::text(buf, line, x, &slow, dim);
    }
}
