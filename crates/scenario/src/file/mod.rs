//! A scenario file as written: parsed, each part with its place, nothing evaluated yet.
//!
//! [`keys`] is the table of what may be written, steps apart, and [`decl`] what it becomes; [`sections`]
//! reads it with the help of [`reader`]; [`schema`] tells editors.

pub(super) mod args;
pub(super) mod decl;
pub(super) mod keys;
pub(super) mod reader;
mod schema;
mod sections;

use super::edit::EditSet;
use super::expr::{Expr, Loc};
use super::steps::Step;
use super::view::View;
use decl::{Declarations, Named, ParamDecl};

pub use schema::schema;
pub(super) use sections::parse;

/// The whole file.
#[derive(Default)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) look_for: String,
    pub(super) view: Option<View>,
    pub(super) baseline: Option<Named>,
    pub(super) declared: Declarations,
    pub(super) variants: Vec<VariantDecl>,
    pub(super) pairs: Vec<PairDecl>,
    pub(super) expect: Vec<ExpectDecl>,
}

pub(super) struct VariantDecl {
    pub(super) name: Named,
    pub(super) about: String,
    pub(super) view: Option<View>,
    pub(super) baseline: Option<Named>,
    pub(super) warmup: Option<Expr>,
    pub(super) repeat: Option<Expr>,
    pub(super) is_cold: bool,
    pub(super) shows_race: bool,
    pub(super) params: Vec<ParamDecl>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct PairDecl {
    pub(super) mistake: Named,
    pub(super) cure: Named,
    pub(super) edit: EditSet,
    pub(super) at: Option<Expr>,
    pub(super) loc: Loc,
}

/// A line of `[expect]`.
#[derive(Debug)]
pub(super) struct ExpectDecl {
    pub(super) key: String,
    pub(super) key_loc: Loc,
    pub(super) bounds: Vec<Named>,
}
