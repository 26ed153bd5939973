//! What is known of a job beside its collectives.

use super::collect::Unit;
use super::group::Group;
use super::line::Line;
use activity::Ns;
use causes::Causes;
use figures::steps::Steps;
use trace::Trace;

/// What is known beside the collectives.
pub(super) struct Input<'a> {
    pub(super) trace: &'a Trace,
    pub(super) units: &'a [Unit],
    pub(super) groups: &'a [Group],
    pub(super) clocks: &'a [Line],
    pub(super) causes: Option<&'a Causes<'a>>,
    pub(super) steps: &'a [Steps],
    /// First to last collective, ns.
    pub(super) span: Ns,
    pub(super) noise: Ns,
}
