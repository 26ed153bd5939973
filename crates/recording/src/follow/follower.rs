//! Following the recordings of one run: every process one file, new ones picked up as they appear.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{OpenError, Reader, State, Wait};

use super::files::{all_of, has_former_stacks, is_shared, paths_of, why_none};
use super::pace::{self, Due};
use super::process::{Process, Sink};
use super::{notice, silence};
use activity::feed::{Gone, Message};
use activity::{Batch, Health};

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
pub struct Follower {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    processes: Vec<Process>,
    /// What was written from outside.
    outside: Vec<Process>,
    /// Processes of the timeline, by folder and the operating system's id, of which only what was written from outside is known
    /// (yet). Id 0 stands for what is of the whole machine.
    strangers: HashMap<(PathBuf, u32), u32>,
    /// Processes of the timeline so far.
    count: u32,
    /// Files that are not (yet) readable, with the reason.
    unreadable: HashMap<PathBuf, String>,
    /// When it is looked for new files next, in [`Follower::poll_due`].
    listing: Due,
    /// Whether a file system is among them that other machines write to.
    is_shared: bool,
    /// Those of the directories into which files are copied while they are read.
    copied: Vec<PathBuf>,
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
            outside: Vec::new(),
            strangers: HashMap::new(),
            count: 0,
            unreadable: HashMap::new(),
            listing: Due::now(),
            is_shared: paths.iter().any(|path| is_shared(path)),
            copied: Vec::new(),
        };
        for path in paths {
            if path.is_dir() {
                all_of(path)?;
                follower.directories.push(path.clone());
            } else {
                activity::door::open(path)?;
                follower.files.push(path.clone());
            }
        }
        Ok(follower)
    }

    /// Follows a directory too, into which somebody copies files from front to back.
    pub fn follow_copies(&mut self, directory: &Path) {
        self.directories.push(directory.to_path_buf());
        self.copied.push(directory.to_path_buf());
    }

    /// What of a file is waited for.
    fn wait_for(&self, path: &Path) -> Wait {
        match self.copied.iter().any(|it| path.starts_with(it)) {
            true => Wait::Bytes,
            false if self.is_shared => Wait::Blocks,
            false => Wait::Never,
        }
    }

    /// Up to where files were read.
    pub fn positions(&mut self) -> Vec<(PathBuf, u64)> {
        let mut all = Vec::new();
        for process in self.processes.iter_mut().chain(&mut self.outside) {
            all.append(&mut process.read_through);
            all.push((process.reader.path().to_path_buf(), process.reader.offset));
        }
        all
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

    /// As [`Follower::poll_into`], but each file no more often than [`pace`] says.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn poll_due(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), Gone> {
        if self.listing.is(now) {
            let known = self.seen.len();
            self.find_files();
            // Each folder of a rank is a question of its own, about as dear as ten files.
            let (folders, least) = (self.folders().max(1) * 10, Duration::from_millis(250));
            let period = pace::period(folders, self.is_shared).max(least);
            self.listing.polled(now, self.seen.len() != known, period);
        }
        let all = || self.processes.iter().chain(&self.outside);
        let grow = all().filter(|it| !it.over).count();
        let period = pace::period(grow, self.is_shared);
        for process in self.processes.iter_mut().chain(&mut self.outside) {
            if !process.over && process.due.is(now) {
                let lock = process.last().writer_lives();
                process.was_alive = lock == Some(true);
                let lives = lock != Some(false);
                process.poll(now, period, sink)?;
                // Whether it is of another machine stands in what was read.
                process.conclude(lives || process.is_elsewhere(), sink)?;
            }
        }
        Ok(())
    }

    /// Folders in which there are files.
    fn folders(&self) -> usize {
        let folders: HashSet<&Path> = self.seen.iter().filter_map(|it| it.parent()).collect();
        folders.len()
    }

    /// As [`Follower::poll`], one message at a time, so that a long recording is never in memory as a whole.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn poll_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.find_files();
        for process in self.processes.iter_mut().chain(&mut self.outside) {
            // A process that ended after this look is read to its end by the next one.
            let lives = process.over || process.last().writer_lives() != Some(false);
            process.read(sink)?;
            process.conclude(lives || process.is_elsewhere(), sink)?;
        }
        Ok(())
    }

    /// As [`Follower::finish`], one message at a time.
    ///
    /// # Errors
    /// When the consumer is gone.
    pub fn finish_into(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.poll_into(sink)?;
        for process in self.processes.iter_mut().chain(&mut self.outside) {
            let lives = process.lives();
            let is_known = lives || process.life().is_some() || !process.is_elsewhere();
            process.skip(sink)?;
            process.conclude(lives || !is_known, sink)?;
            if !process.over && process.is_outside() {
                process.tell_damage(sink)?;
            } else if !process.over {
                let pid = process.reader.identity.pid;
                let text = match is_known {
                    true => format!("process {pid} still runs; its timeline ends here"),
                    false => format!(
                        "process {pid} of host {}: its recording is open, and nothing here tells whether it still runs",
                        process.info.host
                    ),
                };
                sink(notice(false, text))?;
            }
        }
        for (path, reason) in self.unreadable.drain() {
            sink(notice(true, format!("{}: {reason}", path.display())))?;
        }
        if self.directories.iter().any(|it| has_former_stacks(it)) {
            // It stands where the keys are: no longer than it must be.
            let why = "no Python lines: an older cuptop recorded this";
            sink(notice(true, why.to_owned()))?;
        }
        Ok(())
    }

    /// Whether any process may still write.
    pub fn any_alive(&self) -> bool {
        self.processes.iter().any(Process::lives)
    }

    /// Whether something is still being written from outside.
    pub fn any_outside_alive(&self) -> bool {
        self.outside.iter().any(Process::lives)
    }

    /// Whether all that was found has ended at the last looks of [`Follower::poll_due`], as far as that can be told.
    pub fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.over)
            && !self.outside.iter().any(|it| !it.over && it.was_alive)
    }

    /// Whether something was being written at the last looks of [`Follower::poll_due`].
    pub fn was_alive(&self) -> bool {
        let mut all = self.processes.iter().chain(&self.outside);
        all.any(|it| !it.over && it.was_alive)
    }

    /// What is lacking at present: ranks that fell silent, that have not come, and files that cannot be read. Of files for which
    /// `is_excused` somebody else has said so, and their silence begins when it does not any more.
    pub fn lacks(
        &mut self,
        now: Instant,
        is_excused: &dyn Fn(&Path) -> bool,
    ) -> Vec<activity::feed::SourceStatus> {
        for process in &mut self.processes {
            if is_excused(process.reader.path()) {
                process.heard = now;
            }
        }
        silence::find(&self.processes, &self.unreadable, now)
    }

    /// When something was last seen to grow.
    pub fn heard(&self) -> Option<Instant> {
        self.processes.iter().map(|process| process.heard).max()
    }

    /// Whether nothing was found at all.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.outside.is_empty()
    }

    /// What is known of each process, in the order of their indices in batches.
    pub fn states(&self) -> Vec<ProcessState> {
        self.processes
            .iter()
            .map(|process| ProcessState {
                pid: process.reader.identity.pid,
                path: process.reader.path().to_path_buf(),
                traced: process.reader.status.state != State::Refused,
                ended_well: process.info.ended_well,
                health: process.health,
            })
            .collect()
    }

    /// Whether any of the recordings was made by the simulator.
    pub fn is_simulated(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.reader.identity.simulated)
    }

    /// Picks up files that have appeared.
    pub fn find_files(&mut self) {
        let places = self.directories.iter().chain(&self.files);
        let mut paths: Vec<PathBuf> = places.flat_map(|place| paths_of(place)).collect();
        let mut once = HashSet::new();
        paths.retain(|path| !self.seen.contains(path) && once.insert(path.clone()));
        let mut found = Vec::new();
        for path in paths {
            match Reader::open(&path) {
                Ok(mut reader) => {
                    reader.wait = self.wait_for(&path);
                    self.unreadable.remove(&path);
                    self.seen.insert(path);
                    found.push(reader);
                }
                // A file without its header yet is looked at again.
                Err(OpenError::NotARecording(_)) => {
                    let reason = why_none(&path);
                    self.unreadable.insert(path, reason);
                }
                Err(error) => {
                    self.unreadable.insert(path, error.to_string());
                }
            }
        }
        found.sort_by_key(|reader| {
            let it = reader.identity;
            (it.outside, it.start.realtime, it.pid, it.part)
        });
        for reader in found {
            self.add(reader);
        }
    }

    /// A part of a recording that is known, or another process.
    fn add(&mut self, reader: Reader) {
        let wait = self.wait_for(reader.path());
        let number = (self.processes.len() + self.outside.len()) as u32;
        if reader.identity.outside {
            let index = self.process_of(&reader);
            let file = Process::new(index, number, reader, wait);
            return self.outside.push(file);
        }
        match self
            .processes
            .iter_mut()
            .find(|process| process.is_continued_by(&reader))
        {
            Some(process) => process.parts.push_back(reader),
            None => {
                let index = self.index_of(&folder_of(reader.path()), reader.identity.pid);
                self.processes
                    .push(Process::new(index, number, reader, wait));
            }
        }
    }

    /// The number of another process of the timeline.
    fn index_of(&mut self, folder: &Path, pid: u32) -> u32 {
        let mut known = |pid| self.strangers.remove(&(folder.to_path_buf(), pid));
        known(pid).or_else(|| known(0)).unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// The process of the timeline that a file is about. Several recordings may have one process id (a program that
    /// became another). Then it is the one that was being written when the file was begun, or the next one. Ids are
    /// those of one folder: another folder may be another machine's. The whole machine's goes with the first.
    fn process_of(&mut self, file: &Reader) -> u32 {
        let (pid, start) = (file.identity.pid, file.identity.start.realtime);
        let folder = folder_of(file.path());
        let of_folder = self.processes.iter().filter(|it| it.folder() == folder);
        if pid == 0 {
            let strangers = self.strangers.iter().filter(|(it, _)| it.0 == folder);
            let known = strangers.map(|(_, &index)| index);
            if let Some(first) = of_folder.map(|it| it.index).chain(known).min() {
                return first;
            }
        } else {
            let of_pid = of_folder.filter(|process| process.reader.identity.pid == pid);
            let of_pid = || of_pid.clone();
            let begun = |process: &&Process| process.reader.identity.start.realtime;
            let alive = of_pid()
                .filter(|process| process.was_alive(start))
                .max_by_key(begun);
            let next = of_pid()
                .filter(|process| begun(process) >= start)
                .min_by_key(begun);
            if let Some(process) = alive.or(next) {
                return process.index;
            }
        }
        let index = self.index_of(&folder, pid);
        self.strangers.insert((folder, pid), index);
        index
    }
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
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
