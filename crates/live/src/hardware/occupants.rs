//! Who else is on a GPU.

use std::collections::BTreeSet;

use crate::nvml::{self, Device};
use crate::rights::Stat;
use activity::{Hardware, Ns, Occupant, Owner, Uuid};

/// Time between two lists, in ns: who is on a GPU changes seldom.
const PERIOD: Ns = 1_000_000_000;
/// Ancestors that are asked for at most: none is as deep, unless ids are used again meanwhile.
const DEEPEST: usize = 64;

/// The processes on a GPU, told when they change.
#[derive(Debug, Default)]
pub(super) struct Listing {
    next: Ns,
    told: Vec<Occupant>,
    has_looked: bool,
    /// Whether a process of the program was ever listed. NVML's ids are those of the driver's process namespace; only if
    /// that is ours too, an id that is not the program's is another's.
    knows_program: bool,
}

impl Listing {
    /// The processes, if they are others than the last time.
    pub(super) fn read(
        &mut self,
        device: &Device,
        uuid: Uuid,
        now: Ns,
        program: &BTreeSet<u32>,
        own: &[u32],
    ) -> Option<Hardware> {
        if now < self.next {
            return None;
        }
        self.next = now + PERIOD;
        self.has_looked = true;
        let mut listed = nvml::processes(device).ok()?;
        // Those that sample counters for us are neither the program's nor anybody else's.
        listed.retain(|it| !own.contains(&it.pid));
        listed.sort_unstable_by_key(|it| it.pid);
        let is_programs: Vec<bool> = listed
            .iter()
            .map(|it| program.contains(&it.pid) || descends(it.pid))
            .collect();
        self.knows_program |= is_programs.contains(&true);
        let all: Vec<Occupant> = listed
            .iter()
            .zip(is_programs)
            .map(|(it, is_programs)| Occupant {
                pid: it.pid,
                name: Stat::of(it.pid).map_or_else(String::new, |it| it.name),
                memory: it.memory,
                owner: match (is_programs, self.knows_program) {
                    (true, _) => Owner::Program,
                    (false, true) => Owner::Other,
                    (false, false) => Owner::Unknown,
                },
            })
            .collect();
        // Memory alone goes up and down all the time, and has a row of its own.
        let is_same = all.len() == self.told.len()
            && all
                .iter()
                .zip(&self.told)
                .all(|(a, b)| (a.pid, a.owner) == (b.pid, b.owner) && !grew(a.memory, b.memory));
        if is_same {
            return None;
        }
        self.told.clone_from(&all);
        Some(Hardware::Occupants {
            uuid,
            time: now,
            all,
        })
    }

    /// Whether a process of another user is there. `None` before the first look. Where NVML gives no list, or ids of another
    /// process namespace, nobody is known to be there.
    pub(super) fn has_strangers(&self) -> Option<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let own = rustix::process::getuid().as_raw();
        let is_strange = |it: &Occupant| {
            let folder = std::fs::metadata(format!("/proc/{}", it.pid));
            it.owner != Owner::Program && folder.is_ok_and(|it| it.uid() != own)
        };
        self.has_looked.then(|| self.told.iter().any(is_strange))
    }
}

/// Whether somebody's memory is half as much again as it was told.
fn grew(now: Option<u64>, told: Option<u64>) -> bool {
    now.unwrap_or(0) / 3 > told.unwrap_or(0) / 2
}

/// Whether a process is of this one's descendants.
fn descends(pid: u32) -> bool {
    let own = std::process::id();
    let mut at = pid;
    for _ in 0..DEEPEST {
        match Stat::of(at) {
            Some(it) if it.parent == own => return true,
            Some(it) if it.parent > 1 => at = it.parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets() {
        let text = "4711 (a) R 1 (b)) S 4242 1 1";
        let rest = "1 0 -1 4194304 10 0 0 0 7 1 0 0 20 0 33 0 250000 1 2";
        let stat = Stat::parse(&format!("{text} {rest}")).expect("whole");
        assert_eq!((stat.name.as_str(), stat.parent), ("a) R 1 (b)", 4242));
        assert!(Stat::parse("4711 (a").is_none());
    }

    #[test]
    fn a_child_descends_and_a_parent_does_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .expect("starts");
        assert!(descends(child.id()));
        assert!(!descends(1));
        assert!(!descends(std::process::id()));
        child.kill().expect("killed");
        child.wait().expect("ends");
    }
}
