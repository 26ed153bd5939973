//! What the fuzzer found, and from what it began, read again (`tests/data/corpus`, a folder for each reader; `fuzz/run` makes
//! more of it).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use targets::TARGETS;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|it| it.expect("readable").path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

#[test]
fn every_file_of_the_corpus_ends_well_and_soon() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = root.join("tests/data/corpus");
    let mut folders: Vec<(&str, PathBuf)> = Vec::new();
    for (name, _) in TARGETS {
        folders.push((name, corpus.join(name)));
    }
    folders.push(("scenario", root.join("tests/invalid_scenarios")));
    for (name, folder) in folders {
        let (_, target) = TARGETS
            .into_iter()
            .find(|(known, _)| *known == name)
            .expect("known");
        let all = files(&folder);
        assert!(!all.is_empty(), "{name} has no corpus");
        for path in all {
            let data = std::fs::read(&path).expect("readable");
            let scratch = tempfile::tempdir().expect("a folder");
            let begin = Instant::now();
            target(&data, scratch.path());
            let took = begin.elapsed();
            assert!(
                took < Duration::from_secs(30),
                "{}: {took:?}",
                path.display()
            );
        }
    }
    // A folder that nothing reads would be forgotten.
    let known = TARGETS.map(|(name, _)| name);
    let folders = corpus
        .read_dir()
        .expect("a folder")
        .map(|it| it.expect("readable").file_name());
    assert!(
        folders
            .into_iter()
            .all(|it| known.contains(&&*it.to_string_lossy()))
    );
}

/// A stream of numbers that looks like chance (xorshift64*), the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    /// Changes some bytes: others in their place, pieces twice or gone, numbers at their limits, pieces of another file.
    fn change(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..=self.below(6) {
            let at = self.below(data.len());
            let end = (at + 1 + self.below(32)).min(data.len());
            match self.below(7) {
                0 if at < data.len() => data[at] ^= 1 << self.below(8),
                1 if at < data.len() => data[at] = self.below(256) as u8,
                2 => drop(data.drain(at..end)),
                3 => {
                    let piece = data[at..end].to_vec();
                    data.splice(at..at, piece);
                }
                4 => {
                    let edge: [u64; 5] = [0, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 31];
                    let bytes = edge[self.below(5)].to_le_bytes();
                    let length = [1, 2, 4, 8][self.below(4)].min(data.len() - at);
                    data[at..at + length].copy_from_slice(&bytes[..length]);
                }
                5 => data.truncate(at.max(1)),
                _ => {
                    let from = self.below(other.len());
                    let to = (from + 1 + self.below(64)).min(other.len());
                    data.splice(at..at, other[from..to].iter().copied());
                }
            }
        }
    }
}

/// Without coverage, but in any build of the tests: `CUPTOP_FUZZ_SECONDS=600 cargo test --test traces corpus -- --ignored --nocapture`.
#[test]
#[ignore = "takes CUPTOP_FUZZ_SECONDS (2) for each reader"]
fn changes_of_the_corpus_end_well_and_soon() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let time = Duration::from_secs(number("CUPTOP_FUZZ_SECONDS").unwrap_or(2));
    let seed = number("CUPTOP_FUZZ_SEED").unwrap_or(1);
    let only = std::env::var("FUZZ_TARGET").ok();
    for (name, target) in TARGETS {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let mut folders = vec![root.join("tests/data/corpus").join(name)];
        if name == "scenario" {
            folders.push(root.join("tests/invalid_scenarios"));
        }
        let corpus: Vec<Vec<u8>> = folders
            .iter()
            .flat_map(|folder| files(folder))
            .map(|path| std::fs::read(path).expect("readable"))
            .collect();
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let scratch = tempfile::tempdir().expect("a folder");
        let (begin, mut count, mut slowest) = (Instant::now(), 0, Duration::ZERO);
        while begin.elapsed() < time {
            let mut data = corpus[chance.below(corpus.len())].clone();
            let other = &corpus[chance.below(corpus.len())];
            chance.change(&mut data, other);
            let at = Instant::now();
            let ended = std::panic::catch_unwind(|| target(&data, scratch.path()));
            let took = at.elapsed();
            slowest = slowest.max(took);
            count += 1;
            if ended.is_err() || took > Duration::from_secs(30) {
                let found =
                    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}-{count}"));
                std::fs::write(&found, &data).expect("a folder to write to");
                panic!("{} took {took:?}", found.display());
            }
        }
        #[allow(clippy::print_stdout, reason = "how much was tried is what it is for")]
        {
            println!(
                "{name}: {count} inputs in {:?}, the slowest took {slowest:?}",
                begin.elapsed()
            );
        }
    }
}
