//! The modules of a package form no circle, but for a parent and what lies within it; crates need what the docs say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Modules = BTreeMap<String, String>;

/// Every module with its text, by its path ("tui::view"), but for tests.
fn modules(folder: &Path, prefix: &str, into: &mut Modules) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if ["tests", "testing", "fixture", "made", "snapshots"].contains(&stem.as_str()) {
            continue;
        }
        let within = if prefix.is_empty() {
            stem.clone()
        } else {
            format!("{prefix}::{stem}")
        };
        if path.is_dir() {
            modules(&path, &within, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = match stem.as_str() {
                "mod" | "lib" | "main" => prefix.to_owned(),
                _ => within,
            };
            let text = std::fs::read_to_string(&path).expect("a text");
            let text = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            let lines = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or_default());
            into.insert(name, lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

/// What a tree of imports names: "a::{b, c::d}" are "a::b" and "a::c::d".
fn expand(prefix: &str, tree: &str, into: &mut Vec<String>) {
    let (mut depth, mut from) = (0, 0);
    for (at, c) in tree.char_indices().chain([(tree.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = tree[from..at].trim();
                from = (at + 1).min(tree.len());
                match part.split_once('{') {
                    _ if part.is_empty() => {}
                    Some((head, rest)) => {
                        let rest = rest.strip_suffix('}').unwrap_or(rest);
                        expand(&format!("{prefix}{}", head.trim()), rest, into);
                    }
                    None => into.push(format!(
                        "{prefix}{}",
                        part.split(" as ").next().unwrap_or_default()
                    )),
                }
            }
            _ => {}
        }
    }
}

/// The paths that begin with `crate` or `super` in a text.
fn named(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for start in ["use crate::", "use super::", "use self::"] {
        for (at, _) in text.match_indices(start) {
            let end = text[at..].find(';').map_or(text.len(), |i| at + i);
            expand("", &text[at + 4..end], &mut paths);
        }
    }
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let end = text[at..]
                .find(|c| !is_path(c))
                .map_or(text.len(), |i| at + i);
            paths.push(text[at..end].trim_end_matches(':').to_owned());
        }
    }
    paths
}

/// The module that a path from `module` leads into.
fn target(module: &str, path: &str, modules: &Modules) -> Option<String> {
    let mut full: Vec<&str> = module.split("::").filter(|s| !s.is_empty()).collect();
    for (i, part) in path.split("::").map(str::trim).enumerate() {
        match part {
            "crate" if i == 0 => full.clear(),
            "super" => drop(full.pop()),
            "self" => {}
            _ => full.push(part),
        }
    }
    let longest = (1..=full.len()).rev().map(|n| full[..n].join("::"));
    longest.into_iter().find(|path| modules.contains_key(path))
}

/// The modules of a package that lie in a circle, how many there are, and how many imports.
fn circles(folder: &Path) -> (Vec<String>, usize, usize) {
    let mut all = Modules::new();
    modules(folder, "", &mut all);
    let within = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}::"));
    let mut edges: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in &all {
        let targets = named(text)
            .into_iter()
            .filter_map(|path| target(module, &path, &all));
        let others = targets.filter(|to| !within(to, module) && !within(module, to));
        edges.insert(module, others.collect());
    }
    let imports = edges.values().map(BTreeSet::len).sum();
    // What nothing is left to need, or needs nothing that is left, lies in no circle.
    loop {
        let left: BTreeSet<String> = edges.keys().map(|&m| m.to_owned()).collect();
        let before = edges.len();
        edges.retain(|_, to| to.iter().any(|to| left.contains(to)));
        if edges.len() == before {
            break;
        }
    }
    let left = edges.keys().map(|&module| module.to_owned()).collect();
    (left, all.len(), imports)
}

/// The folders of the packages, each with its name.
fn packages() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![("cuptop".to_owned(), root.to_owned())];
    for entry in root.join("crates").read_dir().expect("the crates") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        all.push((name.into_owned(), path));
    }
    all.sort();
    all
}

#[test]
fn no_two_modules_of_a_package_need_each_other() {
    let (mut modules, mut imports) = (0, 0);
    for (package, folder) in packages() {
        let (circle, some, of_them) = circles(&folder.join("src"));
        assert!(circle.is_empty(), "circles in {package} among {circle:#?}");
        modules += some;
        imports += of_them;
    }
    assert!(modules > 400, "{modules} modules were found");
    assert!(imports > 500, "{imports} imports were found");
}

/// Cargo sees to it that no crate needs one that needs it. What each may need stands in `docs/ARCHITECTURE.md`.
#[test]
fn crates_need_what_the_table_of_rooms_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md");
    let docs = std::fs::read_to_string(docs).expect("the docs");
    for (package, folder) in packages() {
        if package == "cuptop" {
            continue;
        }
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let (_, after) = manifest.split_once("\n[dependencies]").unwrap_or_default();
        let needed: BTreeSet<&str> = after
            .lines()
            .take_while(|line| !line.starts_with("[dev-"))
            .filter(|line| line.contains("package = \"cuptop-"))
            .filter_map(|line| line.split(' ').next())
            .collect();
        let head = format!("| `crates/{package}` |");
        let row = docs.lines().find(|line| line.starts_with(&head));
        let row = row.unwrap_or_else(|| panic!("{package} has no row"));
        let cell = row.trim_end_matches(['|', ' ']).rsplit('|').next();
        let told: BTreeSet<&str> = cell
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|name| *name != "–")
            .collect();
        assert_eq!(needed, told, "what {package} needs, and the docs");
    }
}
