//! The bundled scenarios compile, without a warning. The one that shows a race is told so, in a note.

use cuptop::scenario::{Overrides, Severity, Source, bundled, compile};

#[test]
fn bundled_scenarios_are_clean() {
    let mut races = Vec::new();
    for bundled in bundled::SCENARIOS {
        let compiled = compile(&Source::from(bundled), &Overrides::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let rendered = compiled.warnings.render(false);
        for diagnostic in compiled.warnings.items() {
            assert_eq!(diagnostic.severity, Severity::Note, "{rendered}");
            races.push((bundled.name, diagnostic.message.clone()));
        }
    }
    let [(name, message)] = &races[..] else {
        panic!("one race, not {races:#?}");
    };
    assert_eq!(*name, "cross_stream_reuse");
    assert!(message.contains("race on `data[0]`"), "{message}");
}
