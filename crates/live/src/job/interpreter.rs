//! Python's frames, read by a thread of its own: an interpreter whose threads go round in a ring holds up nobody.

use crossbeam_channel::{Receiver, Sender, bounded};
use py_spy::StackTrace;

use crate::python::{self, PATIENCE};

/// Torn reads after which a look goes without them.
const TORN: usize = 4;

/// An interpreter that is read.
pub(super) struct Interpreter {
    ask: Sender<()>,
    told: Receiver<Result<Vec<StackTrace>, String>>,
}

impl Interpreter {
    /// Begins to read one.
    pub(super) fn open(pid: u32) -> Result<Interpreter, String> {
        let (ask, asked) = bounded::<()>(1);
        let (tell, told) = bounded(1);
        let read = move || {
            let mut spy = match python::attach(pid) {
                Ok(spy) => spy,
                Err(why) => return drop(tell.send(Err(why.to_string()))),
            };
            let mut all = Vec::new();
            // It ends when nobody asks any more, or waits for what took too long.
            while tell.send(Ok(all)).is_ok() && asked.recv().is_ok() {
                let read = (0..TORN).find_map(|_| spy.get_stack_traces().ok());
                all = read.unwrap_or_default();
            }
        };
        let thread = std::thread::Builder::new().name("cuptop-frames".to_owned());
        thread.spawn(read).map_err(|it| it.to_string())?;
        let interpreter = Interpreter { ask, told };
        interpreter.wait()?;
        Ok(interpreter)
    }

    /// All threads with their frames, or why there are none for good.
    pub(super) fn threads(&self) -> Result<Vec<StackTrace>, String> {
        let _ = self.ask.try_send(());
        self.wait()
    }

    fn wait(&self) -> Result<Vec<StackTrace>, String> {
        let late = format!(
            "its interpreter tells no threads within {} s",
            PATIENCE.as_secs()
        );
        self.told.recv_timeout(PATIENCE).map_err(|_| late)?
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::python::tests::Deep;

    /// Each read of 4,096 threads with 900 frames took some 10 s.
    #[test]
    fn threads_in_a_ring_hold_nobody_up() {
        let Some(mut deep) = Deep::start() else {
            return;
        };
        let opened = Interpreter::open(deep.child.id());
        let reader = opened.expect("it can be read");
        assert_eq!(reader.threads().map(|it| it.len()), Ok(1));
        deep.go_round();
        let begun = Instant::now();
        let told = reader.threads().map(|it| it.len());
        assert_eq!(
            told,
            Err("its interpreter tells no threads within 4 s".to_owned())
        );
        assert!(begun.elapsed() < 5 * PATIENCE, "{:?}", begun.elapsed());
    }
}
