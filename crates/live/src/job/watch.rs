//! Looks at jobs again and again, on a thread, for a screen.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::ras::{Answer, Asking, Lag};
use super::{FIRST, Job, Looked, State, find, is_on, observe_all};
use crate::attach::Refused;
use activity::feed::Joined;

/// NCCL's service is not asked again within this time.
const AGAIN: Duration = Duration::from_secs(10);
/// Answers that a difference must be in: for moments ranks differ in every job.
const ANSWERS: usize = 3;

/// Who looks at jobs until this is dropped.
pub struct Watch {
    /// Whose job it is; nothing for all that use CUDA here.
    pub pid: Option<u32>,
    /// What was seen, or why nothing can be. What nobody takes is not followed by more.
    pub jobs: Receiver<Result<Vec<Job>, Refused>>,
    ask: Sender<()>,
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
        let follow = move |stopped: &Receiver<()>| {
            let mut found = find(pid);
            let all = found.iter_mut().flatten();
            all.for_each(|it| it.stopped = stopped.clone());
            match found {
                Ok(mut all) => follow(&mut all, &sender, &asked, stopped),
                Err(refused) => {
                    let _ = sender.send(Err(refused));
                    while is_on(stopped, FIRST) {}
                }
            }
        };
        Ok(Watch {
            pid,
            jobs,
            ask,
            _thread: Joined::until_dropped("cuptop-job", follow)?,
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
        let is_due = is_asked && last.is_none_or(|it| it.elapsed() >= AGAIN);
        last = if is_due { Some(Instant::now()) } else { last };
        for ((job, looked), answers) in jobs.iter_mut().zip(all.iter()).zip(&mut answers) {
            if is_due {
                answers.truncate(ANSWERS - 1);
                answers.push_front(looked.ask(job, Asking::Safely));
            }
            job.ras = settled(answers, job.verdict().state == State::Still);
        }
        while sender.is_full() && is_on(stopped, FIRST / 10) {}
        let _ = sender.try_send(Ok(jobs));
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
    let all: Vec<&Answer> = answers.iter().flatten().collect();
    if all.len() < ANSWERS {
        return Some(Err(format!(
            "{} of {ANSWERS} answers are there: what differs in all of them counts",
            all.len()
        )));
    }
    newest.lags.retain(|lag| {
        let is_it = |it: &Lag| (it.rank, &it.collective) == (lag.rank, &lag.collective);
        all.iter().all(|it| it.lags.iter().any(is_it))
    });
    Some(Ok(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rank: u32, count: u64) -> Result<Answer, String> {
        let lag = Lag {
            rank: Some(rank),
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
