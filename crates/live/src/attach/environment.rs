//! The variables that make the CUDA driver and NVTX load the collector.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use collector::{Graphs, Lines, options};

/// How the kernels of a program are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Collect {
    /// The library that is loaded into it, as a shared object; empty on systems that have no CUDA.
    pub library: &'static [u8],
    /// Time between the collector's flushes.
    pub flush_period: Duration,
    /// The most bytes that each process may record; 0 for no limit.
    pub max_bytes: u64,
    /// Keeps only the last of each recording, at least this long; `None` keeps all.
    pub keep: Option<Duration>,
    /// Whether to record what streams and threads wait for: it costs launches 7 to 12 %, and shows why a stream waited for
    /// another.
    pub waits: bool,
    /// Whether to sample what kernels wait for, if nobody uses the counters of any GPU here.
    pub stalls: bool,
    /// Whether CUDA graphs are recorded by their nodes or as a whole.
    pub graphs: Graphs,
    /// What gets source lines.
    pub lines: Lines,
}

/// The driver loads this library in `cuInit`, and calls its `InitializeInjection`.
const CUDA: &str = "CUDA_INJECTION64_PATH";
/// NVTX loads this library at its first call, and calls its `InitializeInjectionNvtx2`.
const NVTX: &str = "NVTX_INJECTION64_PATH";

/// Refuses when another tool (or another cuptop) is to be injected: the driver loads one library only.
pub(super) fn check(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<()> {
    match variable(CUDA) {
        Some(other) if !other.is_empty() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!(
                "{CUDA} is set already, to {}: another tool (Nsight Systems, a cluster's monitoring, another cuptop) \
                 is injected into this environment, and the CUDA driver loads one only; unset it to trace with cuptop",
                other.display()
            ),
        )),
        _ => Ok(()),
    }
}

/// The variables for a program.
pub(super) fn variables(
    collect: &Collect,
    range: Option<&str>,
    directory: &Path,
    library: &Path,
) -> Vec<(&'static str, OsString)> {
    let mut variables = options(collect);
    variables.push((CUDA, library.into()));
    variables.push((options::DIRECTORY, directory.into()));
    if let Some(range) = range {
        variables.push((options::RANGE, range.into()));
    }
    // NVTX calls of a program that another tool listens to stay with that tool.
    if nvtx_of_another().is_none() {
        variables.push((NVTX, library.into()));
    }
    variables
}

/// What a collector is told, as variables.
pub(super) fn options(collect: &Collect) -> Vec<(&'static str, OsString)> {
    let flush = collect.flush_period.as_millis().max(1);
    let graphs = match collect.graphs {
        Graphs::Nodes => "nodes",
        Graphs::Whole => "whole",
    };
    let mut variables = vec![
        (options::FLUSH, flush.to_string().into()),
        (options::MAX_BYTES, collect.max_bytes.to_string().into()),
        (options::WAITS, u8::from(collect.waits).to_string().into()),
        (options::STALLS, u8::from(collect.stalls).to_string().into()),
        (options::GRAPHS, graphs.into()),
        (options::LINES, collect.lines.word().into()),
    ];
    if let Some(keep) = collect.keep {
        variables.push((options::KEEP, keep.as_secs().max(1).to_string().into()));
    }
    variables
}

/// The library that another tool has NVTX load.
pub(super) fn nvtx_of_another() -> Option<OsString> {
    std::env::var_os(NVTX).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_tools_injection_is_not_replaced() {
        assert!(check(|_| None).is_ok());
        assert!(check(|_| Some(OsString::new())).is_ok());
        let error =
            check(|_| Some("/opt/nsight/libToolsInjection64.so".into())).expect_err("taken");
        assert!(
            error
                .to_string()
                .contains("/opt/nsight/libToolsInjection64.so"),
            "{error}"
        );
    }
}
