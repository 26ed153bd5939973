//! Why a running program is left alone, and what would help.

use crate::rights::{self, Own, numbers, told};
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
    let owners = numbers(&told(pid, "status"), "Uid");
    let user = owners
        .first()
        .map_or_else(String::new, |it| format!("user {it}"));
    let said = rights::right(pid, Own::read(), &owners, &user, 0);
    // Root in a container has not the right by itself, and a program may make itself unreadable.
    said.err().unwrap_or_else(|| {
        "it takes CAP_SYS_PTRACE (sudo; in a container --cap-add SYS_PTRACE), or it made itself unreadable".to_owned()
    })
}

/// Whether running programs may be entered here.
pub fn right() -> Part {
    let own = Own::read();
    match rights::right("PID", own, &[own.user], "", 0) {
        Ok(_) if own.is_capable => Part::usable("running programs of all users may be entered"),
        Ok(_) => Part::usable("running programs of this user may be entered"),
        Err(help) => Part::missing("running programs may not be entered", help),
    }
}
