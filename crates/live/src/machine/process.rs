//! What /proc knows of a process that uses a GPU.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::attach;
use crate::rights::{self, Own, Stat, numbers};

/// The kernel's ticks a second (`USER_HZ`) on x86-64 and aarch64.
const TICKS: u64 = 100;
/// The first process namespace of a machine (`PROC_PID_INIT_INO` of the kernel), whose ids the driver uses.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// What can be seen of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    Seen(Seen),
    /// It is there, and /proc does not show it to this user.
    Hidden,
    /// /proc has no process of this number: it ended, or the number is that of another process namespace.
    #[default]
    Elsewhere,
}

/// What /proc tells of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its owner's name, or the number without one.
    pub user: String,
    pub command: String,
    /// When it began, in ticks since the machine did: with the id that is this process and no later one.
    pub began: u64,
    pub age: Duration,
    /// Its number within its own process namespace, where that is another one.
    pub inner: Option<u32>,
    /// Whether its system calls are filtered.
    pub is_filtered: bool,
    /// The right to attach that this user has, or what would give it.
    pub right: Result<String, String>,
}

/// What is the same for all processes.
pub(super) struct Proc {
    own: Own,
    users: BTreeMap<u32, String>,
    uptime: Duration,
}

/// Whether /proc here numbers processes as the driver does.
pub(super) fn is_own_namespace_the_drivers() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|it| it.as_os_str() == FIRST_NAMESPACE)
}

impl Proc {
    pub(super) fn open() -> Proc {
        Proc {
            own: Own::default(),
            users: users(&fs::read_to_string("/etc/passwd").unwrap_or_default()),
            uptime: Duration::ZERO,
        }
    }

    /// Reads what may have changed since the last look.
    pub(super) fn refresh(&mut self) {
        let now = clock_gettime(ClockId::Boottime);
        self.uptime = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
        self.own = Own::read();
    }

    pub(super) fn sight(&self, pid: u32) -> Sight {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
        let text = |name: &str| Some(String::from_utf8_lossy(&read(name)?).into_owned());
        if let (Some(stat), Some(status)) = (Stat::of(pid), text("status"))
            && let Some(mut seen) = self.seen(pid, stat.began, &status)
        {
            seen.command = attach::command(pid).unwrap_or_default();
            // What the kernel itself says goes before its rules: a process may have allowed it (PR_SET_PTRACER), or have a guard.
            if ptrace::may_read(pid).is_ok()
                && seen.right.is_err()
                && numbers(&status, "TracerPid") == [0]
            {
                seen.right = Ok("You may: the kernel allows it.".to_owned());
            }
            return Sight::Seen(seen);
        }
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
        match id.map(test_kill_process) {
            Some(Ok(()) | Err(Errno::PERM)) => Sight::Hidden,
            _ => Sight::Elsewhere,
        }
    }

    /// What `/proc/PID/stat` and `status` say.
    fn seen(&self, pid: u32, began: u64, status: &str) -> Option<Seen> {
        let numbers = |name| numbers(status, name);
        let owners = numbers("Uid");
        let owner = *owners.first()?;
        let name = self.users.get(&owner);
        let user = name.cloned().unwrap_or_else(|| owner.to_string());
        let one = |name| numbers(name).first().copied().unwrap_or(0);
        let told = rights::right(pid, self.own, &owners, &user, one("TracerPid"));
        Some(Seen {
            user,
            command: String::new(),
            began,
            age: self
                .uptime
                .saturating_sub(Duration::from_secs(began / TICKS)),
            inner: numbers("NSpid").get(1..).and_then(<[u32]>::last).copied(),
            is_filtered: one("Seccomp") == 2,
            right: told,
        })
    }
}

/// Names by number, as `/etc/passwd` has them.
fn users(passwd: &str) -> BTreeMap<u32, String> {
    let lines = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines are those of a container's process as Linux 6.8 writes them on the host.
    #[test]
    fn what_proc_says_of_a_process_is_read() {
        let proc = Proc {
            own: Own {
                user: 1000,
                ..Own::default()
            },
            users: users(
                "root:x:0:0:root:/root:/bin/bash\nbroken\nana:x:1001:1001::/home/ana:/bin/sh\n",
            ),
            uptime: Duration::from_secs(10_000),
        };
        let stat =
            "48213 (py) S 3 (x) R 1 48213 1 0 -1 4194304 10 0 0 0 7 1 0 0 20 0 33 0 250000 1 2";
        let stat = Stat::parse(stat).expect("whole");
        let status = "Name:\tpy\nTracerPid:\t0\nUid:\t1001\t1001\t1001\t1001\nNSpid:\t48213\t7\nSeccomp:\t2\n";
        let seen = proc.seen(48213, stat.began, status).expect("whole");
        assert_eq!((seen.user.as_str(), seen.began), ("ana", 250_000));
        assert_eq!(seen.age, Duration::from_secs(7_500));
        assert_eq!((seen.inner, seen.is_filtered), (Some(7), true));
        assert!(seen.right.is_err_and(|it| it.contains("belongs to ana")));
        let plain = "Uid:\t77\t77\t77\t77\nNSpid:\t5\nSeccomp:\t0\n";
        let seen = proc.seen(5, stat.began, plain).expect("whole");
        assert_eq!(
            (seen.user.as_str(), seen.inner, seen.is_filtered),
            ("77", None, false)
        );
        assert_eq!(proc.seen(5, stat.began, "Name:\ta\n"), None);
    }

    #[test]
    fn a_process_here_is_seen_and_one_that_is_not_is_elsewhere() {
        let mut proc = Proc::open();
        proc.refresh();
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .expect("starts");
        while !attach::command(child.id()).is_some_and(|it| it.starts_with("sleep")) {
            std::thread::yield_now();
        }
        let Sight::Seen(seen) = proc.sight(child.id()) else {
            panic!("its own child");
        };
        assert_eq!(seen.command, "sleep 30");
        assert!(seen.age < Duration::from_secs(60), "{seen:?}");
        child.kill().expect("killed");
        child.wait().expect("ends");
        assert_eq!(proc.sight(child.id()), Sight::Elsewhere);
        assert_eq!(proc.sight(u32::MAX >> 1), Sight::Elsewhere);
    }
}
