//! The bundled scenarios compile, without a warning.

use cuptop::scenario::{Overrides, Source, bundled, compile};

#[test]
fn bundled_scenarios_are_clean() {
    for bundled in bundled::SCENARIOS {
        let compiled = compile(&Source::from(bundled), &Overrides::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        assert!(
            compiled.warnings.is_empty(),
            "{}",
            compiled.warnings.render(false)
        );
    }
}
