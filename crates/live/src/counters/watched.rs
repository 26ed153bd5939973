//! The parent's end of a process that samples.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};

use super::process::{BEAT, SamplingJob};
use super::{Counters, PROCESS_COMMAND};
use crate::ending::await_end;
use crate::nvml::{self, Nvml};
use activity::{Uuid, uuid_text};

/// How long it may take to begin: setting up takes 0.7 to 1.4 s, and the driver of a machine with many GPUs longer.
const BEGINNING: Duration = Duration::from_secs(20);
/// How long it may be silent then.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Leaves stalls out where somebody has a GPU's counters, or that cannot be told: together with them no kernel would be recorded.
/// Returns why.
pub(crate) fn stalls_lack(stalls: &mut bool) -> Option<String> {
    let why = stalls.then(all_free)?.err()?;
    *stalls = false;
    Some(format!(
        "no stalls, as another user may have the GPU's counters ({why})"
    ))
}

/// Whether nobody has the counters of any GPU here: they were taken for a moment.
///
/// # Errors
/// Of which GPU that is not so, and why, in words.
fn all_free() -> Result<(), String> {
    let all = Nvml::load()?.devices();
    let all = all.map_err(|error| nvml::describe(&error))?;
    for gpu in all.iter().filter_map(nvml::uuid) {
        tried(Some(gpu)).map_err(|why| format!("{}: {why}", name_of(&gpu)))?;
    }
    Ok(())
}

/// Whether the counters of a GPU, or the first, can be sampled here, found out by beginning to.
///
/// # Errors
/// Why not, in words.
pub fn tried(uuid: Option<Uuid>) -> Result<(), String> {
    let words = |error: io::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(words)?;
    let mut process =
        CounterProcess::start(directory.path(), uuid, Counters::At(100)).map_err(words)?;
    let mut said = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < BEGINNING {
        let mut bytes = [0; 256];
        match process.stdout.as_mut().map(|it| it.read(&mut bytes)) {
            Some(Ok(count)) if count > 0 => said.extend_from_slice(&bytes[..count]),
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ if said.is_empty() => return Err("the process that samples them ended".to_owned()),
            _ => return Err(String::from_utf8_lossy(&said).into_owned()),
        }
        if said.first() == Some(&BEAT) {
            return Ok(());
        }
    }
    Err("CUPTI does not answer".to_owned())
}

/// A process that samples. Dropping it ends it.
pub(crate) struct CounterProcess {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    name: String,
    heard: Instant,
    patience: Duration,
}

impl CounterProcess {
    /// Starts it for a GPU, or for the first that there is.
    ///
    /// # Errors
    /// When the system gives no process.
    pub(crate) fn start(
        directory: &Path,
        uuid: Option<Uuid>,
        counters: Counters,
    ) -> io::Result<CounterProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        if let Some(uuid) = &uuid {
            command.env("CUDA_VISIBLE_DEVICES", format!("GPU-{}", uuid_text(uuid)));
        }
        let uuid = uuid.unwrap_or_default();
        let name = name_of(&uuid);
        let mut process = command
            .arg(PROCESS_COMMAND)
            .env_remove("CUDA_INJECTION64_PATH")
            .env_remove("NVTX_INJECTION64_PATH")
            // A terminal's interrupt is for the program: this one ends when its input does.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let job = SamplingJob {
            directory: directory.to_path_buf(),
            uuid,
            name: name.clone(),
            hz: counters.hz(),
        };
        let mut stdin = process.stdin.take();
        if let Some(stdin) = &mut stdin {
            let mut line = serde_json::to_vec(&job)?;
            line.push(b'\n');
            // If it has ended already, its end tells more than this error.
            let _ = stdin.write_all(&line);
        }
        let stdout = process.stdout.take();
        if let Some(stdout) = &stdout {
            fcntl_setfl(stdout, OFlags::NONBLOCK)?;
        }
        Ok(CounterProcess {
            process,
            stdin,
            stdout,
            name,
            heard: Instant::now(),
            patience: BEGINNING,
        })
    }

    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it samples.
    pub(crate) fn has_begun(&self) -> bool {
        self.patience == PATIENCE
    }

    /// Ends it. What is to be said where it had to be killed.
    pub(crate) fn end(mut self) -> Option<String> {
        let lack = "did not end within 2 s: what it sampled last is lost";
        let name = &self.name;
        let text = format!("counters of {name}: the process that samples them {lack}");
        self.stop().is_err().then_some(text)
    }

    fn stop(&mut self) -> Result<ExitStatus, Option<ExitStatus>> {
        drop(self.stdin.take());
        drop(self.stdout.take());
        await_end(&mut self.process, GRACE, || {})
    }

    /// Looks after it. When it is no more, what is to be said of that; nothing where its own file says it.
    pub(crate) fn check(&mut self) -> Result<(), Option<String>> {
        let mut bytes = [0; 256];
        while let Some(stdout) = &mut self.stdout {
            match stdout.read(&mut bytes) {
                Ok(0) => self.stdout = None,
                Ok(_) => (self.heard, self.patience) = (Instant::now(), PATIENCE),
                Err(_) => break,
            }
        }
        let name = &self.name;
        match self.process.try_wait() {
            Ok(Some(status)) if status.code().is_some() => Err(None),
            Ok(Some(status)) => Err(Some(format!(
                "counters of {name} end here: the process that samples them was ended by {status}"
            ))),
            _ if self.heard.elapsed() > self.patience => {
                let _ = self.process.kill();
                let _ = self.process.wait();
                Err(Some(format!(
                    "counters of {name} end here: CUPTI has not answered for {} s",
                    self.patience.as_secs()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// What to call a GPU.
pub(crate) fn name_of(uuid: &Uuid) -> String {
    format!("GPU {}", &uuid_text(uuid)[..8])
}

impl Drop for CounterProcess {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
