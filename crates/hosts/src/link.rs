//! One link to another machine: the user's own ssh, with the far side behind it. A broken link is made again.
//!
//! One thread waits for ssh's output, its standard error, and room for requests, a twentieth of a second at a time.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;

use super::frame::{
    Frames, Greeting, PIECE, PROTOCOL, Request, Response, TEXT, decode, encode, find_greeting,
};
use super::mirror::{MOST_UNREAD, Refusal};
use super::place::Place;
use super::shared::{Phase, Shared};
use super::{CONNECTING, LOST, why};
use activity::feed::Stop;
use activity::text::printable;

/// The command for the far side's shell, whatever shell that is. It holds no name and no path: requests inside the link carry those.
pub(super) const REMOTE: &str =
    "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin\"; exec cuptop serve-recordings'";
/// How long a step of waiting is, at most.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The pause between a response that had nothing more behind it and the next request.
const PERIOD: Duration = Duration::from_millis(100);
/// The same while the reader is behind.
const HELD: Duration = Duration::from_secs(1);
/// After this long without a reader, a file counts as unread.
const UNREAD: Duration = Duration::from_secs(5);
/// Bytes of files that one request asks for. The first asks for a piece, so that a slow line answers it in time.
const BUDGET: u32 = 4 << 20;
/// The most bytes beside them in one response: names, pages.
const BESIDE: usize = 128 << 20;
/// A link that is silent for this long is made again. So is one that brings less than a byte a millisecond in it.
pub(super) const DEAD: Duration = Duration::from_secs(20);
/// Waits before a link is made again; the last one again and again.
const BACK_OFF: [u64; 6] = [500, 1_000, 2_000, 4_000, 8_000, 15_000];
/// The most bytes that a shell over there may print before cuptop speaks.
const NOISE: usize = 64 << 10;
/// The most bytes of problems that the far side may report: a line for each of 1,000 files.
const TROUBLES: usize = 128 << 10;
/// The most responses that one request is answered with: a few for each of 16,384 files.
const RESPONSES: usize = 1 << 17;
/// Links to a far side that does not keep to the protocol, until no more is made. One that works for [`LOST`] clears it.
const MOST_REFUSED: u32 = 3;
/// Lines of ssh's standard error that it keeps to explain a failure.
const LINES: usize = 20;

/// What a link needs to know.
pub(super) struct Link {
    pub(super) place: Place,
    /// The program and its first arguments.
    pub(super) ssh: Vec<String>,
    pub(super) shared: Shared,
    pub(super) stop: Stop,
    /// Whether ssh may ask for a password on the terminal: the first time, before the screen opens.
    pub(super) may_ask: bool,
    /// How long it may take until the far side speaks, and then again until it has answered.
    pub(super) patience: Duration,
    /// [`DEAD`], or less.
    pub(super) dead: Duration,
}

/// How a link ended.
enum End {
    Stopped,
    Broke(String),
    /// The far side does not keep to the protocol, or drips.
    Refused(String),
}

impl Link {
    /// Makes the link, and makes it again until somebody stops it.
    pub(super) fn run(mut self) {
        let (mut failures, mut refused, mut troubles) = (0, 0, 0);
        loop {
            let (began, arrived) = (Instant::now(), self.shared.mirror(|it| it.arrived()));
            let end = self.once(&mut troubles);
            let ended = Instant::now();
            if self.shared.mirror(|mirror| mirror.arrived()) > arrived {
                (failures, troubles) = (0, 0);
            }
            if ended - began > LOST {
                refused = 0;
            }
            let was_up = self.shared.is_up();
            let is_first = std::mem::take(&mut self.may_ask);
            self.patience = self.patience.min(CONNECTING);
            refused += u32::from(matches!(end, End::Refused(_)));
            match end {
                End::Stopped => return,
                End::Refused(why) if refused == MOST_REFUSED => {
                    let host = &self.place.host;
                    let text = format!("{host}: the link broke ({why}); it is not made again");
                    self.shared.add_notice(true, text);
                    return self.shared.enter(Phase::Failed, &why);
                }
                End::Broke(why) | End::Refused(why) if is_first && !was_up => {
                    // The waiting caller sees that the screen does not open.
                    self.shared.enter(Phase::Failed, &why);
                    return;
                }
                End::Broke(why) | End::Refused(why) => {
                    if was_up {
                        failures = 0;
                        let host = &self.place.host;
                        let text = format!("{host}: the link broke ({why}); it is made again");
                        self.shared.add_notice(true, text);
                    }
                    self.shared.enter(Phase::Down, &why);
                }
            }
            let wait = Duration::from_millis(BACK_OFF[failures.min(BACK_OFF.len() - 1)]);
            failures += 1;
            while ended.elapsed() < wait {
                if self.stop.is_stopped() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn once(&self, troubles: &mut usize) -> End {
        let host = &self.place.host;
        let (program, first) = match self.ssh.split_first() {
            Some((program, first)) => (program.as_str(), first),
            None => ("ssh", &[][..]),
        };
        let mut command = Command::new(program);
        command
            .args(first)
            .args(["-T", "-x", "-a", "-o", "ClearAllForwardings=yes"]);
        if !self.may_ask {
            // The terminal is the screen's now.
            command.args(["-o", "BatchMode=yes"]);
        }
        command
            .args(["--", host, REMOTE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return End::Broke(why::no_ssh(program, &error)),
        };
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return End::Broke("its pipes are missing".to_owned());
        };
        let connection = Connection::new(self, input.into(), output.into(), errors.into());
        // The far side ends when requests stop.
        let (end, lines, has_greeted) = match connection {
            Ok(mut it) => {
                it.troubles = *troubles;
                let end = it.until_the_end();
                *troubles = it.troubles;
                (end, it.lines, it.greeted.is_some())
            }
            Err(error) => (End::Broke(error.to_string()), Vec::new(), false),
        };
        let status = finish(&mut child);
        match end {
            End::Broke(text) if text.is_empty() && has_greeted => {
                End::Broke(lines.last().cloned().unwrap_or_else(|| why::how(status)))
            }
            End::Broke(text) if text.is_empty() => End::Broke(why::no_far_side(
                host,
                program,
                status,
                &lines,
                self.may_ask,
            )),
            other => other,
        }
    }
}

/// Waits a moment for its end, then kills it.
fn finish(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Ok(status) => return status,
            Err(_) => return None,
        }
    }
    let _ = child.kill();
    child.wait().ok();
    None
}

/// A link while it is there.
struct Connection<'a> {
    link: &'a Link,
    input: File,
    output: File,
    errors: Option<File>,
    /// Requests that have not gone out.
    asked: Vec<u8>,
    frames: Frames,
    /// Bytes that came before the far side's greeting.
    noise: Vec<u8>,
    greeted: Option<Greeting>,
    began: Instant,
    /// When the last bytes came, or the last request after a full response.
    heard: Instant,
    /// Since when, and how many bytes have come since: too few are as good as none.
    moved: (Instant, u128),
    /// Whether an answer is due.
    is_waiting: bool,
    /// Since when its answers promise more and bring nothing.
    promised: Option<Instant>,
    next: Instant,
    /// Bytes of files that the present response may still bring, whether it has brought some, those of all else in it, and its pieces.
    room: usize,
    has_data: bool,
    beside: usize,
    pieces: usize,
    /// Bytes of troubles that it told of, also on the links before it that brought nothing else.
    troubles: usize,
    /// Bytes of ssh's own messages.
    printed: usize,
    held: Option<Instant>,
    lines: Vec<String>,
    line: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(link: &'a Link, input: OwnedFd, output: OwnedFd, errors: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&input)?;
        rustix::fs::fcntl_setfl(&input, flags | OFlags::NONBLOCK)?;
        Ok(Connection {
            link,
            input: File::from(input),
            output: File::from(output),
            errors: Some(File::from(errors)),
            asked: Vec::new(),
            frames: Frames::default(),
            noise: Vec::new(),
            greeted: None,
            began: Instant::now(),
            heard: Instant::now(),
            moved: (Instant::now(), 0),
            is_waiting: true,
            promised: None,
            next: Instant::now(),
            room: 0,
            has_data: false,
            beside: 0,
            pieces: 0,
            troubles: 0,
            printed: 0,
            held: None,
            lines: Vec::new(),
            line: Vec::new(),
        })
    }

    fn until_the_end(&mut self) -> End {
        let mut bytes = vec![0; 256 << 10];
        loop {
            if self.link.stop.is_stopped() {
                return End::Stopped;
            }
            match self.step(&mut bytes) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(error) => return End::Broke(error.to_string()),
            }
        }
    }

    fn step(&mut self, bytes: &mut [u8]) -> io::Result<Option<End>> {
        let mut watched = vec![PollFd::new(&self.output, PollFlags::IN)];
        if let Some(errors) = &self.errors {
            watched.push(PollFd::new(errors, PollFlags::IN));
        }
        if !self.asked.is_empty() {
            watched.push(PollFd::new(&self.input, PollFlags::OUT));
        }
        match rustix::event::poll(&mut watched, Some(&STEP)) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other?,
        };
        let ready: Vec<bool> = watched.iter().map(|it| !it.revents().is_empty()).collect();
        drop(watched);
        if ready.get(1) == Some(&true) && self.errors.is_some() {
            self.receive_errors(bytes);
        }
        self.send()?;
        if ready[0] {
            let count = match self.output.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                other => other?,
            };
            if count == 0 {
                self.rest_of_errors(bytes);
                return Ok(Some(End::Broke(String::new())));
            }
            self.heard = Instant::now();
            self.moved.1 += count as u128;
            if self.moved.1 >= self.link.dead.as_millis() {
                self.moved = (self.heard, 0);
            }
            if let Some(end) = self.receive(&bytes[..count]) {
                return Ok(Some(end));
            }
        }
        Ok(self.request())
    }

    /// Why a response that is due is not waited for any more.
    fn is_dead(&self, now: Instant) -> Option<End> {
        let (dead, patience) = (self.link.dead, 2 * self.link.patience);
        let (seconds, host) = (dead.as_secs_f32(), &self.link.place.host);
        if now - self.heard > dead {
            return Some(End::Broke(format!("no word for {seconds} s")));
        }
        if now - self.moved.0 > dead {
            let text = format!("{host} brings less than {seconds} kB in {seconds} s");
            return Some(End::Refused(text));
        }
        let is_late = !self.link.shared.is_up() && now - self.began > patience;
        let text = || {
            format!(
                "{host} brings no end of its answer in {} s",
                patience.as_secs_f32()
            )
        };
        is_late.then(|| End::Refused(text()))
    }

    /// Sends the next request when it is due, and checks for a reader.
    fn request(&mut self) -> Option<End> {
        let now = Instant::now();
        if self.greeted.is_none() {
            let is_late = self.began.elapsed() > self.link.patience;
            return is_late
                .then(|| End::Broke(why::silent(&self.link.place.host, self.link.patience)));
        }
        if self.is_waiting {
            self.link.shared.waits(self.heard);
            return self.is_dead(now);
        }
        if now < self.next {
            return None;
        }
        let unread = self.link.shared.mirror(|mirror| mirror.unread());
        let budget = if unread > MOST_UNREAD {
            let since = *self.held.get_or_insert(now);
            if now.duration_since(since) > UNREAD {
                for name in self.link.shared.mirror(|mirror| mirror.leave_unread()) {
                    let host = &self.link.place.host;
                    let text = format!("{host}: {name} cannot be read here, and is left out");
                    self.link.shared.add_notice(true, text);
                }
            }
            0
        } else {
            self.held = None;
            match self.link.shared.is_up() {
                true => BUDGET,
                false => PIECE as u32,
            }
        };
        self.asked.extend(encode(&Request::Next { budget }));
        (self.is_waiting, self.heard, self.moved) = (true, now, (now, 0));
        (self.room, self.has_data) = (budget as usize, false);
        (self.beside, self.pieces) = (0, 0);
        None
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.asked.is_empty() {
            match self.input.write(&self.asked) {
                Ok(count) => drop(self.asked.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It has ended: its output tells how.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.asked.clear();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<End> {
        if self.greeted.is_some() {
            self.frames.add(bytes);
            return self.take_responses();
        }
        let host = &self.link.place.host;
        self.noise.extend_from_slice(bytes);
        let Some(greeting) = find_greeting(&self.noise) else {
            let is_noise = self.noise.len() > NOISE;
            return is_noise.then(|| End::Broke(format!("what answers on {host} is not cuptop")));
        };
        if greeting.protocol != PROTOCOL {
            return Some(End::Broke(why::other_version(host, &greeting)));
        }
        self.frames.add(&self.noise[greeting.length..]);
        self.noise = Vec::new();
        self.greeted = Some(greeting);
        let path = self.link.place.path.as_os_str().as_encoded_bytes().to_vec();
        self.asked.extend(encode(&Request::Open(path)));
        for (name, offset) in self.link.shared.mirror(|mirror| mirror.have()) {
            self.asked.extend(encode(&Request::Have { offset, name }));
        }
        self.is_waiting = false;
        self.take_responses()
    }

    fn take_responses(&mut self) -> Option<End> {
        let host = &self.link.place.host;
        let hostile = |what: &dyn std::fmt::Display| {
            Some(End::Refused(format!(
                "{host} sent what is not taken: {}",
                printable(&what.to_string())
            )))
        };
        loop {
            let payload = match self.frames.next() {
                Ok(None) => return None,
                Ok(Some(payload)) => payload,
                Err(broken) => return hostile(&broken),
            };
            self.pieces += 1;
            let response = decode(payload);
            let (data, beside) = match &response {
                Ok(Response::Data { bytes, .. }) => (bytes.len(), 0),
                _ => (0, payload.len()),
            };
            let left = self.room.checked_sub(data);
            self.room = left.unwrap_or(0);
            self.has_data |= data > 0;
            self.beside += beside;
            // A problem with the place comes before any request.
            let is_trouble = matches!(response, Ok(Response::Trouble { .. }));
            let is_more = left.is_none() || self.beside > BESIDE || self.pieces > RESPONSES;
            if !is_trouble && (!self.is_waiting || is_more) {
                return hostile(&"more than it was asked for");
            }
            let taken: Result<(), Refusal> = match response {
                Err(broken) => return hostile(&broken),
                Ok(Response::End { has_more }) => {
                    self.is_waiting = false;
                    let now = Instant::now();
                    // One that promises more and brings nothing is asked again as if it had none.
                    let has_come = has_more && self.has_data;
                    let is_empty = has_more && !has_come && self.held.is_none();
                    self.promised = is_empty.then(|| self.promised.unwrap_or(now));
                    if self.promised.is_some_and(|it| now - it > self.link.dead) {
                        let seconds = self.link.dead.as_secs_f32();
                        let text = format!("{host} promises more and brings none for {seconds} s");
                        return Some(End::Refused(text));
                    }
                    self.next = match (self.held.is_some(), has_come) {
                        (true, _) => now + HELD,
                        (false, true) => now,
                        (false, false) => now + PERIOD,
                    };
                    self.link.shared.answered(!has_more, host);
                    Ok(())
                }
                Ok(Response::Trouble { is_last, text }) => {
                    let text = printable(&format!("{host}: {text:.TEXT$}"));
                    if is_last {
                        return Some(End::Broke(text));
                    }
                    self.troubles += payload.len();
                    if self.troubles > TROUBLES {
                        return hostile(&"more words than anybody reads");
                    }
                    self.link.shared.add_notice(true, text);
                    Ok(())
                }
                Ok(response) => self.link.shared.mirror(|it| it.take(response)),
            };
            if let Err(refused) = taken {
                return hostile(&refused);
            }
        }
    }

    /// Receives ssh's own messages, line by line.
    fn receive_errors(&mut self, bytes: &mut [u8]) {
        let Some(errors) = &mut self.errors else {
            return;
        };
        let count = match errors.read(bytes) {
            Ok(0) => {
                self.errors = None;
                return;
            }
            Ok(count) => count,
            Err(_) => return,
        };
        self.printed += count;
        if self.printed > TROUBLES {
            self.errors = None;
            return self.say_line("more words than anybody reads: the rest is left out");
        }
        for &byte in &bytes[..count] {
            if byte == b'\n' || self.line.len() >= 1_000 {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                self.say_line(line.trim_end_matches('\r'));
            }
            if byte != b'\n' {
                self.line.push(byte);
            }
        }
    }

    /// Its last messages, without waiting: a process that ssh left behind may hold its standard error.
    fn rest_of_errors(&mut self, bytes: &mut [u8]) {
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until
            && let Some(errors) = &self.errors
        {
            let mut watched = [PollFd::new(errors, PollFlags::IN)];
            match rustix::event::poll(&mut watched, Some(&STEP)) {
                Ok(1..) => self.receive_errors(bytes),
                _ => break,
            }
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        self.say_line(&line);
    }

    fn say_line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let line = printable(line);
        if self.lines.len() == LINES {
            self.lines.remove(0);
        }
        self.link.shared.receive_line(&self.link.place.host, &line);
        self.lines.push(line);
    }
}
