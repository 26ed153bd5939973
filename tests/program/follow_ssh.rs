//! A job on another machine, followed through a stand-in for ssh: what breaks, what is said, and that nothing is lost or comes twice.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::grown::{Came, PATIENCE, Rank};
use activity::feed::{Feed, Message, Outcome};
use hosts::{Place, connect_by};

/// Follows places by a program in the place of ssh, as for a screen that opens when the links are there.
fn follow(ssh: &[String], places: &[Place], say: &mut dyn FnMut(&str)) -> Result<Feed, String> {
    let hosts = connect_by(ssh, PATIENCE, places, Some(say))?;
    readers::file::follow_hosts(&[], hosts, true).map_err(|error| error.to_string())
}

/// A folder with a program that takes ssh's arguments and runs the command here.
struct Far {
    folder: tempfile::TempDir,
}

impl Far {
    /// `how` is a piece of shell script that runs `"$command"`, which is what ssh was to run.
    fn new(how: &str) -> Far {
        let folder = tempfile::tempdir().expect("a folder");
        let far = Far { folder };
        let bin = far.path("bin");
        std::fs::create_dir(&bin).expect("made");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cuptop"), bin.join("cuptop")).expect("made");
        let script = format!(
            "#!/bin/sh\nhere={}\necho \"$*\" >> $here/calls\n\
             while [ \"$1\" != -- ]; do shift; done\nhost=$2 command=$3\necho $$ >> $here/pids\n\
             HOME=$here PATH=$here/bin:$PATH\nexport HOME PATH\n{how}\n",
            far.folder.path().display()
        );
        std::fs::write(far.path("ssh"), script).expect("written");
        let all = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(far.path("ssh"), all).expect("set");
        far
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        // Whole at once: the stand-in reads it any time.
        std::fs::write(self.path("new"), text).expect("written");
        std::fs::rename(self.path("new"), self.path(name)).expect("renamed");
    }

    /// Follows `job` in this folder on this "machine", as before a screen opens.
    fn follow(&self, job: &str) -> Result<(Feed, Vec<String>), String> {
        let word = format!("gpu01:{}", self.path(job).display());
        let place = Place::parse(Path::new(&word)).expect("a place");
        let mut said = Vec::new();
        let ssh = vec![self.path("ssh").display().to_string()];
        let feed = follow(&ssh, &[place], &mut |text: &str| said.push(text.to_owned()))?;
        Ok((feed, said))
    }

    /// Processes that the stand-in became, the newest last.
    fn pids(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn signal(&self, signal: &str) {
        let pid = self.pids().last().copied().expect("a process").to_string();
        let status = Command::new("kill").args([signal, &pid]).status();
        assert!(status.expect("kill").success());
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Nobody is left over there.
    fn assert_quiet(&self) {
        let began = Instant::now();
        let fars = std::fs::read_to_string(self.path("fars")).unwrap_or_default();
        let fars = fars.lines().filter_map(|line| line.parse().ok());
        for pid in self.pids().into_iter().chain(fars) {
            while is_there(pid) {
                assert!(began.elapsed() < PATIENCE, "{pid} is still there");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Whether a process runs. One that has ended and that nobody has waited for does not.
fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Runs what ssh was to run; where a number lies in `cut`, only so many bytes of what it says arrive, once.
const CUTS: &str = r#"
if cut=$(cat "$here/cut" 2>/dev/null); then rm "$here/cut"; sh -c "echo \$\$ >> $here/fars; $command" | { dd bs=1 count="$cut" 2>/dev/null; kill -KILL $$; }; fi
exec sh -c "$command""#;

#[test]
fn a_link_that_breaks_anywhere_loses_nothing_and_brings_nothing_twice() {
    let far = Far::new(CUTS);
    std::fs::create_dir(far.path("job")).expect("made");
    let (feed, said) = far.follow("job").expect("a link");
    assert!(said[0].contains("connecting to gpu01"), "{said:?}");
    let mut came = Came::default();
    came.until(&feed, "it is said what is missing", |it| {
        it.stands("nothing is recorded in gpu01:")
    });
    let mut ranks: Vec<Rank> = (0..2)
        .map(|rank| Rank::start(&far.path("job").join(format!("gpu0{rank}-5.run")), rank, 2))
        .collect();
    let mut counts = [0u32; 2];
    let mut record = |ranks: &mut Vec<Rank>, rank: usize, calls: u32| {
        ranks[rank].record(calls);
        counts[rank] += calls;
        counts
    };
    let so_far = record(&mut ranks, 0, 10);
    came.until(&feed, "the first", |it| it.count(0) == so_far[0] as usize);

    // Cut in the greeting, in a frame's head, in a page, in the middle of blocks; the program killed in between, and the link.
    for (round, cut) in [3, 40, 5_000, 70_000, 1_300_007].into_iter().enumerate() {
        far.write("cut", cut.to_string());
        let links = far.pids().len();
        far.signal(if round % 2 == 0 { "-KILL" } else { "-TERM" });
        record(&mut ranks, round % 2, 20_000);
        let so_far = record(&mut ranks, 1 - round % 2, 501);
        came.until(&feed, "what was recorded meanwhile", |it| {
            (0..2).all(|rank| it.count(rank as u32) == so_far[rank] as usize)
        });
        assert!(far.pids().len() >= links + 2, "it was cut, and made again");
    }
    ranks.into_iter().for_each(Rank::end);
    came.until(&feed, "the end", |it| it.outcome.is_some());
    assert_eq!(came.outcome, Some(Outcome::Complete));
    came.assert_whole(&[(0, counts[0]), (1, counts[1])]);
    let broke = came
        .notices
        .iter()
        .filter(|it| it.contains("the link broke"));
    let again = came
        .notices
        .iter()
        .filter(|it| it.contains("goes on where it broke"));
    assert!(
        broke.count() >= 5 && again.count() >= 5,
        "{:?}",
        came.notices
    );
    // A password may be asked for before the screen opens, and never after; no path goes through a shell.
    let calls = far.calls();
    assert!(!calls[0].contains("BatchMode"), "{}", calls[0]);
    assert!(calls[1..].iter().all(|it| it.contains("-o BatchMode=yes")));
    assert!(calls.iter().all(|it| !it.contains("job")), "{calls:?}");
    drop(feed);
    far.assert_quiet();
}

#[test]
fn a_report_says_whom_it_waits_for() {
    let far = Far::new(CUTS);
    let mut rank = Rank::start(&far.path("job"), 0, 1);
    rank.record(5);
    let word = format!("gpu01:{}", far.path("job").display());
    let place = Place::parse(Path::new(&word)).expect("a place");
    let ssh = [far.path("ssh").display().to_string()];
    let hosts = connect_by(&ssh, PATIENCE, &[place], Some(&mut |_| {})).expect("a link");
    far.signal("-STOP");
    let feed = readers::file::follow_hosts(&[], hosts, false).expect("followed");
    let mut came = Came::default();
    came.until(&feed, "a word on it", |it| it.stands("gpu01: no word for "));
    far.signal("-CONT");
    rank.end();
    came.until(&feed, "the end", |it| it.outcome.is_some());
    assert_eq!(came.outcome, Some(Outcome::Complete));
}

#[test]
fn a_machine_that_says_nothing_is_marked_until_it_speaks() {
    let far = Far::new(CUTS);
    let mut rank = Rank::start(&far.path("job"), 0, 1);
    rank.record(5);
    let (feed, _) = far.follow("job").expect("a link");
    let mut came = Came::default();
    came.until(&feed, "the first", |it| it.count(0) == 5);
    far.signal("-STOP");
    came.until(&feed, "a word on it", |it| it.stands("gpu01: no word for "));
    // Its ranks are not blamed for it.
    std::thread::sleep(Duration::from_secs(3));
    rank.record(5);
    far.signal("-CONT");
    came.until(&feed, "it speaks", |it| {
        it.count(0) == 10 && it.standing.is_empty()
    });
    assert!(
        !came.stood.iter().any(|it| it.contains("rank 0 silent")),
        "{:?}",
        came.stood
    );
    // Nobody is left when the one who looks goes, also with the job still running.
    drop(feed);
    far.assert_quiet();
    rank.end();
}

/// Why there is no link, with what ssh said.
fn refused(how: &str) -> String {
    let far = Far::new(how);
    std::fs::create_dir(far.path("job")).expect("made");
    let error = far.follow("job").expect_err("no link");
    far.assert_quiet();
    error
}

#[test]
fn what_is_missing_over_there_is_said_with_what_helps() {
    let none = refused("rm $here/bin/cuptop; PATH=/usr/bin:/bin; exec sh -c \"$command\"");
    assert!(none.contains("there is no cuptop on gpu01"), "{none}");
    assert!(
        none.contains("scp ") && none.contains(" gpu01:.local/bin/cuptop"),
        "{none}"
    );
    let other = refused(r#"printf '\000cuptop-serves\032\n\011\000\000\000\0059.9.9'; sleep 1"#);
    assert!(
        other.contains("cuptop 9.9.9 on gpu01 speaks another protocol (9)"),
        "{other}"
    );
    let older = refused(
        "echo 'cuptop: there is no command, scenario or file `serve-recordings`' >&2; exit 2",
    );
    assert!(
        older.contains("the cuptop on gpu01 is of another version"),
        "{older}"
    );
    let shell = refused("yes 'no cuptop here'");
    assert!(
        shell.contains("what answers on gpu01 is not cuptop"),
        "{shell}"
    );

    let far =
        Far::new("printf 'gpu01: \\033[31mPermission denied (publickey).\\r\\n' >&2; exit 255");
    let place = Place::parse(Path::new("gpu01:job")).expect("a place");
    let mut said = Vec::new();
    let ssh = vec![far.path("ssh").display().to_string()];
    let error = follow(&ssh, std::slice::from_ref(&place), &mut |text: &str| {
        said.push(text.to_owned());
    });
    let error = error.expect_err("no link");
    assert!(
        error.contains("no link to gpu01") && error.contains("255"),
        "{error}"
    );
    let line = "gpu01: \\u{1b}[31mPermission denied (publickey).";
    assert!(said.iter().any(|it| it == line), "{said:?}");
    let error = follow(&["/no/such/ssh".to_owned()], &[place], &mut |_: &str| {});
    assert!(
        error
            .err()
            .is_some_and(|it| it.contains("/no/such/ssh cannot be started"))
    );

    let far = Far::new(CUTS);
    let error = far.follow("nowhere").expect_err("nothing there");
    assert!(
        error.contains("gpu01: ") && error.contains("nowhere: No such file"),
        "{error}"
    );
}

/// A number as postcard writes it: seven bits a byte, the lowest first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Bytes as postcard writes them: behind their number.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A response by its place among them, with its fields.
fn frame(tag: u8, fields: &[&[u8]]) -> Vec<u8> {
    let payload: Vec<u8> = std::iter::once(&[tag][..])
        .chain(fields.iter().copied())
        .flatten()
        .copied()
        .collect();
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend(crc32fast::hash(&payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// Words of ssh and of the far shell are passed on, but not without end.
#[test]
fn messages_without_end_are_cut() {
    let far = Far::new(r#"exec yes 'a line of somebody' >&2"#);
    let ssh = [far.path("ssh").display().to_string()];
    let place = Place::parse(Path::new("gpu01:job")).expect("a place");
    let mut said = String::new();
    follow(&ssh, &[place], &mut |text: &str| said += text).expect_err("no link");
    // How much of it is read at once decides which of two sentences says so.
    assert!(said.contains("left out"), "{said:.300}");
    assert!(said.len() < 1 << 20, "{}", said.len());
    far.assert_quiet();
}

#[test]
fn what_a_hostile_machine_sends_ends_the_link() {
    let file = |name: &str| frame(0, &[&[1], &counted(name.as_bytes())]);
    let page = frame(1, &[&[1], &counted(&[0; 4096])]);
    let data = |offset: u64| frame(2, &[&[1], &varint(offset), &counted(b"bytes")]);
    let mut too_long = (300u32 << 10).to_le_bytes().to_vec();
    too_long.extend([0; 64]);
    let mut other_sum = file("1-1.cuptop");
    other_sum[4] ^= 1;
    let piece = |at: u64| frame(2, &[&[1], &varint(at), &counted(&[0; 200 << 10])]);
    let cases: [(&str, Vec<u8>); 12] = [
        ("a frame of", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a frame of 307200 bytes", too_long),
        ("whose checksum is another", other_sum),
        ("makes no sense", frame(77, &[b"x"])),
        (
            "do not follow",
            [file("1-1.cuptop"), frame(1, &[&[1], &counted(&[0; 9])])].concat(),
        ),
        ("a file called \"../1-1.cuptop\"", file("../1-1.cuptop")),
        ("a file called \"/tmp/1-1.cuptop\"", file("/tmp/1-1.cuptop")),
        ("it has not named", data(4096)),
        (
            "more words than anybody reads",
            (0..1_000)
                .flat_map(|_| frame(5, &[&[0], &counted(&[b'a'; 400])]))
                .collect(),
        ),
        (
            "do not follow",
            [file("1-1.cuptop"), page.clone(), data(8192)].concat(),
        ),
        (
            "more than it was asked for",
            [
                file("1-1.cuptop"),
                page,
                piece(4096),
                piece(4096 + (200 << 10)),
            ]
            .concat(),
        ),
        (
            "more than 16384 files",
            (0..17_000u32)
                .flat_map(|n| file(&format!("{n}-1.cuptop")))
                .collect(),
        ),
    ];
    for (expected, words) in cases {
        let far = Far::new(
            r#"printf '\000cuptop-serves\032\n\003\000\000\000\0050.1.0'; sleep 0.4; cat $here/words; exec sleep 3"#,
        );
        far.write("words", &words);
        let error = far.follow("job").expect_err("no link");
        assert!(
            error.contains("gpu01 sent what is not taken") && error.contains(expected),
            "{expected}: {error}"
        );
        far.assert_quiet();
    }
}

/// A link that breaks is made again, but not to a far side that has nothing but words, whatever it is asked.
#[test]
fn a_machine_that_goes_on_being_hostile_is_left() {
    let far = Far::new(
        r#"printf '\000cuptop-serves\032\n\003\000\000\000\0050.1.0'; sleep 0.4; cat $here/words; exec sleep 3"#,
    );
    let flood = (0..1_000).flat_map(|_| frame(5, &[&[0], &counted(&[b'a'; 400])]));
    // It answers once, so that the link works.
    let words: Vec<u8> = frame(4, &[&[0]]).into_iter().chain(flood).collect();
    far.write("words", &words);
    let (feed, _) = far.follow("job").expect("a link");
    let mut said = String::new();
    while !said.contains("it is not made again") {
        match feed.receiver().recv_timeout(PATIENCE) {
            Ok(Message::Notice { text, .. }) => said += &text,
            Ok(_) => {}
            Err(error) => panic!("{error}, {} calls: {said:.500}", far.calls().len()),
        }
    }
    assert_eq!(far.calls().len(), 3);
    // 128 KiB a link, and what is said of it.
    assert!(said.len() < 3 * (140 << 10), "{}", said.len());
    drop(feed);
    far.assert_quiet();
}
