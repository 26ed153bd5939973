//! A trial.

use super::{Finding, Occurrence, Scope, thresholds};

pub(super) fn check(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    (f.span_ns > 1_000 * thresholds::WORTH_NS + 1).then(|| Finding {
        title: "a trial2".to_owned(),
        advice: "Try.".to_owned(),
        ..scope.found(f.span_ns, 2 * thresholds::WORTH_NS, &[Occurrence::Gap(f.index, f.span)])
    })
}

#[cfg(test)]
mod tests {
    use crate::findings::find;
    use crate::figures::Peaks;
    use crate::testing::{Scene, in_scope};
    use activity::feed::Stop;

    #[test]
    fn trial_finding_is_found() {
        let mut scene = Scene::new();
        let trace = scene.trace();
        assert!(in_scope(&trace, None, Peaks::default(), |scope| find(scope, &Stop::default())).is_empty());
    }
}
