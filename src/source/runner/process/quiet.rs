//! CPUs whose core does nothing else.
//!
//! Two hardware threads share a core, and each then takes half as long again and more for the same calls. The scheduler
//! keeps two busy threads off one core where it knows which CPUs are siblings. In a virtual machine it mostly does not, and
//! the sibling may be another machine's: then a launch takes 3.6 us on one CPU and 5.6 us on the next, for as long as the
//! neighbour computes (an H200's host, measured with this probe beside it). What a scenario takes shall not depend on
//! which of them the host's thread came to stand on.
//!
//! So each CPU is asked for a moment: work that fills the core's units takes longer where they are shared, and a chain of
//! dependent operations does not, whatever the clock's frequency.

use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that are asked at most; of more, so many spread over them.
const ASKED: usize = 32;
/// How much longer than on the quietest CPU the work may take on one that counts as quiet.
const TOLERANCE: f64 = 1.2;
/// With fewer, a thread that is put off its CPU has nowhere to go.
const LEAST: usize = 2;
/// Turns of each loop: some 20 us the two.
const TURNS: u64 = 8_000;
/// The middle one of so many counts.
const SAMPLES: usize = 5;

/// Keeps the thread that made it on quiet CPUs, as long as there are any.
#[derive(Debug)]
pub(super) struct Quiet {
    /// The CPUs that the thread may stand on by what the user or the system set.
    allowed: CpuSet,
    cpus: Vec<usize>,
    /// What the work took on the quietest CPU, in the chain's time.
    least: f64,
    is_restricted: bool,
}

impl Quiet {
    /// Looks at all CPUs that the thread may use. `None` where there is no choice, or the system does not say.
    pub(super) fn find() -> Option<Quiet> {
        let allowed = sched_getaffinity(None).ok()?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| allowed.is_set(cpu))
            .collect();
        let step = all.len().div_ceil(ASKED).max(1);
        let cpus: Vec<usize> = all.into_iter().step_by(step).collect();
        (cpus.len() > LEAST).then(|| {
            let mut quiet = Quiet {
                allowed,
                cpus,
                least: f64::INFINITY,
                is_restricted: false,
            };
            quiet.choose();
            quiet
        })
    }

    /// Looks again where the CPU that the thread is on has become slower.
    pub(super) fn settle(&mut self) {
        if share() > self.least * TOLERANCE {
            self.choose();
        }
    }

    /// Of how many CPUs how many are quiet, in words, where that makes a difference.
    pub(super) fn describe(&self) -> Option<String> {
        let set = sched_getaffinity(None).ok()?;
        self.is_restricted.then(|| {
            format!(
                "{} of {} CPUs share their core with other work; the host's thread stays on the others, where calls take the least time",
                self.cpus.iter().filter(|&&cpu| !set.is_set(cpu)).count(),
                self.cpus.len()
            )
        })
    }

    fn choose(&mut self) {
        let shares: Vec<(usize, f64)> = (self.cpus.iter())
            .filter_map(|&cpu| {
                let mut one = CpuSet::new();
                one.set(cpu);
                sched_setaffinity(None, &one).ok()?;
                Some((cpu, share()))
            })
            .collect();
        let quiet = quiet(&shares);
        self.least = (shares.iter()).fold(f64::INFINITY, |least, (_, share)| least.min(*share));
        self.is_restricted = quiet.len() < shares.len();
        let mut set = self.allowed;
        if self.is_restricted {
            set = CpuSet::new();
            quiet.iter().for_each(|&cpu| set.set(cpu));
        }
        // Refused where the CPUs were taken away meanwhile: the thread stays where the system puts it.
        if sched_setaffinity(None, &set).is_err() {
            self.is_restricted = false;
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Refused only when these CPUs were taken away meanwhile, and then there is nothing to give back.
        let _ = sched_setaffinity(None, &self.allowed);
    }
}

/// The CPUs whose work took hardly longer than the least, and two at least.
fn quiet(shares: &[(usize, f64)]) -> Vec<usize> {
    let mut sorted = shares.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let most = sorted.first().map_or(0.0, |(_, least)| least * TOLERANCE);
    let of_the_best = sorted.iter().enumerate();
    of_the_best
        .take_while(|(i, (_, share))| *i < LEAST || *share <= most)
        .map(|(_, (cpu, _))| *cpu)
        .collect()
}

/// How long work that fills a core takes, in the time of a chain of dependent operations: the middle of some samples.
fn share() -> f64 {
    let mut samples: Vec<f64> = (0..=SAMPLES)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(chain(TURNS));
            let middle = Instant::now();
            std::hint::black_box(wide(TURNS));
            let wide = middle.elapsed().as_secs_f64();
            wide / (middle - start).as_secs_f64().max(1e-9)
        })
        .skip(1) // the first warms up
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[SAMPLES / 2]
}

/// Each operation waits for the one before: how long it takes depends on the clock alone.
fn chain(turns: u64) -> u64 {
    (0..turns).fold(turns, |x, _| {
        std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    })
}

/// Operations that wait for none: as many at a time as the core can do.
fn wide(turns: u64) -> u64 {
    let mut x = [1_u64; 8];
    for turn in 0..turns {
        for (k, x) in x.iter_mut().enumerate() {
            *x = (*x ^ turn).wrapping_add(k as u64);
        }
        std::hint::black_box(&mut x);
    }
    x.iter().fold(0, |sum, x| sum ^ x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_near_the_quietest_are_quiet_and_two_always_are() {
        let shares = [(0, 2.1), (3, 1.17), (4, 1.3), (5, 1.2), (9, 2.4)];
        assert_eq!(quiet(&shares), [3, 5, 4]);
        assert_eq!(quiet(&[(0, 2.1), (1, 1.0), (2, 2.0)]), [1, 2]);
        assert_eq!(quiet(&[(7, 1.0)]), [7]);
        assert!(quiet(&[]).is_empty());
    }

    #[test]
    fn the_thread_is_given_back_where_it_may_stand() {
        let before = sched_getaffinity(None).expect("Linux says");
        if let Some(mut quiet) = Quiet::find() {
            let within = sched_getaffinity(None).expect("Linux says");
            assert!((0..CpuSet::MAX_CPU).all(|cpu| !within.is_set(cpu) || before.is_set(cpu)));
            assert_eq!(quiet.describe().is_some(), within != before);
            quiet.least = 0.0; // every CPU is slower than that: it looks again
            quiet.settle();
        }
        assert_eq!(sched_getaffinity(None).expect("Linux says"), before);
    }
}
