//! Who this process is.

use crate::recording::Process;

/// What a recording says of its process.
#[derive(Clone, Debug)]
pub(crate) struct ThisProcess {
    command: Vec<u8>,
    rank: Option<u32>,
    local_rank: Option<u32>,
}

impl ThisProcess {
    pub(crate) fn look() -> ThisProcess {
        let mut command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        while command.last() == Some(&0) {
            command.pop();
        }
        for byte in &mut command {
            if *byte == 0 {
                *byte = b' ';
            }
        }
        let number = |name| {
            std::env::var(name)
                .ok()
                .and_then(|value| value.parse().ok())
        };
        ThisProcess {
            command,
            rank: number("RANK"),
            local_rank: number("LOCAL_RANK"),
        }
    }

    pub(crate) fn describe<'a>(&'a self, versions: &'a str) -> Process<'a> {
        Process {
            pid: std::process::id(),
            rank: self.rank,
            local_rank: self.local_rank,
            command: &self.command,
            versions: versions.as_bytes(),
        }
    }
}
