//! CSV exports, and what holds for files of every format.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::common::made::{made, written};
use cuptop::export::{self, Readers, TimelineFormat};
use trace::Trace;

/// Cells of CSV with quotes (RFC 4180).
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows
}

#[test]
fn csv_has_one_line_an_operation() {
    let text = String::from_utf8(written(TimelineFormat::Csv, &made())).expect("UTF-8");
    let table = cells(&text);
    assert_eq!(table.len(), 1 + 6);
    assert!(table.iter().all(|row| row.len() == 25), "{table:?}");
    let columns: HashMap<&str, usize> = table[0]
        .iter()
        .enumerate()
        .map(|(i, c)| (c.as_str(), i))
        .collect();
    let cell = |row: usize, column: &str| table[row][columns[column]].as_str();
    let copy: Vec<_> = [
        "process",
        "pid",
        "device",
        "stream",
        "kind",
        "start_ns",
        "duration_ns",
        "bytes",
        "gb_per_s",
        "from",
        "to",
        "asynchronous",
        "grid",
        "correlation",
    ]
    .map(|c| cell(1, c))
    .to_vec();
    assert_eq!(
        copy,
        [
            "0",
            "5000",
            "0",
            "7",
            "h2d",
            "1000000000000223",
            "200",
            "10000",
            "50.0000",
            "pinned",
            "device",
            "true",
            "",
            "1"
        ]
    );
    let kernel: Vec<_> = [
        "kind",
        "name",
        "bytes",
        "from",
        "grid",
        "block",
        "registers",
        "shared_bytes",
        "graph",
    ]
    .map(|c| cell(2, c))
    .to_vec();
    assert_eq!(
        kernel,
        [
            "kernel",
            "void say<\"a,b\">(int)\\n\\u{1b}[31m",
            "",
            "",
            "8x4x1",
            "128x1x1",
            "32",
            "124",
            "3"
        ]
    );
    for row in 1..table.len() {
        assert_eq!(
            (cell(row, "simulated"), cell(row, "lost_records")),
            ("true", "4")
        );
        assert_eq!(cell(row, "recorded_start_ns"), cell(row, "start_ns"));
    }
    let starts: Vec<i64> = (1..table.len())
        .map(|r| cell(r, "start_ns").parse().expect("a number"))
        .collect();
    assert!(starts.is_sorted());
}

#[test]
fn an_empty_timeline_is_a_head_without_lines() {
    let text = String::from_utf8(written(TimelineFormat::Csv, &Trace::default())).expect("UTF-8");
    assert_eq!(cells(&text).len(), 1);
}

#[test]
fn errors_name_the_file() {
    let path = PathBuf::from("/nowhere/at/all.csv");
    let error = export::to_file(&path, Readers::Owner, |out| {
        export::write_data(
            TimelineFormat::Csv,
            &made(),
            &cuptop::report::KnownGpus::default(),
            out,
        )
    })
    .expect_err("no folder");
    assert!(error.to_string().contains("/nowhere/at/all.csv"));
    if Path::new("/dev/full").exists() {
        let error = export::to_file("/dev/full".as_ref(), Readers::Owner, |out| {
            export::write_data(
                TimelineFormat::Csv,
                &made(),
                &cuptop::report::KnownGpus::default(),
                out,
            )
        })
        .expect_err("a full disk");
        assert!(
            error.to_string().starts_with("cannot write /dev/full"),
            "{error}"
        );
    }
    for entry in export::FORMATS {
        let named = export::FormatEntry::named(entry.name).expect("a format");
        assert_eq!(named.format, entry.format);
        for extension in entry.extensions {
            let path = PathBuf::from(format!("a/b.{}", extension.to_uppercase()));
            let of_path = export::FormatEntry::of_path(&path).expect("a format");
            assert_eq!(of_path.format, entry.format);
        }
    }
    assert!(export::FormatEntry::named("exe").is_none());
    assert!(export::FormatEntry::of_path(Path::new("svg")).is_none());
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kept.csv");
    std::fs::write(&path, "from before").expect("written");
    let failed = export::to_file(&path, Readers::Owner, |out| {
        out.write_all(&[b'x'; 1 << 20])?;
        Err(std::io::Error::other("it broke in the middle"))
    });
    assert!(failed.is_err());
    assert_eq!(
        std::fs::read_to_string(&path).expect("there"),
        "from before"
    );
    let names = || std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(names(), 1, "nothing is left beside it");
    // A link leads to the new content and stays a link.
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    export::to_file(&link, Readers::Owner, |out| out.write_all(b"new")).expect("written");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "new");
    assert_eq!(names(), 2);
}
