//! Expressions in scenario files: `n * n * 4`, `ceil_div(n, 128)`, `64 MiB / batches`, `i % 2 == 0`.
//!
//! Values are 64-bit integers and floats with a unit ([`value`]); names are parameters and
//! loop variables. From loosest to tightest: `||`, `&&`, comparisons, `+ -`, `* / %`, a leading `-`
//! or `!`, `**` (which joins from the right). Every node knows its bytes in the file.

pub mod parse;
pub mod value;

use super::diagnostics::{Diagnostic, Diagnostics, quoted};
use std::ops::Range;

use value::{Operator, Unit, Value};

/// Bytes in the file; a [`Range`] that copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Loc {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Loc {
    /// As a range.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// From the start of this one to the end of the other.
    pub fn span_to(self, other: Loc) -> Loc {
        Loc::from(self.start..other.end.max(self.start))
    }

    pub(super) fn error(self, message: impl Into<String>) -> ExprError {
        ExprError {
            loc: self,
            message: message.into(),
            help: None,
        }
    }
}

impl From<Range<usize>> for Loc {
    fn from(range: Range<usize>) -> Self {
        Self {
            start: range.start,
            end: range.end,
        }
    }
}

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct ExprError {
    /// The bytes in the file.
    pub loc: Loc,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostics {
    /// Adds an error. Always `None`, for the caller to return.
    pub(super) fn fail<T>(&mut self, error: ExprError) -> Option<T> {
        self.push(Diagnostic::error(error.loc.range(), error.message).maybe_help(error.help));
        None
    }
}

impl ExprError {
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        let help = Some(help.into());
        Self { help, ..self }
    }
}

/// A function of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The least of its arguments.
    Min,
    /// The greatest of its arguments.
    Max,
    /// The quotient, rounded up.
    CeilDiv,
    /// The binary logarithm of an integer, rounded down.
    Log2,
}

/// The functions by name.
pub const FUNCTIONS: &[(&str, Function)] = &[
    ("min", Function::Min),
    ("max", Function::Max),
    ("ceil_div", Function::CeilDiv),
    ("log2", Function::Log2),
];

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its bytes in the file.
    pub loc: Loc,
    pub(super) node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Value(Value),
    Name(String),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
}

impl Expr {
    pub fn constant(value: Value, loc: Loc) -> Self {
        Self {
            loc,
            node: Node::Value(value),
        }
    }

    /// The name that the whole expression is, if it is just one.
    pub fn as_name(&self) -> Option<&str> {
        match &self.node {
            Node::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Every name in it, with its place.
    pub fn names(&self) -> Vec<(&str, Loc)> {
        match &self.node {
            Node::Value(_) => Vec::new(),
            Node::Name(name) => vec![(name, self.loc)],
            Node::Negate(inner) | Node::Not(inner) => inner.names(),
            Node::Binary(_, left, right) => [left.names(), right.names()].concat(),
            Node::Call(_, arguments) => arguments.iter().flat_map(Expr::names).collect(),
        }
    }

    /// Its value, with names looked up by `lookup`.
    ///
    /// # Errors
    /// An unknown name, an overflow, a division by zero, units that do not go together; with the
    /// bytes of the part that is wrong.
    pub fn eval(&self, lookup: &impl Fn(&str) -> Option<Value>) -> Result<Value, ExprError> {
        let value = match &self.node {
            Node::Value(value) => Ok(*value),
            Node::Name(name) => {
                lookup(name).ok_or_else(|| format!("nothing is named {}", quoted(name)))
            }
            Node::Negate(inner) => {
                let value = inner.eval(lookup)?;
                let zero = Value::Int(0, value.unit());
                value::combine(Operator::Sub, zero, value)
            }
            Node::Not(inner) => Ok(value::truth(!inner.eval(lookup)?.is_true())),
            Node::Binary(operator, left, right) => {
                value::combine(*operator, left.eval(lookup)?, right.eval(lookup)?)
            }
            Node::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.eval(lookup));
                call(*function, &values.collect::<Result<Vec<Value>, _>>()?)
            }
        };
        value.map_err(|message| self.loc.error(message))
    }
}

/// Applies a function; the parser has checked the number of arguments.
fn call(function: Function, values: &[Value]) -> Result<Value, String> {
    let better = |operator: Operator| {
        let mut best = values[0];
        for value in &values[1..] {
            if value::combine(operator, *value, best)?.is_true() {
                best = *value;
            }
        }
        Ok(best)
    };
    match (function, values) {
        (Function::Min, _) => better(Operator::Lt),
        (Function::Max, _) => better(Operator::Gt),
        (Function::CeilDiv, [dividend, divisor]) => {
            let rest = value::combine(Operator::Rem, *dividend, *divisor)?;
            let quotient = value::combine(Operator::Div, *dividend, *divisor)?;
            let up = i64::from(rest.as_f64() > 0.0);
            value::combine(Operator::Add, quotient, Value::Int(up, Unit::None))
        }
        (Function::Log2, [Value::Int(value, _)]) if *value > 0 => {
            Ok(Value::Int(i64::from(value.ilog2()), Unit::None))
        }
        (Function::Log2, _) => Err("log2 takes a whole number above zero".to_owned()),
        (Function::CeilDiv, _) => Err("ceil_div takes two numbers".to_owned()),
    }
}
