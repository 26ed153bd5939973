//! The traces of a folder with their headlines: what was recorded here, newest first.
//!
//! A thread looks at the folder's names. It asks `cuptop report` for a headline that is not known, one file at a time and at the
//! lowest priority. Whatever that meets, it ends a process of its own. What came of it is kept in the user's cache.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde::{Deserialize, Serialize};

use crate::export::{Readers, to_file};
use activity::door;
use activity::feed::Joined;
use activity::units;

/// Names of a folder that are looked at.
const NAMES: usize = 1_000;
/// Headlines that are kept, the last ones that were asked for.
const KEPT: usize = 4_000;
/// A kept file's size that is believed.
const KEPT_BYTES: u64 = 8 << 20;
/// A larger trace is read when it is opened, not before.
const LARGEST: u64 = 2 << 30;
/// Time after which the reading of one trace is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which no further one is begun where somebody waits for all of them.
const WHOLE: Duration = Duration::from_secs(20);
/// Time between two looks at the folder.
const PERIOD: Duration = Duration::from_secs(5);
/// The longest time between two looks at a process that reads.
const LOOK: Duration = Duration::from_millis(50);
/// Steps that differ by less than this are told as alike.
const ALIKE: f64 = 0.01;

/// A trace of the folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub path: PathBuf,
    pub written: SystemTime,
    pub size: u64,
    /// What is known of it; `None` until it was read.
    pub told: Option<Told>,
    /// By which part the step is longer than that of the trace before it of the same name, numbers apart.
    pub longer: Option<f64>,
}

/// What a trace told of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Empty where it is no trace.
    pub headline: String,
    /// What the best cure brings, in words.
    pub gain: Option<String>,
    /// The typical step, ns.
    pub step_ns: Option<i64>,
}

impl Entry {
    /// Its file's name.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Time since it was written.
    pub fn age(&self) -> Duration {
        self.written.elapsed().unwrap_or_default()
    }

    /// The headline, and how its step compares with the one before; a word where it is not known.
    pub fn words(&self) -> String {
        let Some(told) = &self.told else {
            return match self.size > LARGEST {
                true => format!("{}: read when it is opened", units::bytes(self.size)),
                false => "not read yet …".to_owned(),
            };
        };
        let step = match self.longer {
            Some(by) if by.abs() < ALIKE => Some("step as long as the one before".to_owned()),
            Some(by) => {
                let word = if by > 0.0 { "longer" } else { "shorter" };
                let by = units::percent(by.abs());
                Some(format!("step {by} {word} than the one before"))
            }
            None => None,
        };
        let parts = [Some(told.headline.clone()), step];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Whether it is shown: a `.json` may be anything until it was read.
    fn is_shown(&self) -> bool {
        let is_plain = self.path.extension().is_some_and(|it| it == "json");
        match &self.told {
            Some(told) => !told.headline.is_empty(),
            None => !is_plain,
        }
    }
}

/// The thread that looks. Dropping it ends it, and what it reads.
#[derive(Debug)]
pub struct Watch {
    /// The traces that are to be shown, newest first, whenever they changed.
    pub entries: Receiver<Vec<Entry>>,
    _thread: Joined,
}

/// Begins to watch a folder.
///
/// # Errors
/// When the system gives no thread.
pub fn watch(folder: PathBuf) -> io::Result<Watch> {
    // Who shows them takes them at once; one look may wait.
    let (sender, entries) = bounded(1);
    let thread = Joined::until_dropped("cuptop-board", move |stopped| {
        // Of this thread and of what it starts alone.
        let _ = rustix::process::setpriority_process(None, 19);
        follow(&folder, &sender, stopped);
    })?;
    Ok(Watch {
        entries,
        _thread: thread,
    })
}

fn follow(folder: &Path, entries: &Sender<Vec<Entry>>, stopped: &Receiver<()>) {
    let mut kept = Kept::load();
    let mut sent = Vec::new();
    loop {
        let all = kept.list(folder);
        let next = next_unread(&all);
        let shown: Vec<Entry> = all.into_iter().filter(Entry::is_shown).collect();
        if shown != sent {
            sent.clone_from(&shown);
            if entries.send(shown).is_err() {
                return;
            }
        }
        let Some(next) = next else {
            match stopped.recv_timeout(PERIOD) {
                Err(RecvTimeoutError::Timeout) => continue,
                _ => return,
            }
        };
        let key = key(&next);
        let Some(told) = ask(&next, stopped) else {
            return;
        };
        kept.keep(key, told);
    }
}

/// The newest trace that nothing is known of and that is read unasked.
fn next_unread(newest_first: &[Entry]) -> Option<PathBuf> {
    let is_next = |it: &&Entry| it.told.is_none() && it.size <= LARGEST;
    Some(newest_first.iter().find(is_next)?.path.clone())
}

/// The traces of a folder as they are told of now, read where that is not known yet.
pub fn read(folder: &Path) -> Vec<Entry> {
    let (_stop, stopped) = bounded(0);
    let (mut kept, end) = (Kept::load(), Instant::now() + WHOLE);
    loop {
        let all = kept.list(folder);
        let next = next_unread(&all).filter(|_| Instant::now() < end);
        let told = next.and_then(|path| Some((key(&path), ask(&path, &stopped)?)));
        match told {
            Some((key, told)) => kept.keep(key, told),
            None => return all.into_iter().filter(Entry::is_shown).collect(),
        }
    }
}

/// What a trace tells of itself, asked of a process; `None` when it is asked to stop meanwhile.
fn ask(path: &Path, stopped: &Receiver<()>) -> Option<Told> {
    let report = Command::new("/proc/self/exe")
        .args(["report", "--json=brief", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut report) = report else {
        return Some(Told::default());
    };
    let (end, mut look) = (Instant::now() + PATIENCE, LOOK / 32);
    // A brief report is shorter than a pipe holds: it never waits for its reader.
    let ended = loop {
        match report.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if Instant::now() < end => {}
            _ => break false,
        }
        look = LOOK.min(2 * look);
        if !matches!(stopped.recv_timeout(look), Err(RecvTimeoutError::Timeout)) {
            end_it(&mut report);
            return None;
        }
    };
    end_it(&mut report);
    let mut text = String::new();
    if let Some(out) = report.stdout.take().filter(|_| ended) {
        let limit = crate::report::brief::BYTES_MAX as u64;
        let _ = out.take(2 * limit).read_to_string(&mut text);
    }
    Some(told(&text))
}

fn end_it(report: &mut Child) {
    let _ = report.kill();
    let _ = report.wait();
}

/// What a brief report says.
fn told(brief: &str) -> Told {
    let brief: serde_json::Value = serde_json::from_str(brief).unwrap_or_default();
    let text = |of: &serde_json::Value| of.as_str().map(str::to_owned);
    Told {
        headline: text(&brief["headline"]["text"]).unwrap_or_default(),
        gain: text(&brief["headline"]["gain"]),
        step_ns: brief["step"]["median_ns"].as_i64(),
    }
}

/// What is known of traces by path, size and time.
#[derive(Debug, Default)]
struct Kept {
    file: Option<PathBuf>,
    known: HashMap<Key, Told>,
    /// The keys in the order in which they came.
    order: Vec<Key>,
}

type Key = (PathBuf, u64, i64);

fn key(path: &Path) -> Option<Key> {
    let (size, time) = seen(path)?;
    Some((path.to_owned(), size, nanoseconds(time)))
}

impl Kept {
    fn load() -> Kept {
        let file = live::cache_folder("headlines").map(|it| it.join("1.json"));
        Kept::of(file)
    }

    /// What a file holds. One that is no plain file is left alone: a FIFO would be waited for.
    fn of(file: Option<PathBuf>) -> Kept {
        let is_none = |it: &PathBuf| it.symlink_metadata().is_ok_and(|it| !it.is_file());
        let file = file.filter(|it| !is_none(it));
        let mut text = String::new();
        if let Some(mut open) = file.as_ref().and_then(|it| door::open(it).ok()) {
            let _ = open.by_ref().take(KEPT_BYTES).read_to_string(&mut text);
        }
        let all: Vec<(Key, Told)> = serde_json::from_str(&text).unwrap_or_default();
        let order = all.iter().map(|it| it.0.clone()).collect();
        Kept {
            file,
            known: all.into_iter().collect(),
            order,
        }
    }

    /// Keeps what was told of a trace that was seen so before it was read: it may be another one by now.
    fn keep(&mut self, key: Option<Key>, told: Told) {
        let Some(key) = key else { return };
        self.known.insert(key.clone(), told);
        self.order.push(key);
        let from = self.order.len().saturating_sub(KEPT);
        let newest = self.order[from..].iter();
        let all: Vec<(&Key, &Told)> = newest
            .filter_map(|key| self.known.get_key_value(key))
            .collect();
        if let (Some(file), Ok(text)) = (&self.file, serde_json::to_vec(&all)) {
            // Where it cannot be written it is asked again the next time.
            let _ = to_file(file, Readers::Owner, |out| out.write_all(&text));
        }
    }

    /// The traces of a folder, newest first, with what is known of them.
    fn list(&self, folder: &Path) -> Vec<Entry> {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = names.take(NAMES).map(|it| it.path());
        let mut all: Vec<Entry> = paths
            .filter(|path| may_be_trace(path))
            .filter_map(|path| {
                let (size, written) = seen(&path)?;
                let key = (path, size, nanoseconds(written));
                let told = self.known.get(&key).cloned();
                Some(Entry {
                    path: key.0,
                    written,
                    size,
                    told,
                    longer: None,
                })
            })
            .collect();
        all.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.path.cmp(&b.path)));
        compare(&mut all);
        all
    }
}

/// Compares each step with that of the next older trace whose name is the same but for its digits.
fn compare(newest_first: &mut [Entry]) {
    let mut before: HashMap<String, i64> = HashMap::new();
    for entry in newest_first.iter_mut().rev() {
        let step = entry.told.as_ref().and_then(|it| it.step_ns);
        let Some(step) = step.filter(|it| *it > 0) else {
            continue;
        };
        let name: String = entry
            .name()
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .collect();
        entry.longer = before
            .insert(name, step)
            .map(|old| step as f64 / old as f64 - 1.0);
    }
}

fn may_be_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".json", ".json.gz", ".sqlite", ".cuptop"];
    let is_named = endings.iter().any(|ending| name.ends_with(ending));
    // What is no plain file and no folder may never give an end.
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => recording::is_recording(path),
        Ok(found) => found.is_file() && is_named && !name.starts_with('.'),
        Err(_) => false,
    }
}

/// Size and time of a file; of a recording's folder those of its largest and its newest file.
fn seen(path: &Path) -> Option<(u64, SystemTime)> {
    let of = |path: &Path| {
        let found = path.metadata().ok()?;
        Some((found.size(), found.modified().ok()?))
    };
    if !path.is_dir() {
        return of(path);
    }
    let files = std::fs::read_dir(path).ok()?.take(NAMES).flatten();
    let files = files.filter(|it| it.file_type().is_ok_and(|kind| kind.is_file()));
    let all = files.filter_map(|it| of(&it.path()));
    all.reduce(|a, b| (a.0.saturating_add(b.0), a.1.max(b.1)))
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, age: u64, step_ns: Option<i64>) -> Entry {
        Entry {
            path: PathBuf::from(name),
            written: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age),
            size: 1,
            told: Some(Told {
                headline: "launch-bound".to_owned(),
                gain: None,
                step_ns,
            }),
            longer: None,
        }
    }

    #[test]
    fn a_step_is_compared_with_the_one_before_of_its_name() {
        let mut all = [
            entry("run12.json.gz", 0, Some(104)),
            entry("other1.json.gz", 1, Some(7)),
            entry("run11.json.gz", 2, Some(100)),
            entry("run9.json.gz", 3, Some(125)),
            entry("run8.json.gz", 4, None),
        ];
        compare(&mut all);
        let longer = all
            .each_ref()
            .map(|it| it.longer.map(|by| (100.0 * by).round()));
        assert_eq!(longer, [Some(4.0), None, Some(-20.0), None, None]);
        assert_eq!(
            all[0].words(),
            "launch-bound · step 4 % longer than the one before"
        );
        assert_eq!(
            all[2].words(),
            "launch-bound · step 20 % shorter than the one before"
        );
        assert_eq!(all[1].words(), "launch-bound");
    }

    #[test]
    fn a_fifo_in_the_place_of_the_cache_is_never_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, trace) = (folder.path().join("1.json"), folder.path().join("a.json"));
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|it| it.success()));
        std::fs::write(&trace, "x").expect("written");
        let mut kept = Kept::of(Some(pipe));
        kept.keep(key(&trace), Told::default());
        assert_eq!(kept.known.len(), 1);
    }

    #[test]
    fn only_what_may_be_a_trace_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a.json.gz", "b.sqlite", "c.json", "d.txt", ".e.json.gz"] {
            std::fs::write(at(name), "x").expect("written");
        }
        std::fs::create_dir(at("sub.json.gz")).expect("a folder");
        std::os::unix::fs::symlink(at("a.json.gz"), at("link.json.gz")).expect("a link");
        let mut kept = Kept::default();
        let found = |kept: &Kept| {
            let mut names: Vec<String> = kept.list(folder.path()).iter().map(Entry::name).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(found(&kept), ["a.json.gz", "b.sqlite", "c.json"]);
        // A file that changed is another one.
        let before = key(&at("a.json.gz"));
        kept.keep(
            before.clone(),
            told(r#"{"headline":{"text":"GPU-bound","gain":null},"step":{"median_ns":12}}"#),
        );
        let told_of = |kept: &Kept| {
            let all = kept.list(folder.path());
            all.into_iter()
                .find(|it| it.name() == "a.json.gz")
                .and_then(|it| it.told)
        };
        let known = told_of(&kept).map(|it| (it.headline, it.step_ns));
        assert_eq!(known, Some(("GPU-bound".to_owned(), Some(12))));
        std::fs::write(at("a.json.gz"), "longer").expect("written");
        assert_eq!(told_of(&kept), None);
        // So is one that changed while it was read.
        kept.keep(before, told("{}"));
        assert_eq!(told_of(&kept), None);
        // No trace, and a JSON file that may be one.
        kept.keep(key(&at("b.sqlite")), told("nonsense"));
        let shown = kept
            .list(folder.path())
            .iter()
            .filter(|it| it.is_shown())
            .count();
        assert_eq!(shown, 1);
    }
}
