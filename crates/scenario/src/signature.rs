//! The parameters of a kernel, read from its CUDA C++ source. So wrong arguments are found before anything is compiled,
//! and a pointer to const is known to be read only.
//!
//! This reads declarations, not C++: `extern "C" __global__ … NAME(PARAMETERS)`, with comments
//! skipped, no macros and no templates. That is all an entry point of a scenario needs.

use std::fmt;

/// A kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in the source; may be empty.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
}

/// The types that a scenario can pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A pointer to device memory.
    Pointer {
        /// Whether the kernel only reads through it.
        is_const: bool,
    },
    /// `int`.
    I32,
    /// `unsigned int`.
    U32,
    /// A 64-bit integer, signed or not.
    U64,
    /// `float`.
    F32,
    /// Anything else, as written.
    Other(String),
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            ParamKind::Pointer { is_const: true } => "const pointer",
            ParamKind::Pointer { is_const: false } => "pointer",
            ParamKind::I32 => "int",
            ParamKind::U32 => "unsigned",
            ParamKind::U64 => "64-bit integer",
            ParamKind::F32 => "float",
            ParamKind::Other(text) => text,
        })?;
        if self.name.is_empty() {
            return Ok(());
        }
        write!(f, " {}", self.name)
    }
}

/// An entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<Param>,
}

/// The `extern "C" __global__` functions of a source, in order.
pub fn entries(source: &str) -> Vec<Entry> {
    let text = without_comments(source);
    let mut found = Vec::new();
    for (at, word) in text.match_indices("__global__") {
        if !is_extern_c(&text[..at]) {
            continue;
        }
        if let Some(entry) = declaration(&text[at + word.len()..]) {
            found.push(entry);
        }
    }
    found
}

/// The parameters of one entry point.
pub fn params(source: &str, entry: &str) -> Option<Vec<Param>> {
    entries(source)
        .into_iter()
        .find_map(|known| (known.name == entry).then_some(known.params))
}

/// Whether the declaration that the text ends in began with `extern "C"`, or stands in such a block.
fn is_extern_c(before: &str) -> bool {
    let Some(start) = before.rfind("extern \"C\"") else {
        return false;
    };
    let between = &before[start + "extern \"C\"".len()..];
    between.trim_start().starts_with('{') || !between.contains([';', '{', '}'])
}

/// `void __launch_bounds__(256, 2) NAME(PARAMETERS)`: the first parenthesis behind a plain name.
fn declaration(text: &str) -> Option<Entry> {
    let mut rest = text;
    loop {
        let open = rest.find(['(', ';', '{'])?;
        if !rest[open..].starts_with('(') {
            return None;
        }
        let name = last_word(&rest[..open]);
        let close = closing(&rest[open..])? + open;
        if name.starts_with("__") {
            rest = &rest[close + 1..];
            continue;
        }
        let inside = rest[open + 1..close].trim();
        let params = if inside.is_empty() || inside == "void" {
            Vec::new()
        } else {
            inside.split(',').map(param).collect()
        };
        return Some(Entry {
            name: name.to_owned(),
            params,
        });
    }
}

/// The word that a text ends in.
fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let start = text
        .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
    &text[start..]
}

/// Where the parenthesis that a text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Words of a parameter that say nothing of its kind.
const QUALIFIERS: [&str; 4] = [
    "__restrict__",
    "__restrict",
    "volatile",
    "__grid_constant__",
];
/// Words that types are made of: none of them is a parameter's name.
const TYPES: [&str; 15] = [
    "const", "signed", "unsigned", "int", "long", "short", "char", "float", "double", "bool",
    "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
];
/// Words that a 64-bit integer is made of.
const LONG: [&str; 3] = ["unsigned", "long", "int"];

fn param(text: &str) -> Param {
    let spaced = text.replace('*', " * ").replace('&', " & ");
    let words = spaced.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !QUALIFIERS.contains(word)).collect();
    if let Some(star) = words.iter().position(|word| *word == "*") {
        let name = words[star + 1..]
            .iter()
            .find(|word| !matches!(**word, "*" | "const"));
        let is_const =
            words[..star].contains(&"const") && words.iter().filter(|w| **w == "*").count() == 1;
        return Param {
            name: name.map_or_else(String::new, |name| (*name).to_owned()),
            kind: ParamKind::Pointer { is_const },
        };
    }
    let (name, kind) = match words.split_last() {
        Some((name, kind)) if !kind.is_empty() && !TYPES.contains(name) => {
            ((*name).to_owned(), kind)
        }
        _ => (String::new(), words.as_slice()),
    };
    let kind = kind.iter().copied().filter(|word| *word != "const");
    let kind: Vec<&str> = kind.collect();
    let kind = match kind.join(" ").as_str() {
        "int" | "signed" | "signed int" | "int32_t" => ParamKind::I32,
        "unsigned" | "unsigned int" | "uint32_t" => ParamKind::U32,
        "size_t" | "int64_t" | "uint64_t" => ParamKind::U64,
        it if kind.contains(&"long") && it.split(' ').all(|it| LONG.contains(&it)) => {
            ParamKind::U64
        }
        "float" => ParamKind::F32,
        other => ParamKind::Other(other.to_owned()),
    };
    Param { name, kind }
}

/// The source with comments replaced by blanks.
fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('/') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            out.push('/');
            rest = &rest[1..];
            continue;
        };
        out.push(' ');
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_kernels_have_the_parameters_that_their_sources_declare() {
        let pointer = |is_const| ParamKind::Pointer { is_const };
        let kinds = |file: &str, entry: &str| -> Vec<ParamKind> {
            let source = crate::testing::library().kernel(file).expect("bundled");
            let params = params(source, entry).expect("the entry exists");
            params.into_iter().map(|param| param.kind).collect()
        };
        assert_eq!(kinds("empty.cu", "empty"), []);
        assert_eq!(kinds("spin.cu", "spin"), [ParamKind::U64]);
        let tiled = [pointer(true), pointer(true), pointer(false), ParamKind::I32];
        assert_eq!(kinds("matmul.cu", "matmul_tiled"), tiled);
        assert_eq!(
            kinds("fma.cu", "fma_loop"),
            [pointer(false), ParamKind::I32, ParamKind::I32]
        );
    }

    #[test]
    fn declarations_are_told_from_comments_and_other_functions() {
        let source = "// extern \"C\" __global__ void no(int a)\n\
            static __global__ void hidden(int a) {}\n\
            extern \"C\" { __global__ void __launch_bounds__(256, 2) a(const unsigned int x, float y, double*) {} }\n\
            extern \"C\" __global__ void b(void);";
        let found = entries(source);
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let kinds: Vec<ParamKind> = found[0].params.iter().map(|p| p.kind.clone()).collect();
        assert_eq!(
            kinds,
            [
                ParamKind::U32,
                ParamKind::F32,
                ParamKind::Pointer { is_const: false }
            ]
        );
        assert_eq!(found[1].params, []);
    }
}
