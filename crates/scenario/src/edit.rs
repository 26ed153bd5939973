//! What-if edits: `pin`, `no-sync+own-stream`, `scale:matmul=0.5@forward`.
//!
//! A scenario's `[[pair]]` and the command line write them the same way: edits joined by `+`. An operand stands behind
//! `:`, where an edit takes one. A range or a function behind `@` limits it. A name that holds `+`, `@` or `=` stands
//! in quotes: `drop:"operator+"`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::diagnostics::{instead, quoted};
use super::expr::ExprError;
use super::expr::parse::{self, Piece};
use super::expr::value::{Unit, Value};
use activity::text::is_unprintable;

/// Bytes of a set of edits.
const MAX_LENGTH: usize = 1000;

/// Workers that one edit may ask for.
const WORKERS_MAX: f64 = 1024.0;

/// How each edit is written, and what it changes.
#[rustfmt::skip]
pub const FORMS: &[(&str, &str)] = &[
    ("pin", "pageable copies run at the rate of pinned ones; `pin:55GB/s` says the rate"),
    ("async", "copies that the host waits for return at once"),
    ("no-sync", "the host does not wait between the first operation and the end"),
    ("own-stream", "independent chains of one stream run on a stream each"),
    ("merge-copies", "neighbouring copies of one direction become one"),
    ("graph", "kernels are launched together, as a CUDA graph"),
    ("fuse", "neighbouring kernels become one; with `fuse:once`, shared bytes are moved once"),
    ("reuse", "memory is allocated once and kept"),
    ("scale", "`scale:NAME=0.5`: what has this name takes that share of its time"),
    ("drop", "`drop:NAME`: what has this name is left out"),
    ("prefetch", "`prefetch:NAME`: what the host does in this range is done ahead by a worker; `prefetch:NAME=4` by four"),
];

/// Edits that are made together.
#[derive(Clone, Debug, PartialEq)]
pub struct EditSet {
    text: String,
    /// Each edit as it was written.
    texts: Vec<String>,
    /// The edits, at least one, in the order given.
    pub edits: Vec<Edit>,
}

/// One edit.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// What changes.
    pub kind: EditKind,
    /// The range or function that it is limited to.
    pub range: Option<String>,
}

/// What an edit changes.
#[derive(Clone, Debug, PartialEq)]
pub enum EditKind {
    /// Pageable copies become pinned ones.
    Pin {
        /// Their rate in GB/s; `None` for the rate that the GPU is known to reach.
        gb_per_s: Option<f64>,
    },
    /// Synchronous copies become asynchronous.
    Async,
    /// The CPU's syncs go.
    NoSync,
    /// Independent chains get streams of their own.
    OwnStream,
    /// Neighbouring copies become one.
    MergeCopies,
    /// Launches become a graph.
    Graph,
    /// Neighbouring kernels become one.
    Fuse {
        /// Whether bytes that several of them touch are read and written once.
        once: bool,
    },
    /// Memory is allocated once.
    Reuse,
    /// Operations or host work of a name take another time.
    Scale {
        name: String,
        /// The new time over the old one, above 0.
        factor: f64,
    },
    /// Operations or host work of a name go.
    Drop { name: String },
    /// The CPU's work in ranges of a name is done ahead.
    Prefetch {
        name: String,
        /// By so many at a time, at least one.
        workers: u32,
    },
}

impl EditSet {
    /// These and others together, each once.
    pub fn join(&self, others: &EditSet) -> EditSet {
        let mut all = self.clone();
        for (edit, text) in others.edits.iter().zip(&others.texts) {
            if !all.edits.contains(edit) {
                all.edits.push(edit.clone());
                all.texts.push(text.clone());
            }
        }
        all.text = all.texts.join("+");
        all
    }
}

impl fmt::Display for EditSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// As it is written.
impl Serialize for EditSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl FromStr for EditSet {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Self, ExprError> {
        read(Piece::alone(text))
    }
}

/// Reads a set of edits.
///
/// # Errors
/// What is wrong with it and where.
pub(super) fn read(piece: Piece<'_>) -> Result<EditSet, ExprError> {
    if piece.text.len() > MAX_LENGTH {
        return Err(piece.error("these edits are too long"));
    }
    if piece.text.chars().any(is_unprintable) {
        return Err(piece.error("these edits have control characters"));
    }
    let mut edits: Vec<Edit> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut at = 0;
    loop {
        let end = find(piece, at, '+')?.unwrap_or(piece.text.len());
        let part = trimmed(piece.slice(at, end));
        let edit = one(part)?;
        if edits.contains(&edit) {
            return Err(part.error(format!("{} stands there twice", quoted(part.text))));
        }
        edits.push(edit);
        texts.push(part.text.to_owned());
        if end == piece.text.len() {
            break;
        }
        at = end + 1;
    }
    Ok(EditSet {
        text: piece.text.to_owned(),
        texts,
        edits,
    })
}

/// One edit with its operand and its range.
fn one(piece: Piece<'_>) -> Result<Edit, ExprError> {
    const NO_RANGE: &str = "`@` is followed by the name of a range or a function";
    let (edit, range) = parted(piece, find(piece, 0, '@')?);
    let (word, operand) = parted(edit, edit.text.find(':'));
    Ok(Edit {
        kind: kind(trimmed(word), operand)?,
        range: range.map(|range| name(range, NO_RANGE)).transpose()?,
    })
}

fn kind(word: Piece<'_>, operand: Option<Piece<'_>>) -> Result<EditKind, ExprError> {
    let plain = match word.text {
        "pin" => {
            let gb_per_s = operand.map(rate).transpose()?;
            return Ok(EditKind::Pin { gb_per_s });
        }
        "fuse" => {
            return match operand {
                None => Ok(EditKind::Fuse { once: false }),
                Some(operand) if operand.text.trim() == "once" => Ok(EditKind::Fuse { once: true }),
                Some(operand) => Err(wrong(
                    operand,
                    "is not `once`",
                    "write `fuse` or `fuse:once`",
                )),
            };
        }
        "scale" => return scale(word, operand),
        "drop" => {
            let named = operand.unwrap_or(word.slice(word.text.len(), word.text.len()));
            let name = name(named, "this edit needs a name: `drop:NAME`")?;
            return Ok(EditKind::Drop { name });
        }
        "prefetch" => return prefetch(word, operand),
        "async" => EditKind::Async,
        "no-sync" => EditKind::NoSync,
        "own-stream" => EditKind::OwnStream,
        "merge-copies" => EditKind::MergeCopies,
        "graph" => EditKind::Graph,
        "reuse" => EditKind::Reuse,
        other => {
            let words = FORMS.iter().map(|(word, _)| *word);
            let message = if other.is_empty() {
                "an edit is missing here".to_owned()
            } else {
                format!("there is no edit {}", quoted(other))
            };
            let help = instead(other, "the edits are", words);
            return Err(word.error(message).with_help(help));
        }
    };
    match operand {
        None => Ok(plain),
        Some(operand) => Err(operand.error(format!("nothing follows {}", quoted(word.text)))),
    }
}

/// `55GB/s`.
fn rate(piece: Piece<'_>) -> Result<f64, ExprError> {
    match number(piece) {
        Some(value) if value.unit() == Unit::Rate && value.as_f64() > 0.0 => Ok(value.as_f64()),
        _ => Err(wrong(
            piece,
            "is not a rate",
            "write it with its unit: `pin:55GB/s`",
        )),
    }
}

/// The error of a piece that is not what it should be.
fn wrong(piece: Piece<'_>, what: &str, help: &str) -> ExprError {
    let message = format!("{} {what}", quoted(piece.text));
    piece.error(message).with_help(help)
}

/// `NAME=0.5`.
fn scale(word: Piece<'_>, operand: Option<Piece<'_>>) -> Result<EditKind, ExprError> {
    const SHAPE: &str = "write `scale:NAME=0.5` for half of its time";
    /// Times stay within what can be counted.
    const FACTOR_MAX: f64 = 1000.0;
    let lacking = || {
        word.error("this edit needs a name and a factor")
            .with_help(SHAPE)
    };
    let operand = operand.ok_or_else(lacking)?;
    let equals = last_equals(operand)?.ok_or_else(|| wrong(operand, "says no factor", SHAPE))?;
    let factor = operand.slice(equals + 1, operand.text.len());
    let is_factor = |it: f64| it > 0.0 && it <= FACTOR_MAX;
    let value = number(factor).filter(|it| it.unit() == Unit::None && is_factor(it.as_f64()));
    let what = format!("is not a factor above 0 and up to {FACTOR_MAX}");
    let help = format!("{SHAPE}; `drop:NAME` leaves it out");
    let value = value.ok_or_else(|| wrong(factor, &what, &help))?;
    Ok(EditKind::Scale {
        name: name(operand.slice(0, equals), SHAPE)?,
        factor: value.as_f64(),
    })
}

/// `NAME`, or `NAME=4`.
fn prefetch(word: Piece<'_>, operand: Option<Piece<'_>>) -> Result<EditKind, ExprError> {
    const SHAPE: &str = "write `prefetch:NAME`, or `prefetch:NAME=4` for four workers";
    let operand = operand.unwrap_or(word.slice(word.text.len(), word.text.len()));
    let Some(equals) = last_equals(operand)? else {
        let name = name(operand, "this edit needs a name: `prefetch:NAME`")?;
        return Ok(EditKind::Prefetch { name, workers: 1 });
    };
    let count = operand.slice(equals + 1, operand.text.len());
    let is_count = |value: &Value| {
        let number = value.as_f64();
        value.unit() == Unit::None && number.fract() == 0.0 && (1.0..=WORKERS_MAX).contains(&number)
    };
    match number(count).filter(is_count) {
        Some(value) => Ok(EditKind::Prefetch {
            name: name(operand.slice(0, equals), SHAPE)?,
            workers: value.as_f64() as u32,
        }),
        None => Err(wrong(count, "is not a number of workers", SHAPE)),
    }
}

/// The last `=` outside of quotes: names may hold it, what follows may not.
fn last_equals(piece: Piece<'_>) -> Result<Option<usize>, ExprError> {
    let (mut equals, mut from) = (None, 0);
    while let Some(at) = find(piece, from, '=')? {
        equals = Some(at);
        from = at + 1;
    }
    Ok(equals)
}

fn number(piece: Piece<'_>) -> Option<Value> {
    let value = parse::constant(piece).ok()?;
    value.as_f64().is_finite().then_some(value)
}

/// A name, without the quotes that it may have.
fn name(piece: Piece<'_>, lacking: &str) -> Result<String, ExprError> {
    let piece = trimmed(piece);
    let mut quotes = ['"', '\''].into_iter();
    let bare = quotes.find_map(|it| piece.text.strip_prefix(it)?.strip_suffix(it));
    let bare = bare.unwrap_or(piece.text);
    if bare.trim().is_empty() {
        return Err(piece.error(lacking));
    }
    Ok(bare.to_owned())
}

/// The first `wanted` from `from` on that does not stand in quotes.
fn find(piece: Piece<'_>, from: usize, wanted: char) -> Result<Option<usize>, ExprError> {
    let mut quote: Option<(usize, char)> = None;
    for (at, c) in piece.text.char_indices().filter(|(at, _)| *at >= from) {
        match quote {
            Some((_, open)) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some((at, c)),
            None if c == wanted => return Ok(Some(at)),
            None => {}
        }
    }
    match quote {
        Some((at, _)) => Err(piece.slice(at, at + 1).error("this quote is not closed")),
        None => Ok(None),
    }
}

/// What stands before and behind a sign of one byte; all, where there is none.
fn parted(piece: Piece<'_>, at: Option<usize>) -> (Piece<'_>, Option<Piece<'_>>) {
    let behind = at.map(|at| piece.slice(at + 1, piece.text.len()));
    (piece.slice(0, at.unwrap_or(piece.text.len())), behind)
}

fn trimmed(piece: Piece<'_>) -> Piece<'_> {
    let start = piece.text.len() - piece.text.trim_start().len();
    let end = piece.text.trim_end().len().max(start);
    piece.slice(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<EditKind> {
        let set: EditSet = text.parse().expect(text);
        assert_eq!(set.to_string(), text);
        set.edits.iter().map(|edit| edit.kind.clone()).collect()
    }

    #[test]
    fn every_form_is_read_and_given_back_as_it_was() {
        use EditKind as K;
        assert_eq!(kinds("pin"), [K::Pin { gb_per_s: None }]);
        let rate = Some(55.0);
        assert_eq!(kinds("pin:55GB/s"), [K::Pin { gb_per_s: rate }]);
        assert_eq!(kinds("pin:0.055 TB/s"), [K::Pin { gb_per_s: rate }]);
        assert_eq!(kinds("async"), [K::Async]);
        assert_eq!(kinds("own-stream + no-sync"), [K::OwnStream, K::NoSync]);
        assert_eq!(kinds("merge-copies+graph"), [K::MergeCopies, K::Graph]);
        let fuses = [K::Fuse { once: false }, K::Fuse { once: true }];
        assert_eq!(kinds("fuse+fuse:once"), fuses);
        assert_eq!(kinds("reuse"), [K::Reuse]);
        let scale = |name: &str, factor| K::Scale {
            name: name.to_owned(),
            factor,
        };
        assert_eq!(
            kinds("scale:at::add<int>=0.5+scale:\"a=b+c\"=2"),
            [scale("at::add<int>", 0.5), scale("a=b+c", 2.0)]
        );
        let drop = |name: &str| K::Drop {
            name: name.to_owned(),
        };
        assert_eq!(
            kinds("drop:'operator+'+drop:aten::copy_"),
            [drop("operator+"), drop("aten::copy_")]
        );
        let prefetch = |name: &str, workers| K::Prefetch {
            name: name.to_owned(),
            workers,
        };
        assert_eq!(
            kinds("prefetch:load+prefetch:'a=b'=4"),
            [prefetch("load", 1), prefetch("a=b", 4)]
        );
    }

    #[test]
    fn an_edit_may_be_limited_to_a_range() {
        let set: EditSet = "pin@load batch+drop:x@\"a@b\"".parse().expect("valid");
        let ranges: Vec<_> = set.edits.iter().map(|e| e.range.as_deref()).collect();
        assert_eq!(ranges, [Some("load batch"), Some("a@b")]);
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, span, message, help) in [
            (
                "pinn",
                0..4,
                "there is no edit `pinn`",
                "did you mean `pin`?",
            ),
            ("pin+nosync", 4..10, "no edit `nosync`", "`no-sync`"),
            ("pin+", 4..4, "an edit is missing", "the edits are"),
            ("", 0..0, "an edit is missing", "the edits are"),
            ("pin:55", 4..6, "`55` is not a rate", "pin:55GB/s"),
            ("pin:0GB/s", 4..9, "is not a rate", "pin:55GB/s"),
            ("pin:", 4..4, "is not a rate", "pin:55GB/s"),
            ("graph:2", 6..7, "nothing follows `graph`", ""),
            ("fuse:twice", 5..10, "`twice` is not `once`", "fuse:once"),
            ("scale", 0..5, "needs a name and a factor", "scale:NAME=0.5"),
            ("scale:x", 6..7, "says no factor", "scale:NAME=0.5"),
            ("scale:x=fast", 8..12, "`fast` is not a factor", "drop:NAME"),
            ("scale:x=1e300", 8..13, "and up to 1000", "drop:NAME"),
            ("scale:x=0", 8..9, "not a factor above 0", "drop:NAME"),
            ("scale:=2", 6..6, "scale:NAME=0.5", ""),
            ("prefetch", 8..8, "prefetch:NAME", ""),
            ("prefetch:x=0", 11..12, "not a number of workers", "four"),
            ("prefetch:x=1.5", 11..14, "not a number of workers", "four"),
            ("drop", 4..4, "drop:NAME", ""),
            ("drop:  ", 5..5, "drop:NAME", ""),
            ("drop:'a", 5..6, "not closed", ""),
            ("pin@", 4..4, "the name of a range", ""),
            ("pin + pin", 6..9, "twice", ""),
            ("drop:\u{1b}[2J", 0..9, "control characters", ""),
        ] {
            let error = text.parse::<EditSet>().expect_err(text);
            assert_eq!(error.loc.range(), span, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
            let given = error.help.clone().unwrap_or_default();
            assert!(given.contains(help), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_edit_or_an_error_within_it(text in "([a-z:=@+\"' .0-9]|pin|scale|é){0,20}") {
            match text.parse::<EditSet>() {
                Ok(set) => assert_eq!(set.to_string(), text),
                Err(error) => assert!(text.get(error.loc.range()).is_some()),
            }
        }
    }
}
