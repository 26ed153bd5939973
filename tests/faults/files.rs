//! Something else where a file is expected: FIFOs, devices, files without end.

use std::ffi::OsStr;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{cuptop, recording};

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// Its exit code and all that it says, with at most 2 GiB of address space; fails when it has not ended in 20 s.
fn ends(command: &mut Command, args: &[&OsStr]) -> (Option<i32>, String) {
    let mut said = tempfile::tempfile().expect("a file");
    let mut bounded = Command::new("prlimit");
    bounded.arg("--as=2147483648").arg(command.get_program());
    for (key, value) in command.get_envs() {
        bounded.env(key, value.expect("set"));
    }
    let mut child = bounded
        .args(args)
        .stdin(Stdio::null())
        .stdout(said.try_clone().expect("a file"))
        .stderr(said.try_clone().expect("a file"))
        .spawn()
        .expect("it runs");
    let until = Instant::now() + Duration::from_secs(20);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > until {
            child.kill().expect("killed");
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = String::new();
    said.rewind().expect("rewound");
    said.read_to_string(&mut text).expect("UTF-8");
    (child.wait().expect("ended").code(), text)
}

#[test]
fn a_fifo_in_a_recording_folder_is_left_out_by_every_command() {
    let made = recording();
    let folder = made.path().join("run");
    let picture = made.path().join("x.svg");
    for place in ["4-d.cuptop", "0-b.outside.cuptop", "a.run/1-a.cuptop"] {
        let at = folder.join(place);
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        fifo(&at);
        for args in [
            &["report".as_ref(), folder.as_os_str()][..],
            &[
                "export".as_ref(),
                folder.as_os_str(),
                "--to".as_ref(),
                "csv".as_ref(),
            ],
            &[
                "whatif".as_ref(),
                folder.as_os_str(),
                "--variant".as_ref(),
                "tiled".as_ref(),
            ],
            &["compare".as_ref(), folder.as_os_str(), folder.as_os_str()],
            &[
                "open".as_ref(),
                folder.as_os_str(),
                "--screenshot".as_ref(),
                picture.as_os_str(),
            ],
        ] {
            let (code, said) = ends(&mut cuptop(), args);
            assert_eq!(code, Some(0), "{place} {args:?}: {}", said);
        }
        std::fs::remove_file(at).expect("removed");
    }
}

#[test]
fn what_is_no_file_or_has_no_end_is_refused_in_words_where_a_text_is_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fifo(&at("fifo.toml"));
    std::os::unix::fs::symlink("/dev/zero", at("zero.toml")).expect("linked");
    let sparse = std::fs::File::create(at("large.toml")).and_then(|file| file.set_len(3 << 30));
    sparse.expect("a sparse file");
    for (name, why) in [
        ("fifo.toml", "not a plain file"),
        ("zero.toml", "not a plain file"),
        ("large.toml", "more than 256 KiB"),
    ] {
        let path = at(name);
        let file = path.as_os_str();
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.json");
        for args in [
            &["check".as_ref(), file][..],
            &[
                "run".as_ref(),
                "pipeline".as_ref(),
                "--backend".as_ref(),
                "sim".as_ref(),
                "--headless".as_ref(),
                "--profile".as_ref(),
                file,
            ],
            &[
                "whatif".as_ref(),
                trace.as_ref(),
                "--profile".as_ref(),
                file,
            ],
        ] {
            let (code, said) = ends(&mut cuptop(), args);
            assert_eq!(code, Some(2), "{args:?}: {}", said);
            assert!(said.contains(why), "{args:?}: {}", said);
        }
    }
}
