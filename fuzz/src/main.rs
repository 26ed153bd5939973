//! One of the readers, named by FUZZ_TARGET, under libFuzzer.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

mod targets;

use targets::{TARGETS, Target};

/// What is read, and the folder for its files.
static TARGET: LazyLock<(Target, PathBuf)> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let names = TARGETS.map(|(name, _)| name).join(", ");
    let Some((_, target)) = TARGETS.into_iter().find(|(known, _)| *known == name) else {
        eprintln!("FUZZ_TARGET is one of {names}");
        std::process::exit(2);
    };
    let folder = std::env::temp_dir().join(format!("cuptop-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for files");
    (target, folder)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (target, folder) = &*TARGET;
    target(data, folder);
});
