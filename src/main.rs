//! The `cuptop` program.

fn main() {}
