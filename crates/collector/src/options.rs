//! What to collect and where to put it, also as environment variables for a collector that is injected.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use cupti_sys::Caller;

/// The recording directory of an injected collector.
pub const DIRECTORY: &str = "CUPTOP_DIR";
/// Milliseconds between flushes.
pub const FLUSH: &str = "CUPTOP_FLUSH_MS";
/// The most bytes that one process may record.
pub const MAX_BYTES: &str = "CUPTOP_MAX_BYTES";
/// Seconds of which the last are to be kept; all are when it is not given.
pub const KEEP: &str = "CUPTOP_KEEP_S";
/// Whether to record what streams and threads wait for: `0` or `1`.
pub const WAITS: &str = "CUPTOP_WAITS";
/// The NVTX ranges inside which alone is to be recorded.
pub const RANGE: &str = "CUPTOP_RANGE";
/// Whether to sample what kernels wait for: `0` or `1`.
pub const STALLS: &str = "CUPTOP_STALLS";
/// How to record CUDA graphs: `nodes` or `whole`.
pub const GRAPHS: &str = "CUPTOP_GRAPHS";
/// What gets source lines, one of [`Lines::WORDS`].
pub const LINES: &str = "CUPTOP_LINES";
/// What is not to be done inside the program, words with commas between them: `graphs` gives nodes of CUDA graphs no
/// names, `stalls` samples no stalls.
pub const OFF: &str = "CUPTOP_OFF";

/// Which host calls are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiCalls {
    /// The runtime API, and of the driver API only what starts or awaits GPU work (Triton and others launch
    /// through it).
    #[default]
    Mixed,
    /// The same where CUPTI comes to a program that uses the driver already.
    MixedLate,
    /// The driver API. For programs that use nothing else.
    Driver,
}

/// How CUDA graphs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Graphs {
    /// Each kernel, copy and memset of it.
    #[default]
    Nodes,
    /// One record for each launch: it costs less, and says nothing of what is in it.
    Whole,
}

/// What gets the source lines that asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Each launch, and the nodes of CUDA graphs.
    Launches,
    /// The nodes of CUDA graphs.
    #[default]
    Graphs,
    /// Nothing.
    Off,
}

impl Lines {
    /// All of them, by their words.
    pub const WORDS: [(&str, Lines); 3] = [
        ("on", Lines::Launches),
        ("graphs", Lines::Graphs),
        ("off", Lines::Off),
    ];

    /// What it is called.
    pub fn word(self) -> &'static str {
        let mut words = Lines::WORDS.into_iter();
        words.find(|it| it.1 == self).map_or("", |it| it.0)
    }
}

/// What becomes of CUPTI at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process ends: flush and leave everything as it is. CUDA may be half gone already.
    Exit,
    /// The process goes on: also stop recording and let another tool in. (What CUPTI has instrumented stays so;
    /// finalising CUPTI is known to crash programs.)
    Release,
}

/// How to collect.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the recording goes; must exist.
    pub dir: PathBuf,
    /// Time between flushes.
    pub flush_period: Duration,
    /// The most bytes the recording may have; 0 for no limit.
    pub max_bytes: u64,
    /// Keeps only the last of the recording: at least this long. `None` keeps all.
    pub keep: Option<Duration>,
    /// Which host calls are recorded.
    pub api: ApiCalls,
    /// Whether what streams and threads wait for is recorded: synchronisations and events. Host waits are calls too, so
    /// that only waits between streams are lost without it.
    pub waits: bool,
    /// Whether what kernels wait for is sampled. Nobody else may use the GPU's counters then.
    pub stalls: bool,
    /// The name of NVTX ranges inside which alone is recorded; a `*` at its end stands for anything.
    pub range: Option<String>,
    /// How CUDA graphs are recorded.
    pub graphs: Graphs,
    /// What gets source lines.
    pub lines: Lines,
    /// Who asks: decides whether CUDA may be called.
    pub caller: Caller,
}

/// Activity buffers made, and faulted in, at the start: 8 MiB, some 30,000 launches, far more than happen between two flushes.
pub(crate) const BUFFERS: usize = 32;
/// The most that are ever made: 512 MiB, two million launches withheld by one long kernel. Beyond, CUPTI drops records and
/// counts them.
pub(crate) const MOST_BUFFERS: usize = 2048;

/// The size of an activity buffer. It is the cheapest per launch of those measured between 64 KiB and 1 MiB
/// on an H200. It is small enough that a long kernel withholds little else with it.
pub const BUFFER: usize = 256 * 1024;
/// CUPTI is told that the first few buffers between two flushes end here: some 40 kernels. It keeps a buffer while one of
/// its kernels runs. Kernels of 10 ms each would come 12 s late where the next always runs already.
pub(crate) const SMALL: usize = 8 * 1024;
/// So many are small: 30,000 launches a second, beyond which whole ones are soon full. A program may be hundreds ahead.
pub(crate) const FEW: usize = 16;

impl Options {
    /// The defaults for a program that collects its own activity.
    pub fn new(dir: PathBuf) -> Options {
        Options {
            dir,
            // Half of it is the mean delay until a record can be seen (measured: 10.4 ms, p99 20.2 ms).
            flush_period: Duration::from_millis(20),
            max_bytes: 0,
            keep: None,
            api: ApiCalls::default(),
            waits: true,
            stalls: false,
            range: None,
            graphs: Graphs::default(),
            lines: Lines::default(),
            caller: Caller::Program,
        }
    }

    /// Reads the options of an injected collector; `None` when no directory is given. Values that are not
    /// numbers are taken as not given.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Options> {
        let number = |name: &str| -> Option<u64> { variable(name)?.to_str()?.parse().ok() };
        let mut options = Options::new(PathBuf::from(
            variable(DIRECTORY).filter(|value| !value.is_empty())?,
        ));
        options.caller = Caller::InsideInjection;
        if let Some(period) = number(FLUSH) {
            options.flush_period = Duration::from_millis(period.clamp(1, 60_000));
        }
        if let Some(bytes) = number(MAX_BYTES) {
            options.max_bytes = bytes;
        }
        options.keep = number(KEEP).filter(|it| *it > 0).map(Duration::from_secs);
        options.waits = variable(WAITS).is_none_or(|value| value != "0");
        let off = variable(OFF).unwrap_or_default();
        let is_on = |what: &str| off.to_string_lossy().split(',').all(|it| it != what);
        options.stalls = variable(STALLS).is_some_and(|value| value == "1") && is_on("stalls");
        options.range = variable(RANGE)
            .filter(|name| !name.is_empty())
            .map(|name| name.to_string_lossy().into_owned());
        if variable(GRAPHS).is_some_and(|value| value == "whole") {
            options.graphs = Graphs::Whole;
        }
        let lines = variable(LINES).unwrap_or_default();
        let lines = Lines::WORDS.iter().find(|it| lines == it.0).map(|it| it.1);
        options.lines = match is_on("graphs") {
            true => lines.unwrap_or_default(),
            false => Lines::Off,
        };
        Some(options)
    }
}

/// How often CUPTI may be asked to record. libcupti 13.0 crashed 5 of 13 programs after 212 to 270 times, and none before.
#[cfg(any(test, feature = "inject"))]
pub(crate) const TIMES_MAX: u32 = 150;

/// Counts one time more. Returns whether CUPTI was asked as often as it may be.
#[cfg(any(test, feature = "inject"))]
pub(crate) fn is_worn(times: &std::sync::atomic::AtomicU32) -> bool {
    times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= TIMES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_in_the_environment_falls_back_to_the_defaults() {
        let with = |pairs: &'static [(&str, &str)]| {
            Options::from_environment(|name| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| OsString::from(value))
            })
        };
        assert!(with(&[]).is_none());
        assert!(with(&[(DIRECTORY, "")]).is_none());
        let options = with(&[(DIRECTORY, "/tmp"), (FLUSH, "soon"), (MAX_BYTES, "-1")])
            .expect("a directory is given");
        assert_eq!(options.lines, Lines::Graphs);
        assert_eq!(options.flush_period, Duration::from_millis(20));
        assert_eq!(options.max_bytes, 0);
        assert_eq!(options.api, ApiCalls::Mixed);
        assert!(options.waits);
        let options = with(&[
            (DIRECTORY, "/tmp"),
            (FLUSH, "5"),
            (MAX_BYTES, "10"),
            (WAITS, "0"),
            (OFF, "lines,graphs"),
            (STALLS, "1"),
            (LINES, "on"),
        ])
        .expect("a directory is given");
        assert!(!options.waits && options.lines == Lines::Off && options.stalls);
        assert_eq!(options.flush_period, Duration::from_millis(5));
        assert_eq!(options.max_bytes, 10);
        let off = with(&[(DIRECTORY, "/tmp"), (STALLS, "1"), (OFF, "stalls")]);
        assert!(off.is_some_and(|it| !it.stalls && it.lines == Lines::Graphs));
        let on = with(&[(DIRECTORY, "/tmp"), (LINES, "on")]);
        assert!(on.is_some_and(|it| it.lines == Lines::Launches));
    }

    #[test]
    fn after_150_times_it_is_refused() {
        let times = std::sync::atomic::AtomicU32::new(0);
        assert!((0..150).all(|_| !is_worn(&times)));
        assert!(is_worn(&times) && is_worn(&times));
    }
}
