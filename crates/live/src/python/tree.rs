//! The processes of a program, and which of them have Python in them, as /proc tells.

use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::rights::{Stat, threads, told};

/// How often the tree is looked at while something changes, and at most how rarely.
const OFTEN: Duration = Duration::from_millis(50);
const RARELY: Duration = Duration::from_millis(500);
/// How long after its start a process is asked again at most whether it has Python in it by now.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process of the program.
struct PythonProcess {
    /// When it began, in clock ticks since boot: with its id it is one process.
    began: u64,
    program: Option<PathBuf>,
    is_python: bool,
    /// When it is asked next, and how long after that again.
    next: Instant,
    wait: Duration,
}

/// A process and its descendants.
pub(super) struct Tree {
    root: u32,
    members: FxHashMap<u32, PythonProcess>,
    /// How long the next search may wait.
    pub(super) pause: Duration,
}

impl Tree {
    pub(super) fn new(root: u32) -> Tree {
        Tree {
            root,
            members: FxHashMap::default(),
            pause: OFTEN,
        }
    }

    /// Whether a process is still there.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.members.contains_key(&pid)
    }

    /// The processes that have Python in them.
    pub(super) fn pythons(&self) -> Vec<u32> {
        let python = self.members.iter().filter(|(_, it)| it.is_python);
        python.map(|(pid, _)| *pid).collect()
    }

    /// Looks again which processes there are. A child whose parent has ended stays, if it was seen before.
    pub(super) fn search(&mut self, now: Instant) {
        let mut has_changed = false;
        self.members.retain(|&pid, member| {
            let is_there = began(pid) == Some(member.began);
            has_changed |= !is_there;
            is_there
        });
        let mut open: Vec<u32> = self.members.keys().copied().collect();
        if !self.members.contains_key(&self.root) {
            open.push(self.root);
        }
        while let Some(pid) = open.pop() {
            if let Entry::Vacant(entry) = self.members.entry(pid) {
                let Some(began) = began(pid) else {
                    continue;
                };
                has_changed = true;
                entry.insert(PythonProcess {
                    began,
                    program: None,
                    is_python: false,
                    next: now,
                    wait: OFTEN,
                });
            }
            open.extend(children(pid).filter(|child| !self.members.contains_key(child)));
        }
        for (&pid, member) in &mut self.members {
            has_changed |= member.ask(pid, now);
        }
        self.pause = match has_changed {
            true => OFTEN,
            false => (self.pause * 2).min(RARELY),
        };
    }
}

impl PythonProcess {
    /// Finds out whether there is Python in it, if it is time. Returns whether that is new.
    fn ask(&mut self, pid: u32, now: Instant) -> bool {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let is_another = program != self.program;
        if is_another {
            // It became another program.
            self.program = program;
            self.is_python = false;
            (self.next, self.wait) = (now, OFTEN);
        }
        if self.is_python || now < self.next || self.wait > PATIENCE {
            return is_another;
        }
        self.next = now + self.wait;
        self.wait *= 2;
        // A program that is called otherwise may have Python's library in it.
        self.is_python = is_python(self.program.as_deref(), pid);
        is_another || self.is_python
    }
}

/// Whether there is Python in a process by now.
pub(crate) fn has_python(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    is_python(program.as_deref(), pid)
}

fn is_python(program: Option<&std::path::Path>, pid: u32) -> bool {
    program.is_some_and(is_interpreter) || has_mapped(pid, b"/libpython")
}

/// Whether this is a Python interpreter by its name: python, python3, python3.12, pypy is none that can be read.
fn is_interpreter(program: &std::path::Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| {
        name.strip_prefix("python").is_some_and(|rest| {
            rest.chars()
                .all(|c| c.is_ascii_digit() || c == '.' || c == 't' || c == 'd')
        })
    })
}

/// Whether a process has a file with this in its path in memory.
pub(crate) fn has_mapped(pid: u32, part: &[u8]) -> bool {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    memchr::memmem::find(&maps, part).is_some()
}

/// When a process began, in clock ticks since boot; `None` when it is not there, or has ended and waits for its parent.
pub(crate) fn began(pid: u32) -> Option<u64> {
    let stat = Stat::of(pid)?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.began)
}

/// A process and its descendants, as they are now.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let (mut all, mut open) = (Vec::new(), vec![root]);
    while let Some(pid) = open.pop() {
        // Ids may be used again while they are read.
        if !all.contains(&pid) {
            all.push(pid);
            open.extend(children(pid));
        }
    }
    all
}

/// The children of all threads of a process.
fn children(pid: u32) -> impl Iterator<Item = u32> {
    threads(pid).flat_map(move |it| {
        let text = told(format!("{pid}/task/{it}"), "children");
        let children: Vec<u32> = text.split_ascii_whitespace().flat_map(str::parse).collect();
        children
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn interpreters_are_known_by_their_names() {
        for (name, expected) in [
            ("/usr/bin/python3.12", true),
            ("/opt/conda/bin/python", true),
            ("/usr/local/bin/python3.13t", true),
            ("/usr/bin/python3-config", false),
            ("/usr/bin/ipython-like", false),
            ("/bin/sh", false),
        ] {
            assert_eq!(
                is_interpreter(std::path::Path::new(name)),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn descendants_are_found_and_forgotten() {
        // A shell that waits for a child of its own.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .expect("a shell");
        let mut tree = Tree::new(shell.id());
        let begin = Instant::now();
        while tree.members.len() < 2 && begin.elapsed() < Duration::from_secs(10) {
            tree.search(Instant::now());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(tree.members.len(), 2);
        assert!(tree.pythons().is_empty());
        let child = tree.members.keys().copied().find(|pid| *pid != shell.id());
        shell.kill().expect("killed");
        shell.wait().expect("waited for");
        tree.search(Instant::now());
        // The child goes on by itself, and is still known.
        assert_eq!(
            tree.members.keys().copied().collect::<Vec<_>>(),
            Vec::from_iter(child)
        );
        let sleep = child.and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
        rustix::process::kill_process(sleep.expect("a child"), rustix::process::Signal::KILL)
            .expect("killed");
    }
}
