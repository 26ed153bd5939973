//! What attaching to a process means, shown before it is done.

use crate::tui::draw::panel::{Panel, PanelLine};
use crate::tui::draw::prelude::*;
use crate::tui::view::age;
use activity::text::printable;
use live::machine::{GpuLoad, ProcessLoad, Sight};

/// What attaching does, whatever the process.
const MEANING: [&str; 4] = [
    "It stands still for about a millisecond while cuptop's library is loaded into it.",
    "Its kernels and copies are recorded until you leave with q. Then it goes on.",
    "What stays: the library, idle in its memory. Many small launches may stay slower, by up to a third.",
    "While you look, its own profiler (torch.profiler, vLLM's) finds CUPTI taken.",
];
const FILTERED: &str =
    "Its system calls are filtered (seccomp), which may forbid what attaching does.";
const DRAWS: &str = "It draws on the GPU. If it never uses CUDA, there is nothing to record.";

/// The sentences for a process.
fn sentences(gpu: &GpuLoad, process: &ProcessLoad) -> Vec<(String, Role)> {
    let mut lines = Vec::new();
    let mut add = |text: &str, role| lines.push((printable(text), role));
    if let Sight::Seen(seen) = &process.sight {
        add(&seen.command, Role::Accent);
        let (user, began) = (&seen.user, age(seen.age));
        let whose = format!(
            "It belongs to {user}, began {began} ago, and uses GPU {}.",
            gpu.index
        );
        add(&whose, Role::Text);
        if let Some(inner) = seen.inner {
            let text = format!("It runs in a container, as process {inner} there.");
            add(&text, Role::Text);
        }
        if seen.is_filtered {
            add(FILTERED, Role::Warning);
        }
    }
    if process.draws {
        add(DRAWS, Role::Warning);
    }
    match process.right() {
        Ok(right) => {
            add(right, Role::Good);
            // A space is a line, no text at all is none.
            add(" ", Role::Text);
            MEANING.iter().for_each(|text| add(text, Role::Text));
        }
        Err(lack) => add(lack, Role::Bad),
    }
    lines
}

pub(super) fn draw(
    gpu: &GpuLoad,
    process: &ProcessLoad,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let width = usize::from(area.width).saturating_sub(4);
    let mut lines: Vec<PanelLine> = Vec::new();
    for (text, role) in sentences(gpu, process) {
        let wrapped = pen::wrap(&text, width).into_iter();
        lines.extend(wrapped.map(|line| vec![(line, theme.fg(role))]));
    }
    Panel {
        theme,
        title: format!("attach to process {}", process.pid),
        foot: match process.right() {
            Ok(_) => "enter attaches, esc goes back",
            Err(_) => "esc goes back",
        },
        role: Role::Accent,
        lines,
    }
    .draw(area, buf);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_said_is_long() {
        let unknown = [Sight::Hidden, Sight::Elsewhere].map(|sight| ProcessLoad {
            sight,
            ..ProcessLoad::default()
        });
        let lacks = unknown.iter().filter_map(|it| it.right().err());
        for text in MEANING.into_iter().chain([FILTERED, DRAWS]).chain(lacks) {
            assert!(text.split_whitespace().count() <= 20, "{text}");
        }
    }
}
