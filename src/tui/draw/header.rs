//! The first line: what is on screen, on which device, how the run stands, what was lost.

use std::time::Duration;

use ratatui::style::{Modifier, Style};

use crate::report::recording;
use crate::tui::draw::prelude::*;
use crate::tui::state::{Scope, State, Status};
use crate::tui::theme::{ColorLevel, Role, Theme};
use activity::feed::Outcome;
use activity::text::printable;
use activity::units;
use trace::SourceKind;

/// Draws it. What matters most keeps its place when the line is short. Losses come first, then SIMULATED, the state, how
/// ranks' clocks are aligned, the title, the device, and the count of records.
pub fn draw(state: &State, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let (title, detail) = (
        printable(&state.model.run.trace.source.title),
        detail(state),
    );
    let is_simulated = state.model.run.trace.source.simulated;
    // The GPU's name stays where there is no room for what recording costs, and for the count of records.
    let device = device(state);
    let name = device.split(" · ").next().unwrap_or_default();
    let needed = pen::width(&title) + pen::width(&detail) + pen::width(name) + 16;
    let total = |parts: &[(String, Style, bool)]| -> usize {
        parts.iter().map(|p| pen::width(&p.0) + 2).sum()
    };
    let mut right = right(state, theme);
    if let Some([words, short]) = state.model.job.clocks(&state.model.run)
        && total(&right) + needed > width
        && let Some(part) = right.iter_mut().find(|part| part.0 == words)
    {
        part.0 = short;
    }
    while total(&right) + needed > width
        && let Some(i) = right.iter().rposition(|p| p.2)
    {
        right.remove(i);
    }
    while total(&right) > width.saturating_sub(8) && right.len() > 1 {
        right.remove(usize::from(is_simulated));
    }
    let start = width.saturating_sub(total(&right)) as u16;
    let left = Rect::new(area.x, area.y, start, 1);
    let mut x = pen::text(buf, left, 1, "cuptop", theme.bold(Role::Accent));
    let room = usize::from(start).saturating_sub(usize::from(x) + 2);
    let room_for_title = room.saturating_sub((pen::width(&detail) + 3).min(room / 2));
    let title = pen::cut(&title, room_for_title);
    x = pen::text(buf, left, x + 2, &title, theme.bold(Role::Text));
    if !detail.is_empty() {
        x = pen::text(buf, left, x, " › ", theme.fg(Role::Dim));
        let room = usize::from(start.saturating_sub(x));
        // Which repeat it is goes before the name is cut.
        let detail = match detail.rsplit_once(" · ") {
            Some((name, _)) if pen::width(&detail) > room => name,
            _ => &detail,
        };
        let detail = pen::cut(detail, room);
        x = pen::text(buf, left, x, &detail, theme.fg(Role::Text));
    }
    let fits = |it: &&&str| usize::from(x) + 3 + pen::width(it) < usize::from(start);
    if let Some(device) = [device.as_str(), name].iter().find(fits) {
        pen::text(buf, left, x + 3, device, theme.fg(Role::Dim));
    }
    let mut x = start;
    for (text, style, _) in &right {
        x = pen::text(buf, area, x, text, *style) + 2;
    }
}

/// The right side, from the left; each part with whether it can be spared, what is to go first last.
fn right(state: &State, theme: &Theme) -> Vec<(String, Style, bool)> {
    let trace = &state.model.run.trace;
    let health = trace.health();
    let (dim, bad) = (theme.fg(Role::Dim), theme.bold(Role::Bad));
    let badge = match theme.level {
        ColorLevel::None => Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED),
        _ => {
            let badge = theme.bg(Role::Warning).add_modifier(Modifier::BOLD);
            badge.remove_modifier(Modifier::REVERSED)
        }
    };
    let mut right = Vec::new();
    let mut add = |text: &str, style, is_spare| {
        if !text.is_empty() {
            right.push((text.to_owned(), style, is_spare));
        }
    };
    if trace.source.simulated {
        add(" SIMULATED ", badge, false);
    }
    if (trace.processes().iter()).any(|p| p.info.ended_well == Some(false)) {
        // What it did last may be missing.
        add("INCOMPLETE", bad, false);
    }
    let gaps = recording::find(trace).into_iter().map(|it| it.off_ns);
    let gap = gaps
        .max()
        .map(|ns| format!("{} not recorded", units::duration(ns)));
    add(&gap.unwrap_or_default(), bad, false);
    let (status, role) = status(state);
    add(&status, theme.bold(role), false);
    if let Some([words, _]) = &state.model.job.clocks(&state.model.run) {
        add(words, dim, false);
    }
    if health.received > 0 && !state.is_bare {
        let records = units::count(health.received);
        let let_go = trace.evicted().map(|it| units::count(it.rows));
        let let_go = let_go.map_or_else(String::new, |n| format!(", {n} let go"));
        add(&format!("{records} records{let_go}"), dim, true);
    }
    if health.losses() > 0 {
        let losses = format!("{} lost", units::count(health.losses()));
        add(&losses, bad, false);
    }
    add(&watching(state), dim, true);
    right
}

/// By how much recording may have made longer what is on screen; nothing of what cuptop did not record.
fn watching(state: &State) -> String {
    let answer = state.answer();
    let cost = answer.and_then(|it| it.watching);
    cost.map_or_else(String::new, |it| watching_words(it.share))
}

/// "watching costs ~2 to 7 %": an estimate, as parts of the time.
fn watching_words(share: [f64; 2]) -> String {
    let [least, most] = share.map(|it| (it * 100.0).round());
    if share[1] < 0.01 {
        "watching costs < 1 %".to_owned()
    } else if least < most {
        format!("watching costs ~{least} to {most} %")
    } else {
        format!("watching costs ~{most} %")
    }
}

fn detail(state: &State) -> String {
    let passes = &state.model.run.passes;
    let Some(pass) = state.model.run.pass(state.focus.camera.scope) else {
        let is_whole = state.focus.camera.scope == Scope::Whole && !passes.list.is_empty();
        return if is_whole { "whole run" } else { "" }.to_owned();
    };
    let variant = passes.variants.get(pass.variant);
    let variant = variant.map_or_else(String::new, |v| printable(&v.label()));
    match passes.measured(pass.variant).count() {
        0 | 1 if pass.is_measured => variant,
        all if pass.is_measured && (pass.index as usize) < all => {
            format!("{variant} · {} of {all}", pass.label())
        }
        _ => format!("{variant} · {}", pass.label()),
    }
}

fn device(state: &State) -> String {
    let Some(info) = state.model.run.device() else {
        return String::new();
    };
    let name = printable(&info.name);
    let mut text = match (state.model.run.trace.devices().len(), name.is_empty()) {
        (1, _) => name,
        // Some traces do not say what the GPUs are.
        (devices, true) => format!("{devices} GPUs"),
        (devices, false) => format!("{devices} × {name}"),
    };
    if !info.link.is_empty() {
        text = format!("{text} · {}", printable(&info.link));
    }
    text
}

/// Whether recording is on, in one of the processes at least.
fn is_recorded(state: &State) -> bool {
    let trace = &state.model.run.trace;
    let processes = trace.processes().len();
    processes == 0 || (0..processes).any(|process| trace.recorded(process).is_on())
}

/// Whether all processes of a saved recording have ended.
fn is_over(state: &State) -> bool {
    let trace = &state.model.run.trace;
    let mut ends = trace.processes().iter().map(|it| it.info.ended_well);
    trace.source.kind == SourceKind::Recording && ends.len() > 0 && ends.all(|it| it.is_some())
}

/// "0:03.2".
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!("{}:{:04.1}", (seconds / 60.0) as u64, seconds % 60.0)
}

fn status(state: &State) -> (String, Role) {
    let clock = clock(state.model.run.elapsed);
    match &state.model.run.status {
        Status::Idle => (String::new(), Role::Dim),
        _ if state.focus.camera.is_paused() => {
            let text = match state.focus.camera.records_behind(&state.model.run) {
                0 => "‖ PAUSED".to_owned(),
                n => format!("‖ PAUSED +{}", units::count(n)),
            };
            (text, Role::Warning)
        }
        Status::Running => match &state.model.run.progress {
            Some(p) => {
                let share = match p.total {
                    // Bytes and the like say nothing as numbers.
                    1_001.. => units::percent(p.done as f64 / p.total as f64),
                    total => format!("{}/{total}", p.done),
                };
                (format!("◆ {} {share}", printable(&p.what)), Role::Warning)
            }
            None if let Some(replay) = &state.model.run.replay => {
                (format!("▶ REPLAY {}×", replay.speed), Role::Good)
            }
            // Between two files, and while what was read is put in order.
            None if state.model.run.is_being_read() => ("◆ reading".to_owned(), Role::Warning),
            None if !is_recorded(state) => (format!("○ NOT RECORDING {clock}"), Role::Warning),
            None if state.model.run.standing.iter().any(|it| it.is_alarming) => {
                (format!("○ NOT ALL LIVE {clock}"), Role::Warning)
            }
            // A saved recording whose processes have ended is only being read.
            None if is_over(state) => ("◆ reading".to_owned(), Role::Warning),
            None => match state.model.pulse.quiet(&state.model.run) {
                Some(since) => {
                    let text = format!("○ no records for {} s", since.as_secs());
                    (text, Role::Warning)
                }
                None => (format!("● LIVE {clock}"), Role::Good),
            },
        },
        Status::Ended(Outcome::Complete) => ("■ DONE".to_owned(), Role::Text),
        Status::Ended(Outcome::Stopped) => ("■ STOPPED".to_owned(), Role::Warning),
        Status::Ended(Outcome::Failed(_)) => ("✗ FAILED".to_owned(), Role::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_watching_costs_is_a_range_of_the_time() {
        assert_eq!(watching_words([0.07, 0.26]), "watching costs ~7 to 26 %");
        assert_eq!(watching_words([0.0, 0.014]), "watching costs ~0 to 1 %");
        assert_eq!(watching_words([0.021, 0.023]), "watching costs ~2 %");
        assert_eq!(watching_words([0.0, 0.009]), "watching costs < 1 %");
    }
}
