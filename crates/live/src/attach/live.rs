//! A recording while it is being made: followed, switched by keys, clock and signal, with the threads that write beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::Signal;

use super::recorder::{Recorder, When};
use crate::counters::Counters;
use crate::hardware::{self, HardwareWatch};
use crate::looking::Switch;
use crate::python::Sampler;
use activity::Activity;
use activity::feed::{Gone, Message, Outlet, Pause};
use recording::Follower;

/// The recording with all that serves it until its end.
pub(super) struct LiveRecording {
    pub(super) directory: PathBuf,
    pub(super) follower: Follower,
    pub(super) recorder: Recorder,
    switch: Switch,
    looking: Pause,
    pub(super) watch: Option<HardwareWatch>,
    sampler: Option<Sampler>,
    /// Whether an operation on a GPU was seen.
    is_used: bool,
}

impl LiveRecording {
    /// Makes the directory of a recording and its control page, without anything beside it yet.
    ///
    /// # Errors
    /// When the directory cannot be made or holds recordings already, or the signal cannot be listened to.
    pub(super) fn start(directory: &Path, when: &When) -> io::Result<LiveRecording> {
        recording::file::create_directory(directory)?;
        let looking = Pause::default();
        let directory = directory.canonicalize()?;
        Ok(LiveRecording {
            follower: empty(&directory)?,
            recorder: Recorder::start(&directory, when, looking.clone())?,
            switch: Switch::listen(Signal::USR2)?,
            looking,
            directory,
            watch: None,
            sampler: None,
            is_used: false,
        })
    }

    /// Starts what looks from outside. That is at the GPUs, with these counters, for the processes under one or for all. It is at
    /// the Python stacks of a process and those under it too, so many times a second.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start_looking(
        &mut self,
        hardware: Option<(Counters, Option<u32>)>,
        python: Option<(u32, u32)>,
    ) -> io::Result<()> {
        if let Some((counters, root)) = hardware {
            let looking = self.looking.clone();
            self.watch = Some(HardwareWatch::start(
                &self.directory,
                looking,
                counters,
                root,
            )?);
        }
        if let Some((pid, hz)) = python {
            let looking = self.looking.clone();
            self.sampler = Some(Sampler::start(pid, &self.directory, hz, looking)?);
        }
        Ok(())
    }

    /// Does what was asked for and sends what has come. Returns whether a process still wrote just before.
    pub(super) fn advance(&mut self, outlet: &Outlet) -> Result<bool, Gone> {
        if let Some(to) = self.recorder.take_keep() {
            outlet.send(super::kept(&self.directory, &to))?;
        }
        if let Some(text) = self.recorder.tick(Instant::now()) {
            outlet.notice(false, text)?;
        }
        if self.switch.has_come() {
            outlet.notice(false, self.recorder.toggle_sampling())?;
        }
        self.pass_on_notices(outlet)?;
        let is_alive = self.follower.any_alive();
        let (watch, recorder, is_used) = (&mut self.watch, &self.recorder, &mut self.is_used);
        self.follower.poll_into(&mut |message| {
            if !*is_used
                && let Message::Batch(batch) = &message
                && batch.items.iter().any(Activity::is_operation)
            {
                *is_used = true;
                recorder.used(Instant::now());
            }
            hardware::pass_on(watch, message, outlet)
        })?;
        Ok(is_alive)
    }

    /// Ends the threads beside it, whose files are whole then, and sends the rest.
    pub(super) fn finish(&mut self, outlet: &Outlet) -> Result<(), Gone> {
        self.watch = None;
        if let Some(sampler) = &mut self.sampler {
            sampler.stop();
        }
        self.pass_on_notices(outlet)?;
        self.follower
            .finish_into(&mut |message| outlet.send(message))
    }

    fn pass_on_notices(&self, outlet: &Outlet) -> Result<(), Gone> {
        let mut notices = self.sampler.iter().flat_map(Sampler::notices);
        notices.try_for_each(|message| outlet.send(message))
    }
}

fn empty(directory: &Path) -> io::Result<Follower> {
    let mut follower = Follower::open(directory)?;
    follower.find_files();
    if follower.is_empty() {
        return Ok(follower);
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "{} holds a recording already (several ranks share a directory with --out)",
            directory.display()
        ),
    ))
}
