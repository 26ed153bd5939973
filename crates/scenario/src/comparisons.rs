//! Which variant is compared with which: baselines, and the pairs whose cure an edit of the mistake predicts.

use super::Overrides;
use super::diagnostics::{Diagnostic, Diagnostics, list, quoted};
use super::expr::value::Value;
use super::expr::{ExprError, Loc};
use super::file::{File, PairDecl, VariantDecl};
use super::names::unknown;
use super::plan::{Pair, Sweep, VariantPlan};
use super::site::Sites;
use super::syntax::decl::Named;

/// Tells each plan what its speed-up is against.
pub(super) fn baselines(file: &File, plans: &mut [VariantPlan], diagnostics: &mut Diagnostics) {
    let declared = file.variants.iter().map(|variant| &variant.baseline);
    for baseline in declared.chain([&file.baseline]).flatten() {
        let is_own =
            |it: &VariantDecl| (it.baseline.as_ref()).is_some_and(|it| it.loc == baseline.loc);
        if let Some(found) = variant(file, baseline, diagnostics)
            && found.shows_race
            && !is_own(found)
        {
            let message = format!(
                "{} shows a race: its time is that of a wrong result",
                quoted(&found.name.text)
            );
            diagnostics.push(
                Diagnostic::warning(baseline.loc.range(), message)
                    .help("take a variant that gives the right result"),
            );
        }
    }
    // The first way to do the work that gives the right result.
    let first = file.variants.iter().find(|variant| !variant.shows_race);
    let is_planned: Vec<&str> = file
        .variants
        .iter()
        .map(|variant| variant.name.text.as_str())
        .filter(|name| plans.iter().any(|plan| plan.name == *name))
        .collect();
    for plan in &mut *plans {
        let own = file.variants.iter().find(|own| own.name.text == plan.name);
        let declared = own.and_then(|own| own.baseline.as_ref());
        // A wrong result is no faster than anything, unless the file asks for that comparison.
        let is_compared = declared.is_some() || own.is_some_and(|own| !own.shows_race);
        let name = declared
            .or(file.baseline.as_ref())
            .or(first.map(|first| &first.name))
            .map(|name| name.text.as_str());
        plan.baseline = name
            .filter(|name| is_compared && *name != plan.name && is_planned.contains(name))
            .map(str::to_owned);
    }
}

/// The pairs. Those about variants and values that the command line left out are left out.
pub(super) fn pairs(
    file: &File,
    chosen: &[&VariantDecl],
    sweep: Option<&Sweep>,
    overrides: &Overrides,
    sites: &mut Sites,
    diagnostics: &mut Diagnostics,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for decl in &file.pairs {
        let mistake = variant(file, &decl.mistake, diagnostics);
        let cure = variant(file, &decl.cure, diagnostics);
        let (Some(mistake), Some(cure)) = (mistake, cure) else {
            continue;
        };
        if std::ptr::eq(mistake, cure) {
            let message = "a pair is of two variants, and these are one";
            diagnostics.push(Diagnostic::error(decl.cure.loc.range(), message));
            continue;
        }
        let Some(at) = point(decl, sweep, overrides, diagnostics) else {
            continue;
        };
        let is_chosen = |wanted: &VariantDecl| chosen.iter().any(|one| std::ptr::eq(*one, wanted));
        if is_chosen(mistake) && is_chosen(cure) {
            pairs.push(Pair {
                mistake: mistake.name.text.clone(),
                cure: cure.name.text.clone(),
                edit: decl.edit.clone(),
                at,
                site: sites.id(decl.loc),
            });
        }
    }
    pairs
}

/// The value of the sweep that a pair names, if it names one. Nothing where that is wrong, or where the command line
/// leaves it out.
fn point(
    decl: &PairDecl,
    sweep: Option<&Sweep>,
    overrides: &Overrides,
    diagnostics: &mut Diagnostics,
) -> Option<Option<i64>> {
    let Some(expr) = &decl.at else {
        return Some(None);
    };
    let Some(sweep) = sweep else {
        return diagnostics.fail(expr.loc.error("the scenario has no [sweep]"));
    };
    let value = match expr
        .eval(&|_| None)
        .and_then(|it| point_value(it, expr.loc))
    {
        Ok(value) => value,
        // Without the file, what is wrong in it is at the expression as a whole.
        Err(error) => {
            return diagnostics.fail(ExprError {
                loc: expr.loc,
                ..error
            });
        }
    };
    if sweep.values.contains(&value) {
        return Some(Some(value));
    }
    if overrides.set.iter().any(|(name, _)| *name == sweep.param) {
        return None;
    }
    diagnostics.fail(no_point(sweep, value, expr.loc))
}

/// What is wrong with a value that the sweep does not have.
pub(super) fn no_point(sweep: &Sweep, value: i64, loc: Loc) -> ExprError {
    let values: Vec<String> = sweep.values.iter().map(i64::to_string).collect();
    let help = format!("its values are {}", list(values.iter().map(String::as_str)));
    loc.error(format!("the sweep has no value {value}"))
        .with_help(help)
}

/// A value that is to be one of the sweep's.
pub(super) fn point_value(value: Value, loc: Loc) -> Result<i64, ExprError> {
    match value {
        Value::Int(value, _) => Ok(value),
        value => {
            let message = format!("a value of the sweep is a whole number, not {value}");
            Err(loc.error(message))
        }
    }
}

fn variant<'f>(
    file: &'f File,
    name: &Named,
    diagnostics: &mut Diagnostics,
) -> Option<&'f VariantDecl> {
    known_variant(file, &name.text, name.loc).map_or_else(|error| diagnostics.fail(error), Some)
}

/// The variant of a name.
pub(super) fn known_variant<'f>(
    file: &'f File,
    name: &str,
    loc: Loc,
) -> Result<&'f VariantDecl, ExprError> {
    let mut variants = file.variants.iter();
    let names = variants.clone().map(|known| known.name.text.as_str());
    let found = variants.find(|variant| variant.name.text == name);
    found.ok_or_else(|| unknown("variant", name, loc, names))
}
