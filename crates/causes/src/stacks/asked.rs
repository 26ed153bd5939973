//! Which line asked for what the GPU did: by the stack of its launch, or of the node of a CUDA graph that it was.

use activity::anonymous::{EVERYBODYS, short_file};
use activity::text::printable;
use activity::{Frame, Span, StackId};
use trace::{LaneId, LaneKind, Trace};

use super::is_wrapper;

/// Packages that run others' work.
const PACKAGES: [&str; 4] = ["torch", "triton", "functorch", "torchgen"];
/// A thread that waits was seen waiting so many looks ago at most.
const LOOKS: i64 = 2;

/// Whether a source file, as the interpreter names it, belongs to what a program's own functions pass through: Python, PyTorch, or
/// code that a compiler made.
fn is_passed_through(file: &str) -> bool {
    let is_everybodys = EVERYBODYS.iter().any(|part| file.contains(part));
    let is_package = file.contains("/site-packages/") || file.contains("/dist-packages/");
    let first = short_file(file).split('/').next().unwrap_or_default();
    let is_made = file.starts_with('<') || file.contains("/torchinductor_");
    is_made || is_everybodys && (!is_package || PACKAGES.contains(&first))
}

/// The innermost frame that is of the program's own files, or of a package that does its work. Of a package one that only hands on
/// serves where there is no other.
pub fn asked_line(trace: &Trace, stack: StackId) -> Option<&Frame> {
    let own = || {
        let frames = trace.stacks().frames(stack);
        frames.filter(|it| !is_passed_through(&it.file))
    };
    let is_told = |it: &&Frame| !is_wrapper(&it.function) || !it.file.contains("-packages/");
    own().find(is_told).or_else(|| own().next())
}

/// Where something was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchLine<'t> {
    /// The line.
    pub line: &'t Frame,
    /// Whether another thread launched it, which has no Python, while the main one waited here.
    pub waits: bool,
}

impl<'t> LaunchLine<'t> {
    /// That of a launch by its correlation id: of its own stack, else of the main thread that waits for the one of `call`.
    pub fn of(
        trace: &'t Trace,
        process: usize,
        correlation: u32,
        call: Option<(LaneId, usize)>,
    ) -> Option<LaunchLine<'t>> {
        match trace.launch_stack(process, correlation) {
            Some(stack) => LaunchLine::own(trace, stack),
            None => LaunchLine::waiting(trace, process, call?),
        }
    }

    /// That of a launch's own stack.
    pub fn own(trace: &'t Trace, stack: StackId) -> Option<LaunchLine<'t>> {
        let line = asked_line(trace, stack)?;
        Some(LaunchLine { line, waits: false })
    }

    /// Where the main thread waits while another one without Python launches.
    pub fn waiting(
        trace: &'t Trace,
        process: usize,
        (lane, row): (LaneId, usize),
    ) -> Option<LaunchLine<'t>> {
        let it = trace.processes().get(process)?;
        let lane = &trace.lanes()[lane];
        let main = it.info.pid;
        match lane.key().kind {
            LaneKind::Thread { thread } if thread != main && !it.sampled.has(thread) => {}
            _ => return None,
        }
        let at = lane.span(row).start;
        let look = 1_000_000_000 / i64::from(it.sampled.totals().hz.max(1));
        let looks = it
            .sampled
            .within(main, Span::new(at.saturating_sub(LOOKS * look), at + 1));
        let last = looks.last().filter(|it| !it.is_running)?;
        let (line, _) = trace.stacks().own_line(last.stack)?;
        let waits = trace.has_launch_stacks();
        waits.then_some(LaunchLine { line, waits })
    }

    /// "model.py:12 forward", or "train.py:15 main (waits for another thread)".
    pub fn text(&self) -> String {
        let waits = if self.waits {
            " (waits for another thread)"
        } else {
            ""
        };
        self.place() + waits
    }

    /// "at model.py:12 forward", or "by another thread, likely while train.py:15 main waited".
    pub fn at(&self) -> String {
        match self.waits {
            false => format!("at {}", self.place()),
            true => format!("by another thread, likely while {} waited", self.place()),
        }
    }

    fn place(&self) -> String {
        let Frame {
            file,
            line,
            function,
        } = self.line;
        printable(&format!("{}:{line} {function}", short_file(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::is_passed_through;

    #[test]
    fn a_frame_is_of_who_does_the_work() {
        for (file, is) in [
            ("/home/me/train.py", false),
            (
                "/v/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
                false,
            ),
            (
                "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
                true,
            ),
            ("/v/lib/python3.11/site-packages/torch/cuda/graphs.py", true),
            ("/usr/lib/python3.12/contextlib.py", true),
            ("/tmp/torchinductor_root/ab/cab12.py", true),
            ("<string>", true),
        ] {
            assert_eq!(is_passed_through(file), is, "{file}");
        }
    }
}
