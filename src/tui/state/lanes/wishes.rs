//! What is chosen of rows before anybody has chosen: the configuration says so.

use super::{Group, Lanes};
use crate::tui::state::counters::Counters;

/// Names of rows, or of the titles that they stand under, in whatever capitals.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wishes {
    /// Rows, or all rows under a title, that are hidden.
    pub hide: Vec<String>,
    /// Titles under which rows are folded.
    pub fold: Vec<String>,
    /// Rows that stand at the top, in this order.
    pub pin: Vec<String>,
    /// Which counters of GPUs have rows.
    pub counters: Counters,
}

impl Lanes {
    /// Lanes of which those that appear are chosen as `wishes` say.
    pub fn wished(wishes: Wishes) -> Self {
        Lanes {
            wishes,
            ..Lanes::default()
        }
    }

    /// Chooses of what was not there before.
    pub(super) fn wish(&mut self, groups: &[Group]) {
        if self.wishes == Wishes::default() {
            return;
        }
        let mut pinned = Vec::new();
        for group in groups {
            let title = group.title.as_ref().map_or("", |row| row.label.as_str());
            let mark = (title.to_owned(), String::new(), usize::MAX);
            if !title.is_empty()
                && self.known.insert(mark)
                && place(&self.wishes.fold, title).is_some()
            {
                self.folded.insert(title.to_owned());
            }
            for (key, _) in &group.units {
                if !self.known.insert(key.clone()) {
                    continue;
                }
                if let Some(place) = place(&self.wishes.pin, &key.1) {
                    pinned.push((place, key.clone()));
                } else if [title, &key.1]
                    .into_iter()
                    .any(|name| place(&self.wishes.hide, name).is_some())
                {
                    self.hidden.insert(key.clone());
                }
            }
        }
        pinned.sort_by_key(|(place, _)| *place);
        self.pinned.extend(pinned.into_iter().map(|(_, key)| key));
    }
}

/// Which of the names is that of a row or a title: "host" is also that of "host · python3".
fn place(names: &[String], of: &str) -> Option<usize> {
    let of = of.to_lowercase();
    let head = of.split(" · ").next().unwrap_or(&of);
    let is_it = |name: &String| {
        let name = name.to_lowercase();
        !name.is_empty() && (name == of || name == head)
    };
    names.iter().position(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::state::rows::{Row, RowKind};

    fn rows() -> Vec<Row> {
        let row = |kind, label: &str| Row {
            kind,
            label: label.to_owned(),
        };
        vec![
            row(RowKind::Gpu(0), "GPU"),
            row(RowKind::Overlap(0), "overlap"),
            row(RowKind::Title, "streams"),
            row(RowKind::Stream(0), "s0"),
            row(RowKind::Stream(1), "s1"),
            row(RowKind::Title, "host · python3"),
            row(RowKind::Thread(2), "main"),
            row(RowKind::Overhead(3), "overhead"),
        ]
    }

    fn labels(lanes: &mut Lanes) -> Vec<String> {
        lanes
            .choose(rows(), rustc_hash::FxHashSet::default())
            .into_iter()
            .map(|row| row.label)
            .collect()
    }

    #[test]
    fn rows_are_as_the_configuration_wishes_until_somebody_chooses() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut lanes = Lanes::wished(Wishes {
            hide: names(&["OVERLAP"]),
            fold: names(&["host"]),
            pin: names(&["s1", "nobody"]),
            ..Wishes::default()
        });
        let expected = [
            "GPU",
            "pinned",
            "s1",
            "streams",
            "s0",
            "host · python3 · 2 lanes folded",
        ];
        assert_eq!(labels(&mut lanes), expected);
        lanes.show_all();
        assert_eq!(lanes.pin(RowKind::Stream(1)), Some(false));
        let all: Vec<String> = rows().into_iter().map(|row| row.label).collect();
        assert_eq!(labels(&mut lanes), all);
    }

    #[test]
    fn a_title_hides_all_that_stands_under_it() {
        let mut lanes = Lanes::wished(Wishes {
            hide: vec!["host".to_owned()],
            ..Wishes::default()
        });
        assert_eq!(
            labels(&mut lanes),
            ["GPU", "overlap", "streams", "s0", "s1"]
        );
    }
}
