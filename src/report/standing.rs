//! How a job stands, in words: who waits for whom, and the threads of all ranks side by side.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use activity::anonymous::short_file;
use activity::text::{listed, plural, printable};
use activity::{Frame, Ns};
use causes::stacks::is_wrapper;
use live::job::ras::Answer;
use live::job::{Doing, Job, Life, Process, State, ThreadSeen, Verdict, Xid};

/// Lines of threads that do not lead, in a text.
const OTHERS: usize = 8;
/// Ranks that are named in a line.
const NAMED: usize = 12;

/// A job, and what its looks say.
#[derive(Clone, Debug)]
pub struct Standing {
    job: Job,
    verdict: Verdict,
}

/// Threads at one place.
struct ThreadsAtPlace {
    /// Places of their ranks among the job's.
    ranks: Vec<usize>,
    place: String,
    doing: String,
    is_behind: bool,
}

impl Standing {
    /// What is to be said of a job.
    pub fn of(job: Job) -> Standing {
        let verdict = job.verdict();
        Standing { job, verdict }
    }

    /// Adds what NCCL's service says, asked by `ask`; nothing where there is one rank.
    pub fn ask(&mut self, ask: impl FnOnce(&Job) -> Result<Answer, String>) {
        if self.job.ranks.len() > 1 {
            self.job.ras = Some(ask(&self.job));
        }
    }

    /// Whether it stands still, or ranks of it are behind while all that is seen stands.
    pub fn is_still(&self) -> bool {
        let lags = self
            .job
            .ras
            .as_ref()
            .is_some_and(|it| it.as_ref().is_ok_and(|it| !it.lags.is_empty()));
        self.verdict.state == State::Still || lags && self.verdict.state == State::SamePlace
    }

    /// Whether looking on may tell more.
    pub fn is_open(&self) -> bool {
        matches!(self.verdict.state, State::SamePlace | State::WaitsForRanks)
    }

    /// The answer in a sentence.
    pub fn headline(&self) -> String {
        let Verdict {
            state,
            since,
            behind,
            waiting,
        } = &self.verdict;
        let looked = long(self.job.looked);
        let who = self.name(behind);
        let waiting = match waiting.is_empty() {
            true => String::new(),
            false => format!(
                "{} {} for {who}",
                self.name(waiting),
                if waiting.len() == 1 { "waits" } else { "wait" }
            ),
        };
        match (state, &behind[..]) {
            (State::Moves, _) => "it moves".to_owned(),
            (State::WaitsForRequests, _) => "it waits for requests".to_owned(),
            (State::WaitsForRanks, _) => format!("{waiting}: {}", self.what(behind)),
            (State::SamePlace, _) => format!(
                "at one place for the {looked} that cuptop looked; a long step looks like this, too{}",
                self.busy()
            ),
            (State::Still, []) if self.job.ranks.len() == 1 => format!(
                "it stands still{}: {}{}",
                since.map_or_else(String::new, |it| format!(" for {}", long(it))),
                self.what(&[0]),
                self.busy()
            ),
            (State::Still, []) => format!(
                "it stands still{}: all ranks wait, and by their stacks nobody is behind{}",
                since.map_or_else(String::new, |it| format!(" for {}", long(it))),
                self.busy()
            ),
            (State::Still, _) if waiting.is_empty() => {
                format!("it stands still: {}", self.what(behind))
            }
            (State::Still, _) => format!("it stands still: {waiting}; {}", self.what(behind)),
        }
    }

    fn busy(&self) -> String {
        let busy = self.job.ranks.iter().filter_map(|it| it.gpu).max();
        busy.filter(|it| *it > 0).map_or_else(String::new, |it| {
            format!(" (GPU {it} % busy: a kernel or a collective has not ended)")
        })
    }

    /// What ranks do, each as its first one does.
    fn what(&self, ranks: &[usize]) -> String {
        let Some(first) = ranks.first().map(|it| &self.job.ranks[*it]) else {
            return String::new();
        };
        let name = self.name(&ranks[..1]);
        match (first.life, first.leading()) {
            (Life::Gone, _) => format!("{name} has ended"),
            (Life::Stopped, _) => {
                format!("{name} is stopped: kill -CONT {} lets it go on", first.pid)
            }
            (_, Some(thread)) => format!(
                "{name} is at {}, {}",
                place(thread),
                self.doing(first, thread)
            ),
            (_, None) => format!("{name}: its stacks cannot be read"),
        }
    }

    /// "ranks 0, 1 and 3"; "process 7" where ranks have no numbers.
    fn name(&self, ranks: &[usize]) -> String {
        let all: Vec<&Process> = ranks.iter().map(|it| &self.job.ranks[*it]).collect();
        let are_ranks = all.iter().all(|it| it.rank.is_some());
        let mut numbers: Vec<String> = all
            .iter()
            .take(NAMED)
            .map(|it| it.rank.unwrap_or(it.pid).to_string())
            .collect();
        if all.len() > NAMED {
            numbers.push(format!("{} more", all.len() - NAMED));
        }
        let what = match (are_ranks, all.len()) {
            (true, 1) => "rank",
            (true, _) => "ranks",
            (false, 1) => "process",
            (false, _) => "processes",
        };
        format!("{what} {}", listed(&numbers))
    }

    fn doing(&self, process: &Process, thread: &ThreadSeen) -> String {
        let looked = long(self.job.looked);
        let within = thread
            .call_word()
            .filter(|_| thread.native.is_none())
            .map_or_else(String::new, |it| format!(" in {it}"));
        match thread.doing {
            Doing::Moves => "goes on".to_owned(),
            Doing::Stays(_) if process.works => {
                format!("works, here for the {looked} that cuptop looked")
            }
            Doing::Stays(Some(time)) => {
                format!("asleep{within} for {}, woken for moments", long(time))
            }
            Doing::Stays(None) => format!("here for the {looked} that cuptop looked"),
            Doing::Asleep(Some(time)) => format!("asleep{within} for {}", long(time)),
            Doing::Asleep(None) => format!("asleep{within}, for the {looked} that cuptop looked"),
            Doing::InDevice(Some(time)) => format!(
                "in the kernel, where no signal ends it (D), for {}",
                long(time)
            ),
            Doing::InDevice(None) => "in the kernel, where no signal ends it (D)".to_owned(),
            Doing::Stopped => "stopped by a signal or a debugger".to_owned(),
        }
    }

    /// What is known beside the threads, a line each: errors of GPUs, and what NCCL says.
    pub fn more(&self) -> Vec<String> {
        [self.xids(), self.ras()].concat()
    }

    /// Errors of GPUs since it is looked at, or that none could be seen.
    fn xids(&self) -> Vec<String> {
        match &self.job.xids {
            None => Vec::new(),
            Some(Err(why)) => vec![format!("errors of GPUs are not seen: {}", printable(why))],
            Some(Ok(all)) => all.iter().map(xid).collect(),
        }
    }

    /// What NCCL says of collectives, a line each; empty where it was not asked.
    fn ras(&self) -> Vec<String> {
        let answer = match &self.job.ras {
            None => return Vec::new(),
            Some(Err(why)) => return vec![format!("NCCL's service: {}", printable(why))],
            Some(Ok(answer)) => answer,
        };
        let mut lines = Vec::new();
        for it in answer.lags.iter().take(NAMED) {
            let (who, place) = match it.rank {
                Some(rank) => (
                    format!("rank {rank} has"),
                    self.place_of(rank, &it.host, it.pid),
                ),
                None => ("some ranks have".to_owned(), String::new()),
            };
            let (count, others) = (it.count, it.others);
            let kind = printable(&it.collective);
            lines.push(format!(
                "NCCL: {who} launched {count} of {others} {kind}{place}"
            ));
        }
        for (rank, host, pid) in answer.missing.iter().take(NAMED) {
            lines.push(format!(
                "NCCL: rank {rank} does not answer{}",
                self.place_of(*rank, host, *pid)
            ));
        }
        let more = (answer.lags.len() + answer.missing.len()).saturating_sub(lines.len());
        if more > 0 {
            lines.push(format!("NCCL: and {more} more"));
        }
        if lines.is_empty() {
            lines.push("NCCL: all ranks have launched the same number of collectives (sends and all-to-all exchanges are not counted)".to_owned());
        }
        lines
    }

    /// How to look at a rank that is not one of those here.
    fn place_of(&self, rank: u32, host: &str, pid: u32) -> String {
        let is_here =
            |it: &Process| it.rank == Some(rank) && (it.pid == pid || it.inner == Some(pid));
        match self.job.ranks.iter().any(is_here) || !hosts::is_host(host) {
            true => String::new(),
            false => format!(": ssh {host} cuptop job {pid}"),
        }
    }

    /// Threads at one place together: those that lead, or the others.
    fn rows(&self, leading: bool) -> Vec<ThreadsAtPlace> {
        let mut rows: Vec<ThreadsAtPlace> = Vec::new();
        for (at, process) in self.job.ranks.iter().enumerate() {
            let lead = process.leading().map(|it| it.tid);
            let mut add = |place: String, doing: String| {
                let is_behind = leading && self.verdict.behind.contains(&at);
                let same = |it: &&mut ThreadsAtPlace| {
                    it.place == place
                        && it.is_behind == is_behind
                        && kind(&it.doing) == kind(&doing)
                };
                match rows.iter_mut().find(same) {
                    Some(row) => row.ranks.push(at),
                    None => rows.push(ThreadsAtPlace {
                        ranks: vec![at],
                        place,
                        doing,
                        is_behind,
                    }),
                }
            };
            match (process.life, &process.lacks) {
                (Life::Gone, _) if leading => add("has ended".to_owned(), String::new()),
                (_, Some(why)) if leading => add(
                    format!("its stacks cannot be read: {}", printable(why)),
                    String::new(),
                ),
                _ => {}
            }
            for thread in process
                .threads
                .iter()
                .filter(|it| (Some(it.tid) == lead) == leading)
            {
                if leading || !thread.python.is_empty() || thread.native.is_some() {
                    let name = if leading {
                        String::new()
                    } else {
                        format!("{}: ", printable(&thread.name))
                    };
                    add(
                        format!("{name}{}", place(thread)),
                        self.doing(process, thread),
                    );
                }
            }
        }
        rows
    }

    /// The answer and the threads as text, every line ended.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let count = self.job.ranks.len();
        let what = match count {
            1 => format!("process {}", self.job.ranks[0].pid),
            _ => plural(count as u64, "rank"),
        };
        let _ = writeln!(out, "{what} · {}", printable(&self.job.command));
        let _ = writeln!(out, "{}\n", self.headline());
        for row in self.rows(true) {
            self.line(&mut out, &row);
        }
        let others = self.rows(false);
        if !others.is_empty() {
            out.push_str("\nother threads\n");
        }
        for row in others.iter().take(OTHERS) {
            self.line(&mut out, row);
        }
        if others.len() > OTHERS {
            let _ = writeln!(out, "  and {} more: --json has all", others.len() - OTHERS);
        }
        out
    }

    fn line(&self, out: &mut String, row: &ThreadsAtPlace) {
        let mut ranks = row.ranks.clone();
        ranks.dedup();
        let behind = if row.is_behind { "  <- behind" } else { "" };
        let doing = if row.doing.is_empty() {
            String::new()
        } else {
            format!(" · {}", row.doing)
        };
        let _ = writeln!(
            out,
            "  {:<18} {}{doing}{behind}",
            self.name(&ranks),
            row.place
        );
    }

    /// All that was seen.
    pub fn json(&self) -> Value {
        let name = |at: &usize| json!(self.job.ranks[*at].rank.unwrap_or(self.job.ranks[*at].pid));
        let names = |all: &[usize]| all.iter().map(name).collect::<Vec<_>>();
        json!({
            "command": self.job.command,
            "state": self.verdict.state.word(),
            "text": self.headline(),
            "still_ns": self.verdict.since.map(ns),
            "looked_ns": ns(self.job.looked),
            "behind": names(&self.verdict.behind),
            "waiting": names(&self.verdict.waiting),
            "nccl": self.job.ras.as_ref().map(|_| self.ras()),
            "xid": self.job.xids.as_ref().map(|_| self.xids()),
            "ranks": self.job.ranks.iter().map(process).collect::<Vec<_>>(),
        })
    }
}

/// "Xid 79 on GPU 0 at 12:01:07: GPU has fallen off the bus".
fn xid(it: &Xid) -> String {
    let at = chrono::DateTime::<chrono::Local>::from(it.at).format("%H:%M:%S");
    let words = match it.words() {
        "" => String::new(),
        words => format!(": {words}"),
    };
    format!("Xid {} on GPU {} at {at}{words}", it.code, it.gpu)
}

/// What rows are told apart by: what is done, without for how long.
fn kind(doing: &str) -> &str {
    doing.split(" for ").next().unwrap_or(doing)
}

fn process(it: &Process) -> Value {
    let lead = it.leading().map(|it| it.tid);
    json!({
        "pid": it.pid,
        "rank": it.rank,
        "life": match it.life { Life::Lives => "lives", Life::Stopped => "stopped", Life::Gone => "gone" },
        "works": it.works,
        "gpu_busy": it.gpu,
        "lacks": it.lacks,
        "threads": it.threads.iter().map(|it| thread(it, lead == Some(it.tid))).collect::<Vec<_>>(),
    })
}

fn thread(it: &ThreadSeen, leads: bool) -> Value {
    let (doing, long) = match it.doing {
        Doing::Moves => ("moves", None),
        Doing::Stays(long) => ("stays", long),
        Doing::Asleep(long) => ("asleep", long),
        Doing::InDevice(long) => ("in-device", long),
        Doing::Stopped => ("stopped", None),
    };
    let frame = |it: &Frame| json!({"function": it.function, "file": it.file, "line": it.line});
    json!({
        "tid": it.tid,
        "name": it.name,
        "leads": leads,
        "doing": doing,
        "for_ns": long.map(ns),
        "native": it.native,
        "call": it.call_word(),
        "python": it.python.iter().map(frame).collect::<Vec<_>>(),
    })
}

/// Where a thread is: "all_reduce (train.py:9) · cudaStreamSynchronize".
fn place(thread: &ThreadSeen) -> String {
    let own = thread.python.iter().position(Frame::is_own);
    let called = thread.python[..own.unwrap_or(0)].iter().rev();
    // A function within another one is named with that: "log.<locals>.wrapper".
    let called = called
        .map(|it| it.function.rsplit("<locals>.").next().unwrap_or_default())
        .find(|it| !is_wrapper(it));
    let at = |it: &Frame| format!("{}:{}", short_file(&it.file), it.line);
    let python = thread.python.get(own.unwrap_or(0));
    let mut inner = thread.python[..own.unwrap_or(0)].iter();
    let is_at_prompt = inner.any(|it| it.file.ends_with("/bdb.py"));
    let python = python.map(|it| match is_at_prompt {
        true => format!("stopped at a breakpoint ({})", at(it)),
        false => format!("{} ({})", called.unwrap_or(&it.function), at(it)),
    });
    let parts: Vec<String> = python.into_iter().chain(thread.native.clone()).collect();
    match parts.is_empty() {
        true => "code that is not known".to_owned(),
        false => printable(&parts.join(" · ")),
    }
}

fn ns(time: Duration) -> Ns {
    Ns::try_from(time.as_nanos()).unwrap_or(Ns::MAX)
}

/// "12 s": to the tenth below ten seconds.
fn long(time: Duration) -> String {
    match time.as_secs() {
        ..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_gpu_is_told_with_its_number_and_time() {
        let more = |xids| {
            let standing = Standing::of(Job {
                xids: Some(xids),
                ..Job::default()
            });
            standing.more()
        };
        let at = std::time::SystemTime::now();
        let code = |code| Xid { gpu: 3, code, at };
        let told = more(Ok(vec![code(79), code(7)]));
        assert!(told[0].starts_with("Xid 79 on GPU 3 at "), "{told:?}");
        assert!(told[0].ends_with(": GPU has fallen off the bus"));
        assert_eq!(told[1].len(), "Xid 7 on GPU 3 at 12:01:07".len());
        assert!(more(Ok(Vec::new())).is_empty());
        let refused = more(Err("not permitted".to_owned()));
        assert_eq!(refused, ["errors of GPUs are not seen: not permitted"]);
    }

    /// As pdb's prompt looks from outside.
    #[test]
    fn a_prompt_of_the_debugger_is_a_breakpoint() {
        let frame = |file: &str, function: &str, line| Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            line,
        };
        let mut thread = ThreadSeen {
            python: vec![
                frame("/usr/lib/python3.12/cmd.py", "cmdloop", 126),
                frame("/usr/lib/python3.12/bdb.py", "Bdb.trace_dispatch", 90),
                frame("/home/me/train.py", "step", 41),
            ],
            ..ThreadSeen::default()
        };
        assert_eq!(place(&thread), "stopped at a breakpoint (train.py:41)");
        thread.python.remove(1);
        assert_eq!(place(&thread), "cmdloop (train.py:41)");
        // As torch 2.11 was seen with Python 3.12, in a collective that makes its connections.
        let distributed = "/opt/venv/lib/python3.12/site-packages/torch/distributed/";
        let c10d = format!("{distributed}distributed_c10d.py");
        thread.python[0] = frame(&c10d, "all_reduce", 3007);
        let wrapper = "_exception_logger.<locals>.wrapper";
        let logger = format!("{distributed}c10d_logger.py");
        thread.python.insert(1, frame(&logger, wrapper, 83));
        assert_eq!(place(&thread), "all_reduce (train.py:41)");
    }
}
