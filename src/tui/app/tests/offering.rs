//! Which keys are offered, and that all of them answer.

use std::time::Instant;

use super::*;
use crate::tui::action::Action;
use crate::tui::frame::is_offered;
use crate::tui::keys::BINDINGS;
use crate::tui::state::prompt::Asks;
use crate::tui::view::VIEWS;
use crate::tui::{Theme, render, tests::text};
use activity::feed::Progress;

/// The screen but for its last line, where a word on the last key may stand.
fn picture(app: &mut App) -> String {
    let screen = text(&render(app, &Theme::default()));
    let lines: Vec<&str> = screen.lines().collect();
    lines[..lines.len() - 1].join("\n")
}

/// A trace that was opened, a scenario that ended, and a program that runs.
fn situations() -> Vec<App> {
    let mut opened = Trace::new(SourceInfo {
        kind: SourceKind::Kineto,
        ..fixture::source()
    });
    for batch in fixture::batches() {
        opened.apply(batch);
    }
    let (plan, trace) = fixture::roofline();
    let mut running = App::new(Vec::new());
    running.start(fixture::source(), None, gpus());
    for batch in fixture::batches() {
        running.take(Message::Batch(batch));
    }
    let mut all = vec![
        App::of_trace(opened, None, gpus()),
        App::of_trace(trace, Some(plan), gpus()),
        running,
    ];
    for app in &mut all {
        app.state.size = Size::new(120, 40);
        app.prepare();
    }
    all
}

#[test]
fn a_key_that_is_not_offered_changes_nothing() {
    let mut looked_at = 0;
    for (situation, mut app) in situations().into_iter().enumerate() {
        for (view, entry) in VIEWS.iter().enumerate() {
            if !app.views.has_content(view, &app.state) {
                continue;
            }
            app.act(Action::Show(view));
            app.prepare();
            let contexts = [
                keys::own_contexts(app.context()),
                &[crate::tui::action::Context::Any],
            ]
            .concat();
            for binding in BINDINGS.iter().filter(|b| contexts.contains(&b.context)) {
                let is_dead = !is_offered(binding.action, &app.state, &app.views);
                // The shell answers these.
                if !is_dead || matches!(binding.action, Action::Edit | Action::Rerun) {
                    continue;
                }
                looked_at += 1;
                let before = picture(&mut app);
                let effect = app.act(binding.action);
                let said = format!("{situation} {} {:?}", entry.title, binding);
                assert_eq!(effect, None, "{said}");
                assert_eq!(app.state.prompt, None, "{said}");
                // All but the foot, which says why.
                let why = app.state.messages.flash.take();
                assert!(why.is_some_and(|why| why.split(' ').count() > 2), "{said}");
                assert_eq!(picture(&mut app), before, "{said}");
            }
        }
    }
    assert!(looked_at > 100, "{looked_at}");
}

/// Whatever is computed, and while a file is read, every key does what it does at once, in every view.
#[test]
fn every_key_answers_while_analysis_and_loading_run() {
    let (wake, _answers) = crossbeam_channel::bounded(1);
    let call = fixture::trace().activity(0, 0);
    for status in [Status::Ended(Outcome::Complete), Status::Running] {
        let mut trace = fixture::trace();
        trace.apply(activity::Batch {
            // Enough that nothing is answered at once.
            items: vec![call; 20_001],
            ..activity::Batch::default()
        });
        let mut app = App::new(Vec::new());
        app.state.size = Size::new(120, 40);
        app.state.model.analyst = Analyst::start(&wake).expect("threads");
        let mut run = Run::new(trace, None, gpus(), status.clone());
        if run.is_running() {
            run.progress = Some(Progress {
                what: "reading".to_owned(),
                done: 1,
                total: 2,
            });
        }
        app.state.replace(run);
        // Both threads are at work on something that does not end.
        let mut held = Vec::new();
        for is_light in [true, false] {
            let (go, waits) = crossbeam_channel::bounded::<()>(0);
            let mut holder: Question<u8, ()> = Question::default();
            if is_light {
                holder.light();
            }
            holder.ask(
                &app.state.model.analyst,
                &app.state.model.run,
                0,
                move |_, _| {
                    let _ = waits.recv_timeout(Duration::from_secs(60));
                },
            );
            held.push((go, holder));
        }
        for view in 0..VIEWS.len() {
            for binding in BINDINGS.iter() {
                app.state.prompt = None;
                app.overlay = Overlay::None;
                app.act(Action::Show(view));
                app.prepare();
                let began = Instant::now();
                let event = KeyEvent::new(binding.key, KeyModifiers::NONE);
                if let Some(action) = keys::resolve(event, app.context()) {
                    app.act(action);
                }
                app.prepare();
                let screen = text(&render(&mut app, &Theme::default()));
                // A frame is some ms; who waits for a thread waits a minute.
                let took = began.elapsed();
                assert!(took < Duration::from_secs(5), "{binding:?} took {took:?}");
                assert!(!screen.trim().is_empty());
            }
        }
        if app.state.model.run.is_being_read() {
            press(&mut app, "1i");
            let told = app.state.messages.flash.as_deref();
            assert_eq!(told, Some("still being read: press that again once it is"));
        }
        // What keys lead to is there, though nothing was answered.
        press(&mut app, "~~1");
        assert_eq!(app.views.current, 0);
        press(&mut app, "?");
        assert!(matches!(app.overlay, Overlay::Help { .. }));
        press(&mut app, "?/x");
        assert!(matches!(&app.state.prompt, Some(it) if it.asks == Asks::Search && it.text == "x"));
        for (go, mut holder) in held {
            assert!(!holder.poll(), "it was answered");
            go.send_timeout((), Duration::from_secs(60))
                .expect("it waits");
        }
    }
}
