//! `cuptop job [PID]`: how a job stands, at a terminal on the screen.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::JobArgs;
use super::exit::{self, Ending};
use crate::export::{Readers, to_file};
use crate::report::standing::Standing;
use crate::tui::{self, NextRun};
use activity::text::plain_json;
use live::job::ras::Asking;
use live::job::{self, FIRST, Looked};

/// For how long is looked further where the first looks prove nothing.
const FURTHER: Duration = Duration::from_secs(5);

/// Looks at a job and says how it stands. Fails (1) when it stands still.
pub(super) fn job(args: &JobArgs) -> Result<u8, Ending> {
    let prints = args.ras || args.no_ras || args.headless || args.json;
    let prints = prints || args.duration.is_some() || args.save.is_some();
    if !prints && io::stdout().is_terminal() && tui::has_keyboard() {
        return super::run::pick(Some(NextRun::Look(args.pid)));
    }
    let wrong = |it: live::attach::Refused| Ending::input(it.message).help(it.help);
    let mut jobs = job::find(args.pid).map_err(wrong)?;
    let begun = Instant::now();
    let mut found = observe_all(&mut jobs);
    // The stacks come first and wait for nothing.
    say(args, &joined(&found, Standing::text))?;
    let first = joined(&found, Standing::headline);
    let most = args.duration.unwrap_or(FURTHER);
    while begun.elapsed() < most && (args.duration.is_some() || found.iter().any(Standing::is_open))
    {
        found = observe_all(&mut jobs);
    }
    let last = joined(&found, Standing::headline);
    if last != first {
        say(
            args,
            &format!("\nafter {} s: {last}\n", begun.elapsed().as_secs()),
        )?;
    }
    let asking = match (args.ras, args.no_ras) {
        (true, _) => Asking::Always,
        (_, true) => Asking::Never,
        _ => Asking::Safely,
    };
    for (standing, looked) in found.iter_mut().zip(&jobs) {
        standing.ask(|job| looked.ask(job, asking));
        let lines: String = standing.more().iter().map(|it| format!("{it}\n")).collect();
        say(args, &format!("\n{lines}"))?;
    }
    let whole = json!({
        "cuptop": env!("CARGO_PKG_VERSION"),
        "jobs": found.iter().map(Standing::json).collect::<Vec<_>>(),
    });
    let whole = plain_json(format!("{whole:#}\n"));
    if let Some(path) = &args.save {
        to_file(path, Readers::AsUmask, |out| {
            out.write_all(whole.as_bytes())
        })
        .map_err(Ending::machine)?;
    }
    if args.json {
        super::print(&whole)?;
    }
    Ok(match found.iter().any(Standing::is_still) {
        true => exit::EXPECTATION,
        false => exit::FINE,
    })
}

/// Prints for people.
fn say(args: &JobArgs, text: &str) -> Result<(), Ending> {
    match args.json || text.trim().is_empty() {
        true => Ok(()),
        false => super::print(text).map(drop),
    }
}

fn joined(found: &[Standing], text: fn(&Standing) -> String) -> String {
    found.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Looks at all of them once more.
fn observe_all(jobs: &mut [Looked]) -> Vec<Standing> {
    let seen = job::observe_all(jobs, FIRST).into_iter();
    seen.map(Standing::of).collect()
}
