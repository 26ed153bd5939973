//! Commands that start a program where nothing of cuptop's reaches it.

use std::ffi::OsString;
use std::path::Path;

/// What is to be said of a command before it runs: that the program will run elsewhere, and what to do instead.
pub(super) fn warning(command: &[OsString]) -> Option<String> {
    let mut words = command.iter().map(|word| word.to_string_lossy());
    let program = words.next()?;
    let program = Path::new(program.as_ref())
        .file_name()?
        .to_str()?
        .to_owned();
    let rest: Vec<_> = words.collect();
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_ref()));
    let text = match program.as_str() {
        "docker" | "podman" | "nerdctl" if has(&["run", "exec", "start", "compose", "create"]) => format!(
            "{program} has the program run in a container, where nothing of cuptop's reaches it: nothing will be recorded. Run cuptop \
             inside: {program} run --gpus all --cap-add SYS_PTRACE -v \"$(command -v cuptop)\":/usr/local/bin/cuptop IMAGE cuptop trace -- CMD"
        ),
        "kubectl" | "oc" if has(&["exec", "run", "debug"]) => format!(
            "{program} has the program run in a pod, where nothing of cuptop's reaches it: nothing will be recorded. Copy cuptop there \
             (kubectl cp) and run cuptop inside: kubectl exec -it POD -- cuptop trace -- CMD"
        ),
        "ssh" => "ssh has the program run on another machine, where nothing of cuptop's reaches it: run cuptop there: ssh -t HOST cuptop trace -- CMD".to_owned(),
        "sbatch" | "qsub" | "bsub" => format!(
            "{program} queues a job that runs later and elsewhere: nothing will be recorded. Put cuptop into the job's script: srun cuptop \
             trace --headless --save DIR -- CMD"
        ),
        "srun" => "srun may have the program run on other machines, which see neither this one's memory nor its temporary files. Put cuptop inside: \
                   srun sh -c 'cuptop trace --headless --save run-$SLURM_PROCID -- CMD', then cuptop open run-*"
            .to_owned(),
        "sudo" | "doas" if !has(&["-E", "--preserve-env"]) => format!(
            "{program} clears the environment, without which the program does not find cuptop's collector: nothing will be recorded. Run \
             {program} cuptop trace -- CMD instead"
        ),
        "apptainer" | "singularity" if has(&["-e", "--cleanenv", "-c", "--contain", "-C", "--containall"]) => format!(
            "{program} with a clean environment, or without this machine's folders, has the program run where nothing of cuptop's \
             reaches it. Leave --cleanenv and --contain out, or run cuptop inside the image"
        ),
        _ => return None,
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_is_warned_of_and_nothing_else() {
        for (line, expected) in [
            (
                "docker run --gpus all image python train.py",
                Some("Run cuptop inside"),
            ),
            ("/usr/bin/podman exec it python x.py", Some("podman run")),
            ("docker ps", None),
            ("ssh node python train.py", Some("ssh -t HOST")),
            ("srun -n 8 python train.py", Some("$SLURM_PROCID")),
            ("sudo python train.py", Some("sudo cuptop trace")),
            ("sudo -E python train.py", None),
            ("apptainer exec --nv image.sif python train.py", None),
            (
                "apptainer exec --nv --cleanenv image.sif python x",
                Some("--cleanenv"),
            ),
            ("python docker run", None),
            ("torchrun --nproc-per-node 8 train.py", None),
        ] {
            let command: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let found = warning(&command);
            match expected {
                Some(words) => assert!(
                    found.as_ref().is_some_and(|it| it.contains(words)),
                    "{line}: {found:?}"
                ),
                None => assert_eq!(found, None, "{line}"),
            }
        }
        assert_eq!(warning(&[]), None);
    }
}
