//! `cuptop whatif`.

use std::path::PathBuf;

use clap::Args;

/// `cuptop whatif`.
#[derive(Debug, Args)]
#[command(after_help = EDITS_HELP)]
pub struct WhatIf {
    /// Traces; several make one timeline. `-` is standard input.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// What to change; several joined by `+` are made together. May be given several times, for a prediction
    /// each; without it, every edit that finds something to change is tried.
    #[arg(long, value_name = "EDIT")]
    pub edit: Vec<String>,
    /// Which variant of a scenario's run.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Take rates and delays of the GPU from this profile, a file or a part of the name of a GPU that `cuptop calibrate`
    /// measured here; it is used when the trace is of that GPU. Without it, the one that was measured here of the
    /// trace's GPU.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long)]
    pub anonymous: bool,
}

const EDITS_HELP: &str = "\
Edits: pin, pin:55GB/s · async · no-sync · own-stream · merge-copies · graph · fuse, fuse:once · reuse ·
scale:NAME=0.5 · drop:NAME · prefetch:NAME, prefetch:NAME=4. `@RANGE` behind one limits it to a range's or function's name.";
