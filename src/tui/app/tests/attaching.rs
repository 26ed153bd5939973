//! What runs on the machine's GPUs stands above the scenarios, and is attached to by two keys.

use super::*;
use crate::tui::action::Action;
use crate::tui::tests::{machine, text};
use crate::tui::{Theme, render};
use live::job::{Job, Life, Process};
use live::machine::{Machine, Sight};

fn picker() -> App {
    let choice = |name: &str| Choice {
        name: name.to_owned(),
        ..Choice::default()
    };
    let mut app = App::new(vec![choice("one"), choice("two")]);
    app.state.size = Size::new(80, 24);
    app.prepare();
    app
}

fn picker_with(machine: Machine) -> App {
    let mut app = picker();
    app.see(machine);
    app.prepare();
    app
}

fn screen(app: &mut App) -> String {
    text(&render(app, &Theme::default()))
}

/// The line with the cursor.
fn at(app: &mut App) -> String {
    let screen = screen(app);
    let line = screen.lines().find_map(|line| line.strip_prefix('▸'));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn nothing_that_runs_is_selected_when_the_list_opens() {
    let mut app = picker_with(machine());
    assert!(at(&mut app).starts_with("GPU 0"), "{}", screen(&mut app));
    // Of two processes none is taken for the other.
    assert!(press(&mut app, "^").is_empty() && app.overlay == Overlay::None);
    assert!(at(&mut app).starts_with("48213"), "{}", screen(&mut app));
    // Who has moved already stays where he is.
    let mut app = picker();
    press(&mut app, "j");
    app.see(machine());
    assert!(at(&mut app).starts_with("two"), "{}", screen(&mut app));
    let expected = Effect::Start(NextRun::Scenario("two".to_owned()));
    assert_eq!(press(&mut app, "^"), [expected]);
}

#[test]
fn a_refusal_returns_to_the_list() {
    let mut app = picker_with(machine());
    press(&mut app, "j^^");
    app.refuse(&wrong_input("process 48213 is not yours"));
    let refused = screen(&mut app);
    for said in [
        "not attached",
        "48213 is not yours",
        "goes back to the list",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    assert!(press(&mut app, "~").is_empty());
    assert!(at(&mut app).starts_with("48213"), "{}", screen(&mut app));
    assert!(!screen(&mut app).contains("not attached"));
}

#[test]
fn a_second_enter_attaches_and_any_other_key_does_not() {
    let mut app = picker_with(machine());
    for other in ["~", "j", "k", "/", "?"] {
        press(&mut app, "^^");
        assert_ne!(app.overlay, Overlay::None);
        let screen = screen(&mut app);
        for said in ["48213", "ana", "a millisecond", "What stays", "CUPTI taken"] {
            assert!(screen.contains(said), "{said}: {screen}");
        }
        assert!(press(&mut app, other).is_empty());
        assert_eq!(app.overlay, Overlay::None, "{other}");
        press(&mut app, "k");
    }
    press(&mut app, "j");
    assert_eq!(
        press(&mut app, "^^"),
        [Effect::Start(NextRun::Process(48213))]
    );
}

#[test]
fn a_click_on_the_panel_attaches_to_nothing() {
    let mut app = picker_with(machine());
    for y in 0..24 {
        press(&mut app, "kkkkj^");
        assert_ne!(app.overlay, Overlay::None);
        assert_eq!(app.act(Action::Click { x: 20, y }), None);
        assert_eq!(app.overlay, Overlay::None);
    }
}

#[test]
fn a_gpu_with_one_process_leads_to_it() {
    let mut machine = machine();
    machine.gpus[0].processes.truncate(1);
    let mut app = picker_with(machine);
    assert_eq!(
        press(&mut app, "^^"),
        [Effect::Start(NextRun::Process(48213))]
    );
}

#[test]
fn what_may_not_be_attached_to_says_why() {
    let mut app = picker_with(machine());
    for (keys, said) in [("jj", "belongs to bea"), ("jj", "not in /proc here")] {
        press(&mut app, keys);
        assert!(press(&mut app, "^").is_empty());
        let screen = screen(&mut app);
        assert!(screen.contains(said), "{said}: {screen}");
        assert!(press(&mut app, "^").is_empty() && app.overlay == Overlay::None);
    }
}

#[test]
fn the_cursor_never_comes_to_another_process_by_itself() {
    let mut app = picker_with(machine());
    press(&mut app, "jj");
    assert!(at(&mut app).starts_with("50122"));
    // One comes before it, then it ends.
    let mut machine = machine();
    let mut earlier = machine.gpus[0].processes[0].clone();
    earlier.pid = 7;
    machine.gpus[0].processes.insert(0, earlier);
    app.see(machine.clone());
    assert!(at(&mut app).starts_with("50122"));
    machine.gpus[0].processes.retain(|it| it.pid != 50122);
    app.see(machine);
    assert!(at(&mut app).starts_with("GPU 0"));
    app.see(Machine::default());
    assert!(at(&mut app).starts_with("one"));
}

#[test]
fn a_process_that_ended_is_not_attached_to_nor_one_that_has_its_number() {
    for is_reused in [false, true] {
        let mut app = picker_with(machine());
        press(&mut app, "j^");
        let mut machine = machine();
        match &mut machine.gpus[0].processes[0].sight {
            Sight::Seen(seen) if is_reused => seen.began += 1,
            _ => drop(machine.gpus[0].processes.remove(0)),
        }
        app.see(machine);
        assert_eq!(app.overlay, Overlay::None);
        assert!(screen(&mut app).contains("the process has ended"));
    }
}

#[test]
fn the_list_is_filtered_as_one() {
    let mut app = picker_with(machine());
    press(&mut app, "/serve^");
    let screen = screen(&mut app);
    assert!(
        screen.contains("GPU 0") && screen.contains("50122"),
        "{screen}"
    );
    assert!(
        !screen.contains("48213") && !screen.contains("GPU 1"),
        "{screen}"
    );
    assert!(!screen.contains("two"), "{screen}");
    press(&mut app, "~/two^");
    let expected = Effect::Start(NextRun::Scenario("two".to_owned()));
    assert_eq!(press(&mut app, "^"), [expected]);
}

/// A process that a signal holds: how its job stands is shown, and entering it is offered with what that may mean.
#[test]
fn how_a_job_stands_lies_above_the_list() {
    let mut app = picker_with(machine());
    press(&mut app, "J");
    assert_eq!(app.overlay, Overlay::Job { pid: None, at: 0 });
    assert!(screen(&mut app).contains("looking at its threads"));
    assert!(press(&mut app, "^").is_empty() && app.overlay == Overlay::None);
    app.overlay = Overlay::Job {
        pid: Some(48213),
        at: 0,
    };
    let stopped = Process {
        pid: 48213,
        life: Life::Stopped,
        ..Process::default()
    };
    app.see_jobs(Ok(vec![Job {
        command: "python train.py".to_owned(),
        ranks: vec![stopped],
        ..Job::default()
    }]));
    let screen = screen(&mut app);
    for said in [
        "it stands still: process 48213 is stopped",
        "hold up a recovery",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert_eq!(press(&mut app, "r"), [Effect::Ask]);
    press(&mut app, "j");
    let moved = Overlay::Job {
        pid: Some(48213),
        at: 1,
    };
    assert_eq!(app.overlay, moved);
    let entered = Effect::Start(NextRun::Enter(48213));
    assert_eq!(press(&mut app, "^"), [entered]);
}
