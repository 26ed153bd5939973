//! The threads that wait for the keyboard and for signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;
use crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};

use super::events::Input;

/// How long the thread may take to see that it should end.
const PATIENCE: Duration = Duration::from_millis(40);

/// Reads the terminal's events until it is dropped, which waits for it.
pub(super) struct InputThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl InputThread {
    pub(super) fn start(inputs: Sender<Input>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read(&inputs, &stopped))?;
        Ok(InputThread {
            stop,
            thread: Some(thread),
        })
    }
}

fn read(inputs: &Sender<Input>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let input = match event::poll(PATIENCE) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let input = match input {
            Ok(Event::Key(key)) => Input::Key(key),
            Ok(Event::Mouse(mouse)) => Input::Mouse(mouse),
            Ok(Event::Resize(..)) => Input::Resize,
            Ok(_) => continue,
            // The terminal is gone.
            Err(_) => Input::Lost,
        };
        let is_lost = matches!(input, Input::Lost);
        if inputs.send(input).is_err() || is_lost {
            return;
        }
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for signals until it is dropped.
pub(super) struct SignalThread {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SignalThread {
    pub(super) fn start(inputs: Sender<Input>) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGTSTP])?;
        let handle = signals.handle();
        let thread = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in &mut signals {
                    let input = match signal {
                        SIGTSTP => Input::Suspend,
                        signal => Input::Signal(signal),
                    };
                    if inputs.send(input).is_err() {
                        return;
                    }
                }
            })?;
        Ok(SignalThread {
            handle,
            thread: Some(thread),
        })
    }
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
