//! How tests look at a timeline.

use crate::Scope;
use activity::Span;
use causes::Causes;
use causes::graph::Graph;
use figures::{DeviceFigures, Peaks, watching};
use trace::{CallIndex, Trace};

/// Asks something of what is known of a timeline, or of a window of it.
pub fn in_scope<T>(
    trace: &Trace,
    window: Option<Span>,
    peaks: Peaks,
    ask: impl FnOnce(&Scope<'_>) -> T,
) -> T {
    let devices: Vec<DeviceFigures> = figures::count(trace, Some(&CallIndex::new(trace)), window);
    let graph = Graph::new(trace);
    let causes = Causes::new(trace, &graph);
    let watching = watching::measure(trace, &causes, &devices, window);
    let mut scope = Scope::new(trace, &causes, window, &devices, peaks);
    scope.watching = watching.as_ref();
    ask(&scope)
}
