//! Why a running program is left alone, and what would help.

/// Why a running program cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// What is wrong.
    pub message: String,
    /// What helps.
    pub help: String,
}

impl Refused {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            help: help.into(),
        }
    }
}

pub(super) fn none(pid: u32) -> Refused {
    Refused::new(
        format!("there is no process {pid}"),
        "`pgrep -af python` lists those that run Python; in a container only its own are seen",
    )
}

/// What allows reading a process.
pub(super) fn permitted(pid: u32) -> String {
    let own = rustix::process::geteuid().as_raw();
    let owner = std::fs::metadata(format!("/proc/{pid}"))
        .map(|it| std::os::unix::fs::MetadataExt::uid(&it))
        .ok();
    words(own, owner, scope())
}

/// Whether running programs may be entered here, in a sentence, and else what helps.
#[must_use]
pub fn right() -> (bool, String, String) {
    const SYS_PTRACE: u64 = 1 << 19;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut capabilities = status
        .lines()
        .filter_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities
        .next()
        .and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    let is_able = capabilities.unwrap_or(0) & SYS_PTRACE != 0;
    let scope = scope();
    let own = rustix::process::geteuid().as_raw();
    match (is_able, scope) {
        (true, None | Some(0..=2)) => (
            true,
            "running programs of all users may be entered".to_owned(),
            String::new(),
        ),
        (false, None | Some(0)) => (
            true,
            "running programs of this user may be entered".to_owned(),
            String::new(),
        ),
        _ => (
            false,
            "running programs may not be entered".to_owned(),
            words(own, Some(own), scope),
        ),
    }
}

fn scope() -> Option<u32> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.ok().and_then(|it| it.trim().parse().ok())
}

pub(super) fn words(own: u32, owner: Option<u32>, scope: Option<u32>) -> String {
    match (own, owner, scope) {
        (0, _, Some(3)) => "kernel.yama.ptrace_scope is 3: nobody may until the machine starts anew with less".to_owned(),
        (0, ..) => "it takes CAP_SYS_PTRACE, which root in a container has not by itself: --cap-add SYS_PTRACE".to_owned(),
        (_, Some(owner), _) if owner != own => {
            format!("it belongs to user {owner}: attach as that user, or as root (sudo)")
        }
        (_, _, Some(scope @ 1..)) => format!(
            "kernel.yama.ptrace_scope is {scope}, which lets nobody but a parent or root read a process: `sudo cuptop attach`, or for \
             everybody `sudo sysctl kernel.yama.ptrace_scope=0`; in a container --cap-add SYS_PTRACE"
        ),
        _ => "it takes CAP_SYS_PTRACE (sudo; in a container --cap-add SYS_PTRACE), or it made itself unreadable".to_owned(),
    }
}
