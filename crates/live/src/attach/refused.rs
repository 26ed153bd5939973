//! Why a running program is left alone, and what would help.

use crate::rights::Own;
use crate::runner::Part;

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
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            help: help.into(),
        }
    }
}

pub(crate) fn no_process(pid: u32) -> Refused {
    Refused::new(
        format!("there is no process {pid}"),
        "`pgrep -af python` lists those that run Python; in a container only its own are seen",
    )
}

/// What allows reading a process.
pub(super) fn permitted(pid: u32) -> String {
    let owner = std::fs::metadata(format!("/proc/{pid}"))
        .map(|it| std::os::unix::fs::MetadataExt::uid(&it))
        .ok();
    permission_help(Own::read(), owner)
}

/// Whether running programs may be entered here.
pub fn right() -> Part {
    let own = Own::read();
    let (is_usable, text) = match (own.is_capable, own.scope) {
        (true, 0..=2) => (true, "running programs of all users may be entered"),
        (false, 0) => (true, "running programs of this user may be entered"),
        _ => (false, "running programs may not be entered"),
    };
    let help = match is_usable {
        true => String::new(),
        false => permission_help(own, Some(own.user)),
    };
    Part {
        is_usable,
        text: text.to_owned(),
        help,
    }
}

pub(super) fn permission_help(own: Own, owner: Option<u32>) -> String {
    match (own.user, owner, own.scope) {
        (0, _, 3) => "kernel.yama.ptrace_scope is 3: nobody may until the machine starts anew with less".to_owned(),
        (0, ..) => "it takes CAP_SYS_PTRACE, which root in a container has not by itself: --cap-add SYS_PTRACE".to_owned(),
        (_, Some(owner), _) if owner != own.user => {
            format!("it belongs to user {owner}: attach as that user, or as root (sudo)")
        }
        (_, _, scope @ 1..) => format!(
            "kernel.yama.ptrace_scope is {scope}, which lets nobody but a parent or root read a process: `sudo cuptop attach`, or for \
             everybody `sudo sysctl kernel.yama.ptrace_scope=0`; in a container --cap-add SYS_PTRACE"
        ),
        _ => "it takes CAP_SYS_PTRACE (sudo; in a container --cap-add SYS_PTRACE), or it made itself unreadable".to_owned(),
    }
}
