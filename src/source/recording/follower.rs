//! Following the recordings of one run: every process one file, new ones picked up as they appear.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use collector::recording::{EXTENSION, OpenError, Reader, State};

use super::beside::{self, Beside, NotFollowed};
use super::notice;
use super::process::{Process, Sink};
use crate::activity::feed::{Gone, Message};
use crate::activity::{Batch, Health};

/// What is known of a process of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessState {
    /// Its id.
    pub pid: u32,
    /// Its recording.
    pub path: PathBuf,
    /// Whether it could be traced.
    pub traced: bool,
    /// Whether it ended in good order, as far as it has ended.
    pub ended_well: Option<bool>,
    /// Records that it received, and what became of them.
    pub health: Health,
}

/// Reads all recordings of some directories and files, as they grow.
#[derive(Debug)]
pub struct Follower {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    processes: Vec<Process>,
    beside: Vec<Beside>,
    /// Processes of the timeline, by the operating system's id, of which only files beside a recording are known (yet).
    strangers: HashMap<u32, u32>,
    /// Processes of the timeline so far.
    count: u32,
    /// Files that are not (yet) readable, with the reason.
    unreadable: HashMap<PathBuf, String>,
}

impl Follower {
    /// Follows a recording directory. It may still be empty, but must exist.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Follower> {
        Follower::open_all(&[directory.to_path_buf()])
    }

    /// Follows several directories or single recordings as one timeline.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn open_all(paths: &[PathBuf]) -> io::Result<Follower> {
        let mut follower = Follower {
            directories: Vec::new(),
            files: Vec::new(),
            seen: HashSet::new(),
            processes: Vec::new(),
            beside: Vec::new(),
            strangers: HashMap::new(),
            count: 0,
            unreadable: HashMap::new(),
        };
        for path in paths {
            if path.is_dir() {
                files_of(path)?;
                follower.directories.push(path.clone());
            } else {
                std::fs::File::open(path)?;
                follower.files.push(path.clone());
            }
        }
        Ok(follower)
    }

    /// Everything that has been published since the last call. What a process or this reader has to say beside
    /// activities is left out; [`Follower::poll_into`] hands that over too.
    pub fn poll(&mut self) -> Vec<Batch> {
        collect(|sink| self.poll_into(sink))
    }

    /// The processes are over: reads the rest, and marks those that did not close their recording.
    pub fn finish(&mut self) -> Vec<Batch> {
        collect(|sink| self.finish_into(sink))
    }

    /// As [`Follower::poll`], one message at a time, so that a long recording is never in memory as a whole.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn poll_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.look_for_files();
        for process in &mut self.processes {
            // A process that ended after this look is read to its end by the next one.
            let lives = process.over || process.last().writer_lives() != Some(false);
            process.read(sink)?;
            process.conclude(lives, sink)?;
        }
        for file in &mut self.beside {
            file.read(sink)?;
        }
        Ok(())
    }

    /// As [`Follower::finish`], one message at a time.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn finish_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.poll_into(sink)?;
        for process in &mut self.processes {
            let lives = process.lives();
            process.read(sink)?;
            process.conclude(lives, sink)?;
            if !process.over {
                let pid = process.reader.identity().pid;
                sink(notice(
                    false,
                    format!("process {pid} still runs; its timeline ends here"),
                ))?;
            }
        }
        for file in &mut self.beside {
            file.conclude(sink)?;
        }
        for (path, reason) in self.unreadable.drain() {
            sink(notice(true, format!("{}: {reason}", path.display())))?;
        }
        Ok(())
    }

    /// Whether any process may still write.
    #[must_use]
    pub fn any_alive(&self) -> bool {
        self.processes.iter().any(Process::lives)
    }

    /// Whether a file beside the recordings is still being written.
    #[must_use]
    pub fn any_beside_alive(&self) -> bool {
        self.beside.iter().any(Beside::lives)
    }

    /// Whether nothing was found at all: no recording, and no file beside one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.beside.is_empty()
    }

    /// What is known of each process, in the order of their indices in batches.
    #[must_use]
    pub fn states(&self) -> Vec<ProcessState> {
        self.processes
            .iter()
            .map(|process| ProcessState {
                pid: process.reader.identity().pid,
                path: process.reader.path().to_path_buf(),
                traced: process.reader.status().state != State::Refused,
                ended_well: process.info.ended_well,
                health: process.health,
            })
            .collect()
    }

    /// Whether any of the recordings was made by the simulator.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.reader.identity().simulated)
    }

    /// Picks up files that have appeared.
    pub fn look_for_files(&mut self) {
        let mut paths = self.files.clone();
        for directory in &self.directories {
            // A directory that was deleted has nothing new; what was opened before is still read.
            paths.extend(files_of(directory).unwrap_or_default());
        }
        for file in &self.files {
            // Of recordings that were opened by themselves, what lies beside them under their own process id.
            let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
            let others = files_of(folder.unwrap_or(Path::new("."))).unwrap_or_default();
            let pid = beside::pid_of(file);
            let is_its = |path: &PathBuf| beside::is_known(path) && beside::pid_of(path) == pid;
            // Under the name that it has when it is opened by itself too.
            let name = |path: PathBuf| Some(file.with_file_name(path.file_name()?));
            paths.extend(others.into_iter().filter(is_its).filter_map(name));
        }
        let mut once = HashSet::new();
        paths.retain(|path| !self.seen.contains(path) && once.insert(path.clone()));
        let (besides, recordings): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| beside::is_known(path));
        self.look_for_recordings(recordings);
        self.look_beside(besides);
    }

    fn look_for_recordings(&mut self, paths: Vec<PathBuf>) {
        let mut found = Vec::new();
        for path in paths {
            match Reader::open(&path) {
                Ok(reader) => {
                    self.unreadable.remove(&path);
                    self.seen.insert(path);
                    found.push(reader);
                }
                // A file without its header yet is looked at again.
                Err(OpenError::NotARecording(_)) => {
                    let reason = "not a recording of cuptop".to_owned();
                    self.unreadable.insert(path, reason);
                }
                Err(error) => {
                    self.unreadable.insert(path, error.to_string());
                }
            }
        }
        found.sort_by_key(|reader| {
            let it = reader.identity();
            (it.start.realtime, it.pid, it.part)
        });
        for reader in found {
            self.add(reader);
        }
    }

    /// A part of a recording that is known, or another process.
    fn add(&mut self, reader: Reader) {
        match self
            .processes
            .iter_mut()
            .find(|process| process.is_continued_by(&reader))
        {
            Some(process) => process.parts.push_back(reader),
            None => {
                let known = self.strangers.remove(&reader.identity().pid);
                let index = known.unwrap_or_else(|| self.next());
                self.processes.push(Process::new(index, reader));
            }
        }
    }

    /// The number of another process of the timeline.
    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    /// Picks up files beside the recordings that have appeared.
    fn look_beside(&mut self, paths: Vec<PathBuf>) {
        let mut found = Vec::new();
        for path in paths {
            let number = (self.beside.len() + found.len()) as u32;
            match Beside::open(&path, number) {
                Ok(file) => {
                    self.unreadable.remove(&path);
                    self.seen.insert(path);
                    found.push(file);
                }
                Err(NotFollowed::Unreadable(reason)) => {
                    self.unreadable.insert(path, reason);
                }
                Err(NotFollowed::OtherKind) => {
                    self.seen.insert(path);
                }
            }
        }
        found.sort_by_key(|file| (file.start(), file.pid()));
        for mut file in found {
            file.process = self.process_of(&file);
            self.beside.push(file);
        }
    }

    /// The process of the timeline that a file is about: of several recordings under one process id (a program that became
    /// another), the one that was being written when the file was begun, or the next one. What is of the whole machine
    /// goes with the first process.
    fn process_of(&mut self, file: &Beside) -> u32 {
        let (pid, start) = (file.pid(), file.start());
        if pid == 0 {
            return 0;
        }
        let of_pid = || {
            self.processes
                .iter()
                .filter(|process| process.reader.identity().pid == pid)
        };
        let begun = |process: &&Process| process.reader.identity().start.realtime;
        let alive = of_pid()
            .filter(|process| process.was_alive(start))
            .max_by_key(begun);
        let next = of_pid()
            .filter(|process| begun(process) >= start)
            .min_by_key(begun);
        if let Some(process) = alive.or(next) {
            return process.index;
        }
        if let Some(&known) = self.strangers.get(&pid) {
            return known;
        }
        let index = self.next();
        self.strangers.insert(pid, index);
        index
    }
}

/// The recordings of a directory, and the known files beside them, oldest name first.
pub(super) fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == EXTENSION) || beside::is_known(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn collect(run: impl FnOnce(Sink<'_>) -> Result<(), Gone>) -> Vec<Batch> {
    let mut batches = Vec::new();
    // This sink is never gone.
    let _ = run(&mut |message| {
        if let Message::Batch(batch) = message {
            batches.push(batch);
        }
        Ok(())
    });
    batches
}
