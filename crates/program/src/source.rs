//! The calls in a program's own source files, with their arguments: what is there already, and the line to change.
//!
//! Files of this machine alone are read, and only those that are no younger than what was recorded. No more of them is told than
//! arguments. What looks like a call and is none costs a wrong line in an advice, and nothing else.

use std::fs;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Files;
use activity::Ns;
use activity::anonymous::is_own;
use activity::text::{cut_middle, printable};
use causes::stacks::LineShare;
use trace::Trace;
use trace::samples::short_file;

/// So many files are looked through.
const FILES_MAX: usize = 8;
/// Arguments behind so many characters of a call are not looked at.
const CALL_MAX: usize = 4096;
/// Columns of an argument.
const VALUE_MAX: usize = 40;
/// Times from here on are counted from 1970: it is the year 2001.
const SINCE_1970: Ns = 1_000_000_000_000_000_000;

/// What makes a tensor of PyTorch, on the CPU where nothing else is asked for. Random ones are told of by their operator.
const MAKES: [&str; 8] = [
    "torch.full(",
    "torch.ones(",
    "torch.zeros(",
    "torch.arange(",
    "torch.eye(",
    "torch.linspace(",
    "torch.tensor(",
    "torch.from_numpy(",
];

/// A call, and what is handed to it: names, empty where there are none, and values.
pub(super) struct Call {
    pub place: String,
    pub args: Vec<(String, String)>,
}

/// Source files of a program, by path, and the line of it that was seen.
pub struct Sources<'l> {
    pub files: Vec<(String, Arc<str>)>,
    pub seen: Option<&'l LineShare>,
}

impl<'l> Sources<'l> {
    /// Those that samples name, where the program ran on this machine. The file that was seen is the first.
    pub fn of(trace: &Trace, known: &Files, seen: Option<&'l LineShare>) -> Sources<'l> {
        let mut paths: Vec<&str> = seen.map(|it| it.file.as_str()).into_iter().collect();
        let until = recorded_here(trace);
        match until {
            Some(_) => paths.extend(trace.stacks().files().filter(|it| is_own(it))),
            None => paths.clear(),
        }
        let until = until.unwrap_or_default();
        let mut files: Vec<(String, Arc<str>)> = Vec::new();
        for path in paths {
            if files.len() < FILES_MAX && files.iter().all(|it| it.0 != path) {
                let text = known.text(path, until);
                files.extend(text.map(|text| (path.to_owned(), text)));
            }
        }
        Sources { files, seen }
    }

    /// The first line in a function's own text that has one of some words, as "file.py:18". The function is one of Python, or a kernel in
    /// CUDA C++, be it within a string.
    pub fn within(&self, function: &str, words: &[&str]) -> Option<String> {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let begins = |line: &str| {
            let (python, kernel) = (format!("def {function}("), format!(" {function}("));
            line.trim_start().starts_with(&python)
                || line.contains("__global__") && line.contains(&kernel)
        };
        self.files.iter().find_map(|(path, text)| {
            let mut lines = (1..).zip(text.lines());
            let first = lines.find(|it| begins(it.1))?;
            let left = indent(first.1);
            // What closes the parameters, or opens the text, stands as far left.
            let is_its = |line: &str| {
                let line_of = line.trim_start();
                line_of.is_empty() || line_of.starts_with([')', '{']) || indent(line) > left
            };
            let body = lines.take_while(|it| is_its(it.1));
            let mut found = body.filter(|it| words.iter().any(|word| it.1.contains(word)));
            let number = found.next()?.0;
            Some(printable(&format!("{}:{number}", short_file(path))))
        })
    }

    /// Whether the line that was seen makes a tensor of PyTorch that is no GPU's there, and hands it to a device.
    pub fn makes_and_moves(&self) -> bool {
        self.line().is_some_and(|text| {
            let has = |words: &[&str]| words.iter().any(|it| text.contains(it));
            has(&MAKES) && has(&[".to(", ".cuda("]) && !has(&["device=\"cuda", "device='cuda"])
        })
    }

    /// Whether the line that was seen brings an array to the CPU, and cuts a part out of it there: `asnumpy(x)[::8]`.
    pub fn cuts_what_comes_back(&self) -> bool {
        let cuts = |text: &str, call: &str| {
            let (_, rest) = text.split_once(call)?;
            let (_, end) = arguments(rest)?;
            let rest = rest.get(end + 1..)?.trim_start_matches(".numpy()");
            let (index, _) = rest.strip_prefix('[')?.split_once(']')?;
            Some(
                index
                    .split(',')
                    .any(|it| it.contains(':') && it.trim() != ":"),
            )
        };
        let calls = ["asnumpy(", ".get(", ".cpu("];
        let line = self.line().unwrap_or_default();
        calls.iter().any(|it| cuts(line, it) == Some(true))
    }

    /// The line that was seen.
    fn line(&self) -> Option<&str> {
        self.text(self.seen.map(|it| (it.file.as_str(), it.line))?)
    }

    /// What stands at a line.
    pub(super) fn text(&self, (file, line): (&str, u32)) -> Option<&str> {
        let (_, text) = self.files.iter().find(|it| it.0 == file)?;
        text.lines().nth((line as usize).checked_sub(1)?)
    }

    /// The call of a function at the line that was seen, else the only one in all files.
    pub(super) fn call(&self, name: &str) -> Option<Call> {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        let lines = |text: &str| text.matches('\n').count() as u32;
        let mut all: Vec<(bool, Call)> = Vec::new();
        for (path, text) in &self.files {
            for (at, found) in text.match_indices(&format!("{name}(")) {
                let before = text[..at].rsplit('\n').next().unwrap_or_default();
                let is_part = !name.starts_with('.') && before.ends_with(is_word);
                let is_none = ["#", "//", "def ", "class "]
                    .iter()
                    .any(|it| before.contains(it));
                let is_text = before.matches(['"', '\'']).count() % 2 == 1;
                let Some((args, end)) = arguments(&text[at + found.len()..]) else {
                    continue;
                };
                if is_part || is_none || is_text {
                    continue;
                }
                let line = 1 + lines(&text[..at]);
                let last = line + lines(&text[at..at + found.len() + end]);
                let is_at = |it: &LineShare| it.file == *path && (line..=last).contains(&it.line);
                let place = printable(&format!("{}:{line}", short_file(path)));
                all.push((self.seen.is_some_and(is_at), Call { place, args }));
            }
        }
        let at = all.iter().position(|it| it.0);
        // Such a call elsewhere may have nothing to do with the GPU.
        let is_builtin = ["float", "int", "bool"].contains(&name);
        let at = at.or((all.len() == 1 && !is_builtin).then_some(0))?;
        Some(all.swap_remove(at).1)
    }
}

/// Until when it was recorded, where the program ran on this machine.
fn recorded_here(trace: &Trace) -> Option<Ns> {
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_here = |it: &str| !it.is_empty() && it == here.trim();
    let mut hosts = trace.processes().iter().map(|it| &it.info.host);
    let until = trace.extent()?.end;
    (until > SINCE_1970 && hosts.any(|it| is_here(it))).then_some(until)
}

/// What stands at some lines of a program's own files, as far as those are here and as they were.
pub fn at_lines<'l>(
    trace: &Trace,
    lines: impl Iterator<Item = (&'l str, u32)>,
) -> FxHashMap<(String, u32), String> {
    let (known, until) = (Files::default(), recorded_here(trace));
    let text = |(file, line): (&str, u32)| {
        let text = known.text(file, until?)?;
        let text = text.lines().nth((line as usize).checked_sub(1)?)?;
        Some(((file.to_owned(), line), printable(text.trim())))
    };
    lines.filter_map(text).collect()
}

/// What stands before the bracket that closes, and where that is.
fn arguments(text: &str) -> Option<(Vec<(String, String)>, usize)> {
    let (mut depth, mut quote, mut args, mut now) = (0, None, Vec::new(), String::new());
    let mut all = text.char_indices().take(CALL_MAX);
    while let Some((at, it)) = all.next() {
        match (quote, it) {
            (Some(open), it) if it == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(it),
            (None, '#') => _ = all.find(|it| it.1 == '\n'),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth < 0 || depth == 0 && quote.is_none() && it == ',' {
            args.extend(argument(&std::mem::take(&mut now)));
        } else if quote.is_some() || it != '#' {
            now.push(it);
        }
        if depth < 0 {
            return Some((args, at));
        }
    }
    None
}

/// The name of an argument and its value; `None` where there is nothing.
fn argument(text: &str) -> Option<(String, String)> {
    let is_name = |it: &str| {
        it.trim()
            .chars()
            .all(|it| it.is_alphanumeric() || it == '_')
    };
    let named = text
        .split_once('=')
        .filter(|it| is_name(it.0) && !it.1.starts_with('='));
    let (name, value) = named.unwrap_or(("", text));
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    (!value.is_empty()).then(|| {
        (
            name.trim().to_owned(),
            printable(&cut_middle(&value, VALUE_MAX)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::{Def, ProcessInfo};
    use trace::testing::Scene;

    const TEXT: &str = "# DataLoader(x)\nname = 'DataLoader('\ndef DataLoader(x): pass\nloader = torch.utils.data.DataLoader(\n    Set(a, b=3),  # num_workers=9, or so\n    batch_size=8,\n    num_workers = 4, collate_fn=lambda x: x == 3, sep=',)',\n)\nMyDataLoader(3)\n";

    fn sources<'l>(text: &str, seen: Option<&'l LineShare>) -> Sources<'l> {
        let files = vec![("/x/train.py".to_owned(), text.into())];
        Sources { files, seen }
    }

    #[test]
    fn a_call_over_several_lines_is_read_and_what_only_looks_like_one_is_not() {
        let call = sources(TEXT, None)
            .call("DataLoader")
            .expect("the only one");
        assert_eq!(call.place, "train.py:4");
        let told: Vec<String> = call
            .args
            .iter()
            .map(|(name, value)| format!("{name}|{value}"))
            .collect();
        assert_eq!(
            told,
            [
                "|Set(a, b=3)",
                "batch_size|8",
                "num_workers|4",
                "collate_fn|lambda x: x == 3",
                "sep|',)'"
            ]
        );
        assert!(
            sources("f(1)\nf(2)\n", None).call("f").is_none(),
            "nobody knows which"
        );
    }

    #[test]
    fn a_tensor_that_is_made_and_then_moved_is_known_by_its_line() {
        let text = "mask = torch.full((n, n), -1).triu(1).to(x.device)\nmask = torch.full((n, n), -1)\n\
            mask = torch.full((n, n), -1, device='cuda').to(y)\nx = x.to(y)\nx = torch.arange(n).cuda()\n\
            a = cupy.asnumpy(ice)[::2, ::2].copy()\na = ice.get()[:9]\na = f(x.cpu().numpy()[1:])\n\
            a = cupy.asnumpy(ice[::2])\na = x.cpu()[0]\na = x.get()[:, 0]\na = x[1:].cpu().numpy()\n";
        let at = |line: u32| {
            let seen = LineShare {
                file: "/x/train.py".to_owned(),
                line,
                place: String::new(),
                function: String::new(),
                call: None,
                deepest: None,
                deep: 0,
                samples: 9,
                of: 9,
                is_blocked: false,
            };
            let sources = sources(text, Some(&seen));
            (sources.makes_and_moves(), sources.cuts_what_comes_back())
        };
        let found: Vec<u32> = (0..8).filter(|it| at(*it).0).collect();
        assert_eq!(found, [1, 5]);
        let cut: Vec<u32> = (0..14).filter(|it| at(*it).1).collect();
        assert_eq!(cut, [6, 7, 8]);
    }

    #[test]
    fn a_word_is_found_within_a_functions_own_text() {
        let text = "def other(x):\n    tl.atomic_add(x)\n\n@triton.jit\ndef tally(\n    votes,\n):\n    at = tl.load(votes)\n\n    \
            tl.atomic_add(sums, at)\n\ndef last():\n    pass\ncode = r\"\"\"\n__global__ void count(int *a) {\n    \
            atomicAdd(a, 1);\n}\n__global__ void none(int *a) {\n    a[0] = 1;\n}\n\"\"\"\n";
        let all = sources(text, None);
        let found = |name| all.within(name, &["atomic_add", "atomicAdd"]);
        assert!(found("tally").is_some_and(|it| it.ends_with(":10")));
        assert!(found("count").is_some_and(|it| it.ends_with(":16")));
        for none in ["none", "last", "tall", "missing"] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn lines_are_read_where_the_program_ran_here_alone() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let here = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let read = |host: &str, start: Ns| {
            let mut made = Scene::new();
            let info = ProcessInfo {
                host: host.trim().to_owned(),
                ..ProcessInfo::default()
            };
            let mut batch = made.kernel("k", 1, start, start + 1).take();
            batch.defs.push(Def::Process(info));
            at_lines(
                &made.put(batch).trace(),
                [(file, 1), (file, 0), (file, 1 << 30)].into_iter(),
            )
        };
        let found = read(&here, 4 * SINCE_1970);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&(file.to_owned(), 1)], "[package]");
        assert!(read("elsewhere", 4 * SINCE_1970).is_empty());
        assert!(read(&here, SINCE_1970).is_empty(), "the file is younger");
    }

    #[test]
    fn no_text_breaks_it() {
        for text in [
            "f(",
            "f(\"",
            "f('\\",
            "f(\u{e9}, '\u{e9}')",
            "f(((",
            "\"\"\"f(1)",
            "f()",
            "f(a=)",
            "/* f(1)",
            "f)(",
        ] {
            let args = sources(text, None).call("f").map(|it| it.args.len());
            assert!(args.is_none_or(|it| it < 3), "{text}");
        }
    }
}
