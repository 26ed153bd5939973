//! What of the run is on screen: the whole or one pass, which stretch of it, and whether it goes along.

use super::scope::{OnScreen, Scope};
use super::viewport::Viewport;
use super::{Run, Status};
use activity::{Ns, Span};
use figures::passes::Variant;
use trace::Usage;

/// How much of a long run is on screen while following it.
const FOLLOWED: Ns = 5_000_000_000;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Camera {
    /// The whole run or a pass.
    pub scope: Scope,
    /// Which stretch of it.
    pub viewport: Viewport,
    /// Whether the window goes along with new data.
    pub is_following: bool,
    /// Records that had been received when the picture was held still; `None` while it is not.
    pub paused_at: Option<u64>,
    /// What was put on screen when the run was complete, until it is known of which steps that consists.
    pub(super) opened: Option<Span>,
    /// The variant that was chosen by hand, to come back to after a rerun.
    pub chosen: Option<String>,
}

impl Camera {
    /// One that goes along with new data.
    pub fn following() -> Self {
        Camera {
            is_following: true,
            ..Camera::default()
        }
    }

    pub fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Records that came since the picture was held still.
    pub fn records_behind(&self, run: &Run) -> u64 {
        let received = run.trace.health().received;
        received.saturating_sub(self.paused_at.unwrap_or(received))
    }

    /// What of the run is on screen, for what asks about it.
    pub fn on_screen(&self) -> OnScreen {
        OnScreen {
            scope: self.scope,
            window: self.viewport.window,
            is_held: self.is_paused(),
        }
    }

    /// Goes along with new data; once the run has ended, to where it is best looked at.
    pub fn update(&mut self, run: &Run) {
        self.keep_scope(run);
        if self.is_following && matches!(run.status, Status::Ended(_)) {
            self.choose_variant(run);
        } else if self.is_following && !self.is_paused() {
            self.follow(run);
        }
        self.bound(run);
    }

    /// The window cannot leave the scope.
    pub(super) fn bound(&mut self, run: &Run) {
        self.viewport
            .bound(run.scope_span(self.scope).unwrap_or_default());
    }

    /// Shows all of the scope.
    pub fn fit(&mut self, run: &Run) {
        self.bound(run);
        self.viewport.show(self.viewport.bounds);
    }

    /// The window that shows the operations in scope alone, with a little room; all of it without any.
    pub fn operations_window(&self, run: &Run) -> Span {
        let scope = run.scope_span(self.scope).unwrap_or_default();
        match run.operations(self.scope) {
            Some(operations) => {
                let room = operations.len() / 25;
                Span::new(operations.start - room, operations.end + room / 2).intersect(scope)
            }
            None => scope,
        }
    }

    /// Puts the whole run or a pass on screen, as it is asked for.
    pub fn show(&mut self, run: &Run, scope: Scope) {
        self.is_following = false;
        self.scope = scope;
        self.show_part(run);
    }

    /// Shows the part of the pass that its scenario wants seen first; all of the scope where it says nothing.
    fn show_part(&mut self, run: &Run) {
        self.fit(run);
        let variant = run
            .variant(self.scope)
            .and_then(|v| run.passes.variants.get(v));
        let planned = variant.and_then(|v| run.plan.as_ref()?.variants.get(v.index));
        if let (Some(part), Some(operations)) =
            (planned.and_then(|v| v.view), run.operations(self.scope))
        {
            self.viewport.show(part.within_span(operations));
        }
    }

    /// A pass that is no longer there is the last one that is.
    fn keep_scope(&mut self, run: &Run) {
        if let Scope::Pass(i) = self.scope
            && i >= run.passes.list.len()
        {
            self.scope = match run.passes.list.len() {
                0 => Scope::Whole,
                n => Scope::Pass(n - 1),
            };
        }
    }

    /// Goes along with the newest data: with the latest pass, else with the last seconds.
    fn follow(&mut self, run: &Run) {
        if run.passes.list.is_empty() {
            self.scope = Scope::Whole;
            self.bound(run);
            let bounds = self.viewport.bounds;
            let length = bounds.len().min(FOLLOWED);
            let newest = match run.trace.extent() {
                Some(extent) => extent.end.max(bounds.start + length),
                None => bounds.end,
            };
            match run.playing() {
                Some(whole) if whole.len() <= FOLLOWED => self.viewport.show(whole),
                _ => self.viewport.show(Span::new(newest - length, newest)),
            }
        } else {
            self.scope = Scope::Pass(run.passes.list.len() - 1);
            self.fit(run);
        }
    }

    /// The variant that was chosen by hand, else what the scenario is about, else the last one.
    pub fn variant_to_open(&self, run: &Run) -> Option<usize> {
        let variants = &run.passes.variants;
        let chosen = self.chosen.as_ref();
        let chosen = chosen.and_then(|label| variants.iter().position(|v| v.label() == *label));
        chosen
            .or_else(|| mistake(run))
            .or(variants.len().checked_sub(1))
    }

    /// After the end: shows the variant to open; without one everything, or the operations alone where they take less than half
    /// of that.
    fn choose_variant(&mut self, run: &Run) {
        self.is_following = false;
        let variant = self.variant_to_open(run);
        let pass = variant.and_then(|variant| run.passes.representative(variant));
        self.scope = pass.map_or(Scope::Whole, Scope::Pass);
        self.show_part(run);
        // A long start of a program or its end would leave little room for what the GPU did.
        let operations = self.operations_window(run);
        if self.scope == Scope::Whole && operations.len() * 2 < self.viewport.bounds.len() {
            self.viewport.show(operations);
        }
        self.opened = (self.scope == Scope::Whole).then_some(self.viewport.window);
    }
}

/// From a device's first operation to its last one, in a stretch or at all.
pub fn used(usage: &Usage, within: Option<Span>) -> Span {
    let used = usage.span().unwrap_or_default();
    let scope = within.unwrap_or(used).intersect(used);
    if scope.is_empty() {
        return scope;
    }
    let (first, last) = (usage.gap_at(scope.start), usage.gap_at(scope.end - 1));
    let start = first.map_or(scope.start, |gap| gap.end.min(scope.end));
    let end = last.map_or(scope.end, |gap| gap.start.max(start));
    Span::new(start, end.max(start))
}

/// The variant that a scenario begins with: the mistake of its first pair, else the first that uses a GPU. A sweep
/// begins at the value that the pair names, else at the last one.
fn mistake(run: &Run) -> Option<usize> {
    let plan = run.plan.as_deref()?;
    let variants = &run.passes.variants;
    let last = variants.last()?.point;
    let named = plan.pairs.first().and_then(|pair| {
        let point = pair.at.or(last);
        let is_it = |v: &Variant| v.name == pair.mistake && v.point == point;
        variants.iter().position(is_it)
    });
    let uses_a_gpu = |variant: usize| {
        let pass = run.passes.representative(variant);
        pass.is_some_and(|pass| run.passes.list[pass].operations.is_some())
    };
    named.or_else(|| (0..variants.len()).find(|&v| variants[v].point == last && uses_a_gpu(v)))
}
