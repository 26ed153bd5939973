//! How a job stands, above the list: the threads of all its ranks side by side, who is behind, and what NCCL says.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::pen;
use crate::tui::state::State;
use crate::tui::theme::{Role, Theme};

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
    let mut add = |text: &str, role: Role, is_bold: bool| {
        let style = if is_bold {
            theme.bold(role)
        } else {
            theme.fg(role)
        };
        let wrapped = pen::wrap(text, width).into_iter();
        lines.extend(wrapped.map(|line| vec![(line, style)]));
    };
    match &state.model.seen_jobs {
        None => add(
            "looking at its threads, without entering it …",
            Role::Dim,
            false,
        ),
        Some(Err(why)) => add(why, Role::Bad, false),
        Some(Ok(jobs)) => {
            for job in jobs {
                let headline = if job.is_still() {
                    Role::Bad
                } else {
                    Role::Good
                };
                for (i, line) in job.text().lines().enumerate() {
                    match (i, line) {
                        (0, _) => add(line, Role::Accent, false),
                        (1, _) => add(line, headline, true),
                        (_, "") => add(" ", Role::Text, false),
                        _ if line.ends_with("behind") => add(line, Role::Bad, false),
                        _ => add(line, Role::Text, false),
                    }
                }
                job.ras()
                    .iter()
                    .for_each(|it| add(it, Role::Warning, false));
                add(" ", Role::Text, false);
            }
            if pid.is_some() && jobs.iter().any(|it| it.is_still()) {
                add(HELD, Role::Warning, false);
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
        is_on_top: true,
    };
    panel.draw(area, buf);
}
