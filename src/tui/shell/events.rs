//! The loop: waits for the feed, the keyboard, signals, the file and the clock; draws when something
//! changed, at most once a frame. Generic over the backend, so that tests drive it whole.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, never, select};
use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::Backend;
use ratatui::layout::{Rect, Size};

use super::frame_log::FrameLog;
use super::input::Input;
use super::mouse::Mouse;
use super::pace::Pace;
use super::watch::FileWatch;
use crate::board::Entry;
use crate::tui::action::Action;
use crate::tui::app::{App, Effect};
use crate::tui::frame::overlay::Overlay;
use crate::tui::state::analyst::Analyst;
use crate::tui::state::prompt::{Asks, Prompt};
use crate::tui::state::{LineKind, NextRun, SourceLine, Status};
use crate::tui::{Controls, Exit, Session, StartError, keys, render};
use activity::feed::{Failure, FailureKind, Feed, Message, Outcome};
use live::attach::Refused;
use live::job::Job;
use live::machine::Machine;

/// The clock in the header goes on this often.
const TICK: Duration = Duration::from_millis(100);
/// How long messages are taken in before the keyboard gets its turn.
const DRAIN: Duration = Duration::from_millis(12);

/// Cells that are drawn at most, in some 100 MB: a terminal can call itself 65,535 columns wide and as high.
const CELLS: u32 = 1 << 20;

/// What frames are drawn on.
pub trait Screen: Backend<Error: Send + Sync + 'static> {}

impl<B: Backend<Error: Send + Sync + 'static>> Screen for B {}

/// What only the real terminal can do.
pub trait Host {
    /// Gives the terminal back and stops the process until it is continued.
    ///
    /// # Errors
    /// When the terminal cannot be taken over again.
    fn suspend(&mut self) -> io::Result<()>;

    /// Copies a text to the clipboard, and says what was done.
    ///
    /// # Errors
    /// Why it was not copied.
    fn copy(&mut self, text: &str) -> Result<String, String>;

    /// Gives the terminal to an editor until it ends, at a line where one is given.
    ///
    /// # Errors
    /// When the editor cannot be run or fails.
    fn edit(&mut self, file: &Path, line: Option<u32>) -> io::Result<()>;
}

/// The loop's own state.
pub struct Loop<'a, B: Screen> {
    session: Session<'a>,
    terminal: &'a mut Terminal<B>,
    host: &'a mut dyn Host,
    inputs: Receiver<Input>,
    app: App,
    feed: Option<Feed>,
    controls: Option<Box<dyn Controls>>,
    watch: Option<FileWatch>,
    began: Instant,
    exit: Exit,
    pace: Pace,
    is_over: bool,
    mouse: Mouse,
    frames: FrameLog,
    /// Answers of the analysis threads have come.
    answers: Receiver<()>,
    /// Who looks at the job that is shown.
    job: Option<live::job::Watch>,
}

impl<'a, B: Screen> Loop<'a, B> {
    /// A loop that has not begun.
    pub fn new(
        session: Session<'a>,
        terminal: &'a mut Terminal<B>,
        host: &'a mut dyn Host,
        inputs: Receiver<Input>,
    ) -> Self {
        let (wake, answers) = bounded(1);
        let mut app = App::new(session.choices.clone());
        app.opening = session.opening.clone();
        app.state.messages.log.clock = Some(|| chrono::Local::now().time());
        match Analyst::start(&wake) {
            Ok(analyst) => app.state.model.analyst = analyst,
            // Everything is answered at once then, which may take its time.
            Err(error) => {
                app.state.note(format!("no thread for analysis: {error}"));
            }
        }
        Loop {
            app,
            answers,
            session,
            terminal,
            host,
            inputs,
            feed: None,
            controls: None,
            watch: None,
            began: Instant::now(),
            exit: Exit::default(),
            pace: Pace::new(Instant::now()),
            is_over: false,
            mouse: Mouse::default(),
            frames: FrameLog::from_env(),
            job: None,
        }
    }

    /// Runs until the user leaves.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn run(mut self) -> io::Result<Exit> {
        self.repaint()?;
        if let Some(first) = self.session.first.take() {
            self.start(first);
        }
        while !self.is_over {
            let now = Instant::now();
            if self.pace.is_due(now, !self.inputs.is_empty()) {
                self.draw()?;
                self.pace.drawn(now, now.elapsed());
            }
            let wake = [
                self.pace.wake(),
                self.app.state.model.run.is_running().then(|| now + TICK),
                self.watch.as_ref().map(|it| it.due),
            ];
            let wake = wake.into_iter().flatten().min();
            let ((seen, traces), jobs) = (self.picked(), self.jobs());
            let none = never();
            let messages = self.feed.as_ref().map_or(&none, Feed::receiver).clone();
            let timeout = wake.map_or(never(), crossbeam_channel::at);
            select! {
                recv(self.inputs) -> input => match input {
                    Ok(input) => self.input(input)?,
                    Err(_) => self.is_over = true,
                },
                recv(messages) -> message => self.drain(message.ok(), &messages),
                recv(seen) -> machine => match machine {
                    Ok(machine) => {
                        self.pace.changed();
                        self.app.see(machine);
                    }
                    Err(_) => self.session.machine = None,
                },
                recv(traces) -> entries => match entries {
                    Ok(entries) => {
                        self.pace.changed();
                        self.app.state.model.board = entries;
                    }
                    Err(_) => self.session.board = None,
                },
                recv(jobs) -> seen => if let Ok(seen) = seen {
                    self.pace.changed();
                    self.app.see_jobs(seen);
                },
                recv(self.answers) -> answer => {
                    self.pace.changed();
                    if answer.is_err() {
                        self.answers = never();
                    }
                }
                recv(timeout) -> _ => {}
            }
            self.tick();
        }
        // Ends the source and the analysis before the terminal is given back.
        self.feed = None;
        self.app.state.model.analyst = Analyst::default();
        let outcome = match self.app.state.model.run.status {
            Status::Ended(outcome) => Some(outcome),
            Status::Idle | Status::Running => None,
        };
        Ok(Exit {
            outcome,
            ..self.exit
        })
    }

    /// What runs on this machine, and the traces of this folder, which are taken while the picker is on screen.
    fn picked(&self) -> (Receiver<Machine>, Receiver<Vec<Entry>>) {
        let of = self.app.is_picking().then_some(&self.session);
        let machine = of.and_then(|it| it.machine.as_ref());
        let board = of.and_then(|it| it.board.as_ref());
        (
            machine.map_or(never(), |it| it.machines.clone()),
            board.map_or(never(), |it| it.entries.clone()),
        )
    }

    /// How the jobs stand that are shown: as long as they are, they are looked at.
    fn jobs(&mut self) -> Receiver<Result<Vec<Job>, Refused>> {
        let shown = match self.app.overlay {
            Overlay::Job { pid, .. } => Some(pid),
            _ => None,
        };
        if self.job.as_ref().map(|it| it.pid) != shown {
            self.app.state.model.seen_jobs = None;
            self.job = shown.and_then(|pid| live::job::Watch::start(pid).ok());
        }
        self.job.as_ref().map_or(never(), |it| it.jobs.clone())
    }

    /// The terminal's size, without the rows that would make it more than [`CELLS`].
    fn size(&self) -> io::Result<Size> {
        let mut size = self.terminal.size().map_err(io::Error::other)?;
        let rows = CELLS / u32::from(size.width.max(1));
        size.height = size.height.min(u16::try_from(rows).unwrap_or(u16::MAX));
        Ok(size)
    }

    fn draw(&mut self) -> io::Result<()> {
        // It may have changed since the last event.
        if self.size()? != self.app.state.size {
            self.repaint()?;
        }
        let (app, theme) = (&mut self.app, &self.session.theme);
        let drawn = self.terminal.draw(|frame| {
            let buf = frame.buffer_mut();
            app.state.size = Size::new(buf.area().width, buf.area().height);
            app.prepare();
            app.draw(theme, buf);
        });
        drawn.map(|_| ()).map_err(io::Error::other)?;
        self.frames.note(&self.app.state.model.run.trace);
        Ok(())
    }

    fn tick(&mut self) {
        if self.app.state.model.run.is_running() {
            let elapsed = self.began.elapsed();
            // The header shows tenths.
            let tenths = |d: Duration| d.as_millis() / 100;
            let before = tenths(self.app.state.model.run.elapsed);
            self.app.tick(elapsed);
            if tenths(self.app.state.model.run.elapsed) != before {
                self.pace.changed();
            }
        }
        let now = Instant::now();
        match self.watch.as_mut().and_then(|it| it.has_changed(now)) {
            Some(true) => {
                self.start(NextRun::Same);
            }
            Some(false) if self.app.state.messages.flash.is_none() => {
                let text = format!(
                    "saved without a change: run {} stands",
                    self.app.state.model.run.number
                );
                self.flash(Ok(text));
                self.pace.changed();
            }
            _ => {}
        }
    }

    /// Takes in one message and those that wait behind it.
    fn drain(&mut self, first: Option<Message>, messages: &Receiver<Message>) {
        self.pace.changed();
        let Some(first) = first else {
            self.feed = None;
            self.app.finish(Outcome::Failed(Failure::new(
                FailureKind::Machine,
                "the source ended without a last word",
                "",
            )));
            return;
        };
        let until = Instant::now() + DRAIN;
        let mut next = Some(first);
        while let Some(message) = next {
            let is_last = matches!(message, Message::Finished(_));
            self.app.tick(self.began.elapsed());
            self.app.take(message);
            if is_last {
                self.feed = None;
                return;
            }
            // A key that was pressed meanwhile goes first.
            next = if Instant::now() < until && self.inputs.is_empty() {
                messages.try_recv().ok()
            } else {
                None
            };
        }
    }

    fn input(&mut self, input: Input) -> io::Result<()> {
        let action = match input {
            Input::Key(key) => {
                self.pace.pressed(Instant::now());
                let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('l') if is_control => return self.repaint(),
                    KeyCode::Char('z') if is_control => return self.suspend(),
                    _ => keys::resolve(key, self.app.context()),
                }
            }
            Input::Mouse(event) => self.mouse.action(event, self.app.context()),
            Input::Suspend => return self.suspend(),
            Input::Resize => {
                self.pace.changed();
                None
            }
            Input::Signal(signal) => {
                self.exit.signal = Some(signal);
                self.is_over = true;
                None
            }
            Input::ThreadFailed(text) => {
                self.app.state.messages.log.push(LineKind::Error, &text);
                self.pace.changed();
                None
            }
        };
        match action {
            Some(action) => self.act(action),
            None => Ok(()),
        }
    }

    fn act(&mut self, action: Action) -> io::Result<()> {
        self.pace.changed();
        let model = &self.app.state.model;
        model.analyst.act(model.run.elapsed);
        let effect = self.app.act(action);
        if let Some(replay) = &self.app.state.model.run.replay {
            replay.pause.hold(self.app.state.focus.camera.is_paused());
        }
        match effect {
            None => {}
            Some(Effect::Quit) => self.is_over = true,
            Some(Effect::Start(wanted)) => {
                // To attach may take a few seconds, in which nothing is drawn.
                self.draw()?;
                self.start(wanted);
            }
            Some(Effect::Leave) => {
                self.feed = None;
                self.controls = None;
                self.watch = None;
            }
            Some(Effect::Stop) => {
                if let Some(feed) = &self.feed {
                    feed.stop.stop();
                }
            }
            Some(Effect::Name) => {
                let prompt = Prompt::new(Asks::Picture, (self.session.picture)());
                self.app.state.prompt = Some(prompt);
            }
            Some(Effect::Save(name)) => {
                let buffer = render(&mut self.app, &self.session.theme);
                let saved = (self.session.save)(&buffer, &name);
                self.flash(saved);
            }
            Some(Effect::Copy(text)) => {
                let said = self.host.copy(&text);
                self.flash(said);
            }
            Some(Effect::Edit(Some(at))) => self.open_source(&at)?,
            Some(Effect::Edit(None)) => self.edit()?,
            Some(Effect::Ask) => self.job.iter().for_each(live::job::Watch::ask),
            Some(Effect::Record) => self.control(|it| it.record()),
            Some(Effect::Keep) => self.control(|it| it.keep()),
        }
        Ok(())
    }

    /// Shows for a while what was done, or why not.
    fn flash(&mut self, said: Result<String, String>) {
        let (Ok(text) | Err(text)) = said;
        self.app.state.say(text);
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.host.suspend()?;
        self.repaint()
    }

    fn control(&mut self, ask: impl FnOnce(&mut dyn Controls) -> Result<String, String>) {
        let done = match &mut self.controls {
            None => Err("only a program under `cuptop trace` can be recorded or kept".to_owned()),
            Some(controls) => ask(controls.as_mut()),
        };
        self.flash(done);
    }

    /// Opens the editor at a line of the program, or copies where it is when its file cannot be read here.
    fn open_source(&mut self, at: &SourceLine) -> io::Result<()> {
        let file = Path::new(&at.file);
        if !file.is_file() {
            let said = self.host.copy(&at.to_string());
            let said = said.map(|it| format!("{at} is not here: {it}"));
            self.flash(said);
            return Ok(());
        }
        if let Err(error) = self.host.edit(file, Some(at.line)) {
            self.flash(Err(error.to_string()));
        }
        self.repaint()
    }

    fn edit(&mut self) -> io::Result<()> {
        let watched = self.watch.as_ref().map(|w| w.path.to_owned());
        let is_watched = watched.is_some();
        let file = match watched.map_or_else(|| (self.session.file)(), Ok) {
            Ok(file) => file,
            Err(text) => {
                self.flash(Err(text));
                return Ok(());
            }
        };
        // A bundled scenario goes on as the copy of it that is edited.
        let is_copy =
            !is_watched && self.app.state.model.run.trace.source.path.as_ref() != Some(&file);
        if is_copy {
            self.start(NextRun::Scenario(file.display().to_string()));
        }
        if let Err(error) = self.host.edit(&file, None) {
            self.flash(Err(error.to_string()));
        } else if is_copy {
            let text = format!("{} is your copy, and is what runs now", file.display());
            self.flash(Ok(text));
        }
        if let Some(watch) = &mut self.watch {
            watch.touch();
        }
        self.repaint()
    }

    /// The screen holds something else now: everything is drawn again. (`Terminal::clear` would ask
    /// the terminal for its cursor, which not every one answers.)
    fn repaint(&mut self) -> io::Result<()> {
        let size = self.size()?;
        let area = Rect::new(0, 0, size.width, size.height);
        self.terminal.resize(area).map_err(io::Error::other)?;
        self.app.state.size = size;
        self.pace.changed();
        Ok(())
    }

    fn start(&mut self, wanted: NextRun) {
        self.pace.changed();
        if let NextRun::Look(pid) = wanted {
            self.app.overlay = Overlay::Job { pid, at: 0 };
            return;
        }
        if let NextRun::Compare(two) = wanted {
            self.exit.compare = Some(two);
            self.is_over = true;
            return;
        }
        // The run before ends first: both would use one GPU.
        self.feed = None;
        if self.app.state.model.run.is_running() {
            self.app.finish(Outcome::Stopped);
        }
        match (self.session.start)(&wanted) {
            Ok(running) => {
                self.app.start(running.source, running.plan, running.gpus);
                self.app.state.model.run.replay = running.replay;
                self.app.state.model.run.beside = running.beside;
                for said in &running.warnings {
                    self.app.state.messages.said(said);
                }
                self.feed = Some(running.feed);
                self.controls = running.controls;
                self.app.state.model.run.trace.set_limit(running.memory);
                self.began = Instant::now();
                self.exit.error = None;
                self.watch_file(running.file.as_deref());
            }
            Err(StartError {
                still: pid @ Some(_),
                ..
            }) => self.app.overlay = Overlay::Job { pid, at: 0 },
            Err(error) => {
                match wanted {
                    NextRun::Process(_) | NextRun::Enter(_) => self.app.refuse(&error.failure),
                    _ => self.app.fail(&error.failure),
                }
                self.watch_file(error.file.as_deref());
                // Beside a run that did start, on which the screen still stands, this is a passing word.
                if self.app.is_picking() {
                    self.exit.error = Some(error);
                }
            }
        }
    }

    fn watch_file(&mut self, file: Option<&Path>) {
        match (file, &self.watch) {
            (None, _) => self.watch = None,
            (Some(file), Some(watch)) if watch.path == file => {}
            (Some(file), _) => self.watch = Some(FileWatch::new(file)),
        }
    }
}
