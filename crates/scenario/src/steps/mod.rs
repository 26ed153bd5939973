//! Steps: what a kind of step is, from its keys in the file to its operations in the plan.
//!
//! A kind is one file: its [`Form`] (keys, and how they are read), and a type that implements
//! [`StepKind`]. [`STEPS`] lists them all.

mod alloc;
mod branch;
mod capture;
mod common;
mod copy;
mod for_loop;
mod host;
mod launch;
mod launch_graph;
mod memset;
mod range;
mod read;
mod record;
mod sync;
mod wait;

use super::expr::Loc;
use super::names::Names;
use super::syntax::keys::Key;
use super::syntax::reader::{Field, Fields, Reader};
use super::unroll::Unroll;

pub(super) use read::read;

/// Every kind of step. A step is told by its head; `sync` is last because copies have a key of that name.
pub const STEPS: &[Form] = &[
    copy::H2D,
    copy::D2H,
    copy::D2D,
    copy::P2P,
    memset::FORM,
    launch::FORM,
    record::FORM,
    wait::FORM,
    alloc::ALLOC,
    alloc::FREE,
    capture::FORM,
    launch_graph::FORM,
    host::FORM,
    range::FORM,
    for_loop::FORM,
    branch::FORM,
    sync::FORM,
];

/// How a kind of step is written: the key that makes it, what it does, and its other keys.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The key that tells it from other steps.
    pub head: Key,
    /// Its other keys.
    pub keys: &'static [Key],
    /// Reads a step that has the head and no keys but these. What is wrong is reported.
    read: Read,
}

type Read = fn(&mut Reader<'_>, &Fields<'_>, Field<'_>) -> Option<Box<dyn StepKind>>;

/// A step and its place.
pub(super) struct Step {
    loc: Loc,
    kind: Box<dyn StepKind>,
}

/// A step as written, and how it becomes operations.
pub(super) trait StepKind {
    /// Checks that what it names exists.
    fn resolve<'f>(&'f self, names: &mut Names<'f>);

    /// Adds its operations to the plan; `loc` is where it stands. `None` when that fails, which it reports.
    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()>;
}

/// Checks the names of steps.
pub(super) fn resolve<'f>(steps: &'f [Step], names: &mut Names<'f>) {
    for step in steps {
        step.kind.resolve(names);
    }
}

/// Adds the operations of steps. After a step that fails, it goes on with the next.
pub(super) fn lower<'f>(steps: &'f [Step], unroll: &mut Unroll<'_, 'f>) {
    for step in steps {
        if unroll.has_stopped {
            return;
        }
        if step.kind.lower(unroll, step.loc).is_none() {
            unroll.failed(step.loc);
        }
    }
}
