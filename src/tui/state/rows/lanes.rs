//! Which rows were chosen to be seen: folded, or left out by name.
//!
//! Rows are remembered by their names, so that a choice outlasts a rerun. A *unit* is what is chosen as one: a row, and
//! with a lane of ranges the rows of its depths. A *group* is a title with the units under it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::tui::state::row::{Row, RowKind};
use crate::tui::state::search::Needle;
use activity::text::{fingerprint, plural};
use trace::LaneId;

/// What a unit is remembered by: its group's title, its own name, and which one of that name it is.
type UnitKey = (String, String, usize);

#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// Titles.
    folded: FxHashSet<String>,
    /// Stacks of ranges of which the top is seen alone.
    flat: FxHashSet<UnitKey>,
    /// Whether rows that hardly matter are seen, too.
    shows_minor: bool,
    /// The rows that hardly matter.
    minor: FxHashSet<RowKind>,
    /// Whether there is room for all rows: then nobody needs to ask for those.
    pub has_room: bool,
    /// What names must have, or must not.
    pub text: String,
    needle: Option<Needle>,
    /// The unit of each row, also of those that are not seen.
    units: FxHashMap<RowKind, UnitKey>,
    /// Units that are left out.
    pub left_out: usize,
    /// Goes up with every choice.
    pub version: u64,
}

/// A title with the units under it.
#[derive(Debug, Default)]
struct RowGroup {
    title: Option<Row>,
    units: Vec<(UnitKey, Vec<Row>)>,
}

impl Lanes {
    /// Leaves of all rows those that are to be seen. Rows in `minor` are seen when they are asked for.
    pub fn choose(&mut self, rows: Vec<Row>, minor: FxHashSet<RowKind>) -> Vec<Row> {
        self.minor = minor;
        self.units.clear();
        self.left_out = 0;
        let groups = groups(rows);
        for (key, rows) in groups.iter().flat_map(|group| &group.units) {
            let kinds = rows.iter().map(|row| row.kind);
            self.units.extend(kinds.map(|kind| (kind, key.clone())));
        }
        let mut rest: Vec<Row> = Vec::new();
        let mut top: Vec<Row> = Vec::new();
        for group in groups {
            let title = group.title.as_ref().map_or("", |row| row.label.as_str());
            let (is_folded, mut folded) = (self.folded.contains(title), 0);
            let mut seen: Vec<Row> = Vec::new();
            for (key, mut rows) in group.units {
                let is_gpu = matches!(rows[0].kind, RowKind::Gpu(_));
                if self.flat.contains(&key) {
                    rows.truncate(1);
                }
                if self.is_too_minor(rows[0].kind) || !self.lets(&key, is_gpu) {
                    self.left_out += 1;
                } else if is_gpu && title.is_empty() {
                    top.append(&mut rows);
                } else if is_folded && !is_gpu {
                    folded += 1;
                } else {
                    seen.append(&mut rows);
                }
            }
            if folded > 0 {
                rest.push(Row::new(
                    RowKind::Folded(fingerprint(title.as_bytes())),
                    format!("{title} · {} folded", plural(folded, "lane")),
                ));
            }
            if !seen.is_empty() {
                rest.extend(group.title);
                rest.append(&mut seen);
            }
        }
        top.append(&mut rest);
        top
    }

    /// Whether rows that hardly matter are left out: nobody asked for them.
    pub fn leaves_minor_out(&self) -> bool {
        !self.shows_minor && !self.has_room && self.needle.as_ref().is_none_or(Needle::is_not)
    }

    fn is_too_minor(&self, kind: RowKind) -> bool {
        self.leaves_minor_out() && self.minor.contains(&kind)
    }

    /// Whether the names of a unit let it be seen. The row of a GPU, which all is about, stays unless it is named itself.
    fn lets(&self, (title, label, _): &UnitKey, is_gpu: bool) -> bool {
        let Some(needle) = &self.needle else {
            return true;
        };
        let (label, title) = (needle.is_in(label), needle.is_in(title));
        match needle.is_not() {
            true => label && (title || is_gpu),
            false => label || title || is_gpu,
        }
    }

    /// Folds the group of a row, or unfolds it; of a stack of ranges with `is_stack` the stack. Returns the row that
    /// stands for it when it is folded.
    pub fn fold(&mut self, kind: RowKind, is_stack: bool) -> Option<RowKind> {
        self.version += 1;
        if let RowKind::Folded(title) = kind {
            let before = self.folded.len();
            self.folded
                .retain(|folded| fingerprint(folded.as_bytes()) != title);
            // What stands for rows that hardly matter is no group of its own.
            self.shows_minor |= self.folded.len() == before;
            return None;
        }
        let key = self.units.get(&kind)?.clone();
        if let (RowKind::Range(lane, _), true) = (kind, is_stack) {
            if !self.flat.remove(&key) {
                self.flat.insert(key);
            }
            return Some(RowKind::Range(lane, 0));
        }
        self.fold_title(&key.0)
    }

    /// Folds the group with a title. Returns the row that stands for it.
    pub fn fold_title(&mut self, title: &str) -> Option<RowKind> {
        // What has no title could not be opened again.
        if title.is_empty() {
            return None;
        }
        self.version += 1;
        self.folded.insert(title.to_owned());
        Some(RowKind::Folded(fingerprint(title.as_bytes())))
    }

    /// Whether the stack that a row is of shows its top alone.
    pub fn is_flat(&self, kind: RowKind) -> bool {
        let key = self.units.get(&kind);
        key.is_some_and(|key| self.flat.contains(key))
    }

    /// Shows everything again. Where everything is seen already, what hardly matters goes.
    pub fn show_all(&mut self) {
        self.version += 1;
        self.shows_minor = self.is_any_left_out() || !self.shows_minor;
        self.folded.clear();
        self.flat.clear();
        self.filter("");
    }

    /// Shows the unit that a row is of, whatever kept it away. Returns whether something did.
    pub fn reveal(&mut self, kind: RowKind) -> bool {
        let Some(key) = self.units.get(&kind).cloned() else {
            return false;
        };
        let was_folded = self.folded.remove(&key.0);
        let was_left_out = !self.lets(&key, matches!(kind, RowKind::Gpu(_)));
        if was_left_out {
            self.filter("");
        }
        let was_minor = self.is_too_minor(kind);
        self.shows_minor |= was_minor;
        let is_new = was_folded || was_left_out || was_minor;
        self.version += u64::from(is_new);
        is_new
    }

    /// The first row of a lane, also of one that is not seen.
    pub fn row_of(&self, lane: LaneId) -> Option<RowKind> {
        let is_first = |kind: &RowKind| !matches!(kind, RowKind::Range(_, 1..));
        let mut kinds = self.units.keys().copied().filter(is_first);
        kinds.find(|kind| kind.lane() == Some(lane))
    }

    /// Leaves only units with a name, or without it; all when the text is empty.
    pub fn filter(&mut self, text: &str) {
        self.version += 1;
        text.clone_into(&mut self.text);
        self.needle = Needle::new(text);
    }

    /// Whether there is something to show, or to put away again.
    pub fn is_any(&self) -> bool {
        self.is_any_left_out() || !self.minor.is_empty() && !self.has_room
    }

    fn is_any_left_out(&self) -> bool {
        self.left_out > 0 || !self.folded.is_empty() || !self.flat.is_empty()
    }

    /// Units there are.
    pub fn all(&self) -> usize {
        let keys: FxHashSet<&UnitKey> = self.units.values().collect();
        keys.len()
    }
}

/// Rows by their titles.
fn groups(rows: Vec<Row>) -> Vec<RowGroup> {
    let mut groups = vec![RowGroup::default()];
    let mut counts: FxHashMap<(String, String), usize> = FxHashMap::default();
    for row in rows {
        if row.kind == RowKind::Title {
            groups.push(RowGroup {
                title: Some(row),
                units: Vec::new(),
            });
            continue;
        }
        let Some(group) = groups.last_mut() else {
            continue;
        };
        if let (RowKind::Range(_, 1..), Some((_, rows))) = (row.kind, group.units.last_mut()) {
            rows.push(row);
            continue;
        }
        let title = group.title.as_ref().map_or("", |it| &it.label);
        let name = (title.to_owned(), row.label.clone());
        let count = counts.entry(name.clone()).or_default();
        let key = (name.0, name.1, *count);
        *count += 1;
        group.units.push((key, vec![row]));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hardly_matters_comes_when_it_is_asked_for() {
        let row = |kind, label: &str| Row {
            kind,
            label: label.to_owned(),
        };
        let all = || {
            vec![
                row(RowKind::Gpu(0), "GPU"),
                row(RowKind::Overlap(0), "overlap"),
            ]
        };
        let minor: FxHashSet<RowKind> = [RowKind::Overlap(0)].into_iter().collect();
        let mut lanes = Lanes::default();
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 1);
        assert_eq!((lanes.left_out, lanes.is_any()), (1, true));
        lanes.show_all();
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 2);
        assert!(lanes.is_any(), "it can be put away again");
        lanes.show_all();
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 1);
        // So do they where there is room, and no key puts them away then.
        lanes.has_room = true;
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 2);
        assert_eq!((lanes.left_out, lanes.is_any()), (0, false));
        lanes.has_room = false;
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 1);
        // A name that is looked for is shown, whatever it is worth.
        lanes.filter("over");
        assert_eq!(lanes.choose(all(), minor.clone()).len(), 2);
        lanes.filter("");
        assert!(lanes.choose(all(), minor.clone()).len() == 1 && lanes.reveal(RowKind::Overlap(0)));
        assert_eq!(lanes.choose(all(), minor).len(), 2);
    }
}
