//! The program in a real pseudo-terminal: what reaches the screen, and what is left behind.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use activity::feed::Feed;
use cuptop::tui;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use trace::SourceInfo;

/// Nothing here waits for a time to pass, only for things to happen; this is when it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program on a terminal of its own.
struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    /// Everything it wrote.
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Ends when nobody has the terminal any more.
    reader: JoinHandle<()>,
    size: PtySize,
}

impl Session {
    fn start(args: &[&str], columns: u16, rows: u16) -> Session {
        Session::start_with(args, columns, rows, |_| {})
    }

    fn start_with(
        args: &[&str],
        columns: u16,
        rows: u16,
        set_up: impl FnOnce(&mut CommandBuilder),
    ) -> Session {
        let size = PtySize {
            rows,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cuptop"));
        command.args(args);
        Session::spawn(command, size, set_up)
    }

    /// This test program itself, as a screen that meets with `accident` (see [`child`]).
    fn accident(accident: &str) -> Session {
        let this = std::env::current_exe().expect("a test program");
        let mut command = CommandBuilder::new(this);
        command.args(["--exact", "pty::child", "--nocapture"]);
        command.env(ACCIDENT, accident);
        let size = PtySize {
            rows: 24,
            cols: 140,
            pixel_width: 0,
            pixel_height: 0,
        };
        Session::spawn(command, size, |_| {})
    }

    fn spawn(
        mut command: CommandBuilder,
        size: PtySize,
        set_up: impl FnOnce(&mut CommandBuilder),
    ) -> Session {
        let pair = native_pty_system().openpty(size).expect("a pty");
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        command.env_remove("TMUX");
        set_up(&mut command);
        let child = pair.slave.spawn_command(command).expect("the program");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader_thread = std::thread::Builder::new()
            .name("pty-reader".to_owned())
            .spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(n @ 1..) = reader.read(&mut chunk) {
                    sink.lock()
                        .expect("the reader")
                        .extend_from_slice(&chunk[..n]);
                }
            })
            .expect("a thread");
        let writer = pair.master.take_writer().expect("a writer");
        Session {
            child,
            master: pair.master,
            writer,
            bytes,
            reader: reader_thread,
            size,
        }
    }

    fn raw(&self) -> Vec<u8> {
        self.bytes.lock().expect("the reader").clone()
    }

    /// The terminal as it stands.
    fn parser(&self) -> vt100::Parser {
        let mut parser = parser(self.size);
        parser.process(&self.raw());
        parser
    }

    fn screen(&self) -> String {
        self.parser().screen().contents()
    }

    /// Waits until the screen holds `text`. What came is read once: eight tests that read all of it again and again leave
    /// the programs no core.
    fn wait_for(&self, text: &str) {
        let (mut parser, mut read, began) = (parser(self.size), 0, Instant::now());
        loop {
            let raw = self.raw();
            parser.process(&raw[read..]);
            read = raw.len();
            let shown = parser.screen().contents();
            if shown.contains(text) {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{text:?} did not appear:\n{shown}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).expect("the pty");
        self.writer.flush().expect("the pty");
    }

    /// Presses a key after each pause, until the program ends.
    fn end_by(&mut self, key: &str, pause: Duration) -> u32 {
        let began = Instant::now();
        while self.child.try_wait().expect("a child").is_none() && began.elapsed() < PATIENCE {
            std::thread::sleep(pause);
            // The terminal may just have become nobody's.
            let _ = self.writer.write_all(key.as_bytes());
            let _ = self.writer.flush();
            std::thread::sleep(pause);
        }
        self.end()
    }

    fn signal(&self, signal: i32) {
        let pid = self.child.process_id().expect("a running program") as i32;
        // The child is not reaped yet, so the id is still its own.
        assert_eq!(kill(pid, signal), 0);
    }

    /// Waits for the program's end and returns its exit code.
    fn end(&mut self) -> u32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                // What was written last may still be on its way: the reader ends when it has it all, and the
                // terminal is nobody's any more.
                let ended = Instant::now();
                while !self.reader.is_finished() && ended.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return status.exit_code();
            }
            assert!(
                began.elapsed() < PATIENCE,
                "it does not end:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asserts that the terminal is as it was before the program.
    fn assert_restored(&self) {
        let parser = self.parser();
        let screen = parser.screen();
        assert!(
            !screen.alternate_screen(),
            "it left the alternate screen on"
        );
        assert!(!screen.hide_cursor(), "it left the cursor hidden");
        assert_eq!(
            screen.mouse_protocol_mode(),
            vt100::MouseProtocolMode::None,
            "it left the mouse captured"
        );
        let raw = self.raw();
        let begins = count(&raw, b"\x1b[?2026h");
        let ends = count(&raw, b"\x1b[?2026l");
        assert_eq!(begins, ends, "it left an update open");
        #[cfg(unix)]
        if let Some(termios) = self.master.get_termios() {
            let flags = format!("{:?}", termios.local_flags);
            assert!(
                flags.contains("ICANON") && flags.contains("ECHO"),
                "{flags}"
            );
        }
    }
}

fn parser(size: PtySize) -> vt100::Parser {
    let lines = |n: u16| std::num::NonZero::new(n).expect("no terminal has no size");
    vt100::Parser::new(lines(size.rows), lines(size.cols), 0)
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack
        .windows(needle.len())
        .filter(|w| *w == needle)
        .count()
}

/// kill(2), through the shell's own tool: tests have no unsafe code.
fn kill(pid: i32, signal: i32) -> i32 {
    std::process::Command::new("kill")
        .arg(format!("-{signal}"))
        .arg(pid.to_string())
        .status()
        .map_or(-1, |status| status.code().unwrap_or(-1))
}

/// Says which accident [`child`] meets with.
const ACCIDENT: &str = "CUPTOP_TEST_ACCIDENT";

/// Not a test of its own: what [`Session::accident`] starts. The screen is the library's, the accident
/// happens in what it calls.
#[test]
fn child() {
    let Ok(accident) = std::env::var(ACCIDENT) else {
        return;
    };
    let session = tui::Session {
        opening: Default::default(),
        start: Box::new(move |_| {
            assert_ne!(accident, "screen", "an accident of the screen's thread");
            let feed = Feed::spawn("accident", |_| panic!("an accident of another thread"));
            Ok(tui::Running {
                feed: feed.expect("a thread"),
                source: SourceInfo::default(),
                plan: None,
                gpus: cuptop::report::KnownGpus::default(),
                warnings: Vec::new(),
                file: None,
                memory: None,
                controls: None,
                replay: None,
                beside: None,
            })
        }),
        first: Some(tui::NextRun::Same),
        choices: Vec::new(),
        machine: None,
        board: None,
        file: Box::new(|| Err(String::new())),
        picture: String::new,
        save: Box::new(|_, _| Ok(String::new())),
        theme: tui::Theme::default(),
    };
    tui::run(session).expect("a terminal");
}

#[test]
fn a_bundled_scenario_is_edited_as_a_copy_which_runs_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_owned();
    let editor = at.join("editor.sh");
    std::fs::write(
        &editor,
        "#!/bin/sh\nsed -i 's/^batches = 8/batches = 5/' \"$1\"\n",
    )
    .expect("written");
    let mut session = Session::start_with(
        &["run", "pipeline", "--backend", "sim"],
        120,
        30,
        |command| {
            command.cwd(&at);
            command.env("EDITOR", format!("sh {}", editor.display()));
        },
    );
    session.wait_for("DONE");
    session.press("e");
    session.wait_for("pipeline.toml is your copy");
    let copy = std::fs::read_to_string(at.join("pipeline.toml")).expect("a copy");
    assert!(copy.contains("batches = 5"), "{copy}");
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
    // The next copy goes beside the one that was changed.
    let mut session = Session::start_with(&["pipeline", "--backend", "sim"], 120, 30, |command| {
        command.cwd(&at);
        command.env("EDITOR", "true");
    });
    session.wait_for("DONE");
    session.press("e");
    session.wait_for("pipeline-2.toml is your copy");
    session.press("q");
    assert_eq!(session.end(), 0);
    assert_eq!(
        std::fs::read_to_string(at.join("pipeline.toml")).expect("a copy"),
        copy
    );
}

#[test]
fn a_panic_of_the_screen_gives_the_terminal_back_and_is_read_on_it() {
    let mut session = Session::accident("screen");
    assert_ne!(session.end(), 0);
    session.assert_restored();
    // After the terminal was given back, so it can be read.
    let raw = String::from_utf8_lossy(&session.raw()).into_owned();
    let (_, after) = raw.rsplit_once("\x1b[?1049l").expect("the normal screen");
    assert!(
        after.contains("an accident of the screen's thread"),
        "{after}"
    );
}

#[test]
fn a_panic_of_another_thread_leaves_the_screen_alone() {
    let mut session = Session::accident("worker");
    session.wait_for("FAILED");
    assert!(session.parser().screen().alternate_screen());
    session.press("4");
    session.wait_for("an accident of another thread");
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

const RUN: [&str; 4] = ["run", "pipeline", "--backend", "sim"];

#[test]
fn a_simulated_run_opens_and_q_leaves_the_terminal_as_it_was() {
    let mut session = Session::start(&RUN, 100, 30);
    session.wait_for("SIMULATED");
    session.wait_for("DONE");
    session.wait_for("variants by makespan");
    assert!(session.parser().screen().alternate_screen());
    session.press("?");
    session.wait_for("find the cause");
    // What is typed there is looked for, and done.
    session.press("next variant");
    session.press("\r");
    session.wait_for("› streamed");
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn what_another_program_wrote_over_the_screen_is_painted_over_at_a_key() {
    let mut session = Session::start(&RUN, 100, 30);
    session.wait_for("DONE");
    let painted = |session: &Session| count(&session.raw(), b"SIMULATED");
    let before = painted(&session);
    session.press("\x0c");
    let began = Instant::now();
    while painted(&session) == before {
        assert!(began.elapsed() < PATIENCE, "nothing was painted again");
        std::thread::sleep(Duration::from_millis(5));
    }
    session.press("q");
    assert_eq!(session.end(), 0);
}

/// A trace comes through the pipe that standard input is, keys from the terminal.
#[test]
fn a_name_is_copied_through_the_terminal() {
    let mut session = Session::start(&RUN, 120, 40);
    session.wait_for("DONE");
    session.press("/matmul\r");
    session.wait_for("1 of ");
    session.press("y");
    session.wait_for("copied 12 characters");
    // "matmul_tiled" in base64.
    let asked = b"\x1b]52;c;bWF0bXVsX3RpbGVk";
    assert_eq!(count(&session.raw(), asked), 1);
    session.press("q");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_trace_that_comes_through_a_pipe_is_opened_and_keys_work() {
    let mut command = CommandBuilder::new("sh");
    let script = "cat \"$1\" | \"$0\" open -";
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.json");
    command.args(["-c", script, env!("CARGO_BIN_EXE_cuptop"), trace]);
    let size = PtySize {
        rows: 30,
        cols: 120,
        pixel_width: 0,
        pixel_height: 0,
    };
    let mut session = Session::spawn(command, size, |_| {});
    session.wait_for("standard input");
    session.press("?");
    session.wait_for("operations by name");
    session.press("?");
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn signals_end_it_with_their_code() {
    // The last is a switch of `trace` and ends nothing.
    for (signal, code) in [15, 1, 2, 3, 6, 10, 14, 24, 26, 27, 29, 30, 16, 50, 64]
        .map(|signal| (signal, 128 + signal as u32))
        .into_iter()
        .chain([(12, 0)])
    {
        let mut session = Session::start(&RUN, 80, 24);
        session.wait_for("SIMULATED");
        session.signal(signal);
        if code == 0 {
            session.press("q");
        }
        assert_eq!(session.end(), code, "{signal}");
        session.assert_restored();
    }
}

/// A terminal that takes no bytes: its emulator is stopped, its link hangs. From before the first byte, or from some
/// text on. The program that is traced is told at once, and takes the time that it needs.
#[test]
fn a_terminal_that_takes_no_bytes_holds_nothing_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole");
    let script = format!(
        "trap 'sleep 4; echo >{}; exit 7' TERM; echo ready; while :; do sleep 0.01; done",
        whole.display()
    );
    let trace = ["trace", "--", "sh", "-c", &script];
    for (args, text, signal, code) in [
        (&RUN[..], None, 2, 130),
        (&RUN[..], Some("quit"), 15, 143),
        (&trace[..], Some("ready"), 15, 7),
    ] {
        let size = PtySize::default();
        let size = PtySize {
            rows: 24,
            cols: 80,
            ..size
        };
        let pair = native_pty_system().openpty(size).expect("a pty");
        let name = pair.master.tty_name().expect("a name");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let fill = || {
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let mut options = std::fs::File::options();
            std::os::unix::fs::OpenOptionsExt::custom_flags(options.write(true), flags);
            let mut terminal = options.open(&name).expect("the terminal");
            while terminal.write(&[b'.'; 64]).is_ok() {}
        };
        if text.is_none() {
            fill();
        }
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cuptop"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).expect("the program");
        drop(pair.slave);
        let is_raw = || {
            let modes = pair.master.get_termios().expect("modes");
            !format!("{:?}", modes.local_flags).contains("ICANON")
        };
        let (began, mut seen, mut chunk) = (Instant::now(), Vec::new(), [0; 512]);
        let has = |seen: &[u8], text: &str| count(seen, text.as_bytes()) > 0;
        while !is_raw() || text.is_some_and(|text| !has(&seen, text)) {
            assert!(
                began.elapsed() < PATIENCE,
                "{}",
                String::from_utf8_lossy(&seen)
            );
            if text.is_some() {
                let length = reader.read(&mut chunk).expect("the screen");
                seen.extend_from_slice(&chunk[..length]);
            }
        }
        fill();
        let pid = child.process_id().expect("a running program") as i32;
        assert_eq!(kill(pid, signal), 0);
        let began = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            assert!(began.elapsed() < PATIENCE, "{args:?} goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(child.wait().expect("a child").exit_code(), code, "{args:?}");
        assert!(!is_raw(), "{args:?} left the terminal raw");
    }
    assert!(whole.exists(), "the program was cut short");
}

/// A key reaches the program by itself; a signal that somebody sends does not.
#[test]
fn without_a_screen_the_program_hears_each_interrupt_once() {
    let script =
        "trap 'n=${n}1; echo heard $n' INT; echo ready; until read line; do :; done; exit 9";
    let args = ["trace", "--headless", "--", "sh", "-c", script];
    let mut session = Session::start(&args, 120, 24);
    session.wait_for("ready");
    session.press("\x03");
    session.wait_for("heard 1");
    // One that comes before cuptop has taken the terminal's is no other to the kernel.
    assert!(!session.screen().contains("heard 11"), "the key came twice");
    let began = Instant::now();
    while !session.screen().contains("heard 11") && began.elapsed() < PATIENCE {
        session.signal(2);
        std::thread::sleep(Duration::from_secs(1));
    }
    session.wait_for("heard 11");
    session.press("\n");
    assert_eq!(session.end(), 9);
}

/// A paste that begins and never ends, and a terminal that says that it is huge.
#[test]
fn a_paste_without_end_and_a_huge_terminal_are_survived() {
    let mut session = Session::start(&RUN, 80, 24);
    session.wait_for("SIMULATED");
    session.press("\x1b[200~");
    // One Ctrl-C is enough, as soon as a paste would have gone on. On a busy machine the first may come as a part of it.
    assert_eq!(session.end_by("\x03", Duration::from_millis(600)), 0);
    session.assert_restored();
    let mut command = CommandBuilder::new("sh");
    let script = "ulimit -v 8000000; exec \"$0\" run pipeline --backend sim";
    command.args(["-c", script, env!("CARGO_BIN_EXE_cuptop")]);
    let size = PtySize {
        rows: u16::MAX,
        cols: u16::MAX,
        ..PtySize::default()
    };
    let mut session = Session::spawn(command, size, |_| {});
    let began = Instant::now();
    while count(&session.raw(), b"SIMULATED") == 0 {
        assert!(began.elapsed() < PATIENCE, "nothing was drawn");
        std::thread::sleep(Duration::from_millis(10));
    }
    session.press("q");
    assert_eq!(session.end(), 0);
}

/// Keys that crossterm does not know (Ctrl-, of xterm), held down for longer than a paste is waited for.
#[test]
fn keys_that_nobody_knows_leave_the_keyboard_alone() {
    let mut session = Session::start(&RUN, 80, 24);
    session.wait_for("SIMULATED");
    for _ in 0..60 {
        session.press("\x1b[27;5;44~");
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(session.end_by("q", Duration::from_millis(200)), 0);
    session.assert_restored();
}

#[test]
fn control_c_leaves_too() {
    let mut session = Session::start(&RUN, 80, 24);
    session.wait_for("SIMULATED");
    session.press("\x03");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn it_stops_and_goes_on() {
    let mut session = Session::start(&RUN, 80, 24);
    session.wait_for("DONE");
    let drawn = session.raw().len();
    session.press("\x1a");
    let began = Instant::now();
    while session.parser().screen().alternate_screen() {
        assert!(
            began.elapsed() < PATIENCE,
            "it did not give the terminal back"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    session.signal(18);
    session.wait_for("DONE");
    assert!(
        session.raw().len() > drawn + 80 * 24,
        "not all was drawn again"
    );
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn the_picker_runs_what_it_points_at() {
    let mut session = Session::start(&[], 100, 30);
    session.wait_for("pinned_vs_pageable");
    session.press("\r");
    session.wait_for("SIMULATED");
    session.press("q");
    session.end();
    session.assert_restored();
}

/// Whose ids NVML's are depends on where the test runs: in a container the process is shown for its number alone.
#[test]
fn the_picker_lists_what_runs_and_enter_says_what_attaching_means() {
    let folder = tempfile::tempdir().expect("a directory");
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake/libnvidia-ml.c");
    let made = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", fake, "-o"])
        .arg(folder.path().join("libnvidia-ml.so.1"))
        .status();
    assert!(made.expect("a compiler").success());
    let mut sleep = std::process::Command::new("sleep")
        .arg("97")
        .spawn()
        .expect("starts");
    let mut session = Session::start_with(&[], 100, 30, |command| {
        command.env("LD_LIBRARY_PATH", folder.path());
        command.env("FAKE_NVML_PIDS", sleep.id().to_string());
    });
    session.wait_for("87 % busy");
    assert!(session.screen().contains("pinned_vs_pageable"));
    // The second GPU has one process.
    session.press("j\r");
    session.wait_for(&format!("attach to process {}", sleep.id()));
    let has_ids = std::fs::read_link("/proc/self/ns/pid")
        .is_ok_and(|it| it.as_os_str() == "pid:[4026531836]");
    assert_eq!(session.screen().contains("sleep 97"), has_ids);
    if session.screen().contains("enter attaches") {
        session.press("\r");
        let began = Instant::now();
        while session.screen().contains("what runs here") {
            assert!(began.elapsed() < PATIENCE, "{}", session.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(sleep.try_wait().expect("a child").is_none(), "it goes on");
    }
    session.press("q");
    session.end();
    session.assert_restored();
    sleep.kill().expect("killed");
    sleep.wait().expect("ends");
}

#[test]
fn saving_the_file_runs_it_again_and_a_mistake_keeps_the_last_good_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mine.toml");
    let good = include_str!("../../scenarios/pipeline.toml");
    std::fs::write(&file, good).expect("a file");
    let path = file.to_str().expect("a plain path").to_owned();
    let mut session = Session::start(&["run", &path, "--backend", "sim"], 110, 30);
    session.wait_for("DONE");
    // As editors do it: another file, renamed over.
    let save = |text: &str| {
        let swap = dir.path().join(".mine.toml.swp");
        std::fs::write(&swap, text).expect("a file");
        std::fs::rename(&swap, &file).expect("a rename");
    };
    save(&good.replacen("[params]", "[parms]", 1));
    session.wait_for("below is the last run that did");
    session.wait_for("[parms]");
    save(&format!("{good}\n# better\n"));
    session.wait_for("DONE");
    let began = Instant::now();
    while session.screen().contains("did not run") {
        assert!(began.elapsed() < PATIENCE, "the error stays");
        std::thread::sleep(Duration::from_millis(10));
    }
    session.wait_for("DONE");
    session.press("4");
    session.wait_for("run before");
    session.press("q");
    session.end();
    session.assert_restored();
}

#[test]
fn it_follows_the_terminals_size() {
    let mut session = Session::start(&RUN, 120, 40);
    session.wait_for("DONE");
    session.size = PtySize {
        rows: 24,
        cols: 80,
        pixel_width: 0,
        pixel_height: 0,
    };
    // What was drawn for the old size is not what this terminal would show: only the new counts. It may
    // be there as soon as the size has changed.
    let old = session.raw().len();
    session.master.resize(session.size).expect("the pty");
    let began = Instant::now();
    loop {
        let raw = session.raw();
        let mut parser = parser(session.size);
        parser.process(&raw[old..]);
        if parser.screen().contents().contains("q quit") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "nothing was drawn anew");
        std::thread::sleep(Duration::from_millis(10));
    }
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn a_key_that_comes_with_a_change_of_size_is_not_lost() {
    let mut session = Session::start(&RUN, 120, 40);
    session.wait_for("DONE");
    // Stopped, so that both are there at once when it goes on.
    session.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(50));
    session.size.cols = 100;
    session.master.resize(session.size).expect("the pty");
    session.press("q");
    session.signal(libc::SIGCONT);
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn tiny_terminals_are_survived() {
    for (columns, rows) in [(1, 1), (20, 5), (3, 50), (200, 2)] {
        let mut session = Session::start(&RUN, columns, rows);
        let began = Instant::now();
        while session.raw().is_empty() {
            assert!(began.elapsed() < PATIENCE, "nothing was drawn");
            std::thread::sleep(Duration::from_millis(10));
        }
        session.press("v+gjq");
        assert_eq!(session.end(), 0, "{columns}x{rows}");
        session.assert_restored();
    }
}

#[test]
fn without_colours_no_colour_is_sent() {
    let mut session = Session::start_with(&RUN, 80, 24, |command| {
        command.env("NO_COLOR", "1");
    });
    session.wait_for("DONE");
    session.press("q");
    session.end();
    let styles = styles(&session.raw());
    assert!(
        styles.iter().any(|s| s == "7"),
        "boxes are reversed: {styles:?}"
    );
    // Colours are 30 to 49 and 90 to 107, and what follows 38 and 48.
    let is_color = |n: u8| matches!(n, 30..=49 | 90..=107);
    let is_colored = |style: &String| style.split(';').any(|n| n.parse().is_ok_and(is_color));
    let colored: Vec<&String> = styles.iter().filter(|s| is_colored(s)).collect();
    assert!(colored.is_empty(), "{colored:?}");
}

/// The parameters of all styles (SGR) that were sent.
fn styles(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    text.split("\x1b[")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            rest[end..].starts_with('m').then(|| rest[..end].to_owned())
        })
        .collect()
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let mut session = Session::start(&RUN, 120, 40);
    session.wait_for("DONE");
    session.press("0");
    // On a busy machine the frame of that key comes late.
    let began = Instant::now();
    let is_quiet = || {
        let before = session.raw().len();
        std::thread::sleep(Duration::from_millis(300));
        session.raw().len() == before
    };
    while !is_quiet() {
        assert!(began.elapsed() < PATIENCE, "it goes on writing");
    }
    session.press("q");
    session.end();
}

/// The connection breaks: nothing may be left that spins on a terminal that is gone.
#[test]
fn it_ends_when_the_terminal_goes() {
    let size = PtySize {
        rows: 24,
        cols: 80,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pair = native_pty_system().openpty(size).expect("a pty");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cuptop"));
    command.args(["run", "pipeline", "--backend", "sim"]);
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command).expect("the program");
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().expect("a reader");
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    // Up to the whole first screen.
    while !seen.windows(4).any(|bytes| bytes == b"quit") {
        let read = reader.read(&mut chunk).expect("the screen");
        assert_ne!(read, 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&chunk[..read]);
    }
    drop(reader);
    drop(pair.master);
    let began = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        assert!(began.elapsed() < PATIENCE, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = child.wait().expect("a child");
    assert_eq!(status.exit_code(), 129, "{status:?}");
}

#[test]
fn keys_are_heard_when_no_descriptor_is_left() {
    let mut session = Session::start(&["run", "pipeline", "--backend", "sim"], 120, 40);
    session.wait_for("DONE");
    let pid = session.child.process_id().expect("a running program");
    let only_standard = rustix::process::Rlimit {
        current: Some(3),
        maximum: Some(3),
    };
    let limit = rustix::process::Resource::Nofile;
    let set = rustix::process::prlimit(
        rustix::process::Pid::from_raw(pid as i32),
        limit,
        only_standard,
    );
    set.expect("its limit");
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}

#[test]
fn a_scenario_that_becomes_a_fifo_or_has_no_end_is_said_and_the_screen_lives_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.toml");
    let text = include_str!("../../scenarios/pipeline.toml");
    std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("UTF-8");
    let mut session = Session::start(&["run", file, "--backend", "sim"], 120, 40);
    session.wait_for("DONE");
    for make in ["mkfifo", "ln -s /dev/zero", "ln -s /dev/tty"] {
        std::fs::remove_file(&path).expect("removed");
        let made = std::process::Command::new("sh")
            .args(["-c", &format!("{make} \"$1\""), "sh", file])
            .status();
        assert!(made.expect("a shell").success());
        session.wait_for("not a plain file");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, text).expect("written");
        session.wait_for("DONE");
    }
    session.press("q");
    assert_eq!(session.end(), 0);
    session.assert_restored();
}
