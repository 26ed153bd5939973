//! One process of a run: its recording, or the parts of it that were kept.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{Reader, State, Wait};

use super::clock::ClockWatch;
use super::pace::Due;
use super::{map, notice};
use activity::feed::{Gone, Message};
use activity::text::plural;
use activity::{Batch, Def, Health, Place, ProcessInfo, StreamInfo};

/// For how long a block that is published and not whole is waited for, through a network file system. Linux writes back what is
/// dirty for 30 s.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Process {
    /// Which process of the timeline it is.
    pub(super) index: u32,
    pub(super) reader: Reader,
    /// Further parts of its recording, in order.
    pub(super) parts: VecDeque<Reader>,
    /// What numbers of names and shapes, and what losses, the parts before the present one came to.
    before: map::Before,
    pub(super) info: ProcessInfo,
    /// Something about the process changed since it was last told.
    changed: bool,
    streams: HashMap<Place, StreamInfo>,
    totals: map::Totals,
    /// Whose ids stacks have: those of each file and part are its own.
    series: u32,
    pub(super) health: Health,
    pub(super) over: bool,
    told_error: bool,
    clock: ClockWatch,
    /// What was wrong with the parts before the present one.
    damaged: Vec<String>,
    /// Whether it has been said what is missing before the first part.
    told_earlier: bool,
    /// What of it is waited for.
    wait: Wait,
    /// Parts that were read to their ends, which nobody needs any more.
    pub(super) read_through: Vec<(PathBuf, u64)>,
    /// When it is looked at next.
    pub(super) due: Due,
    /// Whether it lived at the last look.
    pub(super) was_alive: bool,
    /// When it was seen to grow, and how far it had come: part, status, bytes read.
    pub(super) heard: Instant,
    at: (u32, u64, u64),
}

/// Where messages go.
pub type Sink<'a> = &'a mut dyn FnMut(Message) -> Result<(), Gone>;

impl Process {
    /// `number` tells files of the timeline apart.
    pub(super) fn new(index: u32, number: u32, reader: Reader, wait: Wait) -> Process {
        let info = ProcessInfo {
            pid: reader.identity.pid,
            ..ProcessInfo::default()
        };
        Process {
            index,
            parts: VecDeque::new(),
            before: map::Before::default(),
            info,
            changed: !reader.identity.outside,
            streams: HashMap::new(),
            totals: map::Totals::default(),
            series: number,
            reader,
            health: Health::default(),
            over: false,
            told_error: false,
            clock: ClockWatch::default(),
            damaged: Vec::new(),
            told_earlier: false,
            wait,
            read_through: Vec::new(),
            due: Due::now(),
            was_alive: false,
            heard: Instant::now(),
            at: (0, 0, 0),
        }
    }

    /// Whether it was written from outside: by who watched it.
    pub(super) fn is_outside(&self) -> bool {
        self.reader.identity.outside
    }

    /// What notices call it.
    fn name(&self) -> String {
        match self.is_outside() {
            true => self.reader.path().display().to_string(),
            false => format!("process {}", self.info.pid),
        }
    }

    /// The folder that it lies in.
    pub(super) fn folder(&self) -> &Path {
        self.reader.path().parent().unwrap_or(Path::new(""))
    }

    /// Whether this is a later part of the same recording.
    pub(super) fn is_continued_by(&self, other_reader: &Reader) -> bool {
        let (mine, other) = (self.last().identity, other_reader.identity);
        let other_folder = other_reader.path().parent();
        (mine.pid, mine.start) == (other.pid, other.start)
            && mine.part < other.part
            && other_folder == Some(self.folder())
    }

    /// The newest part.
    pub(super) fn last(&self) -> &Reader {
        self.parts.back().unwrap_or(&self.reader)
    }

    /// Whether it may still write.
    pub(super) fn lives(&self) -> bool {
        !self.over && self.last().writer_lives() == Some(true)
    }

    /// Whether its writer lives, as far as that can be told. On a file system that several machines share, a free lock
    /// may be held where it was taken.
    pub(super) fn life(&self) -> Option<bool> {
        match self.last().writer_lives() {
            Some(false) if self.is_elsewhere() => None,
            known => known,
        }
    }

    /// Whether it may run on another machine than this one, which shares files with it.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.wait == Wait::Blocks
            && rustix::system::uname().nodename().to_bytes() != self.info.host.as_bytes()
    }

    /// Whether it was being written at a time (ns of `CLOCK_REALTIME`), as far as its recording tells.
    pub(super) fn was_alive(&self, time: i64) -> bool {
        let newest = self.last().status.clocks.realtime;
        self.reader.identity.start.realtime <= time && (self.lives() || newest >= time)
    }

    /// Goes on to the next part when the present one is read to its end. Returns whether there was one.
    fn next_part(&mut self) -> bool {
        if self.reader.status.state != State::Continued || !self.reader.is_at_end() {
            return false;
        }
        let Some(next) = self.parts.pop_front() else {
            return false;
        };
        let (names, shapes) = self.reader.definitions();
        self.before.names = self.before.names.saturating_add(names);
        self.before.shapes = self.before.shapes.saturating_add(shapes);
        self.before.lost += self.reader.lost;
        self.before.unknown += self.reader.unknown;
        self.totals = map::Totals::default();
        self.series = self.series.wrapping_add(1 << 16);
        self.note_damage();
        let (mine, theirs) = (self.reader.identity.part, next.identity.part);
        if theirs > mine + 1 {
            let received = self.reader.status.health.received;
            let missed = next.identity.earlier.saturating_sub(received);
            self.before.lost += missed;
            self.damaged.push(format!(
                "process {}: it recorded faster than it was read, and keeps only the last: {missed} records were gone before they \
                 could be read",
                self.info.pid
            ));
        }
        let read = std::mem::replace(&mut self.reader, next);
        self.read_through
            .push((read.path().to_path_buf(), u64::MAX));
        true
    }

    fn note_damage(&mut self) {
        if let Some(damage) = self.reader.damage() {
            let path = self.reader.path().display();
            self.damaged.push(format!("{path}: {damage}"));
        }
    }

    /// Says what is missing before the first part that is there.
    fn tell_earlier(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        let it = self.reader.identity;
        // Of later parts, what came earlier has been read.
        if std::mem::replace(&mut self.told_earlier, true) || it.earlier == 0 {
            return Ok(());
        }
        let text = format!(
            "process {} kept only the last of its recording: {} earlier records are gone",
            it.pid, it.earlier
        );
        sink(notice(true, text))
    }

    /// Says that the clock was set. A model's times are of no clock, and who watches has the process's.
    fn tell_clock(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        let (identity, status) = (self.reader.identity, self.reader.status);
        if identity.simulated || identity.outside || status.sequence == 0 {
            return Ok(());
        }
        match self.clock.compare(&identity.start, &status.clocks) {
            Some(text) => sink(notice(true, format!("process {}: {text}", identity.pid))),
            None => Ok(()),
        }
    }

    /// Looks at it: hands over what is there, and notes whether it has grown.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        period: Duration,
        sink: Sink<'_>,
    ) -> Result<(), Gone> {
        if self.wait == Wait::Blocks && !self.over {
            self.reader.reopen();
        }
        self.read(sink)?;
        if self.wait == Wait::Blocks
            && self.reader.is_waiting()
            && now.duration_since(self.heard) > PATIENCE
        {
            self.skip(sink)?;
        }
        let part = self.reader.identity.part;
        let at = (part, self.reader.status.sequence, self.reader.offset);
        let has_grown = at != self.at;
        if has_grown {
            (self.at, self.heard) = (at, now);
        }
        self.due.polled(now, has_grown, period);
        Ok(())
    }

    /// What has not become whole by now is damage.
    pub(super) fn skip(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.reader.wait = Wait::Never;
        self.read(sink)?;
        self.reader.wait = self.wait;
        Ok(())
    }

    /// Hands over what is there.
    pub(super) fn read(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        if self.over {
            return Ok(());
        }
        self.tell_earlier(sink)?;
        if let Err(error) = self.reader.refresh() {
            return self.fail(&error, sink);
        }
        self.tell_clock(sink)?;
        loop {
            let mut batch = self.batch();
            let mut notices = Vec::new();
            let (info, streams) = (&mut self.info, &mut self.streams);
            let totals = &mut self.totals;
            let before = self.before;
            let mut changed = self.changed;
            let mut bad_clock = 0;
            let more = self.reader.read(&mut |entry| match map::entry_into(
                entry, &before, &mut batch, info, streams, totals,
            ) {
                map::Mapped::Yes => {}
                map::Mapped::Process => changed = true,
                map::Mapped::Notice(is_warning, text) => notices.push((is_warning, text)),
                map::Mapped::BadClock => bad_clock += 1,
            });
            self.changed = changed;
            self.before.bad_clock += bad_clock;
            let more = match more {
                Ok(more) => more,
                Err(error) => return self.fail(&error, sink),
            };
            for (is_warning, text) in notices {
                sink(notice(is_warning, format!("{}: {text}", self.name())))?;
            }
            self.send(batch, sink)?;
            if more {
                continue;
            }
            if !self.next_part() {
                return Ok(());
            }
            if let Err(error) = self.reader.refresh() {
                return self.fail(&error, sink);
            }
        }
    }

    /// Sends a batch unless there is nothing in it.
    fn send(&mut self, mut batch: Batch, sink: Sink<'_>) -> Result<(), Gone> {
        if std::mem::take(&mut self.changed) {
            batch.defs.insert(0, Def::Process(self.info.clone()));
        }
        let health = self.current_health();
        let lost = match self.is_outside() {
            true => health.losses(),
            false => 0,
        };
        self.totals.complete(&mut batch, self.series, lost);
        if health != self.health {
            self.health = health;
            batch.health = Some(health).filter(|_| !self.is_outside());
        }
        if batch.is_empty() {
            return Ok(());
        }
        sink(Message::Batch(batch))
    }

    fn current_health(&self) -> Health {
        let mut health = self.reader.status.health;
        health.lost += self.before.lost + self.reader.lost;
        health.unknown += self.before.unknown + self.reader.unknown;
        health.bad_clock += self.before.bad_clock;
        if self.over {
            // What was open when a process was killed is not open any more.
            health.oldest_open = None;
        }
        health
    }

    /// Tells what went wrong, and whether the process is over.
    pub(super) fn conclude(&mut self, lives: bool, sink: Sink<'_>) -> Result<(), Gone> {
        if self.over || self.reader.is_waiting() {
            return Ok(());
        }
        let (name, is_outside) = (self.name(), self.is_outside());
        let status = self.reader.status;
        if let Some(text) = status.error.describe()
            && !std::mem::replace(&mut self.told_error, true)
        {
            let text = format!("{name}: {text}; it goes on, what is lost is counted");
            sink(notice(true, text))?;
        }
        let ended_well = match status.state {
            State::Closed => Some(true),
            // It runs on untraced, and nobody knows how it ends.
            State::Refused => None,
            State::Running | State::Continued if !lives => Some(false),
            State::Running | State::Continued => return Ok(()),
        };
        self.over = true;
        self.tell_damage(sink)?;
        if ended_well == Some(false) {
            let text = match is_outside {
                true => format!(
                    "{name}: nobody closed it: what was seen after its last flush is missing"
                ),
                false => format!(
                    "{name} ended without closing its recording: what happened after its last flush is missing"
                ),
            };
            sink(notice(true, text))?;
        }
        if ended_well.is_some() && !is_outside {
            self.info.ended_well = ended_well;
            self.changed = true;
        }
        self.send(self.batch(), sink)
    }

    /// Tells what could not be read of it. Of the process's own recording its counters tell how much that is.
    pub(super) fn tell_damage(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        self.note_damage();
        let lost = self.current_health().losses();
        if self.is_outside() && lost > 0 {
            let (name, records) = (self.name(), plural(lost, "record"));
            self.damaged.push(format!("{name}: lost {records}"));
        }
        for text in self.damaged.drain(..) {
            sink(notice(true, text))?;
        }
        Ok(())
    }

    fn batch(&self) -> Batch {
        Batch {
            process: self.index,
            simulated: self.reader.identity.simulated,
            ..Batch::default()
        }
    }

    fn fail(&mut self, error: &io::Error, sink: Sink<'_>) -> Result<(), Gone> {
        self.over = true;
        let path = self.reader.path().display();
        sink(notice(
            true,
            format!("{path} cannot be read any more: {error}"),
        ))
    }
}
