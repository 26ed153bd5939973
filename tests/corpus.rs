//! What the fuzzer found, and from what it began, read again (`tests/data/corpus`, a folder for each reader; `fuzz/run` makes
//! more of it).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cuptop::testing::fuzz::TARGETS;

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
