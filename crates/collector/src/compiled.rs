//! What code that PyTorch's Inductor made says of itself: above each launch a comment names the operations that became this kernel.
//!
//! Of such a file these comments alone are kept, by the program's own rights, once for each file and only while a graph is captured.

use std::collections::HashMap;
use std::path::Path;

use activity::door::read_text;

/// Files that are read at most, and bytes of each; a larger one has no comments.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 1 << 20;
/// Operations and names that are told of a kernel that was made of many.
const MOST_TOLD: usize = 3;

/// The comments of files, each with its line, and an empty one for each launch, which ends what was said above it.
#[derive(Debug, Default)]
pub(crate) struct Comments {
    files: HashMap<String, Vec<(u32, String)>>,
}

impl Comments {
    /// What is said above a line of a file that Inductor made: "aten.addmm, aten.relu [linear_1, relu]".
    pub(crate) fn above(&mut self, file: &str, line: u32) -> Option<String> {
        let is_new = !self.files.contains_key(file);
        if !is_made(Path::new(file)) || is_new && self.files.len() >= MOST_FILES {
            return None;
        }
        let read = || {
            read_text(Path::new(file), MOST_BYTES).map_or_else(|_| Vec::new(), |it| comments(&it))
        };
        let all = self.files.entry(file.to_owned()).or_insert_with(read);
        let above = all.partition_point(|it| it.0 < line);
        let text = &all[..above].last()?.1;
        (!text.is_empty()).then(|| text.clone())
    }
}

/// `torchinductor_USER/xy/NAME.py`, where Inductor puts what it made.
fn is_made(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::parent);
    let name = folder.and_then(Path::file_name).and_then(|it| it.to_str());
    let is_python = file.extension().is_some_and(|it| it == "py");
    is_python && name.is_some_and(|it| it.starts_with("torchinductor_"))
}

fn comments(text: &str) -> Vec<(u32, String)> {
    let of_line = |(number, line): (u32, &str)| {
        let line = line.trim_start();
        let is_launch = line.starts_with("extern_kernels.") || line.contains(".run(");
        match line.strip_prefix('#').map(str::trim_start) {
            Some(comment)
                if comment.starts_with("Topologically") || comment.starts_with("Source Nodes") =>
            {
                Some((number, told(comment)?))
            }
            None if is_launch => Some((number, String::new())),
            _ => None,
        }
    };
    (1..).zip(text.lines()).filter_map(of_line).collect()
}

/// "aten.mm [linear]" of "Topologically Sorted Source Nodes: [linear], Original ATen: [aten.mm]".
fn told(comment: &str) -> Option<String> {
    let (nodes, operations) = comment.split_once("Original ATen: [")?;
    let nodes = nodes.split_once('[')?.1;
    let list = |text: &str| -> Option<String> {
        let all: Vec<&str> = text
            .split(']')
            .next()?
            .split(", ")
            .filter(|it| !it.is_empty())
            .collect();
        let more = if all.len() > MOST_TOLD { ", …" } else { "" };
        (!all.is_empty()).then(|| all[..all.len().min(MOST_TOLD)].join(", ") + more)
    };
    let names = list(nodes).map_or_else(String::new, |it| format!(" [{it}]"));
    list(operations).map(|it| it + &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.11 writes it (`torch/_inductor/codegen/wrapper.py`), shortened.
    const MADE: &str = "
def call(args):
        # Topologically Sorted Source Nodes: [linear, relu], Original ATen: [aten.addmm, aten.relu]
        stream0 = get_raw_stream(0)
        triton_poi_fused_0.run(buf0, 8, stream=stream0)
        extern_kernels.mm(buf0, buf1, out=buf2)
        # Source Nodes: [], Original ATen: [aten.a, aten.b, aten.c, aten.d]
        extern_kernels.mm(buf2, buf1, out=buf3)
        # other
";

    #[test]
    fn a_launch_is_told_by_the_comment_right_above_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("torchinductor_me/ab");
        std::fs::create_dir_all(&made).expect("made");
        let file = made.join("cab.py");
        std::fs::write(&file, MADE).expect("written");
        let file = file.to_str().expect("text");
        let mut comments = Comments::default();
        let mut at = |line| comments.above(file, line);
        assert_eq!(
            at(5).as_deref(),
            Some("aten.addmm, aten.relu [linear, relu]")
        );
        // The launch before has taken what was said; before the first comment nothing is.
        assert_eq!((at(6), at(2)), (None, None));
        assert_eq!(at(8).as_deref(), Some("aten.a, aten.b, aten.c, …"));
    }

    #[test]
    fn no_other_file_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("torchinductor_me/ab");
        std::fs::create_dir_all(&made).expect("made");
        let (plain, large) = (folder.path().join("a.py"), made.join("c.py"));
        std::fs::write(&plain, MADE).expect("written");
        std::fs::write(&large, MADE.repeat(4096)).expect("written");
        let pipe = made.join("d.py");
        let name = std::ffi::CString::new(pipe.to_str().expect("text")).expect("a name");
        // SAFETY: makes a FIFO of this name.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut comments = Comments::default();
        for file in [plain, large, pipe] {
            assert_eq!(
                comments.above(file.to_str().expect("text"), 5),
                None,
                "{file:?}"
            );
        }
    }
}
