//! The collector as a shared library, which `build.rs` made: it travels inside the one binary.

/// The library that is loaded into traced programs. Empty on systems that have no CUDA.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.so"));
