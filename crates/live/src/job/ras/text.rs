//! The answer of NCCL 2.24 to 2.28.6, which is made for people. Its sentences are those of `src/ras/client_support.cc` there.

use super::{Answer, LAGS, Lag, MOST, short};

/// Ranks of a communicator that have launched so many of one collective.
#[derive(Default)]
struct Launched {
    count: u64,
    /// Those that are named: number, process, host. Of many it names none.
    named: Vec<(u32, u32, String)>,
}

/// What is being read.
enum RasPart {
    Other,
    /// Ranks that do not answer.
    Incomplete,
    /// Ranks that have launched different numbers of one collective.
    Counts(String, Vec<Launched>),
}

/// Reads an answer; nothing where it is none, or tells of a difference that cannot be read.
pub(super) fn read(answer: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(answer);
    let mut found = Answer::default();
    let mut part = RasPart::Other;
    let (mut is_answer, mut is_read) = (false, true);
    for line in text.lines().map(str::trim).chain([""]).take(MOST) {
        is_answer |= line.starts_with("Communicators...");
        let kind = line.strip_prefix("Communicator ranks have different ");
        if let Some((kind, "counts")) = kind.and_then(|it| it.split_once(" operation ")) {
            part = RasPart::Counts(short(kind), Vec::new());
        } else if line.starts_with('#') && line.ends_with(" INCOMPLETE") {
            part = RasPart::Incomplete;
        } else if line.is_empty() {
            if let RasPart::Counts(kind, sets) = std::mem::replace(&mut part, RasPart::Other) {
                let room = LAGS - found.lags.len();
                let before = found.lags.len();
                found.lags.extend(lags(&kind, &sets).take(room));
                is_read &= found.lags.len() > before || room == 0;
            }
        } else {
            match &mut part {
                RasPart::Incomplete => {
                    let rank = named(line).map(|(rank, pid, host)| (rank, host, pid));
                    found.missing.extend(rank);
                }
                RasPart::Counts(_, sets) => add(sets, line),
                RasPart::Other => {}
            }
        }
    }
    let tells = !found.lags.is_empty() || !found.missing.is_empty();
    (is_answer && (tells || is_read)).then_some(found)
}

/// Adds what a line says: a set of ranks, one rank that is a set by itself, or one of the set before.
fn add(sets: &mut Vec<Launched>, line: &str) {
    let count = if line.contains("have not launched any") || line.contains("has not launched any") {
        Some(0)
    } else {
        let words = line.split_once(" launched up to operation ");
        words.and_then(|it| it.1.split(' ').next()?.parse().ok())
    };
    if let Some(count) = count {
        sets.push(Launched {
            count,
            named: Vec::new(),
        });
    }
    if let (Some(set), Some(rank)) = (sets.last_mut(), named(line)) {
        set.named.push(rank);
    }
}

/// "Rank 2 … -- GPU 2 managed by process 2031 on node 192.0.2.2": number, process, host.
fn named(line: &str) -> Option<(u32, u32, String)> {
    let (rank, rest) = line.strip_prefix("Rank ")?.split_once(' ')?;
    let process = rest.split_once(" managed by process ").map(|it| it.1);
    let process = process.and_then(|it| it.split_once(" on node "));
    let pid = process.and_then(|it| it.0.parse().ok()).unwrap_or(0);
    let host = process.map_or("", |it| it.1);
    Some((rank.parse().ok()?, pid, short(host)))
}

/// The ranks of all sets but the furthest.
fn lags(collective: &str, sets: &[Launched]) -> impl Iterator<Item = Lag> {
    let others = sets.iter().map(|it| it.count).max().unwrap_or(0);
    let behind = sets.iter().filter(move |it| it.count < others);
    let ranks = behind.flat_map(|it| {
        let named = it
            .named
            .iter()
            .map(|(rank, pid, host)| (Some(*rank), *pid, host.as_str()));
        let nameless = it.named.is_empty().then_some((None, 0, ""));
        named.chain(nameless).map(|rank| (rank, it.count))
    });
    ranks.map(move |((rank, pid, host), count)| Lag {
        rank,
        host: host.to_owned(),
        pid,
        collective: collective.to_owned(),
        count,
        others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As NCCL 2.28.9 was seen to answer in text of four ranks, of which one sleeps; 2.27.3 has the same sentences.
    const SEEN: &str = "NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.000s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (22e6bd72a1f18142) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 201
  Rank 2 has launched up to operation 200 -- GPU 2 managed by process 2031 on node 192.0.2.2

";

    fn lags(text: &str) -> Vec<(Option<u32>, u32, String, u64, u64)> {
        let found = read(text.as_bytes()).expect("an answer").lags;
        let all = found.into_iter();
        all.map(|it| (it.rank, it.pid, it.collective, it.count, it.others))
            .collect()
    }

    #[test]
    fn who_launched_fewer_is_read_from_the_text_too() {
        let reduce = || "AllReduce".to_owned();
        assert_eq!(lags(SEEN), [(Some(2), 2031, reduce(), 200, 201)]);
        assert_eq!(
            read(SEEN.as_bytes()).expect("an answer").lags[0].host,
            "192.0.2.2"
        );
        let end = SEEN.find("  3 ranks").expect("it is there");
        let with = |sets: &str| format!("{}{sets}\n", &SEEN[..end]);
        // The forms of the source: ranks of a set by name, one that launched nothing, one whose process is not known, many without names.
        let sets = "  4 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n  Rank 4 -- GPU 4 managed by process 14 on node a\n  \
                    Rank 5 -- [process information not found]\n  Rank 6 has not launched any operations -- GPU 6 managed by process 16 on node b\n";
        let expected = [(Some(4), 14, 8), (Some(5), 0, 8), (Some(6), 16, 0)];
        let expected = expected.map(|(rank, pid, count)| (rank, pid, reduce(), count, 9));
        assert_eq!(lags(&with(sets)), expected);
        let halves = "  2 ranks have launched up to operation 7\n  2 ranks have not launched any operations\n";
        assert_eq!(lags(&with(halves)), [(None, 0, reduce(), 0, 7)]);
    }

    /// As 2.28.9 was seen to answer of two ranks, of which one was killed.
    #[test]
    fn who_does_not_answer_is_missing() {
        let text = "Communicators... (0.000s)\n=============\n\nErrors\n======\n\nINCOMPLETE\n  Missing communicator data from 1 job process\n  \
                    Process 889 on node 192.0.2.2 managing GPU 1\n\n#0-0 (933323461f441526) INCOMPLETE\n  \
                    Missing communicator data from 1 rank\n  Rank 1 -- GPU 1 managed by process 889 on node 192.0.2.2\n\nWarnings\n========\n\n";
        let found = read(text.as_bytes()).expect("an answer");
        assert_eq!(found.missing, [(1, "192.0.2.2".to_owned(), 889)]);
        assert!(found.lags.is_empty());
        // Its state is no count.
        let state = "Communicators...\n#0-0 (22e6) MISMATCH\n  Communicator ranks have different status\n  3 ranks have status RUNNING\n  \
                     Rank 3 has status NOCOMM -- GPU 3 managed by process 33 on node a\n\n";
        assert_eq!(read(state.as_bytes()), Some(Answer::default()));
    }

    #[test]
    fn a_text_may_be_anything() {
        for cut in 0..SEEN.len() {
            let _ = read(&SEEN.as_bytes()[..cut]);
        }
        let unread = "Communicators...\nCommunicator ranks have different AllReduce operation counts\n\
                      1 ranks have launched up to operation 99999999999999999999\n\n";
        assert_eq!(read(unread.as_bytes()), None);
        assert_eq!(read(b"ERROR: Unknown command VERBOSE STATUS\n"), None);
        assert_eq!(read(b"\xff\n\n"), None);
    }
}
