//! Which GPUs a program uses that records nothing, because it ran before cuptop came.
//!
//! NVML lists the processes that compute on a GPU: where it lists one of ours, that is certain. In a container with process ids of its
//! own it lists others' ids. Then the device files that a process has open tell, less well: CUDA opens those of every GPU that the
//! process may see. So they are narrowed by the `CUDA_VISIBLE_DEVICES` that it was started with. A notice says that this is no more
//! than what may be used.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::nvml::{self, Device, Nvml};
use crate::{python, rights};
use activity::text::listed;
use activity::{GpuIdentity, Hardware, Uuid};

/// Time between two searches, until one finds something and from then on: a program may come to use another GPU.
const OFTEN: Duration = Duration::from_secs(1);
const RARELY: Duration = Duration::from_secs(10);
/// How long a program may take before it is said that it uses none.
const PATIENCE: Duration = Duration::from_secs(3);

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) identity: GpuIdentity,
    /// The N of `/dev/nvidiaN`.
    minor: Option<u32>,
}

/// Looks for the GPUs of a process and its descendants.
pub(super) struct Finder {
    root: u32,
    next: Option<Instant>,
    began: Instant,
    has_told: bool,
    /// What has been found.
    pub(super) gpus: BTreeSet<Uuid>,
    /// The process and its descendants.
    pub(super) processes: BTreeSet<u32>,
}

impl Finder {
    pub(super) fn new(root: u32) -> Finder {
        Finder {
            root,
            next: None,
            began: Instant::now(),
            has_told: false,
            gpus: BTreeSet::new(),
            processes: BTreeSet::new(),
        }
    }

    /// Searches, if it is time. What is to be said comes back: GPUs that are new, and once what is uncertain or missing.
    pub(super) fn find(&mut self, nvml: Nvml, now: Instant) -> Vec<Hardware> {
        if self.next.is_some_and(|next| now < next) {
            return Vec::new();
        }
        self.processes = python::family(self.root).into_iter().collect();
        let devices = nvml.devices().unwrap_or_default();
        let users = users(self.processes.iter().copied(), &devices);
        let is_certain = users.iter().any(|it| it.0);
        let found = users.into_iter().filter(|it| it.0 == is_certain);
        let found: BTreeSet<usize> = found.flat_map(|it| it.1).collect();
        let found = found
            .iter()
            .filter_map(|&at| known((at as u32, &devices[at])));
        let found: Vec<GpuIdentity> = found.map(|it| it.identity).collect();
        let numbers: Vec<String> = found.iter().map(|it| it.index.to_string()).collect();
        let new = found.into_iter().filter(|it| self.gpus.insert(it.uuid));
        let mut said: Vec<Hardware> = new.map(Hardware::Gpu).collect();
        let pid = self.root;
        if !said.is_empty() && !is_certain && !std::mem::replace(&mut self.has_told, true) {
            said.push(Hardware::Note(format!(
                "NVML lists no process of this one's ids on a GPU (as in a container): the hardware rows are of GPU {}, whose device files process \
                 {pid} or one that it started has open; it may use fewer",
                listed(&numbers)
            )));
        }
        let is_late = now.duration_since(self.began) > PATIENCE;
        if self.gpus.is_empty() && is_late && !std::mem::replace(&mut self.has_told, true) {
            said.push(Hardware::Note(format!(
                "no hardware rows: process {pid} and those that it started use no GPU so far, by NVML's lists and by their open device files"
            )));
        }
        self.next = Some(match self.gpus.is_empty() {
            true => now + OFTEN,
            false => now + RARELY,
        });
        said
    }
}

/// The GPUs of each process, by their places among `devices`, and whether NVML lists it there. Else its open files say that it may use
/// these.
pub(crate) fn users(
    pids: impl Iterator<Item = u32>,
    devices: &[Device],
) -> Vec<(bool, Vec<usize>)> {
    let known: Vec<Known> = (0..).zip(devices).filter_map(known).collect();
    let lists = devices
        .iter()
        .map(|it| nvml::processes(it).unwrap_or_default());
    let lists: Vec<_> = lists.collect();
    let of = |pid: u32| {
        let is_on = |at: &usize| lists[*at].iter().any(|it| it.pid == pid);
        let by_list: Vec<usize> = (0..devices.len()).filter(is_on).collect();
        if !by_list.is_empty() {
            return (true, by_list);
        }
        let open = opened_by(pid, &known);
        let open = open.iter().map(|it| it.identity.index as usize);
        (false, open.collect())
    };
    pids.map(of).collect()
}

/// The GPUs that a process may use by the files that it has open and the variables that it began with.
pub(crate) fn opened_by(pid: u32, known: &[Known]) -> Vec<&Known> {
    let minors = open_minors(Path::new(&format!("/proc/{pid}/fd")));
    let mut open: Vec<&Known> = known.iter().collect();
    open.retain(|it| it.minor.is_some_and(|minor| minors.contains(&minor)));
    if open.is_empty() {
        return open;
    }
    let environment = rights::environment(pid).unwrap_or_default();
    let visible = variable(&environment, "CUDA_VISIBLE_DEVICES");
    let order = variable(&environment, "CUDA_DEVICE_ORDER");
    if let Some(visible) = visible.and_then(|it| visible_of(&it, order.as_deref(), known)) {
        open.retain(|it| visible.contains(&it.identity.uuid));
    }
    open
}

/// A GPU with its number in NVML's order.
pub(crate) fn known((index, device): (u32, &Device)) -> Option<Known> {
    Some(Known {
        identity: GpuIdentity {
            uuid: nvml::uuid(device)?,
            index,
            name: device.name().unwrap_or_default(),
        },
        minor: device.minor_number().ok(),
    })
}

/// The N of every `/dev/nvidiaN` among the files of a folder like `/proc/PID/fd`, if `/dev/nvidia-uvm` is among them too. That
/// one is CUDA's; who only asks NVML opens the others alone.
fn open_minors(folder: &Path) -> BTreeSet<u32> {
    let (mut minors, mut has_cuda) = (BTreeSet::new(), false);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else {
            continue;
        };
        let Some(rest) = target
            .to_str()
            .and_then(|it| it.strip_prefix("/dev/nvidia"))
        else {
            continue;
        };
        has_cuda |= rest == "-uvm";
        minors.extend(rest.parse::<u32>().ok());
    }
    if !has_cuda {
        minors.clear();
    }
    minors
}

/// The value of a variable in what `/proc/PID/environ` holds.
fn variable(environment: &[u8], name: &str) -> Option<String> {
    environment.split(|byte| *byte == 0).find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(rest).into_owned())
    })
}

/// The GPUs that a value of `CUDA_VISIBLE_DEVICES` names; `None` where that cannot be told: parts of a GPU (MIG), and numbers in an
/// order that is not NVML's. As CUDA does, what follows a word that names none is left out.
fn visible_of(value: &str, order: Option<&str>, known: &[Known]) -> Option<BTreeSet<Uuid>> {
    // By default the fastest is first; of one model all are as fast, and the order is the PCI bus's, as NVML's is.
    let mut models = known.iter().map(|it| it.identity.name.as_str());
    let first = models.next();
    let is_bus_order = order == Some("PCI_BUS_ID") || models.all(|it| Some(it) == first);
    let mut named = BTreeSet::new();
    for word in value.split(',').map(str::trim) {
        let found = if word.starts_with("MIG-") {
            return None;
        } else if let Some(digits) = word.strip_prefix("GPU-") {
            // A beginning is enough, if it is one GPU's alone.
            let mut fitting = known
                .iter()
                .filter(|it| activity::uuid_text(&it.identity.uuid).starts_with(digits));
            fitting.next().filter(|_| fitting.next().is_none())
        } else {
            let index = word.parse::<u32>().ok();
            if index.is_some() && !is_bus_order {
                return None;
            }
            known.iter().find(|it| Some(it.identity.index) == index)
        };
        match found {
            Some(it) => named.insert(it.identity.uuid),
            None => break,
        };
    }
    Some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, name: &str, minor: u32) -> Known {
        Known {
            identity: GpuIdentity {
                uuid: [0x10 + index as u8; 16],
                index,
                name: name.to_owned(),
            },
            minor: Some(minor),
        }
    }

    /// The rules of the CUDA C++ programming guide, "CUDA environment variables".
    #[test]
    fn visible_devices_are_read_as_cuda_reads_them() {
        let alike = [gpu(0, "H200", 2), gpu(1, "H200", 1), gpu(2, "H200", 0)];
        let mixed = [gpu(0, "T4", 0), gpu(1, "H200", 1)];
        let uuids = |numbers: &[u8]| Some(numbers.iter().map(|it| [0x10 + it; 16]).collect());
        let full = format!("GPU-{}", activity::uuid_text(&[0x12; 16]));
        for (value, order, known, expected) in [
            ("0", None, &alike[..], uuids(&[0])),
            ("2, 0", None, &alike[..], uuids(&[0, 2])),
            ("1,-1,2", None, &alike[..], uuids(&[1])),
            ("", None, &alike[..], uuids(&[])),
            (full.as_str(), None, &alike[..], uuids(&[2])),
            ("GPU-1111", None, &alike[..], uuids(&[1])),
            // Of two GPUs it is none.
            ("GPU-1", None, &alike[..], uuids(&[])),
            ("MIG-aa", None, &alike[..], None),
            ("0", None, &mixed[..], None),
            ("0", Some("FASTEST_FIRST"), &mixed[..], None),
            ("0", Some("PCI_BUS_ID"), &mixed[..], uuids(&[0])),
        ] {
            assert_eq!(
                visible_of(value, order, known),
                expected,
                "{value} {order:?}"
            );
        }
        let environment = b"A=1\0CUDA_VISIBLE_DEVICES_X=9\0CUDA_VISIBLE_DEVICES=0,1\0";
        let found = variable(environment, "CUDA_VISIBLE_DEVICES");
        assert_eq!(found.as_deref(), Some("0,1"));
    }

    #[test]
    fn open_device_files_count_only_where_cuda_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = |number: u32, target: &str| {
            std::os::unix::fs::symlink(target, folder.path().join(number.to_string()))
                .expect("a link");
        };
        for (number, target) in [
            (0, "/dev/null"),
            (3, "/dev/nvidiactl"),
            (4, "/dev/nvidia3"),
            (5, "/dev/nvidia3"),
            (6, "/dev/nvidia12"),
            (7, "socket:[1]"),
        ] {
            link(number, target);
        }
        // nvidia-smi.
        assert!(open_minors(folder.path()).is_empty());
        link(8, "/dev/nvidia-uvm");
        assert_eq!(open_minors(folder.path()), BTreeSet::from([3, 12]));
        assert!(open_minors(Path::new("/nonexistent")).is_empty());
    }
}
