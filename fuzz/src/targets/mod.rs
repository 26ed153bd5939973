//! Everything that reads what somebody else wrote, each as a function of bytes that must end well whatever they are. The fuzzer
//! (`fuzz/`) and the replay of its corpus (`tests/traces/corpus.rs`) call the same.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use cuptop::{export, report};
use scenario::expr::{
    self,
    value::{Unit, Value},
};

mod framed;

/// A reader: it takes bytes, and a folder for files.
pub(crate) type Target = fn(&[u8], &Path);

/// What can be read: its name, which is also that of its folder of the corpus, and how.
pub(crate) const TARGETS: [(&str, Target); 10] = [
    ("scenario", |data, _| compiled(data)),
    ("expression", |data, _| expression(data)),
    ("kineto", |data, folder| opened(data, folder, "x.json")),
    ("nsys", |data, folder| opened(data, folder, "x.sqlite")),
    ("recording", |data, folder| opened(data, folder, RECORDING)),
    ("entries", |data, folder| {
        opened(&framed::recording(data), folder, RECORDING);
    }),
    ("link", link),
    ("profile", |data, _| profile(data)),
    ("edit", |data, _| edit(data)),
    ("name", |data, _| name(data)),
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
        library: cuptop::bundled::LIBRARY,
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
    for item in &diagnostics.items {
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

/// What another machine sends over ssh. The first byte says whether frames are sound.
fn link(data: &[u8], folder: &Path) {
    let (is_framed, data) = data.split_first().unwrap_or((&0, &[]));
    let bytes = match is_framed % 2 {
        0 => framed::link(data),
        _ => data.to_vec(),
    };
    let root = folder.join("machine/root");
    std::fs::create_dir_all(&root).expect("a folder to write to");
    match hosts::testing::receive(&bytes, &root) {
        Ok(arrived) => assert!(arrived <= bytes.len() as u64 + 4096 * (1 + arrived / 4096)),
        Err(said) => is_plain(&said),
    }
    let beside = folder.join("machine").read_dir().expect("a folder");
    assert_eq!(beside.count(), 1, "it wrote outside of its folder");
    std::fs::remove_dir_all(folder.join("machine")).expect("a folder of ours");
}

/// A GPU's profile.
fn profile(data: &[u8]) {
    match sim::Profile::parse(&text(data), "fuzz.toml") {
        Ok(profile) => {
            let again = profile.to_toml().expect("what was read can be written");
            let again = sim::Profile::parse(&again, "fuzz.toml");
            assert!(again.is_ok(), "what was written can be read");
        }
        // It says where it is wrong by the line, which leaves the program with its control characters written out.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is to be changed in a prediction.
fn edit(data: &[u8]) {
    match text(data).parse::<scenario::edit::EditSet>() {
        Ok(set) => {
            let again = set.to_string().parse::<scenario::edit::EditSet>();
            assert!(again.is_ok_and(|again| again == set), "{set}");
        }
        Err(error) => {
            is_plain(&error.to_string());
            assert!(
                text(data).get(error.loc.range()).is_some(),
                "a place outside of the text"
            );
        }
    }
}

/// Names of kernels, one a line: demangled, shortened, told apart.
fn name(data: &[u8]) {
    let text = text(data);
    let mut timeline = trace::Trace::new(trace::SourceInfo::default());
    let raw = || text.lines().enumerate();
    timeline.apply(activity::Batch {
        defs: raw()
            .map(|(id, name)| activity::Def::Name {
                id: id as u32,
                text: name.to_owned(),
            })
            .collect(),
        ..activity::Batch::default()
    });
    let names = timeline.names();
    let all: Vec<u32> = (0..names.len() as u32).collect();
    let mut fulls = std::collections::HashSet::new();
    for &id in &all {
        let full = names.full(id);
        is_plain(full);
        is_plain(names.short(id));
        // Five or six letters stand for a character that cannot be shown.
        assert!(full.len() <= 8 * text.len().max(16 << 10));
        fulls.insert(full);
    }
    let told: std::collections::HashSet<String> = names.short_unique(&all).into_iter().collect();
    assert_eq!(told.len(), fulls.len(), "different names, told apart");
}

fn opened(data: &[u8], folder: &Path, name: &str) {
    let path = folder.join(name);
    std::fs::write(&path, data).expect("a folder to write to");
    through(&path);
}

/// From a file to everything that is made of it.
fn through(path: &Path) {
    let Ok(opened) = readers::file::open(&[path.to_owned()], &mut |_| {}) else {
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
    let report = report::Report::new(&timeline, None, report::KnownGpus::default());
    is_plain(&report::text::render(
        &report,
        &report::text::Options::default(),
    ));
    assert!(report.json().is_ok(), "a report is JSON");
    for entry in export::FORMATS {
        if let export::Format::Timeline(format) = entry.format
            && let Err(error) = export::write_data(
                format,
                &timeline,
                &report::KnownGpus::default(),
                &mut io::sink(),
            )
        {
            panic!("{}: {error}", entry.name);
        }
    }
}

/// Nothing that a terminal obeys, that turns a line around, or that hides is in a text that goes to one.
fn is_plain(text: &str) {
    let hides = |c: char| {
        ('\u{200b}'..='\u{200f}').contains(&c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
            || c == '\u{feff}'
    };
    let steers = |c: char| c.is_control() && c != '\n' || hides(c);
    assert!(!text.contains(steers), "control characters in {text:?}");
}
