//! Writing batches of any source as a recording.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::{Clocks, Identity, StackLog, State, Writer, create_directory};

use super::map;
use activity::entry::Entry;
use activity::{
    Activity, Batch, Def, Frame, Health, LaunchShape, SampleDef, SampledThread, Samples, Sampling,
    StackId,
};

/// Writes the batches that pass by into a recording directory, one file for each process.
#[derive(Debug)]
pub struct Saver {
    directory: PathBuf,
    simulated: bool,
    processes: HashMap<u32, Saved>,
    told_error: bool,
}

#[derive(Debug)]
struct Saved {
    writer: Writer,
    names: HashMap<u32, u32>,
    shapes: HashMap<u32, u32>,
    /// For what was never defined.
    no_name: u32,
    no_shape: u32,
    received: u64,
    health: Option<Health>,
    ended_well: Option<bool>,
    stacks: StackLog,
    /// Stack samples, by series.
    samples: HashMap<u32, Series>,
}

/// What is known of a series of samples.
#[derive(Debug, Default)]
struct Series {
    frames: HashMap<u32, Frame>,
    /// Its stacks in the recording.
    stacks: HashMap<StackId, StackId>,
    sampling: Sampling,
}

impl Saver {
    /// Starts a recording in `directory`, which is made if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made, or holds recordings already.
    pub fn create(directory: &Path, simulated: bool) -> io::Result<Saver> {
        create_directory(directory)?;
        if !super::files::all_of(directory)?.is_empty() {
            let why = format!("{} holds a recording already", directory.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Ok(Saver {
            directory: directory.to_path_buf(),
            simulated,
            processes: HashMap::new(),
            told_error: false,
        })
    }

    /// Saves a batch and publishes it.
    ///
    /// # Errors
    /// When a file cannot be made. What cannot be written to a file that exists is counted in it.
    pub fn save(&mut self, batch: &Batch) -> io::Result<()> {
        let saved = match self.processes.entry(batch.process) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Saved::create(&self.directory, self.simulated, batch)?)
            }
        };
        saved.save(batch);
        Ok(())
    }

    /// Why the recording is not whole, in words; once.
    pub fn trouble(&mut self) -> Option<&'static str> {
        let mut errors = self
            .processes
            .values()
            .map(|saved| saved.writer.status.error);
        let found = errors.find_map(|error| error.describe())?;
        (!std::mem::replace(&mut self.told_error, true)).then_some(found)
    }

    /// Closes all files. A process that is known not to have ended well keeps an open end.
    pub fn finish(self) {
        for saved in self.processes.into_values() {
            let health = saved.totals();
            let mut saved = saved;
            if saved.ended_well == Some(false) {
                saved.writer.publish(&health);
            } else {
                saved.writer.close(&health, State::Closed);
            }
        }
    }
}

impl Saved {
    fn create(directory: &Path, simulated: bool, batch: &Batch) -> io::Result<Saved> {
        let pid = batch.defs.iter().find_map(|def| match def {
            Def::Process(info) => Some(info.pid),
            _ => None,
        });
        let identity = Identity {
            pid: pid.unwrap_or(0),
            simulated,
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
            ended_well: None,
            stacks: StackLog::default(),
            samples: HashMap::new(),
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
        if let Some(samples) = &batch.samples {
            self.sample(samples);
        }
        for it in &batch.hardware {
            self.writer.add(&Entry::Hardware(it.clone()));
        }
        for it in &batch.off_cpu {
            self.writer.add(&Entry::OffCpu(it.clone()));
        }
        self.received += batch.items.len() as u64;
        self.health = batch.health.or(self.health);
        let health = self.totals();
        self.writer.publish(&health);
    }

    fn sample(&mut self, samples: &Samples) {
        let (writer, log) = (&mut self.writer, &mut self.stacks);
        let series = self.samples.entry(samples.series).or_default();
        series.sampling = samples.sampling;
        let own = |stacks: &HashMap<StackId, StackId>, id| stacks.get(id).copied().unwrap_or(0);
        for def in &samples.defs {
            match def {
                SampleDef::Frame { id, frame } => {
                    series.frames.insert(*id, frame.clone());
                }
                SampleDef::Stack { id, caller, frame } => {
                    let unknown = Frame::default();
                    let frame = series.frames.get(frame).unwrap_or(&unknown);
                    let stack = log.deeper(writer, own(&series.stacks, caller), frame);
                    series.stacks.insert(*id, stack);
                }
                SampleDef::Nodes(nodes) => {
                    let nodes = nodes
                        .iter()
                        .map(|(node, id)| (*node, own(&series.stacks, id)));
                    writer.add(&Entry::SampleDef(SampleDef::Nodes(nodes.collect())));
                }
            }
        }
        for look in &samples.looks {
            let changed = look.changed.iter().map(|seen| SampledThread {
                stack: own(&series.stacks, &seen.stack),
                ..*seen
            });
            log.change(writer, look.time, changed.collect());
        }
        let mut sum = Sampling::default();
        for it in self.samples.values().map(|series| series.sampling) {
            sum.hz = sum.hz.max(it.hz);
            sum.torn += it.torn;
            sum.lost += it.lost;
            sum.cost_ns += it.cost_ns;
        }
        self.writer.add(&Entry::Sampling(sum));
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
            Def::Process(info) => {
                self.ended_well = info.ended_well;
                self.writer.add(&Entry::Process(info.clone()));
            }
        }
    }
}
