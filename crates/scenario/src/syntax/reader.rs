//! Taking values out of parsed TOML: every wrong type, unknown key and missing key becomes a
//! diagnostic with its place, and reading goes on.

use activity::text::is_unprintable;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::diagnostics::{Diagnostic, Diagnostics, closest, did_you_mean, list, quoted};
use super::super::expr::parse::{self, Piece, Template};
use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, ExprError, Loc};
use super::decl::{BufferRef, Named};
use super::keys::{self, Key, ValueKind};

/// A value, with the place of its key.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) value: &'a DeValue<'a>,
    pub(crate) loc: Loc,
    pub(crate) key_loc: Loc,
}

/// An entry of a table, in the order of the file.
pub(crate) struct Item<'a> {
    pub(crate) key: &'a str,
    pub(crate) field: Field<'a>,
}

/// The fields of a table that were checked against a table of keys.
pub(crate) struct Fields<'a> {
    items: Vec<Item<'a>>,
    pub(crate) loc: Loc,
}

impl<'a> Fields<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        let item = self.items.iter().find(|item| item.key == key)?;
        Some(item.field)
    }

    /// What `how` reads of a field; the default where there is none.
    pub(crate) fn read<'t, T: Default>(
        &self,
        key: &str,
        reader: &mut Reader<'t>,
        how: impl FnOnce(&mut Reader<'t>, Field<'a>) -> T,
    ) -> T {
        let field = self.get(key);
        field.map(|field| how(reader, field)).unwrap_or_default()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }
}

/// Reads one file, collecting what is wrong with it.
pub(crate) struct Reader<'t> {
    pub(crate) text: &'t str,
    pub(crate) diagnostics: &'t mut Diagnostics,
    /// Whether a table holds keys of another one, whose header is missing.
    pub(crate) lacks_header: bool,
}

impl Reader<'_> {
    pub(crate) fn error(&mut self, loc: Loc, message: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::error(loc.range(), message));
    }

    pub(crate) fn error_help(
        &mut self,
        loc: Loc,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.diagnostics
            .push(Diagnostic::error(loc.range(), message).help(help));
    }

    /// The entries of a table, in the order of the file.
    pub(crate) fn items<'a>(table: &'a DeTable<'a>) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'a>> = table
            .iter()
            .map(|(key, value)| Item {
                key: key.get_ref(),
                field: Field {
                    value: value.get_ref(),
                    loc: value.span().into(),
                    key_loc: key.span().into(),
                },
            })
            .collect();
        items.sort_by_key(|item| item.field.key_loc.start);
        items
    }

    /// The fields of a table. Reports keys that are not in `keys` and required ones that are missing.
    /// `what` names the table in messages ("a buffer").
    pub(crate) fn fields<'a>(
        &mut self,
        field: Field<'a>,
        keys: &[&[Key]],
        what: &str,
    ) -> Option<Fields<'a>> {
        let Some(table) = field.value.as_table() else {
            self.wrong_type(field, &format!("{what} is one table of keys"));
            return None;
        };
        let items = Self::items(table);
        let known = || keys.iter().flat_map(|keys| keys.iter());
        // What is missing only because it is misspelt is one mistake.
        let mut meant = Vec::new();
        let has = |key: &Key| items.iter().any(|item| item.key == key.name);
        let steps = known().find(|key| key.kind == ValueKind::Steps && !has(key));
        for item in &items {
            if known().all(|key| key.name != item.key) {
                let close = closest(item.key, known().map(|key| key.name))
                    .or_else(|| Some(steps.filter(|_| item.field.value.is_array())?.name));
                meant.extend(close);
                let header = match (what, item.key, item.field.value) {
                    ("a buffer", "file" | "entry" | "grid" | "block" | "args", _) => {
                        "[kernels.NAME]"
                    }
                    (_, key, DeValue::String(_)) if key.contains('.') => "[expect]",
                    ("a scenario", key, _) if keys::VARIANT.iter().any(|it| it.name == key) => {
                        "[[variant]]"
                    }
                    ("a scenario", _, DeValue::Integer(_)) if close.is_none() => "[params]",
                    _ => "",
                };
                self.lacks_header |= !header.is_empty();
                let help = match close {
                    _ if !header.is_empty() => format!("is `{header}` missing before this?"),
                    Some(key) => format!("did you mean {}?", quoted(key)),
                    None => format!("its keys are {}", list(known().map(|key| key.name))),
                };
                let message = format!("{what} has no key {}", quoted(item.key));
                self.error_help(item.field.key_loc, message, help);
                if !header.is_empty() {
                    break;
                }
            }
        }
        for key in known().filter(|key| key.required) {
            if !has(key) && !meant.contains(&key.name) {
                let message = format!("{what} needs {}", quoted(key.name));
                self.error_help(field.key_loc, message, key.doc);
            }
        }
        Some(Fields {
            items,
            loc: field.loc,
        })
    }

    /// Says that a value is not what is expected.
    pub(crate) fn wrong_type(&mut self, field: Field<'_>, expected: &str) {
        let found = match field.value {
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Integer(_) | DeValue::Array(_) => format!("an {}", field.value.type_str()),
            other => format!("a {}", other.type_str()),
        };
        let help = match field.value {
            DeValue::Integer(_) | DeValue::Float(_) if expected.contains("quotes") => {
                "put it into quotes"
            }
            DeValue::Array(_) if expected.contains("table") => "write it once, in single brackets",
            _ => return self.error(field.loc, format!("{expected}; this is {found}")),
        };
        self.error_help(field.loc, format!("{expected}; this is {found}"), help);
    }

    /// A string value and where its characters are.
    pub(crate) fn piece<'a>(&mut self, field: Field<'a>, expected: &str) -> Option<Piece<'a>> {
        let DeValue::String(text) = field.value else {
            self.wrong_type(field, expected);
            return None;
        };
        // Without escapes the characters stand in the file as they are, behind the quote.
        let start = field.loc.start + 1;
        let is_literal = self.text.get(start..start + text.len()) == Some(text.as_ref());
        Some(Piece {
            text,
            start: is_literal.then_some(start),
            whole: field.loc,
        })
    }

    /// Any text that can be shown.
    pub(crate) fn text(&mut self, field: Field<'_>) -> Option<String> {
        let piece = self.piece(field, "this takes a text in quotes")?;
        let is_shown = |c: char| !is_unprintable(c) || c == '\n';
        if !piece.text.chars().all(is_shown) {
            self.error(field.loc, "this text has control characters");
            return None;
        }
        Some(piece.text.trim().to_owned())
    }

    /// A text with its place.
    pub(crate) fn named(&mut self, field: Field<'_>) -> Option<Named> {
        let text = self.text(field)?;
        if text.is_empty() {
            self.error(field.loc, "this name is empty");
            return None;
        }
        let loc = field.loc;
        Some(Named { text, loc })
    }

    /// A text with its place, or a number as it is written.
    pub(crate) fn named_or_number(&mut self, field: Field<'_>) -> Option<Named> {
        let (DeValue::Integer(_) | DeValue::Float(_)) = field.value else {
            return self.named(field);
        };
        let (text, loc) = (self.text[field.loc.range()].to_owned(), field.loc);
        Some(Named { text, loc })
    }

    pub(crate) fn boolean(&mut self, field: Field<'_>) -> Option<bool> {
        let value = field.value.as_bool();
        if value.is_none() {
            self.wrong_type(field, "this is true or false");
        }
        value
    }

    /// One of some words.
    pub(crate) fn one_of(
        &mut self,
        field: Field<'_>,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let choices = list(words.iter().copied());
        let piece = self.piece(field, &format!("this is one of {choices}"))?;
        let word = words.iter().find(|word| **word == piece.text).copied();
        if word.is_none() {
            let help = did_you_mean(piece.text, words.iter().copied()).or_else(|| {
                // What a sync waits for, in the place of which kind of thing that is.
                let used = || self.text.split("stream = \"").skip(1);
                let used = || used().filter_map(|it| it.split('"').next());
                let is_it = |it: &&str| *it == piece.text;
                // Of names that are alike a text may have thousands.
                let near = || closest(piece.text, used().take(16));
                let name = used().find(is_it).or_else(near)?;
                let help = format!("write sync = \"stream\", stream = \"{name}\"");
                words.contains(&"stream").then_some(help)
            });
            let message = format!("{} is not one of {choices}", quoted(piece.text));
            self.diagnostics
                .push(Diagnostic::error(field.loc.range(), message).maybe_help(help));
        }
        word
    }

    /// A number or an expression.
    pub(crate) fn expr(&mut self, field: Field<'_>) -> Option<Expr> {
        match field.value {
            DeValue::Integer(integer) => {
                let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
                if value.is_none() {
                    self.error(field.loc, "this number does not fit in 64 bits");
                }
                Some(Expr::constant(Value::Int(value?, Unit::None), field.loc))
            }
            DeValue::Float(float) => {
                let value = float.as_str().parse::<f64>().ok();
                let value = value.filter(|value| value.is_finite());
                if value.is_none() {
                    self.error(field.loc, "this is not a finite number");
                }
                Some(Expr::constant(Value::Float(value?, Unit::None), field.loc))
            }
            _ => {
                let piece = self.piece(field, "this takes a number or an expression in quotes")?;
                self.parsed(parse::expression(piece))
            }
        }
    }

    /// A number or an expression that may be absent.
    pub(crate) fn optional(&mut self, fields: &Fields<'_>, key: &str) -> Option<Expr> {
        fields.read(key, self, Reader::expr)
    }

    /// A name that may have expressions in braces.
    pub(crate) fn template(&mut self, field: Field<'_>) -> Option<Template> {
        let piece = self.piece(field, "this takes a name in quotes")?;
        if piece.text.trim().is_empty() || piece.text.chars().any(is_unprintable) {
            let rule = "a name has at least one character, and only ones that can be shown";
            self.error(field.loc, rule);
            return None;
        }
        self.parsed(parse::template(piece))
    }

    /// A reference to a buffer.
    pub(crate) fn buffer(&mut self, field: Field<'_>) -> Option<BufferRef> {
        let piece = self.piece(field, "this takes the name of a buffer in quotes")?;
        self.buffer_piece(piece)
    }

    pub(crate) fn buffer_piece(&mut self, piece: Piece<'_>) -> Option<BufferRef> {
        let (name, name_loc, index) = self.parsed(parse::buffer_reference(piece))?;
        Some(BufferRef {
            name,
            name_loc,
            index,
            loc: piece.whole,
        })
    }

    /// One buffer or a list of them.
    pub(crate) fn buffers(&mut self, field: Field<'_>) -> Vec<BufferRef> {
        let parts = Self::list(field).into_iter();
        parts.filter_map(|part| self.buffer(part)).collect()
    }

    /// The elements of a list; a single value counts as a list of one.
    pub(crate) fn list<'a>(field: Field<'a>) -> Vec<Field<'a>> {
        match field.value {
            DeValue::Array(array) => array.iter().map(|value| element(value)).collect(),
            _ => vec![field],
        }
    }

    /// Reports what went wrong in an expression.
    pub(crate) fn parsed<T>(&mut self, result: Result<T, ExprError>) -> Option<T> {
        result.map_or_else(|error| self.diagnostics.fail(error), Some)
    }
}

/// An element of a list. Messages about the whole element point at it, there being no key.
pub(crate) fn element<'a>(value: &'a Spanned<DeValue<'a>>) -> Field<'a> {
    let loc = Loc::from(value.span());
    Field {
        value: value.get_ref(),
        loc,
        key_loc: loc,
    }
}
