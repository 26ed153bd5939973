//! The thread that waits for the keyboard.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers, MouseEvent};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::SIGHUP;

/// What comes from outside besides the feed.
#[derive(Debug)]
pub enum Input {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize,
    /// A signal that asks to end. That the terminal is gone is one, too.
    Signal(i32),
    /// Ctrl-Z from elsewhere.
    Suspend,
    ThreadFailed(String),
}

/// What is sent when the terminal is gone.
const LOST: Input = Input::Signal(SIGHUP);
/// How long the thread may take to see that it should end.
const PATIENCE: Duration = Duration::from_millis(40);

/// How long crossterm looks for what the terminal has; without any time it would not look at all.
const READ: Duration = Duration::from_millis(1);

/// Reads the terminal's events until it is dropped, which waits for it.
pub(super) struct InputThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl InputThread {
    pub(super) fn start(inputs: Sender<Input>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let terminal = terminal()?;
        // At its first look crossterm takes descriptors: with many files open there may be none later.
        event::poll(Duration::ZERO)?;
        let thread = std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read(&terminal, &inputs, &stopped))?;
        Ok(InputThread {
            stop,
            thread: Some(thread),
        })
    }
}

/// The terminal that keys come from, as crossterm chooses it: standard input, or the process's own where a trace comes
/// from there.
///
/// # Errors
/// When there is none.
pub(super) fn terminal() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned();
    }
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok(terminal.into())
}

/// Whether that terminal has been hung up.
pub(super) fn is_gone() -> bool {
    let is_full = |error: io::Error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error());
    match terminal() {
        Ok(it) => matches!(wait(&it), WaitResult::HangUp),
        Err(error) => !is_full(error),
    }
}

fn read(terminal: &OwnedFd, inputs: &Sender<Input>, stop: &AtomicBool) {
    // Since when, and how often, something came and no key did.
    let mut mute: Option<(Instant, u32)> = None;
    // Whether nothing came just before.
    let mut is_quiet = false;
    let mut reply = None;
    // What it found at its first look.
    if pass_on(inputs, &mut reply).is_none() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        let came = wait(terminal);
        let was_quiet = std::mem::replace(&mut is_quiet, matches!(came, WaitResult::Nothing));
        match came {
            WaitResult::Nothing => {}
            WaitResult::Keys
                if mute
                    .is_some_and(|it| is_paste(it) || was_quiet && is_one_byte(it, terminal)) =>
            {
                let mut bytes = [0; 4096];
                let count = rustix::io::read(terminal, &mut bytes).unwrap_or(0);
                let key = typed(&bytes[..count], was_quiet);
                let is_short = key.is_some() || was_quiet && count <= LONGEST_KEY;
                mute = mute.filter(|it| !is_short || !is_paste(*it));
                let _ = key.map(|it| inputs.send(Input::Key(it)));
            }
            WaitResult::Keys => match pass_on(inputs, &mut reply) {
                None => return,
                Some(0) => {
                    let (since, times) = mute.unwrap_or((Instant::now(), 0));
                    mute = Some((since, times + 1));
                }
                Some(_) => mute = None,
            },
            WaitResult::HangUp => {
                let _ = inputs.send(LOST);
                return;
            }
        }
    }
}

/// Ctrl-C, as a terminal sends it.
const CONTROL_C: u8 = 3;

/// The longest that a terminal sends for a key, as a pasted line is longer.
const LONGEST_KEY: usize = 16;

/// The key that some bytes are while crossterm is silent: Ctrl-C always, and one alone behind a silence, which somebody typed.
/// Keys that crossterm does not know silence it, too.
fn typed(bytes: &[u8], was_quiet: bool) -> Option<KeyEvent> {
    let byte = match bytes {
        it if it.contains(&CONTROL_C) => CONTROL_C,
        [one] if was_quiet => *one,
        _ => return None,
    };
    let plain = KeyModifiers::NONE;
    let (code, with) = match byte {
        b'\r' => (KeyCode::Enter, plain),
        b'\t' => (KeyCode::Tab, plain),
        0x1b => (KeyCode::Esc, plain),
        0x7f => (KeyCode::Backspace, plain),
        1..=26 => (
            KeyCode::Char((byte - 1 + b'a') as char),
            KeyModifiers::CONTROL,
        ),
        b'A'..=b'Z' => (KeyCode::Char(byte as char), KeyModifiers::SHIFT),
        b' '..=b'~' => (KeyCode::Char(byte as char), plain),
        _ => return None,
    };
    Some(KeyEvent::new(code, with))
}

/// Whether one byte is there long after what made crossterm silent: the rest of a key would have come with it.
fn is_one_byte((since, _): (Instant, u32), terminal: &OwnedFd) -> bool {
    since.elapsed() > PATIENCE * 6 && rustix::io::ioctl_fionread(terminal) == Ok(1)
}

/// Whether crossterm waits for the end of a paste that does not end. It says nothing of one until it has all of it, and
/// keeps it. Nobody has asked the terminal to mark pastes.
fn is_paste((since, times): (Instant, u32)) -> bool {
    times >= 8 && since.elapsed() > Duration::from_secs(1)
}

enum WaitResult {
    Nothing,
    Keys,
    HangUp,
}

/// Waits for the terminal itself. crossterm's own wait never comes back from a terminal that is gone. It takes the end
/// of the file for nothing to read, again and again.
fn wait(terminal: &OwnedFd) -> WaitResult {
    let mut watched = [PollFd::new(terminal, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(PATIENCE.subsec_nanos()),
    };
    match rustix::event::poll(&mut watched, Some(&patience)) {
        Ok(0) | Err(Errno::INTR) => WaitResult::Nothing,
        Ok(_) => {
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            if watched[0].revents().intersects(gone) {
                WaitResult::HangUp
            } else {
                WaitResult::Keys
            }
        }
        Err(_) => WaitResult::HangUp,
    }
}

/// Whether a key is a part of what a terminal answers to whoever asked, such as for its colours (`ESC ] 11 ; rgb:… ESC \`). It may
/// come however late, and crossterm takes it for keys, the first one Alt-]. `last` is when a part of it came that has not ended.
/// Where nothing comes for a while it has ended, too: somebody may have typed Alt-].
fn is_reply(last: &mut Option<Instant>, key: KeyEvent, now: Instant) -> bool {
    let is = |with, c| key.modifiers == with && key.code == KeyCode::Char(c);
    let goes_on = last.is_some_and(|it| now - it < PATIENCE * 5);
    let ends = is(KeyModifiers::ALT, '\\') || is(KeyModifiers::CONTROL, 'g');
    let begins = is(KeyModifiers::ALT, ']');
    let is_part = begins || goes_on && matches!(key.code, KeyCode::Char(_));
    *last = (is_part && !ends).then_some(now);
    is_part
}

/// Passes on what has been typed. Returns how many events that was, or nothing when it is over.
fn pass_on(inputs: &Sender<Input>, reply: &mut Option<Instant>) -> Option<u32> {
    let mut events = 0;
    loop {
        let input = match event::poll(READ) {
            Ok(false) => return Some(events),
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        events += 1;
        let input = match input {
            Ok(Event::Key(key)) if is_reply(reply, key, Instant::now()) => continue,
            Ok(Event::Key(key)) => Input::Key(key),
            Ok(Event::Mouse(mouse)) => Input::Mouse(mouse),
            Ok(Event::Resize(..)) => Input::Resize,
            Ok(_) => continue,
            Err(_) => LOST,
        };
        let is_lost = matches!(input, Input::Signal(_));
        if inputs.send(input).is_err() || is_lost {
            return None;
        }
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // When the terminal goes in the middle of a read, crossterm does not come back (see `wait`). The
        // program must end all the same, and takes the thread with it.
        let deadline = Instant::now() + PATIENCE * 5;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that crossterm makes of an answer to OSC 11 with this end, then of `q`.
    fn passed(end: KeyEvent, later: Duration) -> Vec<KeyCode> {
        let typed = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        let begin = KeyEvent::new(KeyCode::Char(']'), KeyModifiers::ALT);
        let text = "11;rgb:1e1e/1e1e/2e2e".chars().map(typed);
        let keys = std::iter::once(begin).chain(text).chain([end]);
        let (mut reply, now) = (None, Instant::now());
        let keys = keys
            .map(|key| (key, now))
            .chain([(typed('q'), now + later)]);
        let passed = keys.filter(|(key, at)| !is_reply(&mut reply, *key, *at));
        passed.map(|(key, _)| key.code).collect()
    }

    #[test]
    fn what_a_terminal_answers_late_is_not_typed() {
        let (st, bel) = (KeyModifiers::ALT, KeyModifiers::CONTROL);
        let q = [KeyCode::Char('q')];
        for (end, with) in [('\\', st), ('g', bel)] {
            let end = KeyEvent::new(KeyCode::Char(end), with);
            assert_eq!(passed(end, Duration::ZERO), q);
        }
        // One without an end, as of somebody who typed Alt-], holds nobody up.
        let none = KeyEvent::new(KeyCode::Char('0'), KeyModifiers::NONE);
        assert_eq!(passed(none, Duration::from_secs(1)), q);
    }
}
