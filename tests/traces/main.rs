//! Timelines from files: how they are read, followed, counted, exported.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/grown.rs"]
mod grown;

mod clocks;
mod corpus;
mod export_chrome;
mod export_csv;
mod export_perfetto;
mod export_sqlite;
mod figures_agree;
mod follow;
mod gaps;
mod ranks;
mod readers;
mod readers_hostile;
mod readers_pipes;
mod replay;
mod report;
mod steps;
