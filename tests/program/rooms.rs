//! The rooms of a package form no circle; crates need what the docs say.

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

/// The parts of a path from `module`, beginning at the root.
fn resolved(module: &str, path: &str) -> Vec<String> {
    let mut full: Vec<String> = module.split("::").map(str::to_owned).collect();
    full.retain(|part| !part.is_empty());
    for (i, part) in path.split("::").map(str::trim).enumerate() {
        match part {
            "crate" if i == 0 => full.clear(),
            "super" => drop(full.pop()),
            "self" => {}
            _ => full.push(part.to_owned()),
        }
    }
    full
}

/// The module that a path leads into. Where that one only hands on the name of another module's, it is the other one.
fn target<'m>(full: &[String], modules: &'m Modules) -> Option<&'m str> {
    let (at, (module, text)) = (0..=full.len())
        .rev()
        .find_map(|at| Some((at, modules.get_key_value(&full[..at].join("::"))?)))?;
    if let Some(name) = full.get(at) {
        let imports = text.match_indices("use ").flat_map(|(from, _)| {
            let end = text[from..].find(';').map_or(text.len(), |i| from + i);
            let mut paths = Vec::new();
            expand("", &text[from + 4..end], &mut paths);
            paths
        });
        let mut handed = imports.map(|path| resolved(module, &path));
        let is_it = |path: &Vec<String>| path.last() == Some(name) && path.len() > at + 1;
        if let Some(path) = handed.find(|path| is_it(path) && path.starts_with(&full[..at])) {
            return target(&path, modules);
        }
    }
    (!module.is_empty()).then_some(module)
}

/// The two rooms that an import ties, if it leaves its room. A room is a module with its whole folder, at the top or
/// beside others in a folder. A folder and what lies in it are one room.
fn tied<'m>(from: &'m str, to: &'m str) -> Option<(&'m str, &'m str)> {
    let ends = |path: &str| path.match_indices("::").map(|it| it.0).collect::<Vec<_>>();
    let rooms = |path: &'m str| {
        ends(path)
            .into_iter()
            .chain([path.len()])
            .map(|end| &path[..end])
    };
    rooms(from).zip(rooms(to)).find(|(a, b)| a != b)
}

/// The rooms of a package that lie in a circle, and how many imports tie rooms.
fn circles(all: &Modules) -> (Vec<&str>, usize) {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, text) in all.iter().filter(|it| !it.0.is_empty()) {
        let paths = named(text).into_iter().map(|path| resolved(module, &path));
        for to in paths.filter_map(|path| target(&path, all)) {
            if let Some((from, to)) = tied(module, to) {
                edges.entry(from).or_default().insert(to);
            }
        }
    }
    let imports = edges.values().map(BTreeSet::len).sum();
    // What nothing is left to need, or needs nothing that is left, lies in no circle.
    loop {
        let before = edges.len();
        let needing: BTreeSet<&str> = edges.keys().copied().collect();
        edges.retain(|_, to| to.iter().any(|to| needing.contains(to)));
        let needed: BTreeSet<&str> = edges.values().flatten().copied().collect();
        edges.retain(|room, _| needed.contains(room));
        if edges.len() == before {
            return (edges.into_keys().collect(), imports);
        }
    }
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
fn no_two_rooms_of_a_package_need_each_other() {
    let (mut files, mut imports) = (0, 0);
    for (package, folder) in packages() {
        let mut all = Modules::new();
        modules(&folder.join("src"), "", &mut all);
        let (circle, some) = circles(&all);
        assert!(circle.is_empty(), "circles in {package} among {circle:#?}");
        files += all.len();
        imports += some;
    }
    assert!(files > 400, "{files} modules were found");
    assert!(imports > 500, "{imports} imports were found");
}

#[test]
fn a_circle_is_found_wherever_it_runs() {
    let made = |texts: &[(&str, &str)]| -> Modules {
        let texts = texts
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()));
        texts.collect()
    };
    let circle = |texts: &[(&str, &str)]| circles(&made(texts)).0.join(" ");
    let through_a_folder = [
        ("graph", "use crate::rules::thresholds::MANY;"),
        ("rules", ""),
        ("rules::copies", "use super::super::graph::Graph;"),
        ("rules::thresholds", ""),
        ("words", "use crate::rules::copies;"),
    ];
    assert_eq!(circle(&through_a_folder), "graph rules");
    let beside_each_other = [
        ("rules", "use self::copies::check;"),
        ("rules::copies", "use super::{Rule, kernels::longest};"),
        ("rules::kernels", "fn of() { super::copies::check(); }"),
    ];
    assert_eq!(circle(&beside_each_other), "rules::copies rules::kernels");
    let through_a_name_handed_on = [
        ("", "pub use graph::Graph;"),
        ("graph", "use crate::words::say;"),
        ("words", "use crate::Graph;"),
    ];
    assert_eq!(circle(&through_a_name_handed_on), "graph words");
    let within_a_folder = [
        ("graph", ""),
        ("rules", "use self::copies::check;"),
        ("rules::copies", "use super::Rule; use crate::graph::Graph;"),
    ];
    assert_eq!(circle(&within_a_folder), "");
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

/// The type that a line declares. What stands further in as `type` is one of a trait's.
fn declared(line: &str) -> Option<&str> {
    let bare = line.trim_start();
    let is_outermost = bare.len() == line.len();
    let bare = bare.strip_prefix("pub").map_or(bare, |rest| {
        rest.split_once(") ").map_or(rest, |(_, after)| after)
    });
    let kinds: &[&str] = &["struct ", "enum ", "trait ", "union ", "type "];
    let kinds = &kinds[..kinds.len() - usize::from(!is_outermost)];
    let name = (kinds.iter()).find_map(|kind| bare.trim_start().strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .filter(|it| it.starts_with(char::is_uppercase))
}

#[test]
fn within_a_package_the_name_of_a_type_stands_for_one() {
    assert_eq!(declared("pub(super) struct A<'t> {"), Some("A"));
    assert_eq!(declared("    pub enum Rule {"), Some("Rule"));
    assert_eq!(declared("    type Item = u8;"), None);
    let mut found = 0;
    for (package, folder) in packages() {
        let mut all = Modules::new();
        modules(&folder.join("src"), "", &mut all);
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for (module, text) in &all {
            for name in text.lines().filter_map(declared) {
                let other = owners.insert(name, module);
                assert_eq!(
                    other, None,
                    "{name} is a type of {module} too, in {package}"
                );
                found += 1;
            }
        }
    }
    assert!(found > 1_000, "{found} types were found");
}
