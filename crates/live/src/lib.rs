//! Where records of real GPUs come from: the scenario runner, traced programs, and what is seen of them from outside.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation is for those who work on the program"
)]
#![allow(
    missing_docs,
    reason = "a name that says it all needs no sentence that says it again"
)]

pub mod attach;
pub mod counters;
mod hardware;
mod looking;
pub mod machine;
mod private;
pub mod python;
mod rights;
pub mod runner;
