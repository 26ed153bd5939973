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
            let name = quoted(&found.name.text);
            let message = format!("{name} shows a race: its time is that of a wrong result");
            let warning = Diagnostic::warning(baseline.loc.range(), message);
            diagnostics.push(warning.help("take a variant that gives the right result"));
        }
    }
    // The first way to do the work that gives the right result.
    let first = file.variants.iter().find(|variant| !variant.shows_race);
    let planned: Vec<String> = plans.iter().map(|plan| plan.name.clone()).collect();
    for plan in plans {
        let own = file.variants.iter().find(|own| own.name.text == plan.name);
        let declared = own.and_then(|own| own.baseline.as_ref());
        // A wrong result is no faster than anything, unless the file asks for that comparison.
        let is_compared = declared.is_some() || own.is_some_and(|own| !own.shows_race);
        let name = declared.or(file.baseline.as_ref());
        let name = name
            .or(first.map(|first| &first.name))
            .map(|name| &name.text);
        let name = name.filter(|name| is_compared && **name != plan.name && planned.contains(name));
        plan.baseline = name.cloned();
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
    let value = expr.eval(&|_| None);
    let known = value.and_then(|it| {
        let value = point_value(it, expr.loc)?;
        Ok(has_point(sweep, value, overrides, expr.loc)?.then_some(Some(value)))
    });
    // Without the file, what is wrong in it is at the expression as a whole.
    let loc = expr.loc;
    known.unwrap_or_else(|error| diagnostics.fail(ExprError { loc, ..error }))
}

/// Whether the sweep has a value: not where the command line leaves it out. Otherwise it must.
pub(super) fn has_point(
    sweep: &Sweep,
    value: i64,
    overrides: &Overrides,
    loc: Loc,
) -> Result<bool, ExprError> {
    let has_value = sweep.values.contains(&value);
    if has_value || overrides.set.iter().any(|(name, _)| *name == sweep.param) {
        return Ok(has_value);
    }
    let values: Vec<String> = sweep.values.iter().map(i64::to_string).collect();
    let help = format!("its values are {}", list(values.iter().map(String::as_str)));
    let error = loc.error(format!("the sweep has no value {value}"));
    Err(error.with_help(help))
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
