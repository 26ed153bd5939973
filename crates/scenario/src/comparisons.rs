//! Which variant is compared with which: baselines, and the pairs whose cure an edit of the mistake predicts.

use super::Overrides;
use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, list, quoted};
use super::expr::value::Value;
use super::file::decl::Named;
use super::file::{File, PairDecl, VariantDecl};
use super::plan::{Pair, Sweep, VariantPlan};
use super::site::Sites;

/// Tells each plan what its speed-up is against.
pub(super) fn baselines(file: &File, plans: &mut [VariantPlan], diagnostics: &mut Diagnostics) {
    let declared = file.variants.iter().map(|variant| &variant.baseline);
    for baseline in declared.chain([&file.baseline]).flatten() {
        if let Some(found) = variant(file, baseline, diagnostics)
            && found.shows_race
            && !is_own(found, baseline)
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
    let mut error = |message: String, help: Option<String>| {
        diagnostics.push(Diagnostic::error(expr.loc.range(), message).maybe_help(help));
        None
    };
    let Some(sweep) = sweep else {
        return error("the scenario has no [sweep]".to_owned(), None);
    };
    let value = match expr.eval(&|_| None) {
        Ok(Value::Int(value, _)) => value,
        Ok(value) => {
            let message = format!("a value of the sweep is a whole number, not {value}");
            return error(message, None);
        }
        Err(wrong) => return error(wrong.message, wrong.help),
    };
    if sweep.values.contains(&value) {
        return Some(Some(value));
    }
    if overrides.set.iter().any(|(name, _)| *name == sweep.param) {
        return None;
    }
    let values: Vec<String> = sweep.values.iter().map(i64::to_string).collect();
    let help = format!("its values are {}", list(values.iter().map(String::as_str)));
    error(format!("the sweep has no value {value}"), Some(help))
}

fn is_own(variant: &VariantDecl, baseline: &Named) -> bool {
    variant
        .baseline
        .as_ref()
        .is_some_and(|own| own.loc == baseline.loc)
}

fn variant<'f>(
    file: &'f File,
    name: &Named,
    diagnostics: &mut Diagnostics,
) -> Option<&'f VariantDecl> {
    let found = file
        .variants
        .iter()
        .find(|variant| variant.name.text == name.text);
    if found.is_none() {
        let names = || file.variants.iter().map(|known| known.name.text.as_str());
        let help = did_you_mean(&name.text, names())
            .unwrap_or_else(|| format!("the variants are {}", list(names())));
        let message = format!("there is no variant {}", quoted(&name.text));
        diagnostics.push(Diagnostic::error(name.loc.range(), message).help(help));
    }
    found
}
