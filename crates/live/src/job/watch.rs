//! Looks at jobs again and again, on a thread, for a screen.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::ras::{Answer, Asking};
use super::{FIRST, Job, Looked, State, find, is_on, observe_all};
use crate::attach::Refused;
use activity::feed::Joined;

/// NCCL's service is not asked again within this time.
const AGAIN: Duration = Duration::from_secs(10);
/// Answers that a difference must be in: for moments ranks differ in every job.
const ANSWERS: usize = 3;

/// Who looks at jobs until this is dropped.
#[derive(Debug)]
pub struct Watch {
    /// Whose job it is; nothing for all that use CUDA here.
    pub pid: Option<u32>,
    /// What was seen, or why nothing can be. What nobody takes is not followed by more.
    pub jobs: Receiver<Result<Vec<Job>, Refused>>,
    ask: Sender<()>,
    /// The thread ends when this end is gone.
    _stop: Sender<()>,
    _thread: Joined,
}

impl Watch {
    /// Begins to look.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(pid: Option<u32>) -> io::Result<Watch> {
        let (sender, jobs) = bounded(1);
        let (ask, asked) = bounded(1);
        // Nothing is ever sent.
        let (stop, stopped) = bounded(0);
        let follow = move || match find(pid) {
            Err(refused) => drop(sender.send(Err(refused))),
            Ok(mut looked) => {
                looked
                    .iter_mut()
                    .for_each(|it| it.stopped = stopped.clone());
                follow(&mut looked, &sender, &asked, &stopped);
            }
        };
        Ok(Watch {
            pid,
            jobs,
            ask,
            _stop: stop,
            _thread: Joined::spawn("cuptop-job", follow)?,
        })
    }

    /// Has NCCL's service asked from now on, where that is safe.
    pub fn ask(&self) {
        // One that waits already is as good.
        let _ = self.ask.try_send(());
    }
}

fn follow(
    all: &mut [Looked],
    sender: &Sender<Result<Vec<Job>, Refused>>,
    asked: &Receiver<()>,
    stopped: &Receiver<()>,
) {
    let mut answers = vec![VecDeque::new(); all.len()];
    let (mut is_asked, mut last) = (false, None::<Instant>);
    while is_on(stopped, Duration::ZERO) {
        let mut jobs = observe_all(all, FIRST);
        is_asked |= asked.try_recv().is_ok();
        if is_asked && last.is_none_or(|it| it.elapsed() >= AGAIN) {
            last = Some(Instant::now());
            for ((job, looked), answers) in jobs.iter().zip(all.iter()).zip(&mut answers) {
                answers.truncate(ANSWERS - 1);
                answers.push_front(looked.ask(job, Asking::Safely));
            }
        }
        for (job, answers) in jobs.iter_mut().zip(&answers) {
            job.ras = settled(answers, job.verdict().state == State::Still);
        }
        let mut next = Ok(jobs);
        // What stands is looked at again when somebody has seen it.
        while let Err(full) = sender.try_send(next) {
            if full.is_disconnected() || !is_on(stopped, FIRST / 10) {
                return;
            }
            next = full.into_inner();
        }
    }
}

/// What the last answers (the newest first) say together: of a job that stands still by its stacks one is enough.
fn settled(
    answers: &VecDeque<Result<Answer, String>>,
    is_still: bool,
) -> Option<Result<Answer, String>> {
    let mut newest = match answers.front()? {
        Ok(answer) if !is_still => answer.clone(),
        other => return Some(other.clone()),
    };
    let before: Vec<&Answer> = answers.iter().filter_map(|it| it.as_ref().ok()).collect();
    if before.len() < ANSWERS && !(newest.lags.is_empty() && newest.missing.is_empty()) {
        let count = before.len();
        return Some(Err(format!(
            "ranks differ in {count} of {ANSWERS} answers; less than {ANSWERS} prove nothing"
        )));
    }
    newest.lags.retain(|lag| {
        let is_it = |it: &super::ras::Lag| {
            (it.rank, it.pid, &it.collective) == (lag.rank, lag.pid, &lag.collective)
        };
        before.iter().all(|it| it.lags.iter().any(is_it))
    });
    let missing = |it: &Answer, of: &(u32, String, u32)| it.missing.contains(of);
    newest
        .missing
        .retain(|of| before.iter().all(|it| missing(it, of)));
    Some(Ok(newest))
}

#[cfg(test)]
mod tests {
    use super::super::ras::Lag;
    use super::*;

    fn answer(rank: u32, count: u64) -> Result<Answer, String> {
        let lag = Lag {
            rank,
            host: "::1".to_owned(),
            pid: 70 + rank,
            collective: "AllReduce".to_owned(),
            count,
            others: count + 1,
        };
        Ok(Answer {
            lags: vec![lag],
            ..Answer::default()
        })
    }

    /// Ranks of a healthy job differ from answer to answer, and the one that hangs is in each.
    #[test]
    fn a_difference_counts_that_stays_over_three_answers() {
        let lags = |answers: &[Result<Answer, String>], is_still| {
            let all: VecDeque<_> = answers.iter().cloned().collect();
            settled(&all, is_still).map(|it| it.map(|it| it.lags.len()))
        };
        assert_eq!(lags(&[], false), None);
        assert_eq!(lags(&[answer(2, 200)], true), Some(Ok(1)));
        assert!(lags(&[answer(2, 200)], false).is_some_and(|it| it.is_err()));
        let hung = [answer(2, 200), answer(2, 200), answer(2, 200)];
        assert_eq!(lags(&hung, false), Some(Ok(1)));
        let healthy = [answer(2, 240), answer(1, 220), answer(2, 200)];
        assert_eq!(lags(&healthy, false), Some(Ok(0)));
        let gone = [Err("it has not answered".to_owned()), answer(2, 200)];
        assert!(lags(&gone, false).is_some_and(|it| it.is_err()));
    }

    #[test]
    fn a_watch_ends_at_once_and_says_what_cannot_be_looked_at() {
        let none = Watch::start(Some(u32::MAX - 1)).expect("a thread");
        let said = none.jobs.recv_timeout(Duration::from_secs(20));
        assert!(said.is_ok_and(|it| it.is_err()));
        let mine = Watch::start(Some(std::process::id())).expect("a thread");
        drop(mine);
    }
}
