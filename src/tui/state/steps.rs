//! From variant to variant, along a sweep, and from pass to pass.

use super::{Scope, State};

impl State {
    /// The variant on screen; of the whole run the last one.
    fn current(&self) -> Option<usize> {
        let last = self.model.run.passes.variants.len().checked_sub(1)?;
        Some(self.variant().unwrap_or(last))
    }

    /// The variants at the value of the sweep that is on screen, in order; all of them without a sweep.
    pub fn variants_beside(&self) -> Vec<usize> {
        let variants = &self.model.run.passes.variants;
        let Some(current) = self.current() else {
            return Vec::new();
        };
        let is_beside = |v: &usize| variants[*v].point == variants[current].point;
        (0..variants.len()).filter(is_beside).collect()
    }

    /// The variants that are the one on screen at each value of the sweep.
    pub fn points(&self) -> Vec<usize> {
        let variants = &self.model.run.passes.variants;
        let Some(current) = self.current().filter(|&v| variants[v].point.is_some()) else {
            return Vec::new();
        };
        let is_it = |v: &usize| variants[*v].name == variants[current].name;
        (0..variants.len()).filter(is_it).collect()
    }

    /// Puts the representative pass of a variant on screen, also after the next rerun.
    pub(crate) fn show_variant(&mut self, variant: usize) {
        let Some(of) = self.model.run.passes.variants.get(variant) else {
            return;
        };
        self.focus.camera.chosen = Some(of.label());
        if let Some(pass) = self.model.run.passes.representative(variant) {
            self.show(Scope::Pass(pass));
        }
    }

    /// Goes on by so many of some variants, round the ends.
    pub(crate) fn step_among(&mut self, all: &[usize], by: isize) {
        let at = all.iter().position(|&v| Some(v) == self.current());
        let next = (at.unwrap_or(0) as isize + by).rem_euclid(all.len() as isize);
        self.show_variant(all[next as usize]);
    }

    pub(crate) fn step_pass(&mut self, by: isize) {
        let (Scope::Pass(current), Some(variant)) = (self.focus.camera.scope, self.variant())
        else {
            return;
        };
        let passes: Vec<usize> = self.model.run.passes.of_variant(variant).collect();
        let at = passes.iter().position(|&p| p == current).unwrap_or(0) as isize;
        if let Some(&pass) = passes.get((at + by).clamp(0, passes.len() as isize - 1) as usize) {
            self.show(Scope::Pass(pass));
        }
    }
}
