//! CPUs whose core does nothing else.
//!
//! Two hardware threads share a core, and each then takes half as long again and more for the same calls. The scheduler
//! keeps two busy threads off one core where it knows which CPUs are siblings. In a virtual machine it mostly does not, and
//! the sibling may be another machine's. Then a launch takes 3.6 us on one CPU and 5.6 us on the next, for as long as the
//! neighbour computes. That is of an H200's host, measured with this probe beside it. On an H100's host, 4 of 22 runs
//! without it took 1.3 to 1.5 times the median, and none of 22 runs with it. What a scenario takes shall not depend on
//! which of them the host's thread came to stand on.
//!
//! So each CPU is asked for a moment. Work that fills the core's units takes longer where they are shared. A chain of
//! dependent operations does not, whatever the clock's frequency.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that are asked at most; of more, so many spread over them.
const ASKED: usize = 32;
/// How much longer than on the quietest CPU the work may take on one that counts as quiet. Alone it takes the same within
/// 2 %, beside a neighbour 10 to 70 % longer.
const TOLERANCE: f64 = 1.08;
/// With fewer, a thread that is put off its CPU has nowhere to go.
const LEAST: usize = 2;
/// Turns of each loop: some 20 us the two.
const TURNS: u64 = 8_000;
/// The middle one of so many counts.
const SAMPLES: usize = 5;
/// How often all CPUs are asked before the first pass, and what lies between: neighbours come and go.
const ROUNDS: usize = 4;
const PAUSE: Duration = Duration::from_millis(4);

/// Keeps the thread that made it on quiet CPUs, as long as there are any.
pub(super) struct Quiet {
    /// The CPUs that the thread may stand on by what the user or the system set.
    allowed: CpuSet,
    cpus: Vec<Cpu>,
    /// What the work took on the quietest CPU ever, in the chain's time.
    least: f64,
    is_restricted: bool,
}

/// One that was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cpu {
    number: usize,
    /// What the work took, in the chain's time: the last time, or as it was over the last few times where that is longer.
    share: f64,
    /// Over the last few times, each of half the weight of the next.
    usual: f64,
}

impl Quiet {
    /// Looks at all CPUs that the thread may use, for some 30 ms. `None` where there is no choice, or the system does not say.
    pub(super) fn find() -> Option<Quiet> {
        let allowed = sched_getaffinity(None).ok()?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| allowed.is_set(cpu))
            .collect();
        let step = all.len().div_ceil(ASKED).max(1);
        let asked = all.into_iter().step_by(step);
        let cpus: Vec<Cpu> = asked
            .map(|number| Cpu {
                number,
                share: f64::INFINITY,
                usual: 0.0,
            })
            .collect();
        (cpus.len() > LEAST).then(|| {
            let mut quiet = Quiet {
                allowed,
                cpus,
                least: f64::INFINITY,
                is_restricted: false,
            };
            for _ in 1..ROUNDS {
                quiet.ask();
                std::thread::sleep(PAUSE);
            }
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
        let kept = self.cpus.iter().filter(|cpu| !set.is_set(cpu.number));
        self.is_restricted.then(|| {
            format!(
                "{} of {} CPUs share their core with other work; the host's thread stays on the others, where calls take the least time",
                kept.count(),
                self.cpus.len()
            )
        })
    }

    fn choose(&mut self) {
        self.ask();
        let quiet = quiet(&self.cpus, self.least);
        self.is_restricted = quiet.len() < self.cpus.len();
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

    /// Asks each CPU once more.
    fn ask(&mut self) {
        for cpu in &mut self.cpus {
            let mut one = CpuSet::new();
            one.set(cpu.number);
            let found = match sched_setaffinity(None, &one) {
                Ok(()) => share(),
                Err(_) => f64::INFINITY,
            };
            cpu.usual = match cpu.usual {
                0.0 => found,
                usual => f64::midpoint(usual, found),
            };
            cpu.share = found.max(cpu.usual);
            self.least = self.least.min(found);
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Refused only when these CPUs were taken away meanwhile, and then there is nothing to give back.
        let _ = sched_setaffinity(None, &self.allowed);
    }
}

/// The CPUs whose work takes hardly longer than `least`, and two at least, the quietest first.
fn quiet(cpus: &[Cpu], least: f64) -> Vec<usize> {
    let mut sorted = cpus.to_vec();
    sorted.sort_by(|a, b| a.share.total_cmp(&b.share));
    let of_the_best = sorted.iter().enumerate();
    of_the_best
        .take_while(|(i, cpu)| *i < LEAST || cpu.share <= least * TOLERANCE)
        .map(|(_, cpu)| cpu.number)
        .collect()
}

/// How long work that fills a core takes, in the time of a chain of dependent operations: the middle of some samples.
fn share() -> f64 {
    let mut samples: Vec<f64> = (0..=SAMPLES)
        .map(|_| {
            let start = Instant::now();
            black_box(chain(black_box(TURNS)));
            let middle = Instant::now();
            black_box(wide(black_box(TURNS)));
            let wide = middle.elapsed().as_secs_f64();
            wide / (middle - start).as_secs_f64().max(1e-9)
        })
        .skip(1) // the first warms up
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[SAMPLES / 2]
}

/// Each operation waits for the one before: how long it takes depends on the clock alone. Rotating and xor have no shorter form
/// that a compiler knows.
fn chain(turns: u64) -> u64 {
    (0..turns).fold(1, |x: u64, turn| x.rotate_left(5) ^ turn)
}

/// Eight such chains at a time, by amounts that no vector instruction rotates by: more than a core has units for.
fn wide(turns: u64) -> u64 {
    let mut x = [1_u64; 8];
    for turn in 0..turns {
        x[0] = x[0].rotate_left(5) ^ turn;
        x[1] = x[1].rotate_left(7) ^ turn;
        x[2] = x[2].rotate_left(11) ^ turn;
        x[3] = x[3].rotate_left(13) ^ turn;
        x[4] = x[4].rotate_left(17) ^ turn;
        x[5] = x[5].rotate_left(19) ^ turn;
        x[6] = x[6].rotate_left(23) ^ turn;
        x[7] = x[7].rotate_left(29) ^ turn;
    }
    x.iter().fold(0, |sum, x| sum ^ x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_near_the_quietest_are_quiet_and_two_always_are() {
        let cpus = |shares: &[(usize, f64)]| -> Vec<Cpu> {
            let cpu = |&(number, share)| Cpu {
                number,
                share,
                usual: share,
            };
            shares.iter().map(cpu).collect()
        };
        let many = cpus(&[
            (0, 3.1),
            (3, 2.27),
            (4, 2.5),
            (5, 2.25),
            (9, 2.9),
            (7, 2.42),
        ]);
        assert_eq!(quiet(&many, 2.25), [5, 3, 7]);
        assert_eq!(quiet(&cpus(&[(0, 3.1), (1, 2.2), (2, 3.0)]), 2.2), [1, 2]);
        assert_eq!(quiet(&cpus(&[(7, 2.2)]), 2.2), [7]);
        assert!(quiet(&[], 2.2).is_empty());
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
