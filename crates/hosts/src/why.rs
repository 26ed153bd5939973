//! Why there is no link, in words that help.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::frame::{Greeting, PROTOCOL};

/// There is no ssh here.
pub(super) fn no_ssh(program: &str, error: &io::Error) -> String {
    let set = match std::env::var_os(super::SSH).is_some() {
        true => format!(" ({} names it)", super::SSH),
        false => format!(" ({} names another program)", super::SSH),
    };
    format!("{program} cannot be started: {error}{set}")
}

/// How to get cuptop there.
fn copy(host: &str) -> String {
    let this = std::env::current_exe().map_or("cuptop".to_owned(), |it| it.display().to_string());
    format!(
        "install cuptop on {host}, or copy this one: ssh {host} mkdir -p .local/bin && scp {this} {host}:.local/bin/cuptop"
    )
}

/// The far side sent no greeting. `is_said` when all of ssh's messages have been shown.
pub(super) fn no_far_side(
    host: &str,
    program: &str,
    status: Option<ExitStatus>,
    lines: &[String],
    is_said: bool,
) -> String {
    let code = status.and_then(|status| status.code());
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    if code == Some(127) || (said("cuptop") && said("not found")) {
        return format!(
            "there is no cuptop on {host} (looked for on its PATH, in ~/.local/bin and ~/.cargo/bin)\n{}",
            copy(host)
        );
    }
    if said("serve-recordings") {
        return format!(
            "the cuptop on {host} is of another version, that serves no recordings\n{}",
            copy(host)
        );
    }
    let why = match (is_said, lines.last()) {
        (false, Some(line)) => line.clone(),
        (_, None) => format!("{} without a word", how(status)),
        (true, Some(_)) => how(status),
    };
    format!("no link to {host}: {program}: {why} (and no file here is called so)")
}

/// Nothing came that could be of cuptop.
pub(super) fn silent(host: &str, patience: Duration) -> String {
    let seconds = patience.as_secs_f32();
    format!(
        "no word of cuptop from {host} in {seconds} s\ntry what hangs there: ssh {host} cuptop --version"
    )
}

pub(super) fn how(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) if status.success() => "it ended".to_owned(),
        Some(status) => format!("it ended with {status}"),
        None => "it was ended".to_owned(),
    }
}

/// The far side speaks another protocol.
pub(super) fn other_version(host: &str, greeting: &Greeting) -> String {
    format!(
        "cuptop {} on {host} speaks another protocol ({}) than this one, {} ({PROTOCOL})\n{}",
        activity::text::printable(&greeting.version),
        greeting.protocol,
        env!("CARGO_PKG_VERSION"),
        copy(host)
    )
}
