//! The `cuptop` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuptop::main()
}
