//! Parameters, the sweep's values, and what the command line changes in them.

use super::super::Overrides;
use super::super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, list, quoted};
use super::super::expr::parse::{self, Piece};
use super::super::expr::value::{self, Operator, Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::file::decl::SweepValues;
use super::super::file::{File, VariantDecl};
use super::super::plan::Sweep;

/// Values of a sweep.
const MAX_VALUES: usize = 256;

/// The values of `--set name=value`.
pub(super) fn overrides(
    file: &File,
    overrides: &Overrides,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<(String, Value)>> {
    let mut set = Vec::new();
    for (name, text) in &overrides.set {
        let names = || {
            file.declared
                .params
                .iter()
                .map(|param| param.name.text.as_str())
        };
        if !names().any(|known| known == name) {
            let help = did_you_mean(name, names())
                .unwrap_or_else(|| format!("the parameters are {}", list(names())));
            let message = format!(
                "--set {name}: the scenario has no parameter {}",
                quoted(name)
            );
            diagnostics.push(Diagnostic::error(0..0, message).help(help));
            continue;
        }
        let piece = Piece {
            text: text.trim(),
            start: None,
            whole: Loc::default(),
        };
        let value = parse::expression(piece).and_then(|expr| expr.eval(&|_| None));
        match value {
            Ok(value) => set.push((name.clone(), value)),
            Err(error) => {
                let message = format!("--set {name}={text}: {}", error.message);
                diagnostics.push(Diagnostic::error(0..0, message).maybe_help(error.help));
            }
        }
    }
    (!diagnostics.has_errors()).then_some(set)
}

/// The variants to run.
pub(super) fn chosen<'f>(
    file: &'f File,
    overrides: &Overrides,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<&'f VariantDecl>> {
    let Some(wanted) = &overrides.variant else {
        return Some(file.variants.iter().collect());
    };
    let found: Vec<&VariantDecl> = file
        .variants
        .iter()
        .filter(|variant| variant.name.text == *wanted)
        .collect();
    if found.is_empty() {
        let names = || {
            file.variants
                .iter()
                .map(|variant| variant.name.text.as_str())
        };
        let help = did_you_mean(wanted, names())
            .unwrap_or_else(|| format!("the variants are {}", list(names())));
        diagnostics.push(
            Diagnostic::error(0..0, format!("there is no variant {}", quoted(wanted))).help(help),
        );
        return None;
    }
    Some(found)
}

/// All parameters of a variant at a value of the sweep. `--set` goes before the sweep, the sweep
/// before the variant, the variant before `[params]`.
pub(super) fn params<'f>(
    file: &'f File,
    variant: &'f VariantDecl,
    point: Option<Value>,
    set: &[(String, Value)],
    diagnostics: &mut Diagnostics,
) -> Option<Vec<(&'f str, Value)>> {
    let mut values: Vec<(&str, Value)> = Vec::new();
    let swept = file
        .declared
        .sweep
        .as_ref()
        .map(|sweep| sweep.param.text.as_str());
    for param in &file.declared.params {
        let name = param.name.text.as_str();
        let of_variant = variant.params.iter().find(|own| own.name.text == name);
        let given = set
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value);
        let value = match given {
            Some(value) => value,
            None if swept == Some(name) && point.is_some() => point?,
            None => evaluate(
                of_variant.map_or(&param.value, |own| &own.value),
                &values,
                diagnostics,
            )?,
        };
        values.push((name, value));
    }
    Some(values)
}

fn evaluate(expr: &Expr, known: &[(&str, Value)], diagnostics: &mut Diagnostics) -> Option<Value> {
    let lookup = |name: &str| {
        known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    };
    match expr.eval(&lookup) {
        Ok(value) => Some(value),
        Err(error) => {
            diagnostics
                .push(Diagnostic::error(error.loc.range(), error.message).maybe_help(error.help));
            None
        }
    }
}

/// The whole number that stands for a value of the sweep.
pub(super) fn point_value(value: Value) -> i64 {
    match value {
        Value::Int(value, _) => value,
        Value::Float(value, _) => value as i64,
    }
}

/// The sweep and its values, each with its unit. With `--set` of the swept parameter, that one value.
pub(super) fn sweep(
    file: &File,
    set: &[(String, Value)],
    diagnostics: &mut Diagnostics,
) -> Option<(Sweep, Vec<Value>)> {
    let sweep = file.declared.sweep.as_ref()?;
    let values = match set.iter().find(|(name, _)| *name == sweep.param.text) {
        Some((_, value)) => vec![*value],
        None => values(file, sweep.loc, &sweep.values, set, diagnostics)?,
    };
    let numbers: Vec<i64> = values.iter().copied().map(point_value).collect();
    if let Some(value) = values
        .iter()
        .find(|value| matches!(value, Value::Float(..)))
    {
        diagnostics.push(Diagnostic::error(
            sweep.loc.range(),
            format!("a sweep has whole numbers, not {value}"),
        ));
        return None;
    }
    for (at, number) in numbers.iter().enumerate() {
        if numbers[..at].contains(number) {
            diagnostics.push(Diagnostic::error(
                sweep.loc.range(),
                format!("the sweep has the value {number} twice"),
            ));
            return None;
        }
    }
    let (first, last) = (numbers.first().copied()?, numbers.last().copied()?);
    // Equal steps over more than a decade would crowd the small values on a linear axis.
    let is_log =
        first > 0 && last / first >= 16 && !matches!(sweep.values, SweepValues::Step { .. });
    let sweep = Sweep {
        param: sweep.param.text.clone(),
        values: numbers,
        unit: values.first().map_or(Unit::None, |value| value.unit()),
        is_log,
    };
    Some((sweep, values))
}

fn values(
    file: &File,
    loc: Loc,
    values: &SweepValues,
    set: &[(String, Value)],
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Value>> {
    let mut known: Vec<(&str, Value)> = Vec::new();
    for param in &file.declared.params {
        let given = set
            .iter()
            .find(|(name, _)| *name == param.name.text)
            .map(|(_, value)| *value);
        let value = match given {
            Some(value) => value,
            None => evaluate(&param.value, &known, diagnostics)?,
        };
        known.push((&param.name.text, value));
    }
    let mut number = |expr: &Expr| evaluate(expr, &known, diagnostics);
    let (from, to, by, operator) = match values {
        SweepValues::List(list) => {
            let list: Vec<Value> = list.iter().map(number).collect::<Option<_>>()?;
            if list.is_empty() || list.len() > MAX_VALUES {
                let message = format!("a sweep has 1 to {MAX_VALUES} values, not {}", list.len());
                diagnostics.push(Diagnostic::error(loc.range(), message));
                return None;
            }
            return Some(list);
        }
        SweepValues::Factor { from, to, factor } => {
            (number(from)?, number(to)?, number(factor)?, Operator::Mul)
        }
        SweepValues::Step { from, to, step } => {
            (number(from)?, number(to)?, number(step)?, Operator::Add)
        }
    };
    let fail = |message: String| Diagnostic::error(loc.range(), message);
    let grows = match operator {
        Operator::Mul => by.unit() == Unit::None && by.as_f64() > 1.0 && from.as_f64() > 0.0,
        _ => by.as_f64() > 0.0,
    };
    if !grows {
        let rule = if operator == Operator::Mul {
            "its factor is above 1 and its first value above 0"
        } else {
            "its step is above 0"
        };
        diagnostics.push(fail(format!("this sweep never ends: {rule}")));
        return None;
    }
    let mut list = Vec::new();
    let mut at = from;
    loop {
        let is_inside = value::combine(Operator::Le, at, to);
        match is_inside {
            Ok(inside) if inside.is_true() && list.len() < MAX_VALUES => list.push(at),
            Ok(inside) if !inside.is_true() && !list.is_empty() => return Some(list),
            Ok(_) => {
                diagnostics.push(fail(format!("a sweep has 1 to {MAX_VALUES} values")));
                return None;
            }
            Err(message) => {
                diagnostics.push(fail(message));
                return None;
            }
        }
        let Ok(next) = value::combine(operator, at, by) else {
            return Some(list);
        };
        at = next;
    }
}
