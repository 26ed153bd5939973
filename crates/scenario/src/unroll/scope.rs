//! Values of expressions, in the scope that a step stands in.

use std::ops::RangeInclusive;

use super::super::diagnostics::Diagnostic;
use super::super::expr::parse::{Part, Template};
use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, ExprError, Node};
use super::super::syntax::decl::ParamDecl;
use super::Unroll;

/// Characters of a name after its expressions are filled in.
const MAX_NAME: usize = 100;

impl Unroll<'_, '_> {
    /// The value of an expression. Reports what is wrong and returns `None`.
    pub(crate) fn eval(&mut self, expr: &Expr) -> Option<Value> {
        if !self.work_out(expr.loc) {
            return None;
        }
        let value = expr.eval(&|name| {
            let found = self.scope.iter().rev().find(|(known, ..)| *known == name);
            found.map(|(_, value, _)| *value)
        });
        let report = |it: ExprError| {
            self.report(Diagnostic::error(it.loc.range(), it.message).maybe_help(it.help));
        };
        value.map_err(report).ok()
    }

    /// A whole number. Bytes count as one, so that a size can be divided into a number of elements.
    pub(crate) fn whole_number(&mut self, expr: &Expr, what: &str) -> Option<i64> {
        let value = self.eval(expr)?;
        let message = match (value, value.unit()) {
            (Value::Int(value, _), Unit::None | Unit::Bytes) => return Some(value),
            (Value::Float(value, _), Unit::None | Unit::Bytes)
                if value.fract() == 0.0 && value.abs() < 9e15 =>
            {
                return Some(value as i64);
            }
            (_, Unit::None | Unit::Bytes) => format!("{what} is a whole number, not {value}"),
            (_, unit) => format!("{what} is needed here, and this is {unit}"),
        };
        self.error(expr.loc, message)
    }

    /// A whole number within bounds.
    pub(crate) fn integer(
        &mut self,
        expr: &Expr,
        bounds: RangeInclusive<i64>,
        what: &str,
    ) -> Option<i64> {
        let value = self.whole_number(expr, what)?;
        if bounds.contains(&value) {
            return Some(value);
        }
        let (least, most) = bounds.into_inner();
        let message = if value < 0 && least >= 0 {
            format!("{what} cannot be negative, and this is {value}")
        } else {
            format!("{what} is {least} to {most}, and this is {value}")
        };
        self.out_of_bounds(expr, value, message)
    }

    /// Says so of a value, at the parameter where it was given.
    fn out_of_bounds<T>(&mut self, expr: &Expr, value: i64, message: String) -> Option<T> {
        let is_it = |it: &&ParamDecl| {
            let value = matches!(it.value.node, Node::Value(is) if is.as_f64() == value as f64);
            value && expr.as_name() == Some(&it.name.text)
        };
        let param = self.shared.declared.params.iter().find(is_it);
        let error = Diagnostic::error(param.map_or(expr.loc, |it| it.value.loc).range(), message);
        let error = error.related(expr.loc.range(), "used here");
        self.report(error);
        None
    }

    /// A number of bytes, at least `least`.
    pub(crate) fn bytes(&mut self, expr: &Expr, least: i64) -> Option<u64> {
        let value = self.whole_number(expr, "a size")?;
        if value >= least {
            return Some(value.unsigned_abs());
        }
        let message = if value < 0 {
            format!("a size cannot be negative, and this is {value} B")
        } else {
            format!("a size is at least {least} B, and this is {value} B")
        };
        self.out_of_bounds(expr, value, message)
    }

    /// As [`Self::bytes`], of an expression that may be absent.
    pub(crate) fn optional_bytes(
        &mut self,
        expr: Option<&Expr>,
        least: i64,
    ) -> Option<Option<u64>> {
        match expr {
            Some(expr) => self.bytes(expr, least).map(Some),
            None => Some(None),
        }
    }

    /// As [`Self::integer`] from 0 on, of an expression that may be absent.
    pub(crate) fn amount(
        &mut self,
        expr: Option<&Expr>,
        most: i64,
        what: &str,
    ) -> Option<Option<u64>> {
        let Some(expr) = expr else { return Some(None) };
        let amount = self.integer(expr, 0..=most, what)?;
        Some(Some(amount.unsigned_abs()))
    }

    /// A time in nanoseconds.
    pub(crate) fn time(&mut self, expr: &Expr) -> Option<i64> {
        match self.eval(expr)? {
            Value::Int(ns, Unit::Time) if ns >= 0 => Some(ns),
            Value::Float(ns, Unit::Time) if (0.0..9e15).contains(&ns) => Some(ns.round() as i64),
            Value::Int(_, Unit::Time) | Value::Float(_, Unit::Time) => {
                self.error(expr.loc, "a time cannot be negative")
            }
            value => {
                let message = format!("a time is needed here, and this is {}", value.unit());
                self.error_help(expr.loc, message, "write it with its unit: \"200 us\"")
            }
        }
    }

    /// A name with its expressions filled in.
    pub(crate) fn name(&mut self, template: &Template) -> Option<String> {
        let mut name = String::new();
        for part in &template.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Expr(expr) => match self.eval(expr)? {
                    Value::Int(value, _) => name.push_str(&value.to_string()),
                    Value::Float(value, _) => name.push_str(&value.to_string()),
                },
            }
        }
        if name.chars().count() > MAX_NAME {
            let message = format!("a name has {MAX_NAME} characters at most");
            return self.error(template.loc, message);
        }
        Some(name)
    }
}
