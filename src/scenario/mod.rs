//! Scenario files: TOML text to a validated [`plan::Plan`].
//!
//! ```text
//! text ─► reader/parse ─► file (as written) ─► resolve (names) ─► lower (values, loops) ─► plan
//!              keys: the table of all keys ─► schema                        └─► hazards
//! ```
//!
//! Whatever is wrong becomes a [`Diagnostic`] with its place; nothing stops at the first.
//! `docs/SCENARIOS.md` describes the language.

pub mod bundled;
mod code;
pub mod diagnostics;
pub mod expect;
mod expectations;
pub mod expr;
pub mod expr_parse;
mod file;
pub mod hazards;
pub mod keys;
mod lower;
mod parse;
mod parse_steps;
pub mod plan;
mod reader;
mod resolve;
mod schema;
pub mod signature;
mod source;
mod template;
pub mod value;

pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use expectations::{FIGURES, Operand};
pub use schema::schema;
pub use source::{FindError, Source};
pub use template::template;

/// What the command line changes of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set name=value`, in order; the value is an expression without names, such as "64 MiB".
    pub set: Vec<(String, String)>,
    /// `--variant`: only this one.
    pub variant: Option<String>,
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
/// All that is wrong with the file or the overrides, in the order of the file; warnings and notes
/// that were found on the way are among them.
pub fn compile(source: &Source, overrides: &Overrides) -> Result<Compiled, Diagnostics> {
    let mut reader = reader::Reader {
        text: &source.text,
        diagnostics: Diagnostics::new(&source.name, source.text.clone()),
    };
    let mut file = parse::parse(&mut reader);
    let mut diagnostics = reader.diagnostics;
    code::load(&mut file, source.kernel_dir.as_deref(), &mut diagnostics);
    resolve::resolve(&file, &mut diagnostics);
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
