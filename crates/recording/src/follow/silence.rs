//! What a timeline lacks while it is followed: ranks that fell silent or have not come.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::process::Process;
use activity::feed::SourceStatus;
use activity::text::{self, plural};

/// A collector speaks at least once a second, whatever its program does; what it wrote may take a while through a network.
const SILENT: Duration = Duration::from_secs(5);
/// Ranks that are named one by one.
const NAMED: usize = 4;

/// What is lacking, the worst first.
pub(super) fn find(
    processes: &[Process],
    unreadable: &HashMap<PathBuf, String>,
    now: Instant,
) -> Vec<SourceStatus> {
    let mut all = Vec::new();
    let silent: Vec<(String, Duration)> = processes
        .iter()
        .filter(|it| !it.over)
        .map(|it| (name(it), now.duration_since(it.heard)))
        .filter(|(_, silence)| *silence >= SILENT)
        .collect();
    if let Some(least) = silent.iter().map(|(_, silence)| silence.as_secs()).min() {
        let names: Vec<&str> = silent.iter().map(|(name, _)| name.as_str()).collect();
        let longer = if silent.len() > 1 { " or longer" } else { "" };
        all.push(SourceStatus {
            is_alarming: true,
            text: format!("{} silent for {least} s{longer}", listed(&names)),
        });
    }
    all.extend(missing(processes));
    if let Some((path, why)) = unreadable.iter().min() {
        let more = match unreadable.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        all.push(SourceStatus {
            is_alarming: false,
            text: format!("not readable (yet): {}: {why}{more}", path.display()),
        });
    }
    all
}

/// Ranks of a job of known size that have no recording.
fn missing(processes: &[Process]) -> Option<SourceStatus> {
    let world = processes.iter().filter_map(|it| it.info.world).max()?;
    // A made-up number must not become work.
    let world = world.min(1 << 20);
    let there: BTreeSet<u32> = processes.iter().filter_map(|it| it.info.rank).collect();
    let lacks: Vec<u32> = (0..world).filter(|it| !there.contains(it)).collect();
    if there.is_empty() || lacks.is_empty() {
        return None;
    }
    let few: Vec<String> = lacks.iter().take(NAMED).map(u32::to_string).collect();
    let more = if lacks.len() > NAMED { " …" } else { "" };
    Some(SourceStatus {
        is_alarming: false,
        text: format!(
            "{} of {world} ranks {} no recording here (yet): {}{more}",
            lacks.len(),
            if lacks.len() == 1 { "has" } else { "have" },
            few.join(", "),
        ),
    })
}

/// "rank 3", "process 1234".
fn name(process: &Process) -> String {
    match process.info.rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {}", process.reader.identity.pid),
    }
}

/// "rank 3", "rank 1 and rank 3", "rank 1, rank 3, rank 4, rank 5 and 12 more".
fn listed(names: &[&str]) -> String {
    // A rank may have had several processes.
    let mut names = names.to_vec();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names.dedup();
    match names.len().saturating_sub(NAMED) {
        0 => text::listed(&names),
        rest => format!(
            "{} and {}",
            names[..NAMED].join(", "),
            plural(rest as u64, "other")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_the_others_counted() {
        let ranks: Vec<String> = (0..12).map(|n| format!("rank {n}")).collect();
        let names: Vec<&str> = ranks.iter().map(String::as_str).collect();
        assert_eq!(listed(&names[3..4]), "rank 3");
        assert_eq!(listed(&["rank 10", "rank 9"]), "rank 9 and rank 10");
        assert_eq!(
            listed(&names),
            "rank 0, rank 1, rank 2, rank 3 and 8 others"
        );
    }
}
