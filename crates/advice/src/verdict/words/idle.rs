//! What is said of a GPU that is idle: what the CPU does meanwhile.

use rustc_hash::FxHashMap;

use super::{Bound, MOST, NO_KERNEL, Told, cut_to, most};
use crate::verdict::split::CpuWork;
use activity::Ns;
use activity::text::counted;
use activity::units::{duration, percent, share};
use causes::Cause;
use causes::asleep;
use causes::first_use::{is_allocation, is_file_io, is_file_output, is_system_wait, pins};
use causes::stacks::StackCounts;
use figures::busy::mostly;
use figures::steps::without_numbers;
use findings::no_cure::{SPREAD, UNTRACED};
use trace::describe::host_name;

/// So much of the CPU's work on managed memory lies behind all kernels where it is a matter of its own. Pages take less of it.
const BEHIND: f64 = 0.9;
const PAGES_MAX: f64 = 0.05;

/// Why a GPU idles that was given work in time.
const LATE: &str = "in work that starts late, though launched in time";

/// Where it idles whose graphs were launched before: not each of their nodes has a record.
const OF_GRAPHS: &str = "before or inside CUDA graphs that were launched in time";

/// Why kernels are likely compiled where no record shows it.
const FIRST: &str = "before first launches";

fn takes_memory(name: &str) -> bool {
    is_allocation(name) || pins(name)
}

/// A name with this part of what no name holds most of is told.
const SPREAD_MIN: f64 = 0.2;

/// So many names that differ in numbers alone are of one place.
const NUMBERED_MIN: usize = 3;

/// So many launches, in a step or in all, are many.
const LAUNCHES_MIN: u64 = 8;

/// Copies are told beside launches of kernels from this part of them on.
const COPIES_TOLD: u64 = 4;

/// What copies do that no kernel hides.
pub(in crate::verdict) const ALONE: &str = "copies without a kernel beside them take";

impl Told<'_> {
    /// What copies take of a GPU that computes, while no kernel runs. Of those that mostly run beside kernels it is the first and the last.
    pub(super) fn copies_alone(&self) -> Option<String> {
        let (free, hidden) = (self.split.copying - self.split.both, self.split.both);
        let alone = share(free, self.split.whole());
        let is_told = self.bound == Bound::Compute
            && free > hidden
            && cases::LARGE_SHARE.is_reached_by(alone);
        let (part, of) = (percent(alone), self.whole());
        is_told.then(|| format!("{ALONE} {part} of {of}"))
    }

    /// Why the GPU is idle while something else bounds it: what bounds then, how long, and how that is told as a headline. The most
    /// first, and what takes a twentieth of the time. The most is told of a GPU that is idle for a tenth of it, too.
    pub(in crate::verdict) fn idle_beside(&self) -> Vec<(Bound, Ns, String)> {
        let split = self.split;
        if split.is_cold() || self.bound == Bound::Peer && split.waits_for_ranks() {
            return Vec::new();
        }
        let late = [Bound::Unknown].into_iter().filter(|_| split.late > 0);
        let stalls = [Bound::Host, Bound::Launch, Bound::Sync].into_iter();
        let stalls = stalls.chain(late).map(|it| (it, split.time_of(it)));
        let mut stalls: Vec<(Bound, Ns)> = stalls.collect();
        stalls.sort_by_key(|it| std::cmp::Reverse(it.1));
        let part = |time: Ns| share(time, split.whole());
        let is_idle = cases::LARGE_SHARE.is_reached_by(part(split.idle()));
        let is_told = |(at, it): &(usize, (Bound, Ns))| {
            cases::WARNING_SHARE.is_reached_by(part(it.1))
                || *at == 0 && is_idle && cases::WORTH_SHARE.is_reached_by(part(it.1))
        };
        let told = stalls.into_iter().enumerate().filter(is_told);
        let say = |(_, (bound, time))| {
            let told = Told {
                bound,
                part: part(time),
                line: None,
                ..*self
            };
            (bound, time, told.say())
        };
        told.map(say).collect()
    }

    /// "CPU-bound: GPU idle 76 % of each 37.2 ms step, 53 % waiting for DataLoader": both shares are of the step, as a legend has them. Of
    /// `why` the second part is a name to be cut.
    pub(super) fn idle(&self, class: &str, part: f64, [why, name]: &[String; 2]) -> String {
        let idle = share(self.split.idle(), self.split.whole());
        let of_all = match percent(part / idle).as_str() {
            "100 %" => String::new(),
            _ => format!("{} ", percent(part)),
        };
        let idle = percent(idle);
        let (several, of) = (self.several(), self.whole());
        // Of what no kernel follows the cause is no matter, but where the CPU's own work has a name.
        let is_bare = self.has_no_kernel() && matches!(self.bound, Bound::Launch | Bound::Sync);
        let class = if is_bare { NO_KERNEL } else { class };
        let text = format!("{class}{several}: GPU idle {idle} of {of}, {of_all}{why}");
        match name.as_str() {
            "" => text,
            name => format!("{text} {}", cut_to(name, &text)),
        }
    }

    /// Idle time that no record explains, and yet may have a name.
    pub(super) fn unknown(&self) -> String {
        let late = self.split.late;
        let (class, why, part) = match 2 * late > self.split.time_of(Bound::Unknown) {
            true => ("late starts", LATE, share(late, self.split.whole())),
            false if 2 * self.split.of_graphs > self.split.time_of(Bound::Unknown) => {
                ("unknown", OF_GRAPHS, self.part)
            }
            false => ("unknown", "for no recorded reason", self.part),
        };
        self.idle(class, part, &[why.to_owned(), String::new()])
    }

    pub(super) fn first_calls(&self) -> [String; 2] {
        let most = most(&self.split.cold);
        let is_most = |time| share(time, self.split.cold()) >= MOST;
        let has_once = self.split.cold.contains_key(&CpuWork::Once);
        match most.filter(|(_, time)| is_most(*time)) {
            Some((CpuWork::Name(name), _)) => {
                let name = host_name(self.trace, name);
                ["in slow first calls, mostly".to_owned(), name]
            }
            Some((CpuWork::Build, _)) => self.building(),
            Some((CpuWork::Load, time)) if percent(share(time, self.split.cold())) == "100 %" => {
                ["loading GPU code".to_owned(), String::new()]
            }
            Some((CpuWork::Once, _)) => ["before first launches".to_owned(), String::new()],
            _ if has_once => {
                let all = "loading GPU code and before first launches".to_owned();
                [all, String::new()]
            }
            Some((CpuWork::Load, _)) => {
                let all = "loading GPU code and in slow first calls".to_owned();
                [all, String::new()]
            }
            _ => ["in slow first calls to libraries".to_owned(), String::new()],
        }
    }

    /// What made kernels ready before they were launched first: they were built where stack samples do not say otherwise.
    fn building(&self) -> [String; 2] {
        let seen = self.split.seen.get(&self.bound);
        match seen.is_some_and(|it| !it.are_of_building(self.trace)) {
            true => [
                "before first launches".to_owned(),
                self.line
                    .map_or_else(String::new, |it| format!("at {}", it.culprit())),
            ],
            false => {
                let build = |all: &FxHashMap<CpuWork, Ns>| {
                    all.get(&CpuWork::Build).copied().unwrap_or_default()
                };
                let all = build(&self.split.cold).max(build(&self.split.host_by));
                match self.split.unseen > 0 && 2 * self.split.unseen >= all {
                    true => ["likely compiling kernels,".to_owned(), FIRST.to_owned()],
                    false => ["compiling kernels".to_owned(), String::new()],
                }
            }
        }
    }

    /// What the CPU did, and how much of it that was.
    pub(super) fn cpu_work(&self) -> (Ns, [String; 2]) {
        let place = self.line.map(|line| format!(" at {}", line.place));
        let most = most(&self.split.host_by);
        let all = self.split.time_of(Bound::Host);
        let waiting = "waiting for".to_owned();
        let written = self.sum_of(is_file_output);
        if share(written, all) >= MOST {
            let at = place.unwrap_or_default();
            return (written, ["writing".to_owned(), format!("a file{at}")]);
        }
        match most.filter(|(_, time)| share(*time, all) >= MOST) {
            Some((CpuWork::Load, time)) => (time, ["loading GPU code".to_owned(), String::new()]),
            Some((CpuWork::Build, time)) => (time, self.building()),
            Some((CpuWork::Once, time)) => {
                (time, ["before first launches".to_owned(), String::new()])
            }
            Some((CpuWork::Late, time)) => {
                let why = "waiting for processes that start later";
                (time, [why.to_owned(), String::new()])
            }
            // What moves is next to nothing of it: the CPU's own work takes the time.
            Some((CpuWork::Pages, time)) if self.works_alone(time) => {
                let why = "in CPU work on managed memory after the last kernel";
                (time, [why.to_owned(), String::new()])
            }
            Some((CpuWork::Pages, time)) => {
                let at = self.line.map(|line| format!(" in {}", line.culprit()));
                let name = Cause::Pages.label().to_owned() + &at.unwrap_or_default();
                (time, [waiting, name])
            }
            Some((CpuWork::Name(name), time)) => {
                let full = self.trace.names().full(name);
                let is_wait = is_system_wait(full) || asleep::is_sleep(full);
                let waiting = if is_wait {
                    "waiting in".to_owned()
                } else {
                    waiting
                };
                let name = host_name(self.trace, name);
                (
                    time,
                    [waiting, format!("{name}{}", place.unwrap_or_default())],
                )
            }
            most => match (self.line, most) {
                (Some(line), _) if line.is_blocked => (all, [self.blocked(), line.culprit()]),
                (Some(line), most) => {
                    let seen = self.split.seen.get(&self.bound);
                    let part = seen.map_or(1.0, StackCounts::seen_part);
                    // A function of the program is in no call that has a name.
                    let least = match most {
                        Some((CpuWork::Untraced, time)) if line.is_native() => time,
                        _ => all,
                    };
                    let time = least.min((all as f64 * part) as Ns);
                    (time, [waiting, line.culprit()])
                }
                (None, Some((_, time))) if self.output().is_some() => {
                    let library = self.output().unwrap_or_default();
                    (
                        time,
                        ["writing".to_owned(), format!("a file with {library}")],
                    )
                }
                (None, Some((_, time))) if self.is_sampled() => {
                    (time, [waiting, SPREAD.to_owned()])
                }
                (None, Some((_, time))) => (time, [waiting, UNTRACED.to_owned()]),
                (None, None) if share(self.sum_of(is_allocation), all) >= MOST => {
                    let memory = self.sum_of(is_allocation);
                    (memory, [waiting, "cudaMalloc and cudaFree".into()])
                }
                (None, None) if share(self.sum_of(takes_memory), all) >= MOST => {
                    let memory = self.sum_of(takes_memory);
                    (
                        memory,
                        ["in allocations, pinning and frees".into(), String::new()],
                    )
                }
                (None, None) => match self.numbered() {
                    Some((name, time)) if share(time, all) >= MOST => (time, [waiting, name]),
                    _ => (all, self.spread(all)),
                },
            },
        }
    }

    /// Whether nearly all of the time before pages come back lies behind all kernels, and the pages take next to nothing of it.
    fn works_alone(&self, time: Ns) -> bool {
        let behind = share(self.split.pages_behind, time);
        behind >= BEHIND && share(self.split.copying, time) < PAGES_MAX
    }

    /// CPU work that no name holds most of: the one that holds the largest part of it, where that is a fifth.
    fn spread(&self, all: Ns) -> [String; 2] {
        let named = self.split.host_by.iter().filter_map(|it| match it {
            (&CpuWork::Name(id), &time) => Some((time, id)),
            _ => None,
        });
        let most = named.max().filter(|it| share(it.0, all) >= SPREAD_MIN);
        match most {
            Some((_, id)) => [
                "in CPU work, above all".to_owned(),
                host_name(self.trace, id),
            ],
            None => ["in CPU work".to_owned(), String::new()],
        }
    }

    /// What a thread waits in that is off its processor.
    fn blocked(&self) -> String {
        let is_file = |of: &CpuWork| matches!(of, CpuWork::Name(id) if is_file_io(self.trace.names().full(*id)));
        match self.split.host_by.keys().any(is_file) {
            true => "likely in file I/O of".to_owned(),
            false => "blocked in".to_owned(),
        }
    }

    /// The library that samples saw write files for most of it.
    fn output(&self) -> Option<&'static str> {
        self.split.seen.get(&self.bound)?.output(self.trace)
    }

    /// Whether samples saw what no record names, and no function for most of it.
    fn is_sampled(&self) -> bool {
        let seen = self.split.seen.get(&self.bound);
        seen.is_some_and(|it| it.tell(self.trace))
    }

    /// What names that differ in their numbers alone ("load_layer_7") take together, of those that take most. Numbers behind a
    /// colon are lines of files, or parts of C++'s names.
    fn numbered(&self) -> Option<(String, Ns)> {
        let mut by: FxHashMap<String, (usize, Ns)> = FxHashMap::default();
        for (work, time) in &self.split.host_by {
            if let CpuWork::Name(name) = work {
                let name = host_name(self.trace, *name);
                let of = by.entry(without_numbers(&name).0).or_default();
                *of = (of.0 + 1, of.1 + time);
            }
        }
        by.retain(|name, of| of.0 >= NUMBERED_MIN && !name.contains(':'));
        let most = by.into_iter().map(|(name, of)| (of.1, name)).max();
        most.map(|(time, name)| (name, time))
    }

    /// What the CPU is in calls of such names.
    fn sum_of(&self, is_such: fn(&str) -> bool) -> Ns {
        let is_one =
            |of: &CpuWork| matches!(of, CpuWork::Name(id) if is_such(self.trace.names().full(*id)));
        let by = self.split.host_by.iter();
        by.filter(|it| is_one(it.0)).map(|it| *it.1).sum()
    }

    /// "while the CPU launches 1,150 kernels of 7.8 µs".
    pub(super) fn launches(&self) -> [String; 2] {
        let [kernels, copies, others] = self.split.counts;
        // What a graph holds is launched with it.
        let (number, each, one, many) = match kernels >= copies {
            true => {
                let time = self.split.kernels.values().sum::<Ns>();
                let each = time / (kernels as Ns).max(1);
                (self.split.launched(), each, "kernel", "kernels")
            }
            false => (
                copies,
                self.split.copying / (copies as Ns).max(1),
                "copy",
                "copies",
            ),
        };
        let number = number.div_ceil(self.steps());
        if number < LAUNCHES_MIN {
            let text = match self.split.in_graphs {
                0 => "in launching and short CPU work",
                _ => "in launching CUDA graphs and short CPU work",
            };
            return [text.to_owned(), String::new()];
        }
        let text = format!("while the CPU launches {}", counted(number, one, many));
        // What is copied is launched the same way.
        let beside = (copies + others).div_ceil(self.steps());
        let text = match kernels >= copies && COPIES_TOLD * beside >= number {
            true => format!("{text} and {}", counted(beside, "copy", "copies")),
            false => text,
        };
        match self.step {
            // The time of a step leaves no room for more.
            Some(_) => [text, String::new()],
            None => [text, format!("of {}", duration(each))],
        }
    }

    pub(super) fn syncs(&self) -> [String; 2] {
        let number = self.split.syncs.div_ceil(self.steps());
        let text = format!("in {}", counted(number, "sync", "syncs"));
        let by = &self.split.sync_by;
        let Some((name, time)) = most(by) else {
            return [text, String::new()];
        };
        let name = self.trace.names().short(name).to_owned();
        match number {
            1 => [text + ",", name],
            _ => [format!("{text}, {}", mostly(time, by.values().sum())), name],
        }
    }
}
