//! Which processes are ranks of one job, as /proc and their environments tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::attach::{Refused, command, no_process};
use crate::python::{self, began, family, has_mapped};
use crate::rights::{Stat, environment, numbers, processes, told};

/// Variables of launchers that tell rank and ranks, and rank and ranks on this host, as `docs/RANKS.md` has them.
#[rustfmt::skip]
const RANKS: [[&str; 4]; 4] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"],
];
/// Variables that are the same for all ranks of a job, and others in another job.
const JOBS: &str = "MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID OMPI_MCA_ess_base_jobid PMIX_NAMESPACE \
    SLURM_STEP_ID";

/// A rank of a job, or a program of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) inner: Option<u32>,
    pub(super) rank: Option<u32>,
    /// Processes that it started and that are no ranks: DataLoaders' workers, compilers.
    pub(super) helpers: Vec<u32>,
    /// When it began; nothing for a rank that was not found.
    pub(super) began: Option<u64>,
}

impl Member {
    /// Whether it is the process that was found, and has not ended.
    pub(super) fn is_there(&self) -> bool {
        self.began.is_some() && began(self.pid) == self.began
    }
}

/// What a process's environment says of its place in a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    job: Vec<String>,
    rank: u32,
    /// Rank on this host, and how many there are.
    local: Option<(u32, u32)>,
}

/// A job, and what is said of it.
pub(super) type Found = (String, Vec<Member>);

/// The jobs: that which a process is of or started, or all that use CUDA.
///
/// # Errors
/// When there is no such process, or none that uses CUDA.
pub(super) fn find(pid: Option<u32>) -> Result<Vec<Found>, Refused> {
    let named = match pid {
        Some(pid) => Some((pid, command(pid).ok_or_else(|| no_process(pid))?)),
        None => None,
    };
    // A thread of the kernel runs no program, so that it waits for nobody's requests.
    if let Some((pid, _)) = named.as_ref().filter(|it| is_of_kernel(it.0)) {
        return Err(Refused::new(
            format!("process {pid} is a thread of the kernel: it runs no program"),
            "`cuptop job` without a number looks at all that use CUDA",
        ));
    }
    let everybody: Vec<u32> = processes().collect();
    let within: BTreeSet<u32> = match pid {
        Some(pid) => family(pid).into_iter().collect(),
        None => everybody
            .iter()
            .copied()
            .filter(|it| uses_cuda(*it))
            .collect(),
    };
    let jobs = ranked(&within, &everybody);
    let members = jobs.iter().flatten();
    let ranked: BTreeSet<u32> = members
        .flat_map(|it| it.helpers.iter().copied().chain([it.pid]))
        .collect();
    let started_by = jobs.iter().flatten().filter_map(|it| parent(it.pid));
    let launchers: BTreeSet<u32> = started_by.collect();
    let rest = within
        .iter()
        .copied()
        .filter(|it| !ranked.contains(it) && !launchers.contains(it) && uses_cuda(*it));
    let mut alone: Vec<u32> = rest.collect();
    let mut found: Vec<Found> = jobs.into_iter().map(|it| (title(&it), it)).collect();
    match named {
        // Without ranks' numbers the processes of one program are held together. It may not use CUDA yet, or no more.
        Some((pid, text)) if found.is_empty() => {
            if alone.is_empty() {
                alone.push(pid);
            }
            found.push((text, alone.into_iter().map(|it| member(it, None)).collect()));
        }
        _ => found.extend(
            alone
                .into_iter()
                .map(|it| (command(it).unwrap_or_default(), vec![member(it, None)])),
        ),
    }
    if found.is_empty() {
        return Err(Refused::new(
            "nothing here uses CUDA that you may look at",
            "`cuptop job PID` looks at a process or a launcher",
        ));
    }
    Ok(found)
}

/// Whether a process is a thread of the kernel, by the flags of its status (`PF_KTHREAD`).
fn is_of_kernel(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|it| it.flags & 0x0020_0000 != 0)
}

/// The ranks of all jobs that a process of some is of.
fn ranked(within: &BTreeSet<u32>, everybody: &[u32]) -> Vec<Vec<Member>> {
    let places = everybody.iter().filter_map(|it| Some((*it, place(*it)?)));
    let places: BTreeMap<u32, Place> = places.collect();
    let asked: Vec<&Place> = within.iter().filter_map(|it| places.get(it)).collect();
    let mut jobs: BTreeMap<Vec<String>, Vec<Member>> = BTreeMap::new();
    for (&pid, place) in &places {
        // What a rank starts has its environment, too.
        let is_same = |by: u32| {
            places
                .get(&by)
                .is_some_and(|it| (&it.job, it.rank) == (&place.job, place.rank))
        };
        let is_first = !parent(pid).is_some_and(is_same);
        let is_asked = asked.iter().any(|it| it.job == place.job);
        if is_asked && is_first && (uses_cuda(pid) || python::has_python(pid)) {
            let job = jobs.entry(place.job.clone()).or_default();
            job.push(member(pid, Some(place.rank)));
        }
    }
    for (job, members) in &mut jobs {
        add_missing(members, places.values().filter(|it| it.job == *job));
    }
    jobs.into_values().collect()
}

/// Adds the ranks of this host that are not there.
fn add_missing<'a>(members: &mut Vec<Member>, mut places: impl Iterator<Item = &'a Place>) {
    let known: BTreeSet<u32> = members.iter().filter_map(|it| it.rank).collect();
    // The first rank of a host has consecutive ranks behind it, as torchrun and mpirun number them by default.
    let first = places.find_map(|it| Some((it.rank.checked_sub(it.local?.0)?, it.local?.1)));
    if let Some((first, count)) = first.filter(|it| it.1 <= 64) {
        let missing = (first..first.saturating_add(count)).filter(|it| !known.contains(it));
        members.extend(missing.map(|rank| Member {
            rank: Some(rank),
            ..Member::default()
        }));
    }
    members.sort_by_key(|it| (it.rank, it.pid));
}

/// What started all of them, or the first one's own command.
fn title(members: &[Member]) -> String {
    let first = members.iter().find(|it| it.pid != 0);
    let by = first
        .and_then(|it| parent(it.pid))
        .filter(|it| members.len() > 1 && *it > 1);
    by.or(first.map(|it| it.pid))
        .and_then(command)
        .unwrap_or_default()
}

fn member(pid: u32, rank: Option<u32>) -> Member {
    let mut helpers = family(pid);
    helpers.retain(|it| *it != pid);
    Member {
        inner: numbers(&told(pid, "status"), "NSpid")
            .get(1..)
            .and_then(<[u32]>::last)
            .copied(),
        began: began(pid),
        helpers,
        pid,
        rank,
    }
}

pub(super) fn uses_cuda(pid: u32) -> bool {
    has_mapped(pid, b"/libcuda.so.")
}

fn parent(pid: u32) -> Option<u32> {
    Stat::of(pid).map(|it| it.parent)
}

fn place(pid: u32) -> Option<Place> {
    of_environment(&environment(pid).ok()?)
}

fn of_environment(environment: &[u8]) -> Option<Place> {
    let lines = environment
        .split(|it| *it == 0)
        .filter_map(|it| std::str::from_utf8(it).ok()?.split_once('='));
    let all: BTreeMap<&str, &str> = lines.collect();
    let number = |name: &str| all.get(name)?.parse::<u32>().ok();
    RANKS.iter().find_map(|[rank, size, local, count]| {
        let (rank, size) = (number(rank)?, number(size)?);
        let job = JOBS.split(' ').filter_map(|it| all.get(it));
        let job = job.map(|it| (*it).to_owned());
        (rank < size && size > 1).then(|| Place {
            job: job.collect(),
            rank,
            local: number(local).zip(number(count)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_job_is_read_from_the_environment() {
        let torchrun = b"A=1\0RANK=5\0WORLD_SIZE=8\0LOCAL_RANK=1\0LOCAL_WORLD_SIZE=4\0MASTER_ADDR=a\0MASTER_PORT=29500\0";
        let place = of_environment(torchrun).expect("a rank");
        assert_eq!((place.rank, place.local), (5, Some((1, 4))));
        assert_eq!(place.job, ["a", "29500"]);
        // Of one rank nobody waits for another, and Slurm's numbers outside of a step name none.
        for none in [
            &b"RANK=0\0WORLD_SIZE=1\0"[..],
            b"SLURM_PROCID=0\0",
            b"RANK=x\0WORLD_SIZE=2\0",
            b"RANK=2\0WORLD_SIZE=2\0",
            b"\xff",
        ] {
            assert_eq!(of_environment(none), None);
        }
    }

    #[test]
    fn a_thread_of_the_kernel_is_no_job() {
        assert!(!is_of_kernel(std::process::id()));
        // Outside of containers it is the second process.
        if told(2, "comm") != "kthreadd\n" {
            return;
        }
        let said = find(Some(2)).expect_err("it runs no program").message;
        assert!(said.contains("thread of the kernel"), "{said}");
    }

    #[test]
    fn a_rank_that_is_not_there_is_a_member_all_the_same() {
        let place = of_environment(b"RANK=5\0WORLD_SIZE=8\0LOCAL_RANK=1\0LOCAL_WORLD_SIZE=4\0")
            .expect("a rank");
        let mut members = [7, 4, 5]
            .map(|rank| Member {
                pid: 100 + rank,
                rank: Some(rank),
                ..Member::default()
            })
            .to_vec();
        add_missing(&mut members, std::iter::once(&place));
        let ranks: Vec<_> = members.iter().map(|it| (it.rank, it.pid)).collect();
        assert_eq!(
            ranks,
            [(Some(4), 104), (Some(5), 105), (Some(6), 0), (Some(7), 107)]
        );
        assert!(!members[2].is_there());
    }
}
