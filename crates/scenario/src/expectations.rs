//! `[expect]`: `"VARIANT.FIGURE" = ">= 2.0"`, with `"VARIANT[param=value].FIGURE"` at one value of a
//! sweep.

use super::Overrides;
use super::comparisons::{has_point, known_variant, point_value};
use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, quoted};
use super::expect::{Compare, Expectation, Figure};
use super::expr::parse::{self, Piece};
use super::expr::value::Unit;
use super::expr::{ExprError, Loc};
use super::figures::{CAUSES, FIGURES, Needs, Operand, Spec, bound_unit};
use super::file::{ExpectDecl, File, VariantDecl};
use super::names::unknown;
use super::plan::{LaunchSpec, OpKind, Sweep, VariantPlan};
use super::site::Sites;
use super::syntax::decl::Named;

/// Reads the expectations. Those about variants and values that the command line left out are left
/// out, too, with a note.
pub(super) fn read(
    file: &File,
    chosen: &[&VariantDecl],
    sweep: Option<&Sweep>,
    plans: &[VariantPlan],
    overrides: &Overrides,
    sites: &mut Sites,
    diagnostics: &mut Diagnostics,
) -> Vec<Expectation> {
    let mut expectations = Vec::new();
    let mut unchecked = 0;
    for line in &file.expect {
        let about = left(file, line).and_then(|left| {
            let is_left_out = is_left_out(&left, chosen, sweep, overrides)?;
            Ok((left, is_left_out))
        });
        let about = about.map_or_else(|error| diagnostics.fail(error), Some);
        let Some((left, is_left_out)) = about else {
            continue;
        };
        let mut of_it = plans.iter().filter(|plan| left.is_about(plan));
        if let Some(lack) = of_it.find_map(|plan| lacking(&left.figure, plan)) {
            let message = format!("{} {lack}", quoted(&left.variant));
            diagnostics.fail::<()>(line.key_loc.error(message));
        }
        for bound in &line.bounds {
            match read_bound(bound, left.unit) {
                Err(error) => drop(diagnostics.fail::<()>(error)),
                Ok(_) if is_left_out => {}
                Ok((compare, value)) => expectations.push(Expectation {
                    what: line.key.clone(),
                    variant: left.variant.clone(),
                    point: left.point.map(|(value, _)| value),
                    figure: left.figure.clone(),
                    compare,
                    value,
                    expected: bound.text.clone(),
                    site: sites.id(line.key_loc),
                }),
            }
        }
        unchecked += usize::from(is_left_out);
    }
    if unchecked > 0 {
        // The user asked for it on the command line: the note is about no place in the file.
        let why = "are not checked: the command line leaves out what they are about";
        let message = format!("{unchecked} of the scenario's expectations {why}");
        diagnostics.push(Diagnostic::new(super::Severity::Note, 0..0, message));
    }
    expectations
}

/// Whether the command line leaves out what an expectation is about.
fn is_left_out(
    left: &Left,
    chosen: &[&VariantDecl],
    sweep: Option<&Sweep>,
    overrides: &Overrides,
) -> Result<bool, ExprError> {
    let is_there = |name: &str| chosen.iter().any(|variant| variant.name.text == name);
    let is_other_there = left.figure.other().is_none_or(is_there);
    let is_left_out = !is_there(&left.variant) || !is_other_there;
    match (left.point, sweep) {
        (Some((value, loc)), Some(sweep)) => {
            Ok(!has_point(sweep, value, overrides, loc)? || is_left_out)
        }
        _ => Ok(is_left_out),
    }
}

/// The left side of an expectation.
struct Left {
    variant: String,
    point: Option<(i64, Loc)>,
    figure: Figure,
    unit: Unit,
}

impl Left {
    fn is_about(&self, plan: &VariantPlan) -> bool {
        let is_at = |(value, _)| plan.point == Some(value);
        plan.name == self.variant && self.point.is_none_or(is_at)
    }
}

/// What the left side looks like.
const SHAPE: &str = "an expectation is about \"VARIANT.FIGURE\" or \"VARIANT[param=value].FIGURE\"";

fn left(file: &File, line: &ExpectDecl) -> Result<Left, ExprError> {
    // Behind the quote, if the key stands in quotes as it must.
    let key = line.key.as_str();
    let is_literal = line.key_loc.end - line.key_loc.start == key.len() + 2;
    let piece = Piece {
        text: key,
        start: is_literal.then_some(line.key_loc.start + 1),
        whole: line.key_loc,
    };
    let variant_end = key.find(['.', '[']).unwrap_or(key.len());
    let variant = &key[..variant_end];
    known_variant(file, variant, piece.loc(0, variant_end))?;
    let mut rest = variant_end;
    let mut point = None;
    if key[rest..].starts_with('[') {
        let Some(close) = key[rest..].find(']').map(|found| rest + found) else {
            let bracket = piece.loc(rest, rest + 1);
            return Err(bracket.error("this bracket is not closed").with_help(SHAPE));
        };
        point = Some(read_point(file, piece.slice(rest + 1, close))?);
        rest = close + 1;
    }
    if !key[rest..].starts_with('.') {
        let message = format!("{} does not name a figure", quoted(key));
        return Err(line.key_loc.error(message).with_help(SHAPE));
    }
    let (spec, operand) = read_figure(file, piece, rest + 1)?;
    Ok(Left {
        variant: variant.to_owned(),
        point,
        figure: Figure::new(spec.kind, operand),
        unit: bound_unit(spec.unit),
    })
}

/// The figure that a key names from `start` on, and what it is about.
fn read_figure<'a>(
    file: &File,
    piece: Piece<'a>,
    start: usize,
) -> Result<(&'static Spec, &'a str), ExprError> {
    let key = piece.text;
    let (name, operand) = match key[start..].split_once('.') {
        Some((name, operand)) => (name, Some(operand)),
        None => (&key[start..], None),
    };
    let name_loc = piece.loc(start, start + name.len());
    let Some(spec) = FIGURES.iter().find(|spec| spec.name == name) else {
        let all: Vec<&str> = FIGURES.iter().map(|spec| spec.name).collect();
        let help = did_you_mean(name, all.iter().copied())
            .unwrap_or_else(|| format!("the figures are {}", all.join(", ")));
        let error = name_loc.error(format!("there is no figure {}", quoted(name)));
        return Err(error.with_help(help));
    };
    let operand_loc = piece.loc((start + name.len() + 1).min(key.len()), key.len());
    let needed = |what: &str| {
        let message = format!("{} is about {what}: \"{key}.NAME\"", quoted(name));
        name_loc.error(message)
    };
    let operand = operand.filter(|operand| spec.operand == Operand::None || !operand.is_empty());
    match (spec.operand, operand) {
        (Operand::None, None) => {}
        (Operand::None, Some(_)) => {
            let message = format!("nothing follows {}", quoted(name));
            return Err(operand_loc.error(message));
        }
        (Operand::Variant, Some(other)) => {
            known_variant(file, other, operand_loc)?;
        }
        (Operand::Kernel, Some(kernel)) => {
            let kernels = file.declared.kernels.iter();
            let names = kernels.map(|kernel| kernel.name.text.as_str());
            if !names.clone().any(|name| name == kernel) {
                return Err(unknown("kernel", kernel, operand_loc, names));
            }
        }
        (Operand::Cause, Some(cause)) if !CAUSES.contains(&cause) => {
            return Err(unknown("cause", cause, operand_loc, CAUSES.into_iter()));
        }
        (Operand::Cause | Operand::Range, Some(_)) => {}
        (Operand::Variant, None) => return Err(needed("another variant")),
        (Operand::Kernel, None) => return Err(needed("a kernel")),
        (Operand::Range, None) => return Err(needed("a range")),
        (Operand::Cause, None) => return Err(needed("a cause")),
    }
    Ok((spec, operand.unwrap_or_default()))
}

/// `param=value` in brackets.
fn read_point(file: &File, piece: Piece<'_>) -> Result<(i64, Loc), ExprError> {
    let loc = piece.loc(0, piece.text.len());
    let Some(sweep) = &file.declared.sweep else {
        return Err(loc.error("the scenario has no [sweep]"));
    };
    let Some(equals) = piece.text.find('=') else {
        let help = format!("write [{}=value]", sweep.param.text);
        let text = quoted(piece.text);
        let error = loc.error(format!("{text} does not say which value of the sweep"));
        return Err(error.with_help(help));
    };
    let name = piece.text[..equals].trim();
    if name != sweep.param.text {
        let help = format!("the sweep is over {}", quoted(&sweep.param.text));
        let message = format!("{} is not swept", quoted(name));
        return Err(loc.error(message).with_help(help));
    }
    let value = parse::constant(piece.slice(equals + 1, piece.text.len()))?;
    Ok((point_value(value, loc)?, loc))
}

/// A comparison such as ">= 2 ms" with a figure of this unit.
///
/// # Errors
/// What is wrong with it, in words.
pub fn condition(text: &str, unit: activity::units::Unit) -> Result<(Compare, f64), String> {
    let bound = Named {
        text: text.to_owned(),
        ..Named::default()
    };
    read_bound(&bound, bound_unit(unit)).map_err(|error| match error.help {
        Some(help) => format!("{}: {help}", error.message),
        None => error.message,
    })
}

/// `>= 2.0`, with the unit that the figure has.
fn read_bound(bound: &Named, unit: Unit) -> Result<(Compare, f64), ExprError> {
    let text = bound.text.as_str();
    let number = text.trim_start_matches(|it: char| "<>=!~ ".contains(it));
    let number = if number.is_empty() { "2.0" } else { number };
    let shape = format!("compare with one of >=, <=, > and <, as \">= {number}\"");
    let operators = [
        (">=", Compare::AtLeast),
        ("<=", Compare::AtMost),
        (">", Compare::Above),
        ("<", Compare::Below),
    ];
    let mut parts = operators.into_iter();
    let found = parts.find_map(|(sign, it)| Some((it, text.strip_prefix(sign)?.trim())));
    let Some((compare, number)) = found else {
        let message = format!("{} is not a comparison", quoted(text));
        return Err(bound.loc.error(message).with_help(shape));
    };
    let percent = number.strip_suffix('%').map(str::trim_end);
    let value = parse::constant(Piece::of(bound.loc, percent.unwrap_or(number)));
    let value = value.map_err(|error| ExprError {
        loc: bound.loc,
        help: error.help.or(Some(shape)),
        ..error
    })?;
    let given = percent.map_or(value.unit(), |_| Unit::Share);
    // A plain number is a share where it can be one: any other would be nanoseconds, bytes, or 2,000 %.
    let is_share = unit == Unit::Share && given == Unit::None && value.as_f64() <= 1.0;
    let fits = given == unit || is_share;
    if !fits {
        let message = format!("the figure is {unit}, and this is {given}");
        let help = match unit {
            Unit::Time => "write it with its unit: \"<= 3 ms\"",
            Unit::Bytes => "write it with its unit: \"<= 64 MiB\"",
            Unit::Rate => "write it in GB/s",
            Unit::Flops => "write it in GFLOP/s or TFLOP/s",
            Unit::Share => "write it as 0.85 or as 85 %",
            Unit::None => "write a plain number",
        };
        return Err(bound.loc.error(message).with_help(help));
    }
    let scale = percent.map_or(1.0, |_| 0.01);
    Ok((compare, value.as_f64() * scale))
}

/// What a variant lacks to have a figure at all.
fn lacking(figure: &Figure, plan: &VariantPlan) -> Option<String> {
    let kernel = quoted(&figure.operand);
    let says = |key: &str, has: fn(&LaunchSpec) -> bool| {
        let of = plan.kernels.iter().position(|k| k.name == figure.operand);
        let launch = of.and_then(|of| plan.launches.iter().find(|l| l.kernel == of));
        match launch {
            None => Some(format!("never launches the kernel {kernel}")),
            Some(launch) => (!has(launch))
                .then(|| format!("cannot tell: the kernel {kernel} does not say its `{key}`")),
        }
    };
    match figure.spec().needs {
        Needs::Nothing => None,
        Needs::Copies(wanted) => {
            let has_copy = plan
                .listed()
                .any(|op| matches!(op.kind, OpKind::Copy(it) if it.direction == wanted));
            (!has_copy).then(|| format!("has no {wanted:?} copy, so this cannot be measured"))
        }
        Needs::Bytes => says("bytes", |launch| launch.bytes.is_some()),
        Needs::Flops => says("flops", |launch| launch.flops.is_some()),
        Needs::Work => says("bytes` or `flops", |it| it.bytes.or(it.flops).is_some()),
        Needs::Range => (!plan.phases.contains(&figure.operand))
            .then(|| format!("has no range {}", quoted(&figure.operand))),
    }
}
