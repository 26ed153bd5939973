//! Who this process is.

use activity::ProcessInfo;

/// What launchers call a process's rank, and how many there are. In order: what started the process itself comes before
/// what started its launcher. A batch script of Slurm gives all that `mpirun` starts in it the rank 0.
const LAUNCHERS: [(&str, &str); 4] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// What a recording says of this process before anything is loaded into it.
pub(crate) fn this_process() -> ProcessInfo {
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
    ProcessInfo {
        pid: std::process::id(),
        host: String::from_utf8_lossy(host.trim_ascii()).into_owned(),
        command: String::from_utf8_lossy(&command).into_owned(),
        ..place(|name| std::env::var(name).ok())
    }
}

/// Where a process stands in a distributed program: by these variables of the environment and no others.
fn place(variable: impl Fn(&str) -> Option<String>) -> ProcessInfo {
    let number = |name: &str| -> Option<u32> { variable(name)?.trim().parse().ok() };
    let named = LAUNCHERS.iter().find_map(|(rank, size)| {
        let rank = number(rank)?;
        Some((rank, number(size).filter(|&size| size > rank)))
    });
    ProcessInfo {
        rank: named.map(|(rank, _)| rank),
        local_rank: number("LOCAL_RANK"),
        world: named.and_then(|(_, world)| world),
        ..ProcessInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use activity::ProcessInfo;

    fn place(environment: &[(&str, &str)]) -> ProcessInfo {
        super::place(|name| {
            let found = environment.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn the_rank_is_that_of_the_innermost_launcher() {
        let known = |rank, local_rank, world| ProcessInfo {
            rank: Some(rank),
            local_rank,
            world,
            ..ProcessInfo::default()
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
        assert_eq!(place(&[("SLURM_NTASKS", "8")]), ProcessInfo::default());
        assert_eq!(
            place(&[("RANK", "x"), ("WORLD_SIZE", "2")]),
            ProcessInfo::default()
        );
        // A size that cannot be is not taken.
        assert_eq!(
            place(&[("RANK", "2"), ("WORLD_SIZE", "2")]),
            known(2, None, None)
        );
    }
}
