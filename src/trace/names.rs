//! Strings of the timeline, once each, fit to be shown.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::activity::NameId;

/// A string in its three forms.
#[derive(Clone, Debug, Default)]
struct Name {
    /// Demangled and without control characters.
    full: Box<str>,
    /// The function's own name: no return type, namespaces, template arguments, parameters.
    short: Box<str>,
}

/// Interned strings. Ids are dense and never change.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<Name>,
    ids: FxHashMap<Box<str>, NameId>,
}

impl Names {
    /// The id of a string as a source gave it: possibly mangled, possibly hostile.
    pub fn intern(&mut self, raw: &str) -> NameId {
        if let Some(&id) = self.ids.get(raw) {
            return id;
        }
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        let full = printable(&demangled(raw));
        self.names.push(Name {
            short: short(&full).into(),
            full: full.into(),
        });
        self.ids.insert(raw.into(), id);
        id
    }

    /// The whole name, demangled, printable.
    #[must_use]
    pub fn full(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("?", |n| &n.full)
    }

    /// The name without return type, namespaces, template arguments and parameters.
    #[must_use]
    pub fn short(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("?", |n| &n.short)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Longest mangled name that is worth demangling: templates can blow up beyond all use.
const MANGLED_MAX: usize = 4096;

fn demangled(raw: &str) -> String {
    if !raw.starts_with("_Z") || raw.len() > MANGLED_MAX {
        return raw.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(192);
    cpp_demangle::Symbol::new(raw)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .map_or_else(|| raw.to_owned(), |name| literals(&name))
}

/// Numbers of template arguments as `c++filt` and other profilers write them: "(unsigned long)3" becomes
/// "3ul", "(bool)1" becomes "true".
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

/// Replaces what a terminal would obey or misplace: C0 and C1 controls, and bidirectional marks.
#[must_use]
pub fn printable(text: &str) -> String {
    let is_safe = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
    };
    if text.chars().all(is_safe) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_safe(c) {
            out.push(c);
        } else {
            let _ = write!(out, "{}", c.escape_default());
        }
    }
    out
}

/// "void at::native::reduce_kernel<512, 1>(Op)" to "reduce_kernel".
fn short(full: &str) -> &str {
    // Cut at the first '<' or '(' that is not part of an "operator" or "(anonymous namespace)".
    let cleaned = full.strip_prefix("void ").unwrap_or(full);
    let mut depth = 0usize;
    let mut start = 0;
    let bytes = cleaned.as_bytes();
    let mut end = cleaned.len();
    let mut i = 0;
    while i < bytes.len() {
        if depth == 0 && bytes[i..].starts_with(b"(anonymous namespace)") {
            i += "(anonymous namespace)".len();
            continue;
        }
        match bytes[i] {
            b'<' | b'(' if depth == 0 => {
                // What follows the matching bracket may still be the name ("a<b>::kernel").
                let close = matching(bytes, i);
                match close {
                    Some(close) if cleaned[close + 1..].starts_with("::") => {
                        i = close + 3;
                        start = i;
                        continue;
                    }
                    _ => {
                        end = i;
                        break;
                    }
                }
            }
            b':' if depth == 0 && bytes.get(i + 1) == Some(&b':') => {
                i += 2;
                start = i;
                continue;
            }
            b' ' if depth == 0 && start == 0 && cleaned[i..].contains('(') => start = i + 1,
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        i += 1;
    }
    let name = cleaned.get(start..end).unwrap_or(cleaned).trim();
    if name.is_empty() { full } else { name }
}

/// The bracket that closes the one at `open`.
fn matching(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'<' | b'(' => depth += 1,
            // The arrow of a trailing return type closes nothing.
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_get_the_name_that_people_call_them() {
        let cases = [
            ("matmul_tiled", "matmul_tiled"),
            ("_Z9transposePKfPfi", "transpose"),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
                "vectorized_elementwise_kernel",
            ),
            (
                "void (anonymous namespace)::softmax_warp<float>(float*, int)",
                "softmax_warp",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop>(cutlass_80_tensorop::Params)",
                "Kernel2",
            ),
            (
                "sm90_xmma_gemm_f32f32_tn_n_tilesize64x128x32",
                "sm90_xmma_gemm_f32f32_tn_n_tilesize64x128x32",
            ),
            ("Outer<int>::inner(float*)", "inner"),
            ("cudaStreamSynchronize", "cudaStreamSynchronize"),
            ("größe é<int>(float)", "é"),
        ];
        for (raw, expected) in cases {
            let mut names = Names::default();
            let id = names.intern(raw);
            assert_eq!(names.short(id), expected, "{raw}");
        }
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
    fn a_string_has_one_id() {
        let mut names = Names::default();
        let a = names.intern("a");
        let b = names.intern("b");
        assert_ne!(a, b);
        assert_eq!(names.intern("a"), a);
        assert_eq!(names.full(99), "?");
    }
}
