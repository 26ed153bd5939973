//! When what was on the screen: a line a frame, for measuring how far the screen is behind the GPU.
//!
//! With `CUPTOP_FRAME_LOG=FILE` in the environment, each frame appends `drawn operations`. The first is the time at
//! which it had been written to the terminal, in ns of `CLOCK_REALTIME` (the clock of CUPTI's records). The second is
//! how many GPU operations the timeline held then. Operations of one stream arrive in their order, so the k-th one was
//! visible from the first frame that counts k. `tests/gpu/latency.py` uses it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use trace::Trace;

/// The variable that names the file.
const VARIABLE: &str = "CUPTOP_FRAME_LOG";

/// Writes a line a frame, when asked to.
pub(super) struct FrameLog(Option<BufWriter<File>>);

impl FrameLog {
    /// Opens the file that the environment names. One that cannot be made is no reason to show nothing.
    pub(super) fn from_env() -> Self {
        let file = std::env::var_os(VARIABLE).and_then(|path| File::create(path).ok());
        FrameLog(file.map(BufWriter::new))
    }

    /// Notes that `trace` was drawn.
    pub(super) fn note(&mut self, trace: &Trace) {
        let Some(out) = &mut self.0 else {
            return;
        };
        let drawn = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let operations: usize = trace.streams().map(|(_, lane)| lane.len()).sum();
        let _ = writeln!(out, "{drawn} {operations}");
    }
}
