//! Whether this user may attach to a process, as ptrace(2) decides it, told in words; and what it is called.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read as _};

/// The bit of `CAP_SYS_PTRACE`.
const CAP_SYS_PTRACE: u32 = 19;

/// Who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) user: u32,
    /// Whether it has `CAP_SYS_PTRACE`.
    pub(crate) is_capable: bool,
    /// `kernel.yama.ptrace_scope`; 0 where the kernel has none.
    pub(crate) scope: u32,
}

impl Own {
    pub(crate) fn read() -> Own {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        Own {
            user: numbers(&status, "Uid").get(1).copied().unwrap_or(u32::MAX),
            is_capable: is_capable(&status),
            scope: scope
                .ok()
                .and_then(|it| it.trim().parse().ok())
                .unwrap_or(0),
        }
    }
}

/// Bytes of a command line that are read.
const COMMAND_MAX: u64 = 64 << 10;
/// More than the kernel hands to a program that starts.
const ENVIRONMENT_MAX: u64 = 8 << 20;

/// The variables of a process as it began.
///
/// # Errors
/// When there is no such process, or its memory may not be read.
pub(crate) fn environment(pid: u32) -> io::Result<Vec<u8>> {
    beginning(&format!("/proc/{pid}/environ"), ENVIRONMENT_MAX)
}

/// The first bytes of a file. Where its command line and variables end a process says itself (`PR_SET_MM`).
fn beginning(path: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The command line of a process; its short name where it has none.
pub fn command(pid: u32) -> Option<String> {
    let line = beginning(&format!("/proc/{pid}/cmdline"), COMMAND_MAX).ok()?;
    let words = line.split(|byte| *byte == 0);
    let words = words.filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    if !words.is_empty() {
        return Some(words.join(" "));
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// A file that /proc has of a process, or of a thread (`7/task/8`); empty where it has none.
pub(crate) fn told(of: impl Display, name: &str) -> String {
    let bytes = fs::read(format!("/proc/{of}/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The numbers among the names in a folder of /proc.
fn numbered(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok())
}

/// All processes but this one.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    numbered("/proc").filter(|it| *it != std::process::id())
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> impl Iterator<Item = u32> {
    numbered(&format!("/proc/{pid}/task"))
}

/// What `/proc/PID/stat` says of a process. `state` is a letter, `ran` its time on processors in ticks, `began` the ticks from
/// the machine's start to its own.
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) flags: u32,
    pub(crate) ran: u64,
    pub(crate) began: u64,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Stat> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    /// The name may hold any character.
    pub(crate) fn parse(text: &str) -> Option<Stat> {
        let (before, after) = text.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace();
        Some(Stat {
            name: before.split_once('(')?.1.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            flags: fields.nth(4)?.parse().unwrap_or(0),
            ran: [fields.nth(4)?, fields.next()?]
                .iter()
                .filter_map(|it| it.parse::<u64>().ok())
                .sum(),
            began: fields.nth(6)?.parse().ok()?,
        })
    }
}

/// The numbers of a line of `/proc/PID/status`.
pub(crate) fn numbers(status: &str, name: &str) -> Vec<u32> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let line = lines.find(|line| line.0 == name);
    let words = line.map(|it| it.1.split_ascii_whitespace());
    let words = words.into_iter().flatten();
    words.map_while(|it| it.parse().ok()).collect()
}

fn is_capable(status: &str) -> bool {
    let line = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    let bits = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    bits.is_some_and(|it| it >> CAP_SYS_PTRACE & 1 == 1)
}

/// The right to attach that is used, or why there is none and what would give it. `owners` are the process's real, effective
/// and saved user, `user` is the first by name, `tracer` who traces it already (0 for nobody).
pub(crate) fn right(
    pid: impl Display,
    own: Own,
    owners: &[u32],
    user: &str,
    tracer: u32,
) -> Result<String, String> {
    let is_own = owners.iter().all(|it| *it == own.user);
    let scope = own.scope;
    match (own.is_capable, is_own) {
        _ if tracer != 0 => Err(format!(
            "Process {tracer} traces it already, as a debugger does: only one can."
        )),
        _ if scope >= 3 => Err(
            "Nobody may: kernel.yama.ptrace_scope is 3 until the machine starts anew.".to_owned(),
        ),
        (true, _) => Ok("You may: you have CAP_SYS_PTRACE, as root has.".to_owned()),
        (false, true) if scope == 0 => Ok("You may: the process is yours.".to_owned()),
        // Root of a container.
        (false, _) if own.user == 0 => Err(
            "It takes CAP_SYS_PTRACE: start the container with --cap-add SYS_PTRACE.".to_owned(),
        ),
        (false, false) => Err(format!(
            "It belongs to {user}, and you may not. This may: sudo cuptop attach {pid}"
        )),
        (false, true) => Err(format!(
            "kernel.yama.ptrace_scope is {scope}: you may not. This may: sudo cuptop attach {pid}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of ptrace(2), "Ptrace access mode checking", and of Yama's documentation.
    #[test]
    fn the_rules_are_those_of_the_kernel() {
        let all_mine = [1000; 3];
        let setuid = [1000, 0, 0];
        for (user, is_capable, scope, owners, tracer, expected) in [
            (1000, false, 0, all_mine, 0, Ok("the process is yours")),
            (1000, false, 1, all_mine, 0, Err("ptrace_scope is 1")),
            (1000, false, 2, all_mine, 0, Err("sudo cuptop attach 7")),
            (1000, false, 0, [1001; 3], 0, Err("It belongs to ana")),
            (1000, false, 0, setuid, 0, Err("It belongs to ana")),
            (0, true, 1, all_mine, 0, Ok("CAP_SYS_PTRACE")),
            (0, true, 2, all_mine, 0, Ok("CAP_SYS_PTRACE")),
            (0, true, 3, [0; 3], 0, Err("ptrace_scope is 3")),
            (0, false, 0, [0; 3], 0, Ok("the process is yours")),
            (0, false, 1, [0; 3], 0, Err("--cap-add SYS_PTRACE")),
            (0, false, 0, all_mine, 0, Err("--cap-add SYS_PTRACE")),
            (0, true, 0, [0; 3], 99, Err("Process 99 traces it")),
        ] {
            let own = Own {
                user,
                is_capable,
                scope,
            };
            let said = right(7, own, &owners, "ana", tracer);
            let fits = match (&said, expected) {
                (Ok(said), Ok(part)) | (Err(said), Err(part)) => said.contains(part),
                _ => false,
            };
            assert!(fits, "{own:?} {owners:?}: {said:?}");
            let (Ok(text) | Err(text)) = said;
            assert!(text.split_whitespace().count() <= 20, "{text}");
        }
    }

    #[test]
    fn what_a_process_says_of_itself_may_be_endless() {
        let read = beginning("/dev/zero", 1 << 20).expect("readable");
        assert_eq!(read.len(), 1 << 20);
        let own = environment(std::process::id()).expect("its own");
        assert!(own.split(|it| *it == 0).any(|it| it.starts_with(b"PATH=")));
    }

    #[test]
    fn the_capability_is_the_nineteenth_bit() {
        // Root's on Linux 6.8, a container's by default (Docker), and nobody's.
        for (bits, expected) in [
            ("000001ffffffffff", true),
            ("00000000a80425fb", false),
            ("00000000a80c25fb", true),
            ("0000000000000000", false),
        ] {
            let status = format!("Name:\tx\nCapEff:\t{bits}\n");
            assert_eq!(is_capable(&status), expected, "{bits}");
        }
        assert!(!is_capable("CapEff:\tzz\n"));
    }
}
