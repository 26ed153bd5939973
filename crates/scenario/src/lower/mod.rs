//! From the file as written to the plan: expressions evaluated, loops unrolled, names turned into
//! ids, and everything checked that depends on values.
//!
//! [`plan`] goes over variants and values of the sweep; [`Unroll`] makes one [`VariantPlan`] of each.

mod finish;
mod settings;

use super::Overrides;
use super::comparisons;
use super::diagnostics::{Diagnostics, Severity};
use super::expr::Loc;
use super::expr::value::Value;
use super::file::{File, VariantDecl};
use super::plan::{MAX_OPS, Plan, VariantPlan};
use super::site::Sites;
use super::steps;
use super::unroll::{MAX_ERRORS, MAX_TEXT, Shared, Unroll};

/// Variants times values of the sweep.
const MAX_VARIANT_PLANS: usize = 1000;

/// Evaluates a file that has no errors so far. What is wrong is in `diagnostics`.
pub(super) fn plan(
    file: &File,
    overrides: &Overrides,
    diagnostics: &mut Diagnostics,
    text: &str,
) -> Option<Plan> {
    let mut shared = Shared {
        declared: &file.declared,
        sites: Sites::new(text),
        diagnostics,
        runs_left: MAX_OPS,
        text_left: MAX_TEXT,
        repeat: overrides.repeat,
    };
    let set = settings::overrides(file, overrides, shared.diagnostics)?;
    let sweep = settings::sweep(file, &set, shared.diagnostics);
    let chosen = settings::chosen(file, overrides, shared.diagnostics)?;
    if shared.diagnostics.has_errors() {
        return None;
    }
    let points: Vec<Option<Value>> = match &sweep {
        Some((_, values)) => values.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let mut variants = variant_plans(file, &chosen, &points, &set, &mut shared)?;
    let sweep = sweep.map(|(sweep, _)| sweep);
    comparisons::baselines(file, &mut variants, shared.diagnostics);
    let pairs = comparisons::pairs(
        file,
        &chosen,
        sweep.as_ref(),
        overrides,
        &mut shared.sites,
        shared.diagnostics,
    );
    let expectations = super::expectations::read(
        file,
        &chosen,
        sweep.as_ref(),
        &variants,
        overrides,
        &mut shared.sites,
        shared.diagnostics,
    );
    (!shared.diagnostics.has_errors()).then(|| Plan {
        name: file.name.clone(),
        about: file.about.clone(),
        look_for: file.look_for.clone(),
        sweep,
        variants,
        runs: MAX_OPS - shared.runs_left,
        sites: shared.sites.list,
        expectations,
        pairs,
    })
}

/// The plan of each variant at each value of the sweep; `None` when there are too many of them, or of errors.
fn variant_plans<'f>(
    file: &'f File,
    chosen: &[&'f VariantDecl],
    points: &[Option<Value>],
    set: &[(String, Value)],
    shared: &mut Shared<'f>,
) -> Option<Vec<VariantPlan>> {
    if chosen.len() * points.len() > MAX_VARIANT_PLANS {
        let what = format!(
            "{} variants at {} values of the sweep",
            chosen.len(),
            points.len()
        );
        let message = format!("{what} are too many; {MAX_VARIANT_PLANS} in all can be run");
        let sweep = file.declared.sweep.as_ref();
        let loc = sweep.map_or(Loc::default(), |sweep| sweep.loc);
        return shared.diagnostics.fail(loc.error(message));
    }
    let mut plans = Vec::new();
    for variant in chosen {
        for point in points {
            plans.extend(variant_plan(file, variant, *point, set, shared));
            if shared.diagnostics.count(Severity::Error) >= MAX_ERRORS {
                return None;
            }
        }
    }
    Some(plans)
}

/// Makes the plan of one variant at one value of the sweep.
fn variant_plan<'f>(
    file: &'f File,
    variant: &'f VariantDecl,
    point: Option<Value>,
    set: &[(String, Value)],
    shared: &mut Shared<'f>,
) -> Option<VariantPlan> {
    let params = settings::params(file, &variant.params, point, set, shared.diagnostics)?;
    let sweep = file.declared.sweep.as_ref();
    let swept = sweep.map(|sweep| sweep.param.text.as_str());
    let params = params.into_iter().map(|(name, value)| (name, value, false));
    let (mut scope, named): (Vec<_>, Vec<_>) = params.partition(|(name, ..)| Some(*name) != swept);
    let unnamed = scope.len();
    scope.extend(named);
    let plan = VariantPlan {
        name: variant.name.text.clone(),
        about: variant.about.clone(),
        view: variant.view.or(file.view),
        point: point.map(settings::point_value),
        ..VariantPlan::default()
    };
    let mut unroll = Unroll::new(shared, plan, scope, unnamed);
    unroll.passes_of(variant);
    // Also of those that no step comes to.
    for buffer in &file.declared.buffers {
        unroll.count(buffer);
    }
    steps::lower(&variant.steps, &mut unroll);
    unroll.finish(variant.name.loc);
    unroll.into_plan()
}

impl Unroll<'_, '_> {
    /// How often the variant runs.
    fn passes_of(&mut self, variant: &VariantDecl) {
        self.plan.cold = variant.is_cold;
        let (warmup, repeat) = if variant.is_cold { (0, 1) } else { (1, 3) };
        let given = self.amount(variant.warmup.as_ref(), 1000, "a number of passes");
        let warmup = given.unwrap_or_default().map_or(warmup, |it| it as u32);
        // Of fewer than six, nothing can be said of the median.
        let (least, what) = match variant.until {
            Some(_) => (6, "`at_most`"),
            None => (1, "a number of passes"),
        };
        let declared = match &variant.repeat {
            Some(expr) => self.integer(expr, least..=1000, what).unwrap_or(least) as u32,
            None => repeat,
        };
        self.plan.until = variant.until.filter(|_| self.shared.repeat.is_none());
        self.runs(warmup, self.shared.repeat.unwrap_or(declared));
    }
}
