//! A scenario file as written: parsed, each part with its place, nothing evaluated yet.
//!
//! [`sections`] reads it, and [`schema`] tells editors what may be written.

mod mistakes;
mod schema;
mod sections;

use super::edit::EditSet;
use super::expr::{Expr, Loc};
use super::steps::Step;
use super::syntax::decl::{Declarations, Named, ParamDecl};
use super::view::View;

pub use schema::schema;
pub(super) use sections::parse;

/// The whole file.
#[derive(Default)]
pub(super) struct File {
    /// Whether it has sections that nobody knows, or without a name: what they hold is missing elsewhere.
    pub(super) is_misnamed: bool,
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
    /// The share of the median that half of its interval is to be below.
    pub(super) until: Option<f64>,
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
