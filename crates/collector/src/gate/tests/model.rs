//! The count's own code over a model checker's memory: every way in which calls and a new turn may be interleaved.

#[allow(
    clippy::duplicate_mod,
    reason = "the same code over other memory is what this is about"
)]
#[path = "../inside.rs"]
mod inside;

use loom::sync::Arc;

use inside::Inside;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[test]
fn a_call_of_an_earlier_turn_takes_nobody_out_of_this_one() {
    loom::model(|| {
        let inside = Arc::new(Inside(sync::AtomicU64::new(0)));
        inside.begin_turn();
        let early = inside.enter();
        let ends = {
            let inside = Arc::clone(&inside);
            loom::thread::spawn(move || inside.leave(early))
        };
        inside.begin_turn();
        let late = inside.enter();
        ends.join().expect("no panic");
        assert!(!inside.is_empty(), "one is under way");
        inside.leave(late);
        assert!(inside.is_empty());
    });
}
