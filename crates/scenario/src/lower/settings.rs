//! Parameters, the sweep's values, and what the command line changes in them.

use super::super::Overrides;
use super::super::comparisons::known_variant;
use super::super::diagnostics::{Diagnostic, Diagnostics, instead, quoted};
use super::super::expr::parse::{self, Piece};
use super::super::expr::value::{self, Operator, Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::file::{File, VariantDecl};
use super::super::plan::Sweep;
use super::super::syntax::decl::{ParamDecl, SweepValues};

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
        let params = file.declared.params.iter();
        let names = params.map(|param| param.name.text.as_str());
        if !names.clone().any(|known| known == name) {
            let help = instead(name, "the parameters are", names);
            let shown = quoted(name);
            let message = format!("--set {name}: the scenario has no parameter {shown}");
            diagnostics.push(Diagnostic::error(0..0, message).help(help));
            continue;
        }
        let piece = Piece::of(Loc::default(), text.trim());
        match parse::constant(piece) {
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
    match known_variant(file, wanted, Loc::default()) {
        Ok(variant) => Some(vec![variant]),
        Err(error) => diagnostics.fail(error),
    }
}

/// All parameters of a variant at a value of the sweep. `--set` goes before the sweep, the sweep
/// before the variant, the variant before `[params]`.
pub(super) fn params<'f>(
    file: &'f File,
    of_variant: &[ParamDecl],
    point: Option<Value>,
    set: &[(String, Value)],
    diagnostics: &mut Diagnostics,
) -> Option<Vec<(&'f str, Value)>> {
    let mut values: Vec<(&str, Value)> = Vec::new();
    let sweep = file.declared.sweep.as_ref();
    for param in &file.declared.params {
        let name = param.name.text.as_str();
        let own = of_variant.iter().find(|own| own.name.text == name);
        let is_swept = sweep.is_some_and(|sweep| sweep.param.text == name);
        let value = match valued(set, name).or(point.filter(|_| is_swept)) {
            Some(value) => value,
            None => evaluate(&own.unwrap_or(param).value, &values, diagnostics)?,
        };
        values.push((name, value));
    }
    Some(values)
}

fn evaluate(expr: &Expr, known: &[(&str, Value)], diagnostics: &mut Diagnostics) -> Option<Value> {
    let value = expr.eval(&|name| valued(known, name));
    value.map_or_else(|error| diagnostics.fail(error), Some)
}

/// The value of a name, if it has one.
fn valued(known: &[(impl AsRef<str>, Value)], name: &str) -> Option<Value> {
    let found = known.iter().find(|(known, _)| known.as_ref() == name);
    found.map(|(_, value)| *value)
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
    let values = match valued(set, &sweep.param.text) {
        Some(value) => vec![value],
        None => values(file, sweep.loc, &sweep.values, set, diagnostics)?,
    };
    let mut fail = |message: String| diagnostics.fail(sweep.loc.error(message));
    let numbers: Vec<i64> = values.iter().copied().map(point_value).collect();
    let is_float = |value: &&Value| matches!(value, Value::Float(..));
    if let Some(value) = values.iter().find(is_float) {
        return fail(format!("a sweep has whole numbers, not {value}"));
    }
    for (at, number) in numbers.iter().enumerate() {
        if numbers[..at].contains(number) {
            return fail(format!("the sweep has the value {number} twice"));
        }
    }
    let (first, last) = (numbers.first().copied()?, numbers.last().copied()?);
    // Equal steps over more than a decade would crowd the small values on a linear axis.
    let is_step = |values: &SweepValues| matches!(values, SweepValues::Grown(_, Operator::Add));
    let is_log = first > 0 && last / first >= 16 && !is_step(&sweep.values);
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
    let known = params(file, &[], None, set, diagnostics)?;
    let mut number = |expr: &Expr| evaluate(expr, &known, diagnostics);
    let (from, to, by, operator) = match values {
        SweepValues::List(list) => {
            let list: Vec<Value> = list.iter().map(number).collect::<Option<_>>()?;
            if list.is_empty() || list.len() > MAX_VALUES {
                let message = format!("a sweep has 1 to {MAX_VALUES} values, not {}", list.len());
                return diagnostics.fail(loc.error(message));
            }
            return Some(list);
        }
        SweepValues::Grown([from, to, by], operator) => {
            (number(from)?, number(to)?, number(by)?, *operator)
        }
    };
    let mut fail = |message: String| diagnostics.fail(loc.error(message));
    let is_plain = by.unit() == Unit::None && from.as_f64() > 0.0;
    let (grows, rule) = match operator {
        Operator::Mul => (
            is_plain && by.as_f64() > 1.0,
            "its factor is above 1 and its first value above 0",
        ),
        _ => (by.as_f64() > 0.0, "its step is above 0"),
    };
    if !grows {
        return fail(format!("this sweep never ends: {rule}"));
    }
    let mut list = Vec::new();
    let mut at = from;
    loop {
        let is_inside = value::combine(Operator::Le, at, to);
        match is_inside {
            Ok(inside) if inside.is_true() && list.len() < MAX_VALUES => list.push(at),
            Ok(inside) if !inside.is_true() && !list.is_empty() => return Some(list),
            Ok(_) => return fail(format!("a sweep has 1 to {MAX_VALUES} values")),
            Err(message) => return fail(message),
        }
        let Ok(next) = value::combine(operator, at, by) else {
            return Some(list);
        };
        at = next;
    }
}
