//! Builds the library that `cuptop trace` has the CUDA driver load into programs (see
//! `crates/live/src/attach/library.rs`). It travels inside the one binary that is installed.
//!
//! It is the crate `collector` as a shared library, built by a nested cargo. Its dependencies are a part of this
//! package's own, so they are on the machine already. Flags and wrappers of the outer build (sanitizers, coverage,
//! clippy) are kept out of it: it is loaded into other people's programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The crates that the library is made of, in `crates`; their packages are called `cuptop-` and this.
const CRATES: [&str; 4] = ["activity", "collector", "cupti-sys", "recording"];

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=build.rs");
    let in_workspace = root.join("crates/collector/Cargo.toml").is_file();
    if in_workspace {
        let files = ["Cargo.toml".to_owned(), "Cargo.lock".to_owned()];
        let of = |name| {
            [
                format!("crates/{name}/Cargo.toml"),
                format!("crates/{name}/src"),
            ]
        };
        for path in files.into_iter().chain(CRATES.into_iter().flat_map(of)) {
            println!("cargo::rerun-if-changed={}", root.join(path).display());
        }
    } else {
        // `cargo package` builds into the checkout's own folder. What is not there has the checkout build its own again.
        println!("cargo::rerun-if-changed=crates-beside-a-package");
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let library = out.join("inject.so");
    if variable("CARGO_CFG_TARGET_OS") != "linux" || env::var_os("DOCS_RS").is_some() {
        // CUDA programs are traced on Linux. Elsewhere the command says so.
        fs::write(&library, b"").expect("OUT_DIR is writable");
        return;
    }
    let sources = if in_workspace {
        root
    } else {
        assemble(&root, &out.join("workspace"))
    };
    let target = out.join("inject");
    let mut built = build(&sources, &target, in_workspace, true);
    if !built {
        built = build(&sources, &target, in_workspace, false);
    }
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

/// Makes a workspace of the packages that lie beside this one. Cargo unpacks them like that from a registry, as a
/// package holds no other package. Returns its folder.
fn assemble(root: &Path, workspace: &Path) -> PathBuf {
    let done = |what: io::Result<()>, path: &Path| {
        what.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    let beside = root.parent().unwrap_or(root);
    for name in CRATES {
        let from = beside.join(format!("cuptop-{name}-{}", variable("CARGO_PKG_VERSION")));
        let to = workspace.join(name);
        let manifest = from.join("Cargo.toml");
        let text = fs::read_to_string(&manifest)
            .unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
        // What only tests need is not on the machine.
        let is_wanted =
            |head: &str| !head.starts_with("[dev-dependencies") && !head.starts_with("[[test]]");
        done(copy(&from.join("src"), &to.join("src")), &from);
        done(
            fs::write(to.join("Cargo.toml"), sections(&text, is_wanted)),
            &to,
        );
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let profile = sections(&manifest, |head| head == "[profile.inject]");
    let text = format!(
        "[workspace]\nmembers = [\"collector\"]\nresolver = \"3\"\n[patch.crates-io]\n\
         cuptop-activity = {{ path = \"activity\" }}\ncuptop-cupti-sys = {{ path = \"cupti-sys\" }}\n\
         cuptop-recording = {{ path = \"recording\" }}\n{profile}"
    );
    done(fs::write(workspace.join("Cargo.toml"), text), workspace);
    // The same versions as this package's own.
    let lock = fs::copy(root.join("Cargo.lock"), workspace.join("Cargo.lock"));
    done(lock.map(drop), root);
    workspace.to_path_buf()
}

/// The sections of a manifest whose heads are wanted.
fn sections(manifest: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut kept = String::new();
    let mut keeps = is_wanted("");
    for line in manifest.lines() {
        if line.starts_with('[') {
            keeps = is_wanted(line.trim());
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn build(root: &Path, target: &Path, locked: bool, offline: bool) -> bool {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(root)
        .args([
            "rustc",
            "--quiet",
            "--package",
            "cuptop-collector",
            "--lib",
            "--profile",
            "inject",
        ])
        .args([
            "--features",
            "inject",
            "--crate-type",
            "cdylib",
            "--target-dir",
        ])
        .arg(target);
    if locked {
        cargo.arg("--locked");
    }
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
