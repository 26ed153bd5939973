//! What calls and operations of a program depend on: lists of all of them in one place, which copies share until an edit
//! changes one.

use std::ops::Range;
use std::sync::Arc;

use super::Dep;

/// Where a list lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    start: u32,
    len: u32,
}

impl List {
    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// All lists of a program.
#[derive(Clone, Debug, Default)]
pub struct Lists(Arc<Vec<Dep>>);

impl Lists {
    /// None, with room for so many dependencies.
    pub fn with_capacity(count: usize) -> Lists {
        Lists(Arc::new(Vec::with_capacity(count)))
    }

    /// What is in a list.
    pub fn get(&self, list: List) -> &[Dep] {
        &self.0[list.range()]
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, list: List) -> &mut [Dep] {
        match list.is_empty() {
            true => &mut [],
            false => &mut Arc::make_mut(&mut self.0)[list.range()],
        }
    }

    /// Adds to a list. One that is not the last moves behind it.
    pub fn push(&mut self, list: &mut List, dep: Dep) {
        let all = Arc::make_mut(&mut self.0);
        if list.range().end != all.len() {
            let start = all.len() as u32;
            all.extend_from_within(list.range());
            list.start = start;
        }
        all.push(dep);
        list.len += 1;
    }

    /// A new list.
    pub fn list(&mut self, deps: impl IntoIterator<Item = Dep>) -> List {
        let mut list = List::default();
        deps.into_iter().for_each(|dep| self.push(&mut list, dep));
        list
    }
}
