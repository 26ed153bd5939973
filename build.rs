//! Builds the library that `cuptop trace` has the CUDA driver load into programs, so that it can travel inside
//! the one binary that is installed (see `src/source/attach/library.rs`).
//!
//! It is the crate `collector` as a shared library, built by a nested cargo: the dependencies are a part of this
//! package's own, so they are on the machine already. Flags and wrappers of the outer build (sanitizers, coverage,
//! clippy) are kept out of it: it is loaded into other people's programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    for path in [
        "build.rs",
        "Cargo.toml",
        "Cargo.lock",
        "crates/activity/Cargo.toml",
        "crates/activity/src",
        "crates/collector/Cargo.toml",
        "crates/collector/src",
        "crates/cupti-sys/Cargo.toml",
        "crates/cupti-sys/src",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let library = out.join("inject.so");
    if variable("CARGO_CFG_TARGET_OS") != "linux" || env::var_os("DOCS_RS").is_some() {
        // CUDA programs are traced on Linux. Elsewhere the command says so.
        fs::write(&library, b"").expect("OUT_DIR is writable");
        return;
    }
    let target = out.join("inject");
    let built = build(&root, &target, true) || build(&root, &target, false);
    assert!(
        built,
        "the library for traced programs could not be built, see above"
    );
    let mut made = target;
    if is_cross() {
        made.push(variable("TARGET"));
    }
    made.push("inject/libcollector.so");
    fs::copy(&made, &library).unwrap_or_else(|error| panic!("{}: {error}", made.display()));
}

fn build(root: &Path, target: &Path, offline: bool) -> bool {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(root)
        .args([
            "rustc",
            "--quiet",
            "--package",
            "collector",
            "--lib",
            "--profile",
            "inject",
        ])
        .args([
            "--features",
            "inject",
            "--crate-type",
            "cdylib",
            "--locked",
            "--target-dir",
        ])
        .arg(target);
    if offline {
        cargo.arg("--offline");
    }
    if is_cross() {
        cargo.args(["--target", &variable("TARGET")]);
    }
    // Never unloaded: its threads and the handlers that it registers live as long as the process.
    cargo.args(["--", "-C", "link-arg=-Wl,-z,nodelete"]);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PROFILE_")
            || name.starts_with("CARGO_FEATURE_")
            || name.starts_with("CARGO_CFG_")
            || name.starts_with("CARGO_BUILD_")
            || (name.starts_with("CARGO_TARGET_") && name.ends_with("RUSTFLAGS"))
        {
            cargo.env_remove(&*name);
        }
    }
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_TARGET_DIR",
        "CARGO_INCREMENTAL",
        "CLIPPY_ARGS",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
    ] {
        cargo.env_remove(name);
    }
    match cargo.status() {
        Ok(status) => status.success(),
        Err(error) => panic!("cargo cannot be started: {error}"),
    }
}

fn is_cross() -> bool {
    variable("TARGET") != variable("HOST")
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
