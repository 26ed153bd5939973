//! `cuptop check`, `list` and `schema`: for people who edit scenarios.

use super::args::{Check, CheckFormat};
use super::exit::{self, Ending};
use super::print;
use crate::bundled::{LIBRARY, lessons};
use activity::text::{count, plain_json, plural, printable};
use live::runner::{self, Rejected};
use scenario::plan::{BYTES_A_RUN, Plan};
use scenario::{Diagnostic, Diagnostics, Overrides, Severity, Source, compile};
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn check(args: &Check) -> Result<u8, Ending> {
    let overrides = Overrides {
        set: args.set.clone(),
        ..Overrides::default()
    };
    let (mut code, mut files) = (exit::FINE, Vec::new());
    for name in &args.scenarios {
        let (found, verdict) = match Source::find(name, LIBRARY) {
            Ok(source) => checked(&source, &overrides),
            Err(error) => {
                let error = error.to_string();
                let (message, help) = error.split_once("\n  help: ").unwrap_or((&error, ""));
                let help = Some(help.to_owned()).filter(|it| !it.is_empty());
                let mut found = Diagnostics::new(name, "".into());
                found.push(Diagnostic::error(0..0, message).maybe_help(help));
                (found, String::new())
            }
        };
        code = match found.count(Severity::Warning) {
            _ if found.has_errors() => exit::INPUT,
            warnings if args.deny && warnings > 0 => code.max(exit::EXPECTATION),
            _ => code,
        };
        match args.format {
            CheckFormat::Text => {
                print(&found.render(super::stdout_has_color()))?;
                print(&verdict)?;
            }
            CheckFormat::Short => _ = print(&found.short())?,
            CheckFormat::Json => {
                let verdict = verdict.trim_end();
                files.push(json!({ "file": name, "found": found.items, "verdict": verdict }));
            }
        }
    }
    if args.format == CheckFormat::Json {
        let whole = json!({ "schema": 1, "files": files });
        print(&plain_json(format!("{whole:#}\n")))?;
    }
    Ok(code)
}

/// What is found in a scenario, and one line on the whole.
fn checked(source: &Source, overrides: &Overrides) -> (Diagnostics, String) {
    let (mut found, plan) = match compile(source, overrides) {
        Ok(compiled) => (compiled.warnings, Some(compiled.plan)),
        Err(found) => (found, None),
    };
    let rest = plan.map_or_else(String::new, |plan| {
        cost(plan.runs) + &try_kernels(source, overrides, &plan, &mut found)
    });
    let verdict = match [Severity::Error, Severity::Warning].map(|it| found.count(it)) {
        [0, 0] => "fine".to_owned(),
        [0, warnings] => format!("it runs, with {}", plural(warnings as u64, "warning")),
        [errors, _] => plural(errors as u64, "error"),
    };
    let name = printable(&source.name);
    (found, format!("{name}: {verdict}{rest}\n"))
}

/// Compiles the kernels where this machine can, else says which ones nobody tried.
fn try_kernels(
    source: &Source,
    overrides: &Overrides,
    plan: &Plan,
    found: &mut Diagnostics,
) -> String {
    let kernels = plan.variants.iter().flat_map(|it| &it.kernels);
    let names: BTreeSet<&str> = kernels.map(|it| it.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    match runner::compile(source, overrides) {
        Ok(rejected) => {
            for Rejected { site, error, help } in rejected {
                let span = plan.sites[site as usize].span.clone();
                found.push(Diagnostic::error(span, error).help(help));
            }
            String::new()
        }
        Err(why) => {
            let names = Vec::from_iter(names).join(", ");
            printable(&format!("; not compiled here: {names}: {why}"))
        }
    }
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
