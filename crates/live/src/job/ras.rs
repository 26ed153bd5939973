//! What NCCL's service for reliability (RAS) says: how many collectives each rank of the whole job has launched.
//!
//! NCCL 2.24 and later run it in each process; one process a host listens, and since 2.28.7 it answers in JSON. It can crash the program
//! that it is asked of ([`gate`]), so that is done where it tells something, and never by itself. What comes back is from outside:
//! it is bounded in length and time, and nothing of it is believed that `/proc` says otherwise.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::members::{self, Member};
use super::{Job, Life, State, is_on, native, sockets};
use crate::rights;

mod text;

/// The port, unless `NCCL_RAS_ADDR` names another.
const PORT: u16 = 28_028;
/// The longest answer that is read, and the time that it may take: NCCL itself gives up its ranks after 10 s.
const LONGEST: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(12);
/// So long is waited for a part of it.
const PART: Duration = Duration::from_millis(100);
/// Ranks of a communicator that are looked at, those behind that are told, and characters of a name: a host's has 253.
const MOST: usize = 100_000;
const LAGS: usize = 1_000;
const NAME: usize = 253;

/// Kinds of collectives of an answer that are looked at: there are five.
const COLLECTIVES: usize = 16;

/// Whether it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Where its version is safe to ask, and something stands.
    #[default]
    Safely,
    /// In any case.
    Always,
    Never,
}

/// A rank that has launched fewer of a collective than others of its communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Its number; nothing where the answer counts such ranks without naming them.
    pub rank: Option<u32>,
    /// As NCCL names it: an address, most often. Not fit to be shown as it is.
    pub host: String,
    pub pid: u32,
    pub collective: String,
    /// What it has launched, and what others have.
    pub count: u64,
    pub others: u64,
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub lags: Vec<Lag>,
    /// Ranks that did not answer NCCL itself: their number, host and process.
    pub missing: Vec<(u32, String, u32)>,
}

/// NCCL's version as numbers.
pub type Version = [u32; 3];

/// From here on it answers in JSON, before that in text alone.
const JSON_SINCE: Version = [2, 28, 7];

/// Why a version may not be asked, by the reports of NVIDIA/nccl; nothing where it may. `stands`: all that is here stands and lives.
fn gate(version: Option<Version>, stands: bool, makes_communicators: bool) -> Option<&'static str> {
    let Some(version) = version else {
        return Some("the version of NCCL is not known");
    };
    let table = [
        ([2, 24, 0], "this NCCL has no such service"),
        (
            [2, 27, 3],
            "this NCCL may crash when it is asked (nccl#1669, #1718)",
        ),
    ];
    if let Some((_, why)) = table.iter().find(|it| version < it.0) {
        return Some(why);
    }
    if makes_communicators {
        return Some(
            "a communicator is being made or destroyed, in which NCCL may crash (nccl#2346)",
        );
    }
    let walks_wrong = version < [2, 29, 2] && !stands;
    walks_wrong.then_some("this NCCL may crash where ranks are missing (nccl#1762), and nothing proves that all are there and stand")
}

/// Asks the service of a job once.
///
/// # Errors
/// Why it was not asked, or has not answered, in a sentence.
pub(super) fn ask(
    job: &Job,
    members: &[Member],
    asking: Asking,
    stopped: &Receiver<()>,
) -> Result<Answer, String> {
    let here = || members.iter().filter(|it| it.pid != 0);
    let version = here().find_map(|it| native::nccl_version(it.pid));
    let state = job.verdict().state;
    let stands = matches!(state, State::Still | State::SamePlace)
        && job.ranks.iter().all(|it| it.life == Life::Lives);
    let makes = job.ranks.iter().any(makes_communicators);
    match asking {
        Asking::Never => return Err("it was not asked (--no-ras)".to_owned()),
        Asking::Safely => {
            if matches!(state, State::Moves | State::WaitsForRequests) {
                return Err("it was not asked: nothing stands".to_owned());
            }
            if let Some(why) = gate(version, stands, makes) {
                return Err(format!("it was not asked: {why}; --ras asks all the same"));
            }
        }
        Asking::Always => {}
    }
    let address = here()
        .find_map(|it| listener(it.pid, members))
        .ok_or("no process of this job listens for it here")?;
    let knows_json = version.is_none_or(|it| it >= JSON_SINCE);
    let mut answers = READINGS
        .iter()
        .skip(usize::from(!knows_json))
        .map(|(question, read)| {
            exchange(address, question, Instant::now() + PATIENCE, stopped)
                .map_err(|it| format!("it has not answered: {it}"))
                .map(|it| read(&it))
        });
    let answer = answers.find_map(Result::transpose);
    answer.unwrap_or_else(|| Err("its answer cannot be read".to_owned()))
}

/// How an answer is read.
type Reading = fn(&[u8]) -> Option<Answer>;
/// What is asked, in order, until an answer can be read: 2.28.9 leaves out a comma of its JSON where a rank is missing.
const READINGS: [(&[u8], Reading); 2] = [
    (b"SET FORMAT json\nSTATUS\n", read),
    (b"VERBOSE STATUS\n", text::read),
];

/// Processes of this user that listen for it here, each with where, and why its version is not asked.
pub fn services() -> Vec<(u32, SocketAddr, Option<&'static str>)> {
    let using = rights::processes().filter(|it| members::uses_cuda(*it));
    let service = |pid| {
        let address = listener(pid, &[])?;
        Some((pid, address, gate(native::nccl_version(pid), true, false)))
    };
    using.filter_map(service).collect()
}

/// Whether a thread of a process makes or destroys a communicator.
fn makes_communicators(process: &super::Process) -> bool {
    const NATIVE: &str =
        "ncclCommInit ncclCommSplit ncclCommDestroy ncclCommAbort ncclCommFinalize";
    const PYTHON: [&str; 3] = ["init_process_group", "destroy_process_group", "new_group"];
    process.threads.iter().any(|it| {
        let native = it
            .native
            .as_deref()
            .unwrap_or_default()
            .trim_start_matches('p');
        NATIVE.split(' ').any(|by| native.starts_with(by))
            || it
                .python
                .iter()
                .any(|it| PYTHON.contains(&it.function.as_str()))
    })
}

/// Where a rank listens for it: on its port, as the same user as all others, and where this process can reach it.
fn listener(pid: u32, members: &[Member]) -> Option<SocketAddr> {
    let environment = rights::environment(pid).ok()?;
    let named = environment
        .split(|it| *it == 0)
        .find_map(|it| it.strip_prefix(b"NCCL_RAS_ADDR="));
    let named = named.and_then(|it| {
        std::str::from_utf8(it)
            .ok()?
            .rsplit_once(':')?
            .1
            .parse()
            .ok()
    });
    let user = |pid: u32| Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid());
    let network = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let is_alike = members
        .iter()
        .filter(|it| it.pid != 0)
        .all(|it| user(it.pid) == user(pid));
    if !is_alike || network("self")? != network(&pid.to_string())? {
        return None;
    }
    let mut at = sockets::listeners(pid)
        .into_iter()
        .find(|it| it.port() == named.unwrap_or(PORT))?;
    if at.ip().is_unspecified() {
        at.set_ip(match at.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Some(at)
}

/// Sends the question, and reads to the end of the answer.
fn exchange(
    address: SocketAddr,
    question: &[u8],
    until: Instant,
    stopped: &Receiver<()>,
) -> std::io::Result<Vec<u8>> {
    let left = || {
        until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1))
    };
    let late = || std::io::Error::from(std::io::ErrorKind::TimedOut);
    let mut stream = TcpStream::connect_timeout(&address, left())?;
    stream.set_write_timeout(Some(left()))?;
    stream.write_all(question)?;
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        stream.set_read_timeout(Some(left().min(PART)))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&part[..length]),
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if is_on(stopped, Duration::ZERO) => {}
            Err(_) => return Err(late()),
        }
        if Instant::now() >= until || answer.len() as u64 > LONGEST {
            return Err(late());
        }
    }
}

/// A name as far as it is looked at.
fn short(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// Entries of its lists are cut out first, and read one after another: all at once would take a hundred times their text.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    communicators: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Communicator<'a> {
    #[serde(borrow)]
    ranks: Vec<&'a RawValue>,
    #[serde(borrow)]
    missing_ranks: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Rank<'a> {
    rank: u32,
    #[serde(borrow, default)]
    host: Cow<'a, str>,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    collective_counts: BTreeMap<String, u64>,
}

/// Those entries of a list that can be read; `is_whole` ends where one cannot.
fn each<'a, T: Deserialize<'a>>(
    list: &[&'a RawValue],
    is_whole: &mut bool,
) -> impl Iterator<Item = T> {
    let entries = list.iter().take(MOST);
    entries.filter_map(|it| {
        let read = serde_json::from_str(it.get()).ok();
        *is_whole &= read.is_some();
        read
    })
}

/// Reads an answer: a line of its own for the format, then JSON. Nothing of one that tells no difference and not all, either.
fn read(answer: &[u8]) -> Option<Answer> {
    let begin = answer.iter().position(|it| *it == b'{')?;
    let whole: Whole<'_> = serde_json::from_slice(&answer[begin..]).ok()?;
    let mut found = Answer::default();
    let (mut are_whole, mut is_whole) = (!whole.communicators.is_empty(), true);
    for it in each::<Communicator<'_>>(&whole.communicators, &mut are_whole) {
        let missing = each::<Rank<'_>>(&it.missing_ranks, &mut is_whole);
        let missing = missing.map(|it| (it.rank, short(&it.host), it.pid));
        found.missing.extend(missing);
        let ranks: Vec<Rank<'_>> = each(&it.ranks, &mut is_whole).collect();
        let room = LAGS - found.lags.len();
        found.lags.extend(lags(&ranks).take(room));
    }
    let tells = !found.lags.is_empty() || !found.missing.is_empty();
    (tells || are_whole && is_whole).then_some(found)
}

/// The ranks of a communicator that have launched fewer of a collective than others.
fn lags(ranks: &[Rank<'_>]) -> impl Iterator<Item = Lag> {
    let first = ranks.first().map(|it| it.collective_counts.keys());
    first
        .into_iter()
        .flatten()
        .take(COLLECTIVES)
        .flat_map(move |name| {
            let counts = ranks
                .iter()
                .filter_map(|it| Some((it, *it.collective_counts.get(name)?)));
            let others = counts.clone().map(|it| it.1).max().unwrap_or(0);
            let behind = counts.filter(move |it| it.1 < others);
            behind.map(move |(rank, count)| Lag {
                rank: Some(rank.rank),
                host: short(&rank.host),
                pid: rank.pid,
                collective: short(name),
                count,
                others,
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::TcpListener;

    /// Ranks of a communicator as NCCL 2.28.9 was seen to write them, each with how many all-reduces and all-gathers it has launched.
    fn answer(ranks: &[(u32, u64, u64)]) -> Vec<u8> {
        let ranks = ranks.iter().map(|(rank, reduce, gather)| {
            json!({"rank": rank, "host": format!("192.0.2.{}", rank / 16), "pid": 2029 + rank, "cuda_dev": 0, "nvml_dev": 0,
                "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": gather, "ReduceScatter": 0, "AllReduce": reduce}})
        });
        let whole = json!({"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [
            {"hash": "0x1", "size": 4, "ranks": ranks.collect::<Vec<_>>(), "missing_ranks": []}]});
        format!("OK\n{whole:#}\n").into_bytes()
    }

    #[test]
    fn the_rank_that_launched_fewer_is_behind() {
        let found = read(&answer(&[
            (0, 201, 5),
            (1, 201, 5),
            (2, 200, 5),
            (3, 201, 5),
        ]))
        .expect("an answer");
        let lag = |it: &Lag| {
            (
                it.rank.unwrap_or(99),
                it.pid,
                it.collective.clone(),
                it.count,
                it.others,
            )
        };
        assert_eq!(
            found.lags.iter().map(lag).collect::<Vec<_>>(),
            [(2, 2031, "AllReduce".to_owned(), 200, 201)]
        );
        assert!(
            read(&answer(&[(0, 7, 7), (1, 7, 7)]))
                .expect("an answer")
                .lags
                .is_empty()
        );
        // 1,024 ranks on 64 hosts, of which one is behind.
        let many: Vec<_> = (0..1024)
            .map(|it| (it, 50 - u64::from(it == 777), 0))
            .collect();
        let found = read(&answer(&many)).expect("an answer");
        assert_eq!(
            (
                found.lags.len(),
                found.lags[0].rank,
                found.lags[0].host.as_str()
            ),
            (1, Some(777), "192.0.2.48")
        );
    }

    #[test]
    fn an_answer_may_be_anything() {
        let whole = answer(&[(0, 201, 0), (1, 200, 0)]);
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
        }
        for wrong in [
            &b""[..],
            b"OK\n",
            b"{",
            b"{}",
            b"[]",
            b"{\"communicators\": 7}",
            b"\xff\xfe{\"communicators\": []",
            &[b'['; 100_000],
        ] {
            assert_eq!(read(wrong), None);
        }
        let odd = br#"{"communicators": [7, {"ranks": {}}, {"ranks": [{"rank": -1}, {"rank": 1e99}, {"rank": "2"}, null]}]}"#;
        assert_eq!(read(odd), None);
        // That ranks are alike is said of those that were read, and of all of them.
        let counts = |counts: &str| {
            let rank =
                |it: &str| format!(r#"{{"rank": 0, "collective_counts": {{"AllReduce": {it}}}}}"#);
            let ranks: Vec<String> = counts.split(' ').map(rank).collect();
            let ranks = ranks.join(",");
            read(format!(r#"{{"communicators": [{{"ranks": [{ranks}]}}]}}"#).as_bytes())
        };
        assert_eq!(counts("7 7"), Some(Answer::default()));
        assert_eq!(counts("7 -1"), None);
        assert_eq!(counts("7 8 -1").map(|it| it.lags.len()), Some(1));
        assert_eq!(read(br#"{"communicators": []}"#), None);
    }

    /// A name of 64 KiB for each of 90,000 ranks, or a list for each four bytes, would take gigabytes.
    #[test]
    fn an_answer_takes_no_more_than_its_text_is_worth() {
        let long = "K".repeat(64 << 10);
        let rank = |at: usize| {
            json!({"rank": at, "host": &long, "pid": 7, "collective_counts": {&long: at}})
                .to_string()
        };
        let ranks = (0..40).map(rank).collect::<Vec<_>>().join(",");
        let few = r#"{"rank": 1, "collective_counts": {"a": 1}},"#.repeat(5_000);
        let ends = r#"{"rank": 2, "collective_counts": {"a": 2}}"#;
        let json = format!(
            "{{\"communicators\": [{{\"ranks\": [{ranks}]}}, {{\"ranks\": [{few}{ends}]}}]}}"
        );
        let text = format!(
            "Communicators...\nCommunicator ranks have different {long} operation counts\n1 ranks have launched up to operation 9\n\
             1 ranks have launched up to operation 8\n{}\n",
            format!("Rank 1 x managed by process 7 on node {long}\n").repeat(40)
                + &"Rank 1 x\n".repeat(5_000)
        );
        for found in [read(json.as_bytes()), text::read(text.as_bytes())] {
            let lags = found.expect("an answer").lags;
            assert_eq!(lags.len(), LAGS);
            let longest = |name: fn(&Lag) -> &String| lags.iter().map(|it| name(it).len()).max();
            assert_eq!(longest(|it| &it.collective), Some(NAME));
            assert_eq!(longest(|it| &it.host), Some(NAME));
        }
        let lists = format!("{{\"communicators\": [{}0]}}", "[0],".repeat(1 << 18));
        assert_eq!(read(lists.as_bytes()), None);
    }

    #[test]
    fn versions_that_crash_are_not_asked() {
        for (version, stands, makes, expected) in [
            (None, true, false, false),
            (Some([2, 26, 5]), true, false, false),
            (Some([2, 27, 2]), true, false, false),
            (Some([2, 27, 3]), true, false, true),
            (Some([2, 27, 3]), false, false, false),
            (Some([2, 28, 3]), true, true, false),
            (Some([2, 28, 9]), true, false, true),
            (Some([2, 28, 9]), false, false, false),
            (Some([2, 29, 1]), false, false, false),
            (Some([2, 29, 2]), false, false, true),
            (Some([2, 29, 7]), true, true, false),
            (Some([3, 0, 0]), false, false, true),
        ] {
            assert_eq!(
                gate(version, stands, makes).is_none(),
                expected,
                "{version:?}"
            );
        }
    }

    /// A server that answers, one that says nothing, and one that never ends.
    #[test]
    fn a_server_is_waited_for_only_so_long() {
        let serve = |lines: &'static [u8], forever: bool| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            let thread = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("somebody asks");
                let mut asked = [0; 64];
                let length = stream.read(&mut asked).expect("a question");
                assert_eq!(&asked[..length], b"STATUS\n");
                let _ = stream.write_all(lines);
                while forever && stream.write_all(b"          ").is_ok() {}
                // Until the other end is gone.
                let _ = stream.read_to_end(&mut Vec::new());
            });
            (address, thread)
        };
        let soon = || Instant::now() + Duration::from_millis(200);
        for forever in [false, true] {
            let (address, thread) = serve(b"OK\n{", forever);
            assert!(exchange(address, b"STATUS\n", soon(), &crossbeam_channel::never()).is_err());
            thread.join().expect("it ends");
        }
        let nobody = TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("an address");
        assert!(exchange(nobody, b"STATUS\n", soon(), &crossbeam_channel::never()).is_err());
    }
}
