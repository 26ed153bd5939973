//! Steps: what a kind of step is, from its keys in the file to its operations in the plan.
//!
//! A kind is one [`Form`]: its keys, which say how each is read, and how it becomes operations. [`STEPS`] lists them all.

mod alloc;
mod branch;
mod capture;
mod common;
mod copy;
mod for_loop;
mod host;
mod launch;
mod launch_graph;
mod loop_head;
mod memset;
mod place;
mod range;
mod read;
mod record;
mod sync;
mod wait;

use super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::expr::{Expr, Loc};
use super::names::Names;
use super::plan::OpKind;
use super::syntax::keys::{Key, key};
use super::syntax::reader::{Fields, Reader};
use super::unroll::Unroll;

pub(super) use place::{Place, place};
pub(super) use read::{Step, read};

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
    /// Reports what is wrong with the keys of a step together.
    check: fn(&Step, &Fields<'_>, &mut Reader<'_>),
    /// Checks that what it names exists, beyond what each key tells by itself.
    resolve: for<'f> fn(&'f Step, &mut Names<'f>),
    lower: Lower,
}

/// Adds a step's operations to the plan. `None` when that fails, which it reports.
type Lower = for<'f> fn(&'f Step, &mut Unroll<'_, 'f>) -> Option<()>;

impl Form {
    const fn new(head: Key, keys: &'static [Key], lower: Lower) -> Form {
        Form {
            head,
            keys,
            check: |_, _, _| {},
            resolve: |_, _| {},
            lower,
        }
    }
}

/// Checks the names of steps.
pub(super) fn resolve<'f>(steps: &'f [Step], names: &mut Names<'f>) {
    for step in steps {
        let around = names.loops.len();
        step.given.iter().for_each(|(_, it)| it.resolve(names));
        (step.form.resolve)(step, names);
        names.loops.truncate(around);
    }
}

/// Adds the operations of steps. After a step that fails, it goes on with the next.
pub(super) fn lower<'f>(steps: &'f [Step], unroll: &mut Unroll<'_, 'f>) {
    for step in steps {
        if unroll.has_stopped {
            return;
        }
        if (step.form.lower)(step, unroll).is_none() {
            unroll.failed(step.loc);
        }
    }
}
