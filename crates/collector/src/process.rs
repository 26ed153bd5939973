//! Who this process is.

use activity::ProcessInfo;

/// What a recording says of its process.
#[derive(Clone, Debug)]
pub(crate) struct ThisProcess {
    command: String,
    place: Place,
    host: String,
}

/// Where a process stands in a distributed program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    rank: Option<u32>,
    local_rank: Option<u32>,
    world: Option<u32>,
}

/// What launchers call a process's rank, and how many there are. In order: what started the process itself comes before
/// what started its launcher. A batch script of Slurm gives all that `mpirun` starts in it the rank 0.
const LAUNCHERS: [(&str, &str); 4] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

impl Place {
    /// Reads these variables of the environment and no others.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Place {
        let number = |name: &str| -> Option<u32> { variable(name)?.trim().parse().ok() };
        let named = LAUNCHERS.iter().find_map(|(rank, size)| {
            let rank = number(rank)?;
            Some((rank, number(size).filter(|&size| size > rank)))
        });
        Place {
            rank: named.map(|(rank, _)| rank),
            local_rank: number("LOCAL_RANK"),
            world: named.and_then(|(_, world)| world),
        }
    }
}

impl ThisProcess {
    pub(crate) fn read() -> ThisProcess {
        let mut command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        while command.last() == Some(&0) {
            command.pop();
        }
        for byte in &mut command {
            if *byte == 0 {
                *byte = b' ';
            }
        }
        let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
        ThisProcess {
            command: String::from_utf8_lossy(&command).into_owned(),
            place: Place::of(|name| std::env::var(name).ok()),
            host: String::from_utf8_lossy(host.trim_ascii()).into_owned(),
        }
    }

    pub(crate) fn describe(&self, versions: &str) -> ProcessInfo {
        ProcessInfo {
            pid: std::process::id(),
            rank: self.place.rank,
            local_rank: self.place.local_rank,
            world: self.place.world,
            host: self.host.clone(),
            command: self.command.clone(),
            versions: versions.to_owned(),
            ended_well: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(environment: &[(&str, &str)]) -> Place {
        Place::of(|name| {
            let found = environment.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn the_rank_is_that_of_the_innermost_launcher() {
        let known = |rank, local_rank, world| Place {
            rank: Some(rank),
            local_rank,
            world,
        };
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
        assert_eq!(place(&slurm), known(0, None, Some(2)));
        let torchrun = [("RANK", "5"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8")];
        let both = [&slurm[..], &torchrun].concat();
        assert_eq!(place(&both), known(5, Some(1), Some(8)));
        let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(place(&[&slurm[..], &mpi].concat()), known(3, None, Some(4)));
        assert_eq!(
            place(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]),
            known(1, None, Some(2))
        );
        // `sbatch` counts its tasks and starts one script that is none of them.
        assert_eq!(place(&[("SLURM_NTASKS", "8")]), Place::default());
        assert_eq!(
            place(&[("RANK", "x"), ("WORLD_SIZE", "2")]),
            Place::default()
        );
        // A size that cannot be is not taken.
        assert_eq!(
            place(&[("RANK", "2"), ("WORLD_SIZE", "2")]),
            known(2, None, None)
        );
    }
}
