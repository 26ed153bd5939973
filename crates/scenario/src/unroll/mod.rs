//! Unrolling one variant: its plan so far, and what its steps have made and used.
//!
//! Steps (`scenario/steps`) ask an [`Unroll`] for the values and the objects that they name, and add
//! operations to it.

mod capture;
mod objects;
mod scope;

use super::diagnostics::{Diagnostic, Diagnostics, Severity, quoted};
use super::expr::Loc;
use super::expr::value::Value;
use super::plan::{MAX_OPS, Op, OpKind, VariantPlan};
use super::site::Sites;
use super::syntax::decl::Declarations;
use capture::Capturing;
pub(crate) use objects::{MAX_DEVICES, Objects};

/// Errors after which unrolling stops.
pub(crate) const MAX_ERRORS: usize = 20;
/// Characters of expressions that are worked out for one file: some seconds.
pub(crate) const MAX_TEXT: usize = 1 << 28;
/// Steps that failed, each time a loop came to them, after which unrolling stops.
const MAX_FAILURES: usize = 100;

/// What the variants of a file share.
pub(crate) struct Shared<'f> {
    pub(crate) declared: &'f Declarations,
    pub(crate) sites: Sites,
    pub(crate) diagnostics: &'f mut Diagnostics,
    /// Operations that the variants to come may still run, in all their passes.
    pub(crate) runs_left: usize,
    /// Characters of expressions that may still be worked out.
    pub(crate) text_left: usize,
    /// How often each variant is measured instead of what it declares.
    pub(crate) repeat: Option<u32>,
}

/// Makes the plan of one variant at one value of the sweep.
pub(crate) struct Unroll<'l, 'f> {
    pub(crate) shared: &'l mut Shared<'f>,
    pub(crate) plan: VariantPlan,
    pub(crate) objects: Objects,
    /// Parameters, then loop variables from the outermost in, each with whether it is at its first value.
    pub(crate) scope: Vec<(&'f str, Value, bool)>,
    /// How many of `scope` are not worth naming in a message.
    unnamed: usize,
    capturing: Option<Capturing>,
    /// Operations that this variant may have, and of these may still.
    most: usize,
    pub(crate) ops_left: usize,
    /// Steps that could not be carried out.
    failures: usize,
    pub(crate) has_stopped: bool,
}

impl<'l, 'f> Unroll<'l, 'f> {
    /// `plan` has the variant's name. The first `unnamed` values of the scope are not named in messages.
    pub(crate) fn new(
        shared: &'l mut Shared<'f>,
        plan: VariantPlan,
        scope: Vec<(&'f str, Value, bool)>,
        unnamed: usize,
    ) -> Self {
        Self {
            most: MAX_OPS,
            ops_left: MAX_OPS,
            shared,
            plan,
            objects: Objects::default(),
            scope,
            unnamed,
            capturing: None,
            failures: 0,
            has_stopped: false,
        }
    }

    /// How often the variant runs, which bounds how many operations it may have.
    pub(crate) fn runs(&mut self, warmup: u32, repeat: u32) {
        (self.plan.warmup, self.plan.repeat) = (warmup, repeat);
        self.most = (self.shared.runs_left / self.passes()).min(MAX_OPS);
        self.ops_left = self.most;
    }

    fn passes(&self) -> usize {
        (self.plan.warmup as usize + self.plan.repeat as usize).max(1)
    }

    /// The finished plan, unless a step of it failed. Later variants may run that many operations less.
    pub(crate) fn into_plan(self) -> Option<VariantPlan> {
        self.shared.runs_left -= (self.most - self.ops_left) * self.passes();
        (self.failures == 0).then_some(self.plan)
    }
}

impl Unroll<'_, '_> {
    /// Adds an operation.
    pub(crate) fn emit(&mut self, kind: OpKind, loc: Loc) -> Option<()> {
        self.emit_many(kind, loc, 1)
    }

    /// Adds an operation that stands for `count` of them.
    pub(crate) fn emit_many(&mut self, kind: OpKind, loc: Loc, count: u64) -> Option<()> {
        if !self.spend(count, loc) {
            return None;
        }
        let op = Op {
            kind,
            site: self.shared.sites.id(loc),
        };
        match &mut self.capturing {
            Some(capturing) => capturing.ops.push(op),
            None => self.plan.ops.push(op),
        }
        Some(())
    }

    /// Notes a step that could not be carried out. What went wrong in it is reported already.
    pub(crate) fn failed(&mut self, loc: Loc) {
        if !self.shared.diagnostics.has_errors() {
            let message = "this step cannot be carried out";
            self.report(Diagnostic::error(loc.range(), message));
        }
        self.failures += 1;
        self.has_stopped |= self.failures >= MAX_FAILURES;
    }

    /// Adds an error, once per place. Always `None`, for the caller to return.
    pub(crate) fn error<T>(&mut self, loc: Loc, message: impl Into<String>) -> Option<T> {
        self.report(Diagnostic::error(loc.range(), message));
        None
    }

    pub(crate) fn error_help<T>(
        &mut self,
        loc: Loc,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<T> {
        self.report(Diagnostic::error(loc.range(), message).help(help));
        None
    }

    /// Adds a diagnostic, with the values that the loops around it and the sweep had. The first value of a loop says nothing
    /// of what does not use it.
    pub(crate) fn report(&mut self, mut diagnostic: Diagnostic) {
        let text = self.shared.diagnostics.written(diagnostic.span.clone());
        let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
        let values: Vec<String> = self.scope[self.unnamed..]
            .iter()
            .filter(|(name, _, is_first)| !is_first || words.clone().any(|it| it == *name))
            .map(|(name, value, _)| format!("{name} = {value}"))
            .collect();
        if !values.is_empty() {
            diagnostic.message = format!("{} (at {})", diagnostic.message, values.join(", "));
        }
        self.shared.diagnostics.push(diagnostic);
        self.has_stopped |= self.shared.diagnostics.count(Severity::Error) >= MAX_ERRORS;
    }

    /// Takes an expression from those that may be worked out.
    fn work_out(&mut self, loc: Loc) -> bool {
        match self.shared.text_left.checked_sub(loc.range().len()) {
            Some(left) => self.shared.text_left = left,
            None if self.has_stopped => {}
            None => {
                let message = "by this place expressions were worked out for long enough";
                let help = "shorter ones, or fewer iterations";
                self.report(Diagnostic::error(loc.range(), message).help(help));
                self.has_stopped = true;
            }
        }
        !self.has_stopped
    }

    /// Takes operations from what the variant may have.
    pub(crate) fn spend(&mut self, ops: u64, loc: Loc) -> bool {
        let left = usize::try_from(ops).map(|ops| self.ops_left.checked_sub(ops));
        if let Ok(Some(left)) = left {
            self.ops_left = left;
        } else if !self.has_stopped {
            let what = match self.most < MAX_OPS {
                true => "all passes of all variants and values of the sweep run".to_owned(),
                false => format!("the variant {} has", quoted(&self.plan.name)),
            };
            let diagnostic = Diagnostic::error(loc.range(), format!("{what} more than {MAX_OPS} operations"))
                        .help("fewer iterations, larger chunks, fewer values of the sweep, or fewer passes (`repeat`)");
            self.report(diagnostic);
            self.has_stopped = true;
        }
        !self.has_stopped
    }
}
