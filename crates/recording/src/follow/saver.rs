//! Writing what the simulator does as a recording.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::{Clocks, Identity, State, Writer, create_directory};

use super::map;
use activity::entry::Entry;
use activity::{Activity, Batch, Def, Health, LaunchShape};

/// Writes the batches of one process that pass by into a recording directory, marked as simulated.
pub struct Saver {
    directory: PathBuf,
    /// The file, from the first batch on, which says whose it is.
    saved: Option<Saved>,
    told_error: bool,
}

struct Saved {
    writer: Writer,
    names: HashMap<u32, u32>,
    shapes: HashMap<u32, u32>,
    /// For what was never defined.
    no_name: u32,
    no_shape: u32,
    received: u64,
    health: Option<Health>,
}

impl Saver {
    /// Starts a recording in `directory`, which is made if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made, or holds recordings already.
    pub fn create(directory: &Path) -> io::Result<Saver> {
        create_directory(directory)?;
        if !super::files::all_of(directory)?.is_empty() {
            let why = format!("{} holds a recording already", directory.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Ok(Saver {
            directory: directory.to_path_buf(),
            saved: None,
            told_error: false,
        })
    }

    /// Saves a batch and publishes it. Samples of stacks and of threads are left out: a simulator has none.
    ///
    /// # Errors
    /// When the file cannot be made. What cannot be written to a file that exists is counted in it.
    pub fn save(&mut self, batch: &Batch) -> io::Result<()> {
        match &mut self.saved {
            Some(saved) => saved.save(batch),
            none => none
                .insert(Saved::create(&self.directory, batch)?)
                .save(batch),
        }
        Ok(())
    }

    /// Why the recording is not whole, in words; once.
    pub fn trouble(&mut self) -> Option<&'static str> {
        let found = self.saved.as_ref()?.writer.status.error.describe()?;
        (!std::mem::replace(&mut self.told_error, true)).then_some(found)
    }

    /// Closes the file.
    pub fn finish(self) {
        if let Some(saved) = self.saved {
            let health = saved.totals();
            saved.writer.close(&health, State::Closed);
        }
    }
}

impl Saved {
    fn create(directory: &Path, batch: &Batch) -> io::Result<Saved> {
        let pid = batch.defs.iter().find_map(|def| match def {
            Def::Process(info) => Some(info.pid),
            _ => None,
        });
        let identity = Identity {
            pid: pid.unwrap_or(0),
            simulated: true,
            start: Clocks::now(),
            ..Identity::default()
        };
        let mut writer = Writer::create(directory, identity, 0)?;
        let no_name = writer.name(b"");
        let no_shape = writer.shape(&LaunchShape {
            name: no_name,
            ..LaunchShape::default()
        });
        Ok(Saved {
            writer,
            names: HashMap::new(),
            shapes: HashMap::new(),
            no_name,
            no_shape,
            received: 0,
            health: None,
        })
    }

    fn save(&mut self, batch: &Batch) {
        for def in &batch.defs {
            self.define(def);
        }
        for item in &batch.items {
            let what = map::with_ids(
                item.what,
                |id| self.names.get(&id).copied().unwrap_or(self.no_name),
                |id| self.shapes.get(&id).copied().unwrap_or(self.no_shape),
            );
            self.writer.record(&Activity { what, ..*item });
        }
        for it in &batch.hardware {
            self.writer.add(&Entry::Hardware(it.clone()));
        }
        self.received += batch.items.len() as u64;
        self.health = batch.health.or(self.health);
        let health = self.totals();
        self.writer.publish(&health);
    }

    fn totals(&self) -> Health {
        self.health.unwrap_or_else(|| Health {
            received: self.received,
            ..Health::default()
        })
    }

    fn define(&mut self, def: &Def) {
        match def {
            Def::Name { id, text } => {
                let own = self.writer.name(text.as_bytes());
                self.names.insert(*id, own);
            }
            Def::Shape { id, shape } => {
                let name = self.names.get(&shape.name).copied().unwrap_or(self.no_name);
                let own = self.writer.shape(&LaunchShape {
                    name,
                    // Told apart by ids alone: what it is follows.
                    collective: *id + 1,
                    ..*shape
                });
                self.shapes.insert(*id, own);
            }
            Def::Collective { shape, collective } => {
                if let Some(&own) = self.shapes.get(shape) {
                    self.writer.add(&Entry::Collective(own, collective.clone()));
                }
            }
            Def::Device(info) => self.writer.add(&Entry::Device(info.clone())),
            Def::Stream(info) => self.writer.add(&Entry::Stream(info.clone())),
            Def::Thread { thread, name } => {
                self.writer.add(&Entry::Thread(*thread, name.as_bytes()));
            }
            Def::Mode(mode) => self.writer.add(&Entry::Mode(*mode)),
            Def::Process(info) => self.writer.add(&Entry::Process(info.clone())),
        }
    }
}
