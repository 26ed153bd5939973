//! Tracing a program from the command to the timeline, with a CUDA driver and a libcupti that are made here (`tests/fake`): the
//! injected library is the real one, the records are known to the last one.

#![cfg(target_os = "linux")]

mod counters;
mod doctor;
mod doors;
mod ends;
mod faults;
mod hardware;
mod harness;
mod limits;
mod lines;
mod modes;
mod nodes;
mod python;
mod records;
mod running;
mod stalls;
mod standing;
