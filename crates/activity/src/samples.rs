//! What a program's threads were doing at some moments, as its interpreter tells: stack samples.

use super::Ns;

/// A frame that was defined before it is used; local to one [`Samples::series`]. Counts up from 1.
pub type FrameId = u32;
/// A stack that was defined before it is used; local to one [`Samples::series`]. Counts up from 1; 0 is no stack.
pub type StackId = u32;

/// Where a function was: one level of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The source file, as the interpreter names it: a path, or something like `<string>`.
    pub file: String,
    /// The function.
    pub function: String,
    /// The line that it was at, from 1; 0 where unknown.
    pub line: u32,
}

impl Frame {
    /// The same with no more of its file's name than a path has: its beginning and its end. Every look at a stack reads all of it.
    pub fn cut(mut self) -> Frame {
        const ENDS: [usize; 2] = [256, 768];
        if self.file.len() > ENDS.iter().sum() {
            let from = self.file.floor_char_boundary(ENDS[0]);
            let to = self.file.ceil_char_boundary(self.file.len() - ENDS[1]);
            self.file.replace_range(from..to, "\u{2026}");
        }
        self
    }
}

/// Something that looks refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleDef {
    /// A frame.
    Frame {
        /// Its id.
        id: FrameId,
        /// What it is.
        frame: Frame,
    },
    /// A stack: that of its caller with one frame more.
    Stack {
        /// Its id.
        id: StackId,
        /// The stack of the calling function; 0 for the outermost.
        caller: StackId,
        /// The innermost frame.
        frame: FrameId,
    },
    /// Nodes of CUDA graphs by their ids, each with the stack that asked for it; 0 where that is not known any more. Launches by their
    /// ids of correlation, which lie below.
    Nodes(Vec<(u64, StackId)>),
}

/// What one thread was seen doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledThread {
    /// The operating system's id of the thread.
    pub thread: u32,
    /// Its stack; 0 when it is gone.
    pub stack: StackId,
    /// Whether it was running or about to, as the operating system had it.
    pub is_running: bool,
}

/// One look at all threads of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSample {
    /// When.
    pub time: Ns,
    /// The threads that were seen doing something else than at the look before. All others were as they had been.
    pub changed: Vec<SampledThread>,
}

/// How a process is sampled: totals so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Looks in a second that are aimed at, at present.
    pub hz: u32,
    /// Looks that came to something.
    pub looks: u64,
    /// Looks that did not: the program changed what was being read.
    pub torn: u64,
    /// Looks that were read and then lost: a damaged file, no space to write.
    pub lost: u64,
    /// Time that looking took, in ns of one core.
    pub cost_ns: u64,
}

/// Stack samples of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Whose ids these are: a number for each sampling of the process (it may have begun anew).
    pub series: u32,
    /// Frames and stacks.
    pub defs: Vec<SampleDef>,
    /// Looks in order of time.
    pub looks: Vec<StackSample>,
    /// The totals of this series.
    pub sampling: Sampling,
}
