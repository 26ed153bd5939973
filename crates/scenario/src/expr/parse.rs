//! Reading expressions, names with expressions in them ("s{i}"), and references to buffers
//! (`batch[i]`): a tokenizer and a Pratt parser.

use std::ops::Range;

use super::super::diagnostics::{did_you_mean, instead, quoted};
use super::value::{self, Operator, UNITS, Unit, Value};
use super::{Expr, ExprError, FUNCTIONS, Function, Loc, Node};

/// Parentheses, signs and powers may nest this deep; deeper ones are an error, not a stack overflow.
const MAX_DEPTH: u32 = 64;
/// Bytes of an expression; bounds the depth of a chain like `1+1+1…` too.
const MAX_LENGTH: usize = 1000;

/// Text of the file with the bytes that it stands at.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub text: &'a str,
    /// Where `text` starts in the file, when it stands there literally (no escapes).
    pub start: Option<usize>,
    /// The bytes of the whole value.
    pub whole: Loc,
}

impl<'a> Piece<'a> {
    /// A text that is of no file.
    pub(crate) fn alone(text: &'a str) -> Piece<'a> {
        Piece {
            text,
            start: Some(0),
            whole: Loc::from(0..text.len()),
        }
    }

    /// A part of a value, which is all that is told of its place.
    pub(crate) fn of(whole: Loc, text: &'a str) -> Piece<'a> {
        Piece {
            text,
            start: None,
            whole,
        }
    }

    /// Where bytes of the text are in the file.
    pub fn loc(&self, start: usize, end: usize) -> Loc {
        match self.start {
            Some(at) => Loc::from(at + start..at + end),
            None => self.whole,
        }
    }

    /// Part of it.
    pub(crate) fn error(&self, message: impl Into<String>) -> ExprError {
        self.loc(0, self.text.len()).error(message)
    }

    pub fn slice(&self, start: usize, end: usize) -> Piece<'a> {
        Piece {
            text: &self.text[start..end],
            start: self.start.map(|at| at + start),
            whole: self.whole,
        }
    }
}

/// Whether a text can name a parameter, a buffer or a kernel.
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Reads an expression.
///
/// # Errors
/// What is wrong with it and where.
pub fn expression(piece: Piece<'_>) -> Result<Expr, ExprError> {
    let tokens = tokenize(piece)?;
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        end: piece.loc(piece.text.len(), piece.text.len()),
        whole: piece,
    };
    let expr = parser.expr(0, 0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => {
            let text = quoted(&piece.text[token.at.clone()]);
            let error = token.loc.error(format!("{text} is not expected here"));
            Err(match text.as_str() {
                "`,`" => error.with_help("several values are a list: [1, 2]"),
                _ => error,
            })
        }
    }
}

/// The value of an expression without names.
///
/// # Errors
/// What is wrong with it and where.
pub fn constant(piece: Piece<'_>) -> Result<Value, ExprError> {
    expression(piece)?.eval(&|_| None)
}

/// Reads a reference to a buffer: a name, and perhaps an index in brackets.
///
/// # Errors
/// What is wrong with it and where.
pub fn buffer_reference(piece: Piece<'_>) -> Result<(String, Loc, Option<Expr>), ExprError> {
    let text = piece.text.trim_end();
    let (name, index) = match text.find('[') {
        Some(open) if text.ends_with(']') => {
            let index = expression(piece.slice(open + 1, text.len() - 1))?;
            (&text[..open], Some(index))
        }
        _ => (text, None),
    };
    let loc = piece.loc(0, name.len());
    if !is_identifier(name) {
        let message = format!("{} does not name a buffer", quoted(piece.text));
        let help = "write its name, or `name[index]` for one of an array";
        return Err(loc.error(message).with_help(help));
    }
    Ok((name.to_owned(), loc, index))
}

/// A name with expressions in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its bytes in the file.
    pub loc: Loc,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Expr(Expr),
}

/// Reads a name with expressions in braces.
///
/// # Errors
/// A brace without its partner, or what is wrong with an expression.
pub fn template(piece: Piece<'_>) -> Result<Template, ExprError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(open) = piece.text[at..].find(['{', '}']).map(|found| at + found) {
        let close = piece.text[open..].find('}').filter(|length| *length > 0);
        let Some(close) = close.map(|length| open + length) else {
            let loc = piece.loc(open, open + 1);
            return Err(loc.error("this brace has no partner"));
        };
        if open > at {
            parts.push(Part::Text(piece.text[at..open].to_owned()));
        }
        parts.push(Part::Expr(expression(piece.slice(open + 1, close))?));
        at = close + 1;
    }
    if at < piece.text.len() {
        parts.push(Part::Text(piece.text[at..].to_owned()));
    }
    Ok(Template {
        loc: piece.whole,
        parts,
    })
}

#[derive(Clone, Debug, PartialEq)]
enum TokenKind {
    Number(Value),
    Name(String),
    /// An operator or punctuation.
    Sign(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
struct Token {
    kind: TokenKind,
    loc: Loc,
    at: Range<usize>,
}

/// Longer signs first, so that `**` is not read as two `*`.
const SIGNS: [&str; 18] = [
    "**", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "(", ")", ",",
];

fn tokenize(piece: Piece<'_>) -> Result<Vec<Token>, ExprError> {
    let text = piece.text;
    if text.len() > MAX_LENGTH {
        let message = format!("an expression may have {MAX_LENGTH} characters");
        return Err(piece.whole.error(message));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, end) = if c.is_ascii_digit() {
            number(piece, at)?
        } else if c.is_ascii_alphabetic() || c == '_' {
            let end = word_end(text, at);
            (TokenKind::Name(text[at..end].to_owned()), end)
        } else if let Some(sign) = SIGNS.iter().find(|sign| text[at..].starts_with(**sign)) {
            (TokenKind::Sign(sign), at + sign.len())
        } else {
            let message = format!("{} means nothing in an expression", quoted(&c.to_string()));
            let error = piece.loc(at, at + c.len_utf8()).error(message);
            return Err(match c {
                '"' | '\'' => error.with_help("names stand in expressions without quotes"),
                '=' if text[..at].is_empty() => {
                    error.with_help("`0..n` stops at n - 1: write `0..n + 1` for `0..=n`")
                }
                _ => error,
            });
        };
        let loc = piece.loc(at, end);
        tokens.push(Token {
            kind,
            loc,
            at: at..end,
        });
        at = end;
    }
    Ok(tokens)
}

/// The end of the word that starts at `at`.
fn word_end(text: &str, at: usize) -> usize {
    text[at..]
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .map_or(text.len(), |length| at + length)
}

/// A number with its unit, if it has one.
fn number(piece: Piece<'_>, at: usize) -> Result<(TokenKind, usize), ExprError> {
    let text = piece.text;
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
            at += 1;
        }
        at
    };
    let mut end = digits(at);
    // `0..8` is a range, not a number with a fraction.
    let mut is_float =
        bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
    if is_float {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
            is_float = true;
        }
    }
    let plain = text[at..end].replace('_', "");
    let value = if is_float {
        let value = plain.parse().ok().filter(|value: &f64| value.is_finite());
        value.map(|value| Value::Float(value, Unit::None))
    } else {
        plain
            .parse()
            .ok()
            .map(|value| Value::Int(value, Unit::None))
    };
    let Some(value) = value else {
        let message = format!("{} is too large a number", quoted(&text[at..end]));
        return Err(piece.loc(at, end).error(message));
    };
    let (value, end) = with_unit(piece, value, at, end)?;
    Ok((TokenKind::Number(value), end))
}

/// A number that ends at `end`, with the unit behind it if there is one, and where that ends.
fn with_unit(
    piece: Piece<'_>,
    value: Value,
    at: usize,
    end: usize,
) -> Result<(Value, usize), ExprError> {
    let text = piece.text;
    let start = text.len() - text[end..].trim_start().len();
    let mut word = word_end(text, start);
    if word == start {
        return Ok((value, end));
    }
    if text[word..].starts_with("/s") && word_end(text, word + 1) == word + 2 {
        word += 2;
    }
    let name = &text[start..word];
    let Some((unit, scale)) = value::unit(name) else {
        let close = did_you_mean(name, UNITS.iter().map(|(known, ..)| *known));
        let help = close.unwrap_or_else(|| match name {
            "and" => "write && in its place".to_owned(),
            "or" => "write || in its place".to_owned(),
            "k" | "K" | "M" | "G" | "T" => {
                format!("write {name}iB or {name}B; a product is `{} * {name}`", &text[at..end])
            }
            _ => format!(
                "a product is `{} * {name}`; sizes are in B, KiB, MiB, GiB, TiB, kB, MB, GB, TB; times in ns, us, ms, s",
                &text[at..end]
            ),
        });
        let error = piece
            .loc(start, word)
            .error(format!("{} is not a unit", quoted(name)));
        return Err(error.with_help(help));
    };
    let value = value.with_unit(unit, scale);
    Ok((value.map_err(|it| piece.loc(at, word).error(it))?, word))
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    /// Behind the last token.
    end: Loc,
    whole: Piece<'a>,
}

/// An infix operator: how tightly it binds on its left and on its right.
fn infix(sign: &str) -> Option<(Operator, u8, u8)> {
    Some(match sign {
        "||" => (Operator::Or, 1, 2),
        "&&" => (Operator::And, 3, 4),
        "==" => (Operator::Eq, 5, 6),
        "!=" => (Operator::Ne, 5, 6),
        "<" => (Operator::Lt, 5, 6),
        "<=" => (Operator::Le, 5, 6),
        ">" => (Operator::Gt, 5, 6),
        ">=" => (Operator::Ge, 5, 6),
        "+" => (Operator::Add, 7, 8),
        "-" => (Operator::Sub, 7, 8),
        "*" => (Operator::Mul, 9, 10),
        "/" => (Operator::Div, 9, 10),
        "%" => (Operator::Rem, 9, 10),
        "**" => (Operator::Pow, 14, 13),
        _ => return None,
    })
}

/// How tightly a leading `-` or `!` binds: tighter than `*`, looser than `**`.
const PREFIX: u8 = 11;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found =
            matches!(self.peek(), Some(Token { kind: TokenKind::Sign(s), .. }) if *s == sign);
        self.next += usize::from(found);
        found
    }

    fn expr(&mut self, least: u8, depth: u32) -> Result<Expr, ExprError> {
        let mut left = self.operand(depth)?;
        while let Some(Token {
            kind: TokenKind::Sign(sign),
            ..
        }) = self.peek()
        {
            let Some((operator, binds_left, binds_right)) = infix(sign) else {
                break;
            };
            if binds_left < least {
                break;
            }
            self.next += 1;
            let right = self.expr(binds_right, depth + 1)?;
            left = Expr {
                loc: left.loc.span_to(right.loc),
                node: Node::Binary(operator, Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn operand(&mut self, depth: u32) -> Result<Expr, ExprError> {
        let Some(token) = self.tokens.get(self.next) else {
            return Err(match self.tokens {
                [] => self.whole.whole.error("an expression is missing here"),
                _ => self.end.error("the expression ends too early"),
            });
        };
        if depth > MAX_DEPTH {
            return Err(token.loc.error("this expression is nested too deeply"));
        }
        self.next += 1;
        let loc = token.loc;
        match &token.kind {
            TokenKind::Number(value) => Ok(Expr::constant(*value, loc)),
            TokenKind::Name(name) if self.take("(") => self.call(name, loc, depth),
            TokenKind::Name(name) => Ok(Expr {
                loc,
                node: Node::Name(name.clone()),
            }),
            TokenKind::Sign(sign @ ("-" | "!")) => {
                let inner = Box::new(self.expr(PREFIX, depth + 1)?);
                let loc = loc.span_to(inner.loc);
                let node = match *sign {
                    "-" => Node::Negate(inner),
                    _ => Node::Not(inner),
                };
                Ok(Expr { loc, node })
            }
            TokenKind::Sign("(") => {
                let inner = self.expr(0, depth + 1)?;
                match self.take(")") {
                    true => Ok(inner),
                    false => Err(loc.error("this parenthesis is not closed")),
                }
            }
            TokenKind::Sign(sign) => {
                let sign = quoted(sign);
                Err(loc.error(format!("a number or a name is missing before {sign}")))
            }
        }
    }

    fn call(&mut self, name: &str, loc: Loc, depth: u32) -> Result<Expr, ExprError> {
        let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let names = FUNCTIONS.iter().map(|(known, _)| *known);
            let error = loc.error(format!("there is no function {}", quoted(name)));
            return Err(error.with_help(instead(name, "the functions are", names)));
        };
        let name = quoted(name);
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() && !self.take(",") {
                return Err(loc.error(format!("the parenthesis behind {name} is not closed")));
            }
            arguments.push(self.expr(0, depth + 1)?);
        }
        let fits = match function {
            Function::Min | Function::Max => arguments.len() >= 2,
            Function::CeilDiv => arguments.len() == 2,
            Function::Log2 => arguments.len() == 1,
        };
        if !fits {
            let count = arguments.len();
            return Err(loc.error(format!("{name} does not take {count} arguments")));
        }
        let end = self.tokens[self.next - 1].loc;
        Ok(Expr {
            loc: loc.span_to(end),
            node: Node::Call(*function, arguments),
        })
    }
}
