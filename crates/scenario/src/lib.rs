//! Scenario files: TOML text to a validated [`plan::Plan`].
//!
//! ```text
//! text ─► file (as written) ─► code, resolve (names) ─► lower (values, loops) ─► plan ─► hazards
//!           └ syntax: what may be written, for the parser and the editors' schema
//! ```
//!
//! One file of `steps` holds a kind of step on all of this way, from its keys to its operations in the plan. It uses
//! what the stages offer: a reader, names, an unrolled variant.
//!
//! Whatever is wrong becomes a [`Diagnostic`] with its place; nothing stops at the first.
//! `docs/SCENARIOS.md` describes the language.

pub mod bundled;
mod code;
mod comparisons;
pub mod diagnostics;
pub mod edit;
pub mod expect;
mod expectations;
pub mod expr;
pub mod figures;
mod file;
pub mod hazards;
mod lower;
mod names;
pub mod plan;
mod resolve;
pub mod signature;
pub mod site;
mod source;
mod steps;
mod syntax;
mod template;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unroll;
pub mod view;

pub use diagnostics::did_you_mean;
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use expectations::condition;
pub use expr::value;
pub use figures::{FIGURES, Operand};
pub use file::schema;
pub use source::Source;
pub use template::{fork, template};

/// Every key of the language.
pub mod keys {
    pub use super::steps::{Form, STEPS};
    pub use super::syntax::keys::*;
}

/// What the command line changes in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Overrides {
    /// `--set name=value`, in order; the value is an expression without names, such as "64 MiB".
    pub set: Vec<(String, String)>,
    /// `--variant`: only this one.
    pub variant: Option<String>,
    /// `--repeat`: how often each variant is measured.
    pub repeat: Option<u32>,
}

/// A scenario that can run.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What to run.
    pub plan: plan::Plan,
    /// What is suspicious about it; warnings and notes only.
    pub warnings: Diagnostics,
}

/// Makes a plan of a scenario.
///
/// Reads the kernel sources that the scenario names from [`Source::kernel_dir`], else from the
/// bundled ones; touches nothing else.
///
/// # Errors
/// All that is wrong with the file or the overrides, in the order of the file. Warnings and notes that the stages found
/// on the way are among them.
pub fn compile(source: &Source, overrides: &Overrides) -> Result<Compiled, Diagnostics> {
    let mut diagnostics = Diagnostics::new(&source.name, source.text.clone());
    let mut file = file::parse(&source.text, &mut diagnostics);
    code::load(&mut file.declared.kernels, source, &mut diagnostics);
    if !file.is_misnamed {
        resolve::resolve(&file, &mut diagnostics);
    }
    let plan = if diagnostics.has_errors() {
        None
    } else {
        lower::plan(&file, overrides, &mut diagnostics, &source.text)
    };
    if let Some(plan) = &plan {
        hazards::report(&file, plan, &mut diagnostics);
    }
    diagnostics.sort();
    match plan {
        Some(plan) if !diagnostics.has_errors() => Ok(Compiled {
            plan,
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}
