//! `cuptop check`, `list` and `schema`: for people who edit scenarios.

use super::args::Check;
use super::exit::{self, Ending};
use super::print;
use crate::bundled::{LIBRARY, lessons};
use activity::text::{count, plural, printable, printable_lines};
use scenario::plan::BYTES_A_RUN;
use scenario::{Overrides, Severity, Source, compile};

pub(super) fn check(args: &Check) -> Result<u8, Ending> {
    let overrides = Overrides {
        set: args.set.clone(),
        ..Overrides::default()
    };
    let color = super::stdout_has_color();
    let mut code = exit::FINE;
    for name in &args.scenarios {
        let source = match Source::find(name, LIBRARY) {
            Ok(source) => source,
            Err(error) => {
                print(&format!("error: {}\n", printable_lines(&error.to_string())))?;
                code = exit::INPUT;
                continue;
            }
        };
        match compile(&source, &overrides) {
            Ok(compiled) => {
                print(&compiled.warnings.render(color))?;
                let warnings = compiled.warnings.count(Severity::Warning);
                let verdict = match warnings {
                    0 => "fine".to_owned(),
                    warnings => format!("it runs, with {}", plural(warnings as u64, "warning")),
                };
                if args.deny && warnings > 0 {
                    code = code.max(exit::EXPECTATION);
                }
                let name = printable(&source.name);
                print(&format!("{name}: {verdict}{}\n", cost(compiled.plan.runs)))?;
            }
            Err(diagnostics) => {
                print(&diagnostics.render(color))?;
                let errors = diagnostics.count(Severity::Error);
                print(&format!("{}: {errors} error(s)\n", printable(&source.name)))?;
                code = exit::INPUT;
            }
        }
    }
    Ok(code)
}

/// What a run takes, where that is much.
fn cost(runs: usize) -> String {
    let bytes = runs as u64 * BYTES_A_RUN;
    match runs {
        ..200_000 => String::new(),
        _ => format!(
            "; a run has {} operations and takes some {} MB of memory",
            count(runs as u64),
            bytes / 1_000_000
        ),
    }
}

/// Lists the bundled scenarios and kernels.
pub(super) fn list() -> Result<u8, Ending> {
    let mut text = format!("Scenarios (cuptop run NAME):\n{}", lessons());
    text.push_str("\nKernels (file = \"NAME\" in a scenario):\n");
    for (name, source) in LIBRARY.kernels {
        let about = first_sentence(source);
        text.push_str(&format!("  {name:18}  {about}\n"));
    }
    print(&text)
}

/// The first sentence of a kernel file's comment: it tells what the kernel shows.
fn first_sentence(source: &str) -> String {
    let lines = source
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .map(str::trim);
    let text = lines
        .take_while(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let text = text.strip_prefix("Shows: ").unwrap_or(&text);
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':']).to_owned()
}

/// Prints the JSON schema of scenario files.
pub(super) fn schema() -> Result<u8, Ending> {
    print(&scenario::schema())
}
