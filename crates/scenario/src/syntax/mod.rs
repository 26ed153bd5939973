//! What may be written in a scenario file, and what it stands for until it is evaluated.
//!
//! [`keys`] is the table of what may be written, steps apart, [`decl`] what it becomes, and [`reader`] takes values
//! out of the TOML.

pub(super) mod args;
pub(super) mod decl;
pub(super) mod keys;
pub(super) mod reader;
