//! The program as its user meets it, and the rules of its own sources.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/grown.rs"]
mod grown;

mod cli;
mod follow_ssh;
mod hostile_text;
mod phrases;
mod promises;
mod pty;
mod questions;
mod rooms;
mod screens;
mod words;
