//! How a job stands, above the list: the threads of all its ranks side by side, who is behind, and what NCCL says.

use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::prelude::*;
use crate::tui::state::State;

/// What entering a process that stands still means.
const HELD: &str = "Enter attaches all the same. That may hold up a recovery, such as by NCCL's watchdog or a restart of the job.";

/// Draws it from line `at` on.
pub(super) fn draw(
    state: &State,
    (pid, at): (Option<u32>, usize),
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let width = usize::from(area.width).saturating_sub(4);
    let mut lines: Vec<PanelLine> = Vec::new();
    let mut add = |text: &str, role: Role| {
        let wrapped = pen::wrap(if text.is_empty() { " " } else { text }, width);
        lines.extend(wrapped.into_iter().map(|it| vec![(it, theme.fg(role))]));
    };
    match &state.model.seen_jobs {
        None => add("looking at its threads, without entering it …", Role::Dim),
        Some(Err(why)) => add(why, Role::Bad),
        Some(Ok(jobs)) => {
            for job in jobs {
                let is_still = job.is_still();
                for (i, line) in job.text().lines().enumerate() {
                    let role = match i {
                        0 => Role::Accent,
                        1 if !is_still => Role::Good,
                        _ if i == 1 || line.ends_with("behind") => Role::Bad,
                        _ => Role::Text,
                    };
                    add(line, role);
                }
                job.more().iter().for_each(|it| add(it, Role::Warning));
                if is_still && pid.is_some() {
                    add(HELD, Role::Warning);
                }
                add("", Role::Text);
            }
        }
    }
    let room = usize::from(area.height).saturating_sub(2);
    let from = at.min(lines.len().saturating_sub(room));
    let panel = Panel {
        theme,
        title: pid.map_or("jobs".to_owned(), |pid| format!("the job of process {pid}")),
        foot: match pid {
            Some(_) => "enter attaches, r asks NCCL, esc goes back",
            None => "r asks NCCL, esc goes to the list",
        },
        role: Role::Accent,
        lines: lines.split_off(from),
    };
    panel.draw(area, buf);
}
