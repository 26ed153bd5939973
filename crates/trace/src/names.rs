//! Strings of the timeline, each stored once, made safe to show.

use std::fmt;

use rustc_hash::FxHashMap;

use super::pool::Pool;
use super::short::short;
use activity::NameId;
use activity::text::{fingerprint, printable};

/// A string in its three forms.
#[derive(Clone, Debug, Default)]
struct Name {
    /// Demangled and without control characters.
    full: Box<str>,
    /// The function's own name and its telling template argument.
    short: Box<str>,
    /// The fingerprint of the short name, from which colours are made: each cell of a frame asks for one.
    print: u64,
}

/// Interned strings. Ids are dense and never change.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Pool<Name>,
    ids: FxHashMap<Box<str>, NameId>,
}

impl Names {
    /// A copy for reading. It would give a string that it interns a new id.
    pub(super) fn snapshot(&self) -> Names {
        Names {
            names: self.names.clone(),
            ids: FxHashMap::default(),
        }
    }

    /// The id of a string as a source gave it: it may be mangled, or hostile. Numbers of its own that PyTorch ends an
    /// NVTX range in are left out: ranges of one name would each have another.
    pub fn intern(&mut self, raw: &str) -> NameId {
        let raw = unnumbered(raw);
        if let Some(&id) = self.ids.get(raw) {
            return id;
        }
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        let full = printable(&demangle(raw));
        let short = short(&full);
        self.names.push(Name {
            print: fingerprint(short.as_bytes()),
            short: short.into(),
            full: full.into(),
        });
        self.ids.insert(raw.into(), id);
        id
    }

    /// The whole name, demangled, printable.
    pub fn full(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("?", |n| &n.full)
    }

    /// The short name, as [`super::short`] makes it.
    pub fn short(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("?", |n| &n.short)
    }

    /// [`fingerprint`] of the short name.
    pub fn short_print(&self, id: NameId) -> u64 {
        let name = self.names.get(id as usize);
        name.map_or_else(|| fingerprint(self.short(id).as_bytes()), |n| n.print)
    }

    /// Short names, one for each of `ids`, for tables. They differ wherever the whole names do.
    pub fn short_unique(&self, ids: &[NameId]) -> Vec<String> {
        let fulls: Vec<&str> = ids.iter().map(|&id| self.full(id)).collect();
        super::short::unique(&fulls)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}

/// Longest mangled name that is worth demangling: templates can blow up beyond all use.
const MANGLED_MAX: usize = 4096;
/// The longest result of demangling, and how many bytes of it a letter may bring beyond some. A substitution in a mangled name can
/// double the text with few letters. Without a bound, 300 letters take all memory; names by the thousand, much of it.
const DEMANGLED_MAX: usize = 16 << 10;
const DEMANGLED_EACH: usize = 16;
const DEMANGLED_SOME: usize = 512;

/// A text of at most so many bytes.
struct BoundedText(String, usize);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > self.1 {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The demangled name; the text itself where it is not mangled, or would become too long.
fn demangle(raw: &str) -> String {
    if !raw.starts_with("_Z") || raw.len() > MANGLED_MAX {
        return raw.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(192);
    let most = DEMANGLED_SOME + DEMANGLED_EACH * raw.len();
    let mut name = BoundedText(String::new(), most.min(DEMANGLED_MAX));
    let written = cpp_demangle::Symbol::new(raw)
        .ok()
        .and_then(|symbol| symbol.structured_demangle(&mut name, &options).ok());
    match written {
        Some(()) => literals(&name.0),
        None => raw.to_owned(),
    }
}

/// Writes numbers of template arguments as `c++filt` and other profilers do: "(unsigned long)3" becomes "3ul",
/// "(bool)1" becomes "true".
fn literals(name: &str) -> String {
    const SUFFIXES: [(&str, &str); 6] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(unsigned long long)", "ull"),
        ("(long)", "l"),
        ("(long long)", "ll"),
        ("(bool)", ""),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('(') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let cast = SUFFIXES.iter().find(|(cast, _)| rest.starts_with(cast));
        let number = cast.map(|(cast, _)| {
            let digits = &rest[cast.len()..];
            let end = digits.find(|c: char| !c.is_ascii_digit());
            &digits[..end.unwrap_or(digits.len())]
        });
        match (cast, number) {
            (Some((cast, suffix)), Some(number)) if !number.is_empty() => {
                match (*cast, number) {
                    ("(bool)", "0") => out.push_str("false"),
                    ("(bool)", _) => out.push_str("true"),
                    _ => {
                        out.push_str(number);
                        out.push_str(suffix);
                    }
                }
                rest = &rest[cast.len() + number.len()..];
            }
            _ => {
                out.push('(');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// "aten::mm" of "aten::mm, seq = 12, op_id = 345".
fn unnumbered(name: &str) -> &str {
    let ends = [", op_id = ", ", seq = "].iter();
    let end = ends.filter_map(|mark| name.find(mark)).min();
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f(p<int, int>, p<p<int, int>, p<int, int>>, …)`: each argument is twice the one before, in eight letters.
    #[test]
    fn a_name_that_would_fill_memory_stays_as_it_is() {
        let bomb = |arguments: u32| {
            let mut name = "_Z1f1pIiiE".to_owned();
            for i in 0..arguments {
                let number = char::from_digit(i, 36).expect("few").to_ascii_uppercase();
                name += &format!("S_IS{number}_S{number}_E");
            }
            name
        };
        // As c++filt writes it.
        assert_eq!(
            demangle(&bomb(2)),
            "f(p<int, int>, p<p<int, int>, p<int, int> >, p<p<p<int, int>, p<int, int> >, p<p<int, int>, p<int, int> > >)"
        );
        assert_eq!(demangle(&bomb(34)), bomb(34));
        // 90 letters would be 9 KB, and a file of such names a hundred times its size.
        assert_eq!(demangle(&bomb(8)), bomb(8));
    }

    #[test]
    fn numbers_of_template_arguments_are_as_other_profilers_write_them() {
        // As c++filt demangles _Z1kILm3ELb1ELj2EEvi and the like.
        let cases = [
            (
                "void k<(unsigned long)3, (bool)1, (unsigned int)2>(int)",
                "void k<3ul, true, 2u>(int)",
            ),
            ("void k<(bool)0>(bool, long)", "void k<false>(bool, long)"),
            ("void k<-(long)4>()", "void k<-4l>()"),
            (
                "(anonymous namespace)::k(int)",
                "(anonymous namespace)::k(int)",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(literals(given), expected);
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_survives() {
        let mut names = Names::default();
        let id = names.intern("evil\u{1b}[2J\u{9b}31m\u{202e}name\n");
        assert!(
            names
                .full(id)
                .chars()
                .all(|c| !c.is_control() && c != '\u{202e}')
        );
        assert!(names.full(id).starts_with("evil"));
    }

    #[test]
    fn what_colours_are_made_from_is_the_short_name() {
        let mut names = Names::default();
        let id = names.intern("_Z3addPf");
        assert_eq!(names.short_print(id), fingerprint(b"add"));
        assert_eq!(names.short_print(99), fingerprint(b"?"));
    }

    #[test]
    fn a_string_has_one_id() {
        let mut names = Names::default();
        let a = names.intern("a");
        let b = names.intern("b");
        assert_ne!(a, b);
        assert_eq!(names.intern("a"), a);
        assert_eq!(names.intern("a, seq = 12, op_id = 345"), a);
        assert_eq!(names.full(99), "?");
    }
}
