//! Recordings on other machines, followed over the user's own ssh.
//!
//! ```text
//! here                                                          there
//! Follower ◄─ files ◄─ mirror ◄─ link ◄─ ssh ◄──── frames ◄──── cuptop serve-recordings ◄─ recordings
//!                                 └───► ssh ────► asks ──────────┘
//! ```
//!
//! The near side requests what is new, a bounded piece at a time. What arrives goes into files of ours in memory (or a
//! temporary folder), which a follower reads like all others. Once read, it is freed. After a broken link, a new one
//! goes on behind what has arrived. `frame` defines the protocol; `docs/SECURITY.md` tells what is trusted.

mod frame;
mod link;
mod mirror;
mod place;
mod serve;
mod shared;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod why;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use place::{Place, is_host};
pub use serve::process_main;

use activity::feed::{Gone, Joined, Message, SourceStatus, Stop};
use activity::text::cut;
use link::Link;
use mirror::Mirror;
use recording::scratch::{self, Scratch};
use recording::{Inlet, Sink};
use shared::{Phase, Shared};

/// The variable that names another program than `ssh`, with its first arguments.
const SSH: &str = "CUPTOP_SSH";
/// How many machines it follows at a time: each has a thread and a process.
const MOST: usize = 64;
/// An answer that takes longer than this is worth a notice.
const SILENT: Duration = Duration::from_secs(3);

/// Without a screen, a silent machine is given up after this long.
const LOST: Duration = Duration::from_secs(90);
/// A link that is made again must work after this long.
const CONNECTING: Duration = Duration::from_secs(30);
/// The first one, for which ssh may ask: as long as sshd gives for a login. Its first answer is whole after as long again.
/// In a twelfth of that it is said what is waited for.
const LOGIN: Duration = Duration::from_secs(120);

/// One place on another machine.
pub struct Host {
    /// The name that the user gave it.
    pub name: String,
    host: String,
    shared: Shared,
    stop: Stop,
    _thread: Joined,
    /// Where its files are here.
    root: PathBuf,
    /// Deletes the folder with the last of the files.
    _folder: Arc<Scratch>,
}

/// Follows these places. With `say`, ssh may ask for passwords on the terminal, one place after another. A place out of
/// reach is then an error. Without it nobody waits, and each link is tried again and again.
///
/// # Errors
/// Why a place cannot be followed, in a sentence or two.
pub fn connect(places: &[Place], say: Option<&mut dyn FnMut(&str)>) -> Result<Vec<Host>, String> {
    let ssh = std::env::var(SSH).unwrap_or_default();
    let ssh: Vec<String> = ssh.split_whitespace().map(str::to_owned).collect();
    connect_by(&ssh, LOGIN, places, say)
}

/// [`connect`] with another program than ssh, and its first arguments; the first link may take so long.
///
/// # Errors
/// As [`connect`].
pub fn connect_by(
    ssh: &[String],
    login: Duration,
    places: &[Place],
    mut say: Option<&mut dyn FnMut(&str)>,
) -> Result<Vec<Host>, String> {
    if places.len() > MOST {
        return Err(format!(
            "{} places on other machines: up to {MOST} are followed",
            places.len()
        ));
    }
    let folder = scratch::directory().map_err(|error| format!("no temporary folder: {error}"))?;
    let folder = Arc::new(folder);
    let mut hosts: Vec<Host> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let root = folder.path().join(at.to_string());
        std::fs::create_dir(&root).map_err(|error| format!("no temporary folder: {error}"))?;
        let login = say.is_some().then_some(login);
        let mut host = Host::start(ssh, place, root, Arc::clone(&folder), login)?;
        if let Some((say, login)) = say.as_mut().zip(login) {
            host.wait(login, say)?;
        }
        hosts.push(host);
    }
    Ok(hosts)
}

impl Host {
    fn start(
        ssh: &[String],
        place: &Place,
        root: PathBuf,
        folder: Arc<Scratch>,
        login: Option<Duration>,
    ) -> Result<Host, String> {
        let (shared, stop) = (Shared::new(Mirror::new(root.clone())), Stop::default());
        let patience = login.unwrap_or(CONNECTING);
        let link = Link {
            place: place.clone(),
            ssh: ssh.to_vec(),
            shared: shared.clone(),
            stop: stop.clone(),
            may_ask: login.is_some(),
            patience,
            dead: link::DEAD.min(patience),
        };
        let thread = Joined::spawn("cuptop-link", move || link.run())
            .map_err(|error| format!("the system gives no thread: {error}"))?;
        Ok(Host {
            name: place.name(),
            host: place.host.clone(),
            shared,
            stop,
            _thread: thread,
            root,
            _folder: folder,
        })
    }

    /// Waits until the link works, or has failed: at most twice for `login`.
    fn wait(&mut self, login: Duration, say: &mut dyn FnMut(&str)) -> Result<(), String> {
        say(&format!("connecting to {} …", self.host));
        let mut is_told = false;
        loop {
            for (_, text) in self.shared.take_notices() {
                say(&text);
            }
            let standing = self.shared.link_state(Instant::now());
            if standing.silent > login / 12 && !std::mem::replace(&mut is_told, true) {
                let (host, seconds) = (&self.host, login.as_secs_f32());
                say(&format!(
                    "waiting for {host}: ssh has brought no word of cuptop yet; after {seconds} s it is given up"
                ));
            }
            match standing.phase {
                Phase::Failed => {
                    for (_, text) in self.shared.take_notices() {
                        say(&text);
                    }
                    return Err(standing.why);
                }
                Phase::Connecting => std::thread::sleep(Duration::from_millis(20)),
                Phase::Up | Phase::Down => return Ok(()),
            }
        }
    }
}

impl Inlet for Host {
    fn pump(&mut self, sink: Sink<'_>) -> Result<(), Gone> {
        for (is_warning, text) in self.shared.take_notices() {
            sink(Message::Notice { is_warning, text })?;
        }
        Ok(())
    }

    fn lacks(&self, now: Instant) -> Vec<SourceStatus> {
        let standing = self.shared.link_state(now);
        let (host, seconds) = (&self.host, standing.silent.as_secs());
        let why = match standing.phase {
            Phase::Up if standing.silent < SILENT => return Vec::new(),
            Phase::Connecting => " yet".to_owned(),
            Phase::Up => String::new(),
            Phase::Down | Phase::Failed => {
                let first = standing.why.lines().next().unwrap_or_default();
                format!(" ({})", cut(first, 100))
            }
        };
        vec![SourceStatus {
            is_alarming: standing.phase != Phase::Connecting,
            text: format!("{host}: no word for {seconds} s{why}"),
        }]
    }

    fn excuses(&self, path: &Path) -> bool {
        path.starts_with(&self.root) && !self.lacks(Instant::now()).is_empty()
    }

    fn is_caught_up(&self) -> bool {
        self.shared.link_state(Instant::now()).is_caught_up
    }

    fn is_lost(&self, now: Instant) -> Option<String> {
        let standing = self.shared.link_state(now);
        let lost = standing.phase == Phase::Failed || standing.silent >= LOST;
        lost.then(|| self.lacks(now).into_iter().map(|it| it.text).collect())
    }

    fn stop(&mut self) {
        self.stop.stop();
    }

    fn folder(&self) -> &Path {
        &self.root
    }

    fn was_read(&mut self, path: &Path, position: u64) {
        if path.starts_with(&self.root) {
            self.shared.mirror(|mirror| mirror.was_read(path, position));
        }
    }

    fn named(&self, text: &str) -> Option<String> {
        let root = self.root.to_str()?;
        text.contains(root).then(|| text.replace(root, &self.name))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
