//! The loop on a backend that is a buffer: feed, keys, file and signals in, frames and effects out.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crossbeam_channel::{Sender, unbounded};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::events::{Host, Loop};
use super::input::Input;
use crate::tui::state::NextRun;
use crate::tui::tests::{gpus, text};
use crate::tui::{Choice, Exit, Running, Session, StartError, Theme, fixture};
use activity::feed::{Failure, FailureKind, Feed, Message, Outcome};

/// A terminal whose editor and job control only keep a record.
#[derive(Default)]
struct Record(Vec<String>);

impl Host for Record {
    fn suspend(&mut self) -> std::io::Result<()> {
        self.0.push("suspend".to_owned());
        Ok(())
    }

    fn copy(&mut self, text: &str) -> Result<String, String> {
        self.0.push(format!("copy {text}"));
        Ok(format!("copied {text}"))
    }

    fn edit(&mut self, file: &std::path::Path, _line: Option<u32>) -> std::io::Result<()> {
        self.0.push(format!("edit {}", file.display()));
        Ok(())
    }
}

fn key(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// A source that sends the fixture and then `then`s.
fn feed(sent: Sender<()>) -> Feed {
    Feed::spawn("fixture", move |outlet| {
        for batch in fixture::batches() {
            if outlet.send(Message::Batch(batch)).is_err() {
                return Outcome::Stopped;
            }
        }
        let _ = sent.send(());
        Outcome::Complete
    })
    .expect("a thread")
}

struct Outcomes {
    exit: Exit,
    screen: String,
    host: Record,
    started: Vec<NextRun>,
    saved: Vec<String>,
}

/// Runs a session: the first run, then `inputs` one after another with some time between them.
fn run(first: Option<NextRun>, file: Option<PathBuf>, inputs: Vec<Input>) -> Outcomes {
    run_of(usize::MAX, first, file, inputs)
}

/// The same with a source that starts only `runs` times.
fn run_of(
    runs: usize,
    first: Option<NextRun>,
    file: Option<PathBuf>,
    inputs: Vec<Input>,
) -> Outcomes {
    let (sender, receiver) = unbounded();
    let (sent, is_sent) = unbounded();
    let started = Rc::new(RefCell::new(Vec::new()));
    let saved = Rc::new(RefCell::new(Vec::new()));
    let (starts, saves) = (Rc::clone(&started), Rc::clone(&saved));
    let waits = first.is_some();
    let session = Session {
        opening: Default::default(),
        start: Box::new(move |wanted| {
            starts.borrow_mut().push(wanted.clone());
            if *wanted == NextRun::Scenario("broken".to_owned()) || starts.borrow().len() > runs {
                return Err(StartError {
                    failure: Failure {
                        kind: FailureKind::Machine,
                        message: "error: it is broken".to_owned(),
                        help: "mend it".to_owned(),
                    },
                    is_rendered: true,
                    file: None,
                    still: None,
                });
            }
            Ok(Running {
                gpus: gpus(),
                file: file.clone(),
                ..Running::new(feed(sent.clone()), fixture::source())
            })
        }),
        first,
        choices: vec![Choice {
            name: "broken".to_owned(),
            about: String::new(),
            ..Default::default()
        }],
        machine: None,
        board: None,
        file: Box::new(|| Err("there is no file".to_owned())),
        picture: || "cuptop-7".to_owned(),
        save: Box::new(move |buffer, name| {
            saves.borrow_mut().push(format!("{name}\n{}", text(buffer)));
            Ok("saved".to_owned())
        }),
        theme: Theme::default(),
    };
    let to_loop = sender.clone();
    let typist = std::thread::Builder::new()
        .name("typist".to_owned())
        .spawn(move || {
            if waits {
                let _ = is_sent.recv_timeout(Duration::from_secs(10));
            }
            for input in inputs {
                // Long enough that a frame lies between two inputs.
                std::thread::sleep(Duration::from_millis(80));
                if to_loop.send(input).is_err() {
                    return;
                }
            }
        })
        .expect("a thread");
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("a buffer");
    let mut host = Record::default();
    let exit = Loop::new(session, &mut terminal, &mut host, receiver)
        .run()
        .expect("a buffer never fails");
    typist.join().expect("it only sends");
    // Until here the loop has somebody who may send.
    drop(sender);
    Outcomes {
        exit,
        screen: text(terminal.backend().buffer()),
        host,
        started: started.take(),
        saved: saved.take(),
    }
}

#[test]
fn a_run_is_shown_saved_and_left() {
    // Enter takes the name that is offered, with what is typed behind it; escape takes nothing.
    let keys = ['s', '\n', 's', 'x', 's', '\n', 's', '\u{1b}', 'q'];
    let inputs = keys.map(|it| match it {
        '\n' => key(KeyCode::Enter),
        '\u{1b}' => key(KeyCode::Esc),
        _ => key(KeyCode::Char(it)),
    });
    let out = run(Some(NextRun::Same), None, inputs.into());
    assert_eq!(out.exit.outcome, Some(Outcome::Complete));
    assert_eq!((out.exit.signal, out.started.len()), (None, 1));
    let names = out.saved.iter().filter_map(|it| it.lines().next());
    assert_eq!(names.collect::<Vec<_>>(), ["cuptop-7", "cuptop-7xs"]);
    assert!(
        !out.saved[0].contains("save as"),
        "the question is no part of it"
    );
    assert!(out.saved[0].contains("SIMULATED"));
    assert!(out.saved[0].contains("1.95× faster"));
}

#[test]
fn a_rerun_starts_again() {
    let inputs = vec![key(KeyCode::Char('r')), key(KeyCode::Char('q'))];
    let out = run(Some(NextRun::Same), None, inputs);
    assert_eq!(out.started, [NextRun::Same, NextRun::Same]);
}

#[test]
fn a_signal_ends_it() {
    let out = run(Some(NextRun::Same), None, vec![Input::Signal(15)]);
    assert_eq!(out.exit.signal, Some(15));
}

#[test]
fn the_end_of_the_terminal_ends_it() {
    let out = run(
        Some(NextRun::Same),
        None,
        vec![Input::Signal(signal_hook::consts::SIGHUP)],
    );
    assert_eq!(out.exit.signal, Some(1), "SIGHUP");
}

#[test]
fn a_start_that_fails_is_shown() {
    let inputs = vec![key(KeyCode::Enter), key(KeyCode::Char('q'))];
    let out = run(None, None, inputs);
    assert_eq!(out.started, [NextRun::Scenario("broken".to_owned())]);
    assert!(out.screen.contains("error: it is broken"), "{}", out.screen);
    let error = out.exit.error.expect("the start's error");
    assert_eq!(error.failure.message, "error: it is broken");
    assert_eq!(error.failure.kind, FailureKind::Machine);
    assert!(out.screen.contains("mend it"), "{}", out.screen);
}

#[test]
fn a_rerun_that_cannot_start_leaves_the_last_good_run_and_its_end() {
    let inputs = vec![key(KeyCode::Char('r')), key(KeyCode::Char('q'))];
    let out = run_of(1, Some(NextRun::Same), None, inputs);
    assert_eq!(out.started.len(), 2);
    assert!(out.screen.contains("error: it is broken"), "{}", out.screen);
    assert_eq!(out.exit.error, None);
    assert_eq!(out.exit.outcome, Some(Outcome::Complete));
}

#[test]
fn the_editor_and_job_control_get_the_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("x.toml");
    std::fs::write(&file, "one").expect("a file");
    let suspend = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
    let inputs = vec![
        key(KeyCode::Char('e')),
        Input::Key(suspend),
        key(KeyCode::Char('q')),
    ];
    let out = run(Some(NextRun::Same), Some(file.clone()), inputs);
    assert_eq!(
        out.host.0,
        [format!("edit {}", file.display()), "suspend".to_owned()]
    );
    // It was not changed, so it did not run again.
    assert_eq!(out.started.len(), 1);
    // Everything was drawn again afterwards.
    assert!(out.screen.contains("streamed"), "{}", out.screen);
}

#[test]
fn without_a_file_there_is_nothing_to_edit() {
    let inputs = vec![key(KeyCode::Char('e')), key(KeyCode::Char('q'))];
    let out = run(Some(NextRun::Same), None, inputs);
    assert!(out.host.0.is_empty());
}

#[test]
fn a_failing_thread_is_a_line_of_the_log() {
    let inputs = vec![
        Input::ThreadFailed("the thread \"x\" failed".to_owned()),
        key(KeyCode::Char('5')),
        Input::Resize,
        key(KeyCode::Char('q')),
    ];
    let out = run(Some(NextRun::Same), None, inputs);
    assert!(
        out.screen.contains("the thread \"x\" failed"),
        "{}",
        out.screen
    );
}

#[test]
fn editors_are_told_of_a_line_in_their_own_way() {
    let file = std::path::Path::new("/me/train.py");
    for (editor, expected) in [
        ("vi", vec!["+19", "/me/train.py"]),
        ("/usr/bin/nano -w", vec!["+19", "/me/train.py"]),
        ("code --wait", vec!["--goto", "/me/train.py:19"]),
        ("hx", vec!["/me/train.py:19"]),
    ] {
        assert_eq!(super::place(editor, file, Some(19)), expected, "{editor}");
    }
    assert_eq!(super::place("code", file, None), ["/me/train.py"]);
}

#[test]
fn an_editor_may_stand_in_a_folder_with_a_blank_and_have_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("my editor.sh");
    let file = folder.path().join("a scenario.toml");
    std::fs::write(&script, "printf '%s|' \"$@\" > \"$2\"").expect("a script");
    let editor = format!("sh '{}' --wait", script.display());
    super::edit_by(&editor, &file, None).expect("an editor");
    let seen = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(seen, format!("--wait|{}|", file.display()));
    let error = super::edit_by("false", &file, None).expect_err("a failure");
    assert!(error.to_string().starts_with("false ended with"), "{error}");
}
