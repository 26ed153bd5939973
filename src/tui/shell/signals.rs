//! The thread that waits for signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR2, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use super::guard;
use super::input::Input;
use activity::feed::{self, Joined};

/// How far two looks at the terminal are apart, once a signal has asked to end.
const STEP: Duration = Duration::from_millis(40);

/// A screen that has not ended so long after a signal waits for something that does not come, such as a read of the terminal.
const STUCK: Duration = Duration::from_secs(10);

/// Waits for signals until its end.
pub(super) struct SignalThread {
    handle: Handle,
    /// The one that asked to end, 0 for none.
    asked: Arc<AtomicI32>,
    _thread: Joined,
}

impl SignalThread {
    pub(super) fn start(inputs: Sender<Input>) -> io::Result<Self> {
        let others = [SIGTSTP, SIGUSR2, SIGWINCH];
        let signals = Signals::new(feed::ending().chain(others))?;
        let handle = signals.handle();
        let asked = Arc::new(AtomicI32::new(0));
        let told = Arc::clone(&asked);
        let thread = Joined::spawn("signals", move || hear(signals, &inputs, &told))?;
        Ok(SignalThread {
            handle,
            asked,
            _thread: thread,
        })
    }

    /// Ends it, and says which signal asked to end.
    pub(super) fn end(self) -> Option<i32> {
        end_at_once();
        Some(self.asked.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

/// From now on a signal ends the program at once: a last word may take long, or wait for a terminal that takes none.
pub fn end_at_once() {
    let is_over = Arc::new(AtomicBool::new(true));
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_over));
    }
}

/// Passes signals on to the loop, and at once to the program behind the screen. When the loop does not end in time for
/// want of a terminal that takes bytes, that is given up.
fn hear(mut signals: Signals, inputs: &Sender<Input>, asked: &AtomicI32) {
    let (mut since, mut is_sent) = (None::<Instant>, false);
    while !signals.is_closed() {
        let came: Vec<i32> = match since {
            None => signals.wait().collect(),
            Some(since) => {
                std::thread::sleep(STEP);
                if since.elapsed() > guard::PATIENCE {
                    guard::give_up();
                }
                if since.elapsed() > STUCK {
                    end_stuck(asked.load(Ordering::Relaxed));
                }
                signals.pending().collect()
            }
        };
        for signal in came {
            // A queue that is full of inputs has one for everything that these ask for.
            let _ = match signal {
                SIGTSTP => inputs.try_send(Input::Suspend),
                SIGWINCH => inputs.try_send(Input::Resize),
                // A switch of `trace`, which listens for itself; elsewhere there is nothing to switch.
                SIGUSR2 => Ok(()),
                signal => {
                    live::attach::pass_on(signal);
                    asked.store(signal, Ordering::Relaxed);
                    since.get_or_insert_with(Instant::now);
                    Ok(())
                }
            };
        }
        if since.is_some() && !is_sent {
            let signal = Input::Signal(asked.load(Ordering::Relaxed));
            is_sent = inputs.try_send(signal).is_ok();
        }
    }
}

/// Gives the terminal back from here, and ends as the signal does.
fn end_stuck(signal: i32) {
    guard::give_back();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.handle.close();
    }
}
