//! Everything that reads what somebody else wrote, each as a function of bytes that must end well whatever they are. The fuzzer
//! (`fuzz/`) and the replay of its corpus (`tests/corpus.rs`) call the same.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::{activity, analysis, export, report, scenario, source, trace};
use crate::scenario::expr::{
    self,
    value::{Unit, Value},
};

mod framed;

/// A reader: it takes bytes, and a folder for files.
pub type Target = fn(&[u8], &Path);

/// What can be read: its name, which is also that of its folder of the corpus, and how.
pub const TARGETS: [(&str, Target); 8] = [
    ("scenario", |data, _| compiled(data)),
    ("expression", |data, _| expression(data)),
    ("configuration", |data, _| configuration(data)),
    ("kineto", |data, folder| opened(data, folder, "x.json")),
    ("nsys", |data, folder| opened(data, folder, "x.sqlite")),
    ("recording", |data, folder| opened(data, folder, RECORDING)),
    ("entries", |data, folder| {
        opened(&framed::recording(data), folder, RECORDING);
    }),
    ("beside", beside),
];

/// A recording's file.
const RECORDING: &str = "1-1.cuptop";
/// Work that a search for races may take, in about tens of nanoseconds.
const BUDGET: u64 = 1_000_000;

fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}

fn compiled(data: &[u8]) {
    let text = text(data);
    let source = scenario::Source {
        name: "fuzz.toml".to_owned(),
        path: None,
        text: (&*text).into(),
        kernel_dir: None,
    };
    let diagnostics = match scenario::compile(&source, &scenario::Overrides::default()) {
        Ok(compiled) => {
            for variant in &compiled.plan.variants {
                let mut budget = BUDGET;
                let _ = scenario::hazards::find(variant, &mut budget);
            }
            compiled.warnings
        }
        Err(diagnostics) => diagnostics,
    };
    is_plain(&diagnostics.render(false));
    for item in diagnostics.items() {
        assert!(
            text.get(item.span.clone()).is_some(),
            "a span outside of the text"
        );
    }
}

fn expression(data: &[u8]) {
    let text = text(data);
    let piece = expr::parse::Piece {
        text: &text,
        start: Some(0),
        whole: expr::Loc::default(),
    };
    let lookup = |name: &str| match name {
        "n" => Some(Value::Int(7, Unit::None)),
        "bytes" => Some(Value::Int(1 << 20, Unit::Bytes)),
        _ => None,
    };
    if let Err(error) = expr::parse::expression(piece).and_then(|it| it.eval(&lookup)) {
        assert!(
            text.get(error.loc.range()).is_some(),
            "a place outside of the text"
        );
    }
}

fn configuration(data: &[u8]) {
    if let Err(said) = crate::cli::config::check(&text(data)) {
        is_plain(&said);
    }
}

/// Files beside a recording. The first byte says of which kind.
fn beside(data: &[u8], folder: &Path) {
    let (kind, data) = data.split_first().unwrap_or((&0, &[]));
    let kind = ["stacks", "hardware", "host"][usize::from(*kind) % 3];
    let path = folder.join(format!("1-2.{kind}"));
    let recording = folder.join(RECORDING);
    let written = std::fs::write(&path, framed::beside(kind, data))
        .and_then(|()| std::fs::write(&recording, framed::recording(&[])));
    written.expect("a folder to write to");
    through(&recording);
    let _ = std::fs::remove_file(path);
}

fn opened(data: &[u8], folder: &Path, name: &str) {
    let path = folder.join(name);
    std::fs::write(&path, data).expect("a folder to write to");
    through(&path);
}

/// From a file to everything that is made of it.
fn through(path: &Path) {
    let Ok(opened) = source::file::open(&[path.to_owned()]) else {
        return;
    };
    let mut timeline = trace::Trace::new(trace::SourceInfo::default());
    let mut said = String::new();
    let mut ended = false;
    for message in opened.feed.receiver() {
        match message {
            activity::feed::Message::Batch(batch) => timeline.apply(batch),
            activity::feed::Message::Notice { text, .. } => {
                let _ = write!(said, "{text}");
            }
            activity::feed::Message::Finished(_) => ended = true,
            _ => {}
        }
    }
    assert!(ended, "a source ends with an outcome");
    let report = report::Report::new(&timeline, None, analysis::figures::Peaks::default());
    is_plain(&report::text(&report));
    assert!(report.json().is_ok(), "a report is JSON");
    for entry in export::FORMATS {
        if let crate::export::Format::Timeline(format) = entry.format {
            assert!(
                export::to(format, &timeline, &mut io::sink()).is_ok(),
                "{}",
                entry.name
            );
        }
    }
}

/// Nothing that a terminal obeys is in a text that goes to one.
fn is_plain(text: &str) {
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(steers), "control characters in {text:?}");
}
