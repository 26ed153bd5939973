//! Between what a simulated run lies, by how far the calibration's figures lay apart.

use std::fmt;
use std::sync::Arc;

use crate::activity::feed::Stop;
use crate::analysis::passes::Passes;

type Find = dyn Fn(&Stop) -> Vec<Passes> + Send + Sync;

/// Finds the passes of the plan on screen at both ends of what the calibration measured. It takes as long as two simulations
/// without a pause, so it is asked beside the screen.
#[derive(Clone)]
pub struct Ends(Arc<Find>);

impl Ends {
    /// One that finds them so; it gives up, with none, when it is told to stop.
    pub fn new(find: impl Fn(&Stop) -> Vec<Passes> + Send + Sync + 'static) -> Ends {
        Ends(Arc::new(find))
    }

    /// Finds them.
    #[must_use]
    pub fn find(&self, stop: &Stop) -> Vec<Passes> {
        (self.0)(stop)
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}
