//! What a program does but once, and how long: its start in words.

use rustc_hash::FxHashSet;

use activity::text::listed;
use activity::units::duration;
use activity::{Ns, Overhead, Span};

/// What the time goes to. What lies in several is the first one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstWork {
    Driver,
    Context,
    UnseenContext,
    Compiling,
    Loading,
    Pinning,
    Managed,
    Memory,
    Staging,
    Trying,
    Tuning,
    Building,
    /// Nobody saw what.
    Before,
    First,
}

/// When it was done.
#[derive(Debug, Default)]
pub struct StartWork {
    pub spans: [Vec<Span>; WORKS.len()],
    pub all: FxHashSet<Span>,
    /// Of what was built, what no record shows.
    pub unseen: Vec<Span>,
    /// Whether the driver's compiler was there.
    pub compiler: bool,
}

const WORKS: [&str; 14] = [
    "setting up the driver",
    "making the context",
    Overhead::CONTEXT,
    "compiling PTX in the driver",
    "loading GPU code",
    "pinning host memory",
    "setting up managed memory",
    "first allocations and frees",
    "the first copy, which makes the staging buffer",
    "trying which algorithm is fastest",
    "trials of Triton's autotuner",
    "compiling kernels",
    "the CPU's work before first launches",
    "slow first calls to libraries",
];

impl StartWork {
    pub fn add(&mut self, work: FirstWork, span: Span) {
        self.spans[work as usize].push(span);
        self.all.insert(span);
    }

    pub fn sum_of(&self, work: FirstWork) -> Ns {
        Span::union_len(self.spans[work as usize].clone())
    }

    pub fn time(&self) -> Ns {
        Span::union_len(self.spans.concat())
    }

    /// All that took a twentieth of so much time, or longer than the GPU's work, each with what it adds, and how long. What is named
    /// alone took no more than its own time.
    pub fn told(&self, time: Ns, work: Ns) -> (Ns, String) {
        let is_long = |time: Ns| time >= work && cases::FEW_MIN.is_reached_by(time);
        let mut before = 0;
        let parts = (0..WORKS.len()).map(|at| {
            let until = Span::union_len(self.spans[..=at].concat());
            (at, until - std::mem::replace(&mut before, until))
        });
        let parts: Vec<(usize, Ns)> = parts
            .filter(|it| it.1 > 0 && (it.1.saturating_mul(20) >= time || is_long(it.1)))
            .collect();
        match parts[..] {
            [(at, _)] => (Span::union_len(self.spans[at].clone()), self.name(at)),
            _ => {
                let parts = parts.iter();
                let parts =
                    parts.map(|&(at, own)| format!("{} ({})", self.name(at), duration(own)));
                let parts: Vec<String> = parts.collect();
                (time, listed(&parts))
            }
        }
    }

    /// What is done, and whether that is a guess.
    fn name(&self, at: usize) -> String {
        let is_guess = at == FirstWork::Building as usize && self.is_guess();
        format!(
            "{}{}",
            WORKS[at],
            if is_guess { ", most likely" } else { "" }
        )
    }

    /// Whether no record shows most of what was built.
    pub fn is_guess(&self) -> bool {
        let unseen = Span::union_len(self.unseen.clone());
        unseen > 0 && 2 * unseen >= self.sum_of(FirstWork::Building)
    }

    /// Whether compiling took long, where a load or a first launch may be it. That a context opens the compiler says nothing.
    pub fn is_compiled(&self, time: Ns) -> bool {
        let both = self.sum_of(FirstWork::Compiling) + self.sum_of(FirstWork::Loading);
        self.compiler && cases::FEW_MIN.is_reached_by(both) && both.saturating_mul(20) >= time
    }

    pub fn is_mostly(&self, work: FirstWork, time: Ns) -> bool {
        self.sum_of(work).saturating_mul(2) >= time
    }
}
