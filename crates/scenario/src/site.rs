//! Places in a scenario file, by number. Operations and expectations keep the number of their place.

use std::collections::HashMap;
use std::ops::Range;

use super::expr::Loc;

/// Index into [`super::plan::Plan::sites`].
pub type SiteId = u32;

/// A place in the scenario file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Site {
    /// Bytes in the file.
    pub span: Range<usize>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Collects the places of a file.
pub(super) struct Sites {
    pub(super) list: Vec<Site>,
    known: HashMap<Loc, SiteId>,
    text: String,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl Sites {
    pub(super) fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = ends.map(|(at, _)| at + 1);
        Self {
            list: Vec::new(),
            known: HashMap::new(),
            text: text.to_owned(),
            lines: std::iter::once(0).chain(starts).collect(),
        }
    }

    pub(super) fn id(&mut self, loc: Loc) -> SiteId {
        if let Some(known) = self.known.get(&loc) {
            return *known;
        }
        let line = self.lines.partition_point(|start| *start <= loc.start);
        let before = &self.text[self.lines[line - 1]..loc.start];
        // A file has 256 KiB at most, so none of these numbers is near its limit.
        let id = self.list.len() as SiteId;
        self.list.push(Site {
            span: loc.range(),
            line: line as u32,
            column: before.chars().count() as u32 + 1,
        });
        self.known.insert(loc, id);
        id
    }

    /// The place of a number that [`Self::id`] gave.
    pub(super) fn get(&self, id: SiteId) -> &Site {
        &self.list[id as usize]
    }
}
