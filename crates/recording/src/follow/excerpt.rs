//! Keeping a stretch of a recording, also while it is being written.
//!
//! What touches the stretch is kept as it is, ranges around it with their own ends. It also gets what it cannot be read
//! without: the calls that queued its operations, and, at its beginning, the memory that was allocated then. Losses are
//! those of the whole recording, so that none goes uncounted.

use std::io;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Follower, Saver, files};
use activity::feed::Message;
use activity::{
    Activity, Batch, Hardware, Health, MemoryAction, Ns, OffCpu, SampledThread, Samples, Sampling,
    Span, What,
};

/// Writes what a recording holds of `window` (its own time) into the new directory `to`. Returns how many records that are.
///
/// # Errors
/// When something cannot be read or written, `to` exists, or nothing of the recording touches the window. What was written until
/// then is left.
pub fn excerpt(directory: &Path, to: &Path, window: Span) -> io::Result<u64> {
    super::must_be_new(to)?;
    // Both times the same files: one that comes in between would change what processes are numbered.
    let files = files::files_of(directory)?;
    let mut processes: FxHashMap<u32, Touched> = FxHashMap::default();
    each(&files, |batch| {
        let process = processes.entry(batch.process).or_default();
        process.note(&batch, window);
        Ok(())
    })?;
    if !processes.values().any(|it| it.is_there) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "nothing was recorded in the window",
        ));
    }
    let mut out = Out {
        window,
        saver: Saver::create(to, super::is_simulated(&files))?,
        samples: FxHashMap::default(),
        received: FxHashMap::default(),
        others: Batch::default(),
    };
    each(&files, |mut batch| {
        match processes.get_mut(&batch.process) {
            Some(process) if process.is_there => out.take(batch, process),
            _ => {
                out.cut(&mut batch);
                out.others.hardware.append(&mut batch.hardware);
                Ok(())
            }
        }
    })?;
    if !out.others.is_empty() {
        out.saver.save(&out.others)?;
    }
    let records = out.received.values().sum();
    out.saver.finish();
    Ok(records)
}

/// Every batch of these recordings as they are now.
fn each(
    files: &[std::path::PathBuf],
    mut take: impl FnMut(Batch) -> io::Result<()>,
) -> io::Result<()> {
    let mut follower = Follower::open_all(files)?;
    let mut result = Ok(());
    // The sink below is never gone.
    let _ = follower.finish_into(&mut |message| {
        if let Message::Batch(batch) = message
            && result.is_ok()
        {
            result = take(batch);
        }
        Ok(())
    });
    result
}

/// What of a process touches the window.
#[derive(Debug, Default)]
struct Touched {
    is_there: bool,
    /// Of its operations there.
    correlations: FxHashSet<u32>,
    /// By address, what happened last before the window: when, and the allocation if it was one.
    memory: FxHashMap<u64, (Ns, Option<Activity>)>,
}

impl Touched {
    fn note(&mut self, batch: &Batch, window: Span) {
        for item in &batch.items {
            if item.span.overlaps(window) {
                self.is_there = true;
                if item.is_operation() {
                    self.correlations.insert(item.correlation);
                }
            }
            if let What::Memory(it) = item.what
                && item.span.start < window.start
            {
                let last = self.memory.entry(it.address).or_insert((Ns::MIN, None));
                if item.span.start >= last.0 {
                    let is_held = it.action == MemoryAction::Alloc;
                    *last = (item.span.start, is_held.then_some(*item));
                }
            }
        }
        let mut looks = batch.samples.iter().flat_map(|it| &it.looks);
        self.is_there |= looks.any(|look| window.contains(look.time));
    }

    fn wants(&self, item: &Activity, window: Span) -> bool {
        let is_known = item.correlation == 0 || self.correlations.contains(&item.correlation);
        match item.what {
            // An operation that came since the first look has no call here.
            what if what.is_operation() => is_known && item.span.overlaps(window),
            What::Call(_) if item.correlation != 0 && is_known => true,
            _ => item.span.overlaps(window),
        }
    }
}

/// What is known of a series of samples on the way.
#[derive(Debug, Default)]
struct Series {
    /// What each thread was last seen doing.
    threads: FxHashMap<u32, SampledThread>,
    has_begun: bool,
    /// The totals until the batch before, and of those batches that are kept.
    before: Sampling,
    kept: Sampling,
}

struct Out {
    window: Span,
    saver: Saver,
    /// By process and series.
    samples: FxHashMap<(u32, u32), Series>,
    /// By process.
    received: FxHashMap<u32, u64>,
    /// What was seen of GPUs, and came with processes that are not there: it goes with one that is.
    others: Batch,
}

impl Out {
    fn take(&mut self, mut batch: Batch, process: &mut Touched) -> io::Result<()> {
        let window = self.window;
        self.cut(&mut batch);
        batch.items.retain(|item| process.wants(item, window));
        for (_, held) in std::mem::take(&mut process.memory).into_values() {
            // It has no call in the window.
            batch.items.extend(held.map(|it| Activity {
                span: Span::at(window.start),
                correlation: 0,
                ..it
            }));
        }
        let received = self.received.entry(batch.process).or_default();
        *received += batch.items.len() as u64;
        batch.health = batch.health.map(|health| Health {
            received: *received + health.losses(),
            oldest_open: None,
            ..health
        });
        if let Some(samples) = batch.samples.take() {
            let series = (batch.process, samples.series);
            batch.samples = Some(self.samples.entry(series).or_default().cut(samples, window));
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.others.process = batch.process;
        self.saver.save(&batch)
    }

    /// Leaves out what was seen of GPUs and threads at other times.
    fn cut(&self, batch: &mut Batch) {
        let window = self.window;
        batch.hardware.retain(|it| match it {
            Hardware::Reading(it) | Hardware::Sample(it) => it.span.overlaps(window),
            _ => true,
        });
        batch.off_cpu.retain(|it| match it {
            OffCpu::Thread(it) => it.span.overlaps(window),
            OffCpu::Group(it) => it.span.overlaps(window),
            OffCpu::Note(_) => true,
        });
    }
}

impl Series {
    /// The looks of the window. The first of them names every thread, as looks name what changed.
    fn cut(&mut self, mut samples: Samples, window: Span) -> Samples {
        samples.looks.retain_mut(|look| {
            for seen in &look.changed {
                match seen.stack {
                    0 => self.threads.remove(&seen.thread),
                    _ => self.threads.insert(seen.thread, *seen),
                };
            }
            let is_within = window.contains(look.time);
            if is_within && !std::mem::replace(&mut self.has_begun, true) {
                look.changed = self.threads.values().copied().collect();
                look.changed.sort_unstable_by_key(|it| it.thread);
            }
            is_within
        });
        let (now, before) = (samples.sampling, self.before);
        if !samples.looks.is_empty() {
            // Totals come with each block of looks, half a second.
            self.kept.torn += now.torn.saturating_sub(before.torn);
            self.kept.lost += now.lost.saturating_sub(before.lost);
            self.kept.cost_ns += now.cost_ns.saturating_sub(before.cost_ns);
            self.kept.looks += samples.looks.len() as u64;
            self.kept.hz = now.hz;
        }
        self.before = now;
        samples.sampling = self.kept;
        samples
    }
}

#[cfg(test)]
mod tests;
