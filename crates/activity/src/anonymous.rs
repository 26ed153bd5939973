//! Leaving out of a timeline what says who made it, where, and with what command line.

use std::borrow::Cow;

use super::{Batch, Def, Frame, Hardware, Owner, ProcessInfo, SampleDef};

/// What is left out, and what stays, for people.
pub const LEFT_OUT: &str = "left out: command lines, folders of paths, host names (numbered instead), names of other programs on the GPU; \
     kept: names of kernels, ranges, streams, threads and source files";

/// Stands for a command line.
const COMMAND: &str = "(command left out)";
/// Stands for the folders of a path.
const FOLDERS: &str = "\u{2026}/";
/// Folders from which on a path is everybody's: installed files are told by them.
pub const EVERYBODYS: [&str; 4] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/lib64/python",
];

/// The file of a frame that is somewhere in Python, where nobody knows in which function of the program.
pub const INTERPRETER: &str = "<python>";

/// Whether a source file is the user's own: neither the interpreter's nor an installed package's.
pub fn is_own(file: &str) -> bool {
    let of_interpreter = file.starts_with('<') && file != "<string>" && file != "<stdin>";
    !of_interpreter && !EVERYBODYS.iter().any(|part| file.contains(part))
}

/// A source file in few words: the user's own by its name, a package's by its path in there.
pub fn short_file(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, rest)) = file.rsplit_once(folder) {
            return rest;
        }
    }
    for folder in ["/lib/python", "/lib64/python"] {
        // The version stands between the folder and the rest.
        if let Some((_, rest)) = file.rsplit_once(folder) {
            return rest.split_once('/').map_or(rest, |(_, rest)| rest);
        }
    }
    match file.starts_with('/') {
        true => file.rsplit('/').next().unwrap_or(file),
        // The path is relative to where the program was started, or to a package's folder.
        false => file,
    }
}

impl Frame {
    /// Whether it is of the user's own code.
    pub fn is_own(&self) -> bool {
        is_own(&self.file)
    }
}

/// Takes it out of the batches of one timeline.
#[derive(Debug, Default)]
pub struct Anonymous {
    /// Hosts in the order in which they came: their places number them.
    hosts: Vec<String>,
}

impl Anonymous {
    /// Takes it out of a batch.
    pub fn clean(&mut self, batch: &mut Batch) {
        for def in &mut batch.defs {
            match def {
                Def::Process(info) => self.process(info),
                Def::Name { text, .. } => {
                    clean(text);
                    function(text);
                }
                Def::Thread { name, .. } => clean(name),
                Def::Stream(info) => clean(&mut info.name),
                Def::Shape { .. } | Def::Collective { .. } | Def::Device(_) | Def::Mode(_) => {}
            }
        }
        for def in batch.samples.iter_mut().flat_map(|it| &mut it.defs) {
            if let SampleDef::Frame { frame, .. } = def {
                frame.file = file(&frame.file);
            }
        }
        for hardware in &mut batch.hardware {
            match hardware {
                Hardware::Occupants { all, .. } => {
                    for occupant in all {
                        match occupant.owner {
                            Owner::Program => clean(&mut occupant.name),
                            Owner::Other | Owner::Unknown => occupant.name.clear(),
                        }
                    }
                }
                Hardware::Note(text) => clean(text),
                Hardware::Stalls(it) => {
                    clean(&mut it.kernel);
                    function(&mut it.kernel);
                    it.file = file(&it.file);
                }
                Hardware::Gpu(_)
                | Hardware::Limits(_)
                | Hardware::Reading(_)
                | Hardware::Sample(_)
                | Hardware::Cost(_) => {}
            }
        }
    }

    fn process(&mut self, info: &mut ProcessInfo) {
        if !info.command.is_empty() {
            COMMAND.clone_into(&mut info.command);
        }
        clean(&mut info.versions);
        if !info.host.is_empty() {
            let known = self.hosts.iter().position(|host| *host == info.host);
            let number = known.unwrap_or_else(|| {
                self.hosts.push(std::mem::take(&mut info.host));
                self.hosts.len() - 1
            });
            info.host = format!("host {}", number + 1);
        }
    }
}

fn clean(text: &mut String) {
    if let Cow::Owned(without) = without_folders(text) {
        *text = without;
    }
}

/// Folders that a profiler's name of a Python function keeps: causes tell PyTorch's own functions by them.
const TORCH: &str = "torch/";

/// A profiler's name of a Python function, "acme/model.py(12): fit", without its folders. It gives them as seen from where packages lie,
/// so that one's own do not begin with `/` and cannot be told from installed ones.
fn function(text: &mut String) {
    let Some((place, _)) = text.split_once("): ") else {
        return;
    };
    let Some((path, line)) = place.rsplit_once('(') else {
        return;
    };
    let is_place = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    if !is_place || path.starts_with(TORCH) || path.starts_with(FOLDERS) {
        return;
    }
    if let Some((folders, _)) = path.rsplit_once('/') {
        text.drain(..=folders.len());
    }
}

/// A source file: an installed one from where its place is everybody's, another by its name.
fn file(path: &str) -> String {
    let Some((folders, name)) = path.rsplit_once('/') else {
        return path.to_owned();
    };
    let from = EVERYBODYS
        .iter()
        .filter_map(|part| path.rfind(part))
        .max()
        .filter(|from| *from <= folders.len());
    match from {
        Some(from) => format!("{FOLDERS}{}", &path[from + 1..]),
        None => name.to_owned(),
    }
}

/// A text whose absolute paths have lost their folders. Such a path begins with `/` or `~/` behind a blank, a quote or
/// a bracket, and has a second slash. One of Windows begins with `\` (behind a drive or none) and has a second of
/// those. What lies between two slashes in a C++ name is none.
fn without_folders(text: &str) -> Cow<'_, str> {
    if !text.contains(['/', '\\']) {
        return Cow::Borrowed(text);
    }
    let ends = |c: char| c.is_whitespace() || "\"'()[]{}<>,;=|:".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_of = |slash: char| {
            word.strip_prefix(slash)
                .is_some_and(|rest| rest.contains(slash))
        };
        let is_path = is_of('/') || is_of('\\') || word.starts_with("~/");
        match word.rsplit_once(['/', '\\']) {
            Some((_, name)) if is_path => {
                out.push_str(FOLDERS);
                out.push_str(name);
            }
            _ => out.push_str(word),
        }
        let next = behind.chars().next();
        out.extend(next);
        rest = &behind[next.map_or(0, char::len_utf8)..];
    }
    if out == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_go_and_names_stay() {
        for (text, without) in [
            (
                "CUPTI 13 (/home/ann/env/libcupti.so.13)",
                "CUPTI 13 (\u{2026}/libcupti.so.13)",
            ),
            ("load ~/secret/x.bin: ok", "load \u{2026}/x.bin: ok"),
            ("\"/a/b c\"", "\"\u{2026}/b c\""),
            ("s3://acme/secret/x.pt", "s3:\u{2026}/x.pt"),
            (r"C:\Users\ann\x.exe", "C:\u{2026}/x.exe"),
            (r"on \\srv\ann\x.exe", "on \u{2026}/x.exe"),
            (r"\d+ \w", r"\d+ \w"),
            // No paths: a division, a fraction, one slash, names of C++.
            ("a / b, 1/2, /x", "a / b, 1/2, /x"),
            ("void f<ns::op/*c*/>(int)", "void f<ns::op/*c*/>(int)"),
        ] {
            assert_eq!(without_folders(text), without);
        }
    }

    /// Names as torch.profiler writes them with `with_stack=True`.
    #[test]
    fn recorded_functions_lose_their_folders() {
        for (name, without) in [
            (
                "/home/ann/x/train.py(3): main",
                "\u{2026}/train.py(3): main",
            ),
            ("acme/secret plan/model.py(12): fit", "model.py(12): fit"),
            ("../ann/model.py(12): fit", "model.py(12): fit"),
            (
                "/tmp/torchinductor_ann/ab/cab.py(33): call",
                "\u{2026}/cab.py(33): call",
            ),
            (
                "torch/nn/module.py(9): forward",
                "torch/nn/module.py(9): forward",
            ),
            ("train.py(5): step", "train.py(5): step"),
            ("<built-in function len>", "<built-in function len>"),
            ("nn.Module: Encoder_0", "nn.Module: Encoder_0"),
            ("void f<a/b>(int): x", "void f<a/b>(int): x"),
        ] {
            let mut batch = Batch {
                defs: vec![Def::Name {
                    id: 0,
                    text: name.to_owned(),
                }],
                ..Batch::default()
            };
            Anonymous::default().clean(&mut batch);
            let expected = Def::Name {
                id: 0,
                text: without.to_owned(),
            };
            assert_eq!(batch.defs, [expected]);
        }
    }

    #[test]
    fn installed_files_stay_told_from_ones_own() {
        assert_eq!(file("/home/ann/train.py"), "train.py");
        assert_eq!(
            file("/home/ann/env/lib/python3.12/site-packages/torch/nn.py"),
            "\u{2026}/site-packages/torch/nn.py"
        );
        assert_eq!(
            file("/opt/lib/python3.12/threading.py"),
            "\u{2026}/lib/python3.12/threading.py"
        );
        assert_eq!(file("<string>"), "<string>");
    }

    #[test]
    fn hosts_are_numbered_and_stay_apart() {
        let mut anonymous = Anonymous::default();
        let mut host = |name: &str| {
            let info = ProcessInfo {
                host: name.to_owned(),
                command: "train --token secret".to_owned(),
                ..ProcessInfo::default()
            };
            let mut batch = Batch {
                defs: vec![Def::Process(info)],
                ..Batch::default()
            };
            anonymous.clean(&mut batch);
            match batch.defs.remove(0) {
                Def::Process(info) => (info.host, info.command),
                other => panic!("{other:?}"),
            }
        };
        let of = |host: &str| (host.to_owned(), COMMAND.to_owned());
        assert_eq!(host("node17"), of("host 1"));
        assert_eq!(host("node18"), of("host 2"));
        assert_eq!(host("node17"), of("host 1"));
        assert_eq!(host("").0, "");
    }
}
