//! From the file as written to the plan: expressions evaluated, loops unrolled, names turned into
//! ids, and everything checked that depends on values.
//!
//! [`plan`] goes over variants and values of the sweep; [`Unroll`] makes one [`VariantPlan`] of each.

mod capture;
mod count;
mod launch;
mod objects;
mod scope;
mod settings;
mod steps;
mod transfer;

use super::Overrides;
use super::comparisons;
use super::diagnostics::{Diagnostic, Diagnostics, Severity, quoted};
use super::expr::Loc;
use super::expr::value::Value;
use super::file::{File, VariantDecl};
use super::plan::{MAX_OPS, Plan, VariantPlan};
use super::site::Sites;
use capture::Capturing;
use objects::Objects;

/// Operations of all variants at all values of the sweep together.
const MAX_PLAN_OPS: usize = 2 * MAX_OPS;
/// Variants times values of the sweep.
const MAX_VARIANT_PLANS: usize = 1000;
/// Errors after which unrolling stops.
const MAX_ERRORS: usize = 20;
/// Steps that failed, each time a loop came to them, after which unrolling stops.
const MAX_FAILURES: usize = 100;

/// Evaluates a file that has no errors so far. What is wrong is in `diagnostics`.
pub(super) fn plan(
    file: &File,
    overrides: &Overrides,
    diagnostics: &mut Diagnostics,
    text: &str,
) -> Option<Plan> {
    let mut lowering = Lowering {
        file,
        sites: Sites::new(text),
        diagnostics,
        ops_left: MAX_PLAN_OPS,
    };
    let set = settings::overrides(file, overrides, lowering.diagnostics)?;
    let sweep = settings::sweep(file, &set, lowering.diagnostics);
    let chosen = settings::chosen(file, overrides, lowering.diagnostics)?;
    if lowering.diagnostics.has_errors() {
        return None;
    }
    let points: Vec<Option<Value>> = match &sweep {
        Some((_, values)) => values.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    if chosen.len() * points.len() > MAX_VARIANT_PLANS {
        let message = format!(
            "{} variants at {} values of the sweep are too many; {MAX_VARIANT_PLANS} in all can be run",
            chosen.len(),
            points.len()
        );
        let loc = file
            .sweep
            .as_ref()
            .map_or(Loc::default(), |sweep| sweep.loc);
        lowering
            .diagnostics
            .push(Diagnostic::error(loc.range(), message));
        return None;
    }
    let mut variants = Vec::new();
    for variant in &chosen {
        for point in &points {
            variants.extend(lowering.variant(variant, *point, &set));
            if lowering.diagnostics.count(Severity::Error) >= MAX_ERRORS {
                return None;
            }
        }
    }
    let sweep = sweep.map(|(sweep, _)| sweep);
    comparisons::baselines(file, &mut variants, lowering.diagnostics);
    let pairs = comparisons::pairs(
        file,
        &chosen,
        sweep.as_ref(),
        overrides,
        &mut lowering.sites,
        lowering.diagnostics,
    );
    let expectations = super::expectations::read(
        file,
        &chosen,
        sweep.as_ref(),
        &variants,
        overrides,
        &mut lowering.sites,
        lowering.diagnostics,
    );
    (!lowering.diagnostics.has_errors()).then(|| Plan {
        name: file.name.clone(),
        about: file.about.clone(),
        look_for: file.look_for.clone(),
        sweep,
        variants,
        sites: lowering.sites.into_list(),
        expectations,
        pairs,
    })
}

/// What the variants of a file share.
struct Lowering<'f> {
    file: &'f File,
    sites: Sites,
    diagnostics: &'f mut Diagnostics,
    ops_left: usize,
}

/// Makes the plan of one variant at one value of the sweep.
struct Unroll<'l, 'f> {
    lowering: &'l mut Lowering<'f>,
    variant: &'f VariantDecl,
    plan: VariantPlan,
    objects: Objects<'f>,
    /// Parameters, then loop variables from the outermost in.
    scope: Vec<(&'f str, Value)>,
    /// How many of `scope` are not worth naming in a message.
    unnamed: usize,
    capturing: Option<Capturing>,
    /// Operations that this variant may still have.
    ops_left: usize,
    /// Steps that could not be carried out.
    failures: usize,
    has_stopped: bool,
}

impl<'f> Lowering<'f> {
    fn variant(
        &mut self,
        variant: &'f VariantDecl,
        point: Option<Value>,
        set: &[(String, Value)],
    ) -> Option<VariantPlan> {
        let params = settings::params(self.file, variant, point, set, self.diagnostics)?;
        let swept = self
            .file
            .sweep
            .as_ref()
            .map(|sweep| sweep.param.text.as_str());
        let (mut scope, named): (Vec<_>, Vec<_>) = params
            .into_iter()
            .partition(|(name, _)| Some(*name) != swept);
        let unnamed = scope.len();
        scope.extend(named);
        let ops_left = self.ops_left.min(MAX_OPS);
        let mut unroll = Unroll {
            variant,
            plan: VariantPlan {
                name: variant.name.text.clone(),
                about: variant.about.clone(),
                view: variant.view.or(self.file.view),
                point: point.map(settings::point_value),
                ..VariantPlan::default()
            },
            objects: Objects::default(),
            scope,
            unnamed,
            capturing: None,
            ops_left,
            failures: 0,
            has_stopped: false,
            lowering: self,
        };
        unroll.passes();
        unroll.has_stopped = !unroll.fits(&variant.steps);
        unroll.steps(&variant.steps);
        unroll.finish();
        let used = ops_left - unroll.ops_left;
        let plan = unroll.plan;
        self.ops_left -= used;
        Some(plan)
    }
}

impl Unroll<'_, '_> {
    /// How often the variant runs.
    fn passes(&mut self) {
        let variant = self.variant;
        self.plan.cold = variant.is_cold;
        let (warmup, repeat) = if variant.is_cold { (0, 1) } else { (1, 3) };
        self.plan.warmup = match &variant.warmup {
            Some(expr) => self
                .integer(expr, 0..=1000, "a number of passes")
                .unwrap_or(0) as u32,
            None => warmup,
        };
        self.plan.repeat = match &variant.repeat {
            Some(expr) => self
                .integer(expr, 1..=1000, "a number of passes")
                .unwrap_or(1) as u32,
            None => repeat,
        };
    }

    /// Adds an error, once per place.
    fn error(&mut self, loc: Loc, message: impl Into<String>) {
        self.report(Diagnostic::error(loc.range(), message));
    }

    /// Adds a diagnostic, with the values that the loops around it and the sweep had.
    fn report(&mut self, mut diagnostic: Diagnostic) {
        let values: Vec<String> = self.scope[self.unnamed..]
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        if !values.is_empty() {
            diagnostic.message = format!("{} (at {})", diagnostic.message, values.join(", "));
        }
        self.lowering.diagnostics.push(diagnostic);
        self.has_stopped |= self.lowering.diagnostics.count(Severity::Error) >= MAX_ERRORS;
    }

    /// Takes operations from what the variant may have.
    fn spend(&mut self, ops: u64, loc: Loc) -> bool {
        match usize::try_from(ops)
            .ok()
            .and_then(|ops| self.ops_left.checked_sub(ops))
        {
            Some(left) => self.ops_left = left,
            None if self.has_stopped => {}
            None => {
                let what = if self.lowering.ops_left < MAX_OPS {
                    format!(
                        "the variants and values of the sweep together have more than {MAX_PLAN_OPS} operations"
                    )
                } else {
                    format!(
                        "the variant {} has more than {MAX_OPS} operations",
                        quoted(&self.variant.name.text)
                    )
                };
                let diagnostic = Diagnostic::error(loc.range(), what)
                    .help("fewer iterations, larger chunks, or fewer values of the sweep");
                self.report(diagnostic);
                self.has_stopped = true;
            }
        }
        !self.has_stopped
    }
}
