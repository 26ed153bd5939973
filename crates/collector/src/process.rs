//! Who this process is.

use activity::ProcessInfo;

/// What a recording says of its process.
#[derive(Clone, Debug)]
pub(crate) struct ThisProcess {
    command: String,
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
            command: String::from_utf8_lossy(&command).into_owned(),
            rank: number("RANK"),
            local_rank: number("LOCAL_RANK"),
        }
    }

    pub(crate) fn describe(&self, versions: &str) -> ProcessInfo {
        ProcessInfo {
            pid: std::process::id(),
            rank: self.rank,
            local_rank: self.local_rank,
            command: self.command.clone(),
            versions: versions.to_owned(),
            ended_well: None,
        }
    }
}
