//! The host thread: it takes steps, makes calls, and waits.

use super::{Machine, SimEvent};
use crate::program::{EventKey, Item, Returns, Step, StreamKey, THREAD, Target};
use activity::{Correlation, HostCall, NameId, Ns, Range, Span, Sync, What};

/// The host thread.
pub(super) struct Thread {
    pub(super) steps: Box<dyn Iterator<Item = Step> + Send>,
    pub(super) phases: Vec<(Range, Ns)>,
    pub(super) blocked: Option<Blocked>,
    pub(super) is_done: bool,
}

/// The host thread inside a call that waits.
pub(super) struct Blocked {
    began: Ns,
    /// How long the call takes at least.
    cost: Ns,
    until: WaitFor,
    then: Continuation,
}

/// What a thread waits for.
#[derive(Default)]
struct WaitFor {
    /// Streams that must have come so far.
    streams: Vec<(StreamKey, u64)>,
    /// An event that must have been recorded so often.
    event: Option<(EventKey, u64)>,
}

impl WaitFor {
    /// A stream has come so far.
    fn stream(key: StreamKey, ticket: u64) -> WaitFor {
        WaitFor {
            streams: vec![(key, ticket)],
            event: None,
        }
    }
}

/// A call, its correlation id, and the synchronisation that it was.
type Called = (NameId, Correlation, Option<Sync>);

/// What a thread does when it need not wait any longer.
enum Continuation {
    /// The call returns, so much host time after the wait's end.
    Return(Called, Ns),
    /// The step is tried again: its stream was full, or the device used the memory that it frees.
    Again(Step),
}

impl Machine {
    pub(super) fn run_thread(&mut self) {
        // Steps that take no time are all done at once.
        while let Some(step) = self.thread.steps.next() {
            if let Some(next) = self.execute(step, self.now) {
                if next > self.now {
                    self.at(next, SimEvent::Thread);
                    return;
                }
            } else {
                return;
            }
        }
        self.thread.is_done = true;
    }

    /// Carries out a step that began at `began`. Returns when the thread goes on, or `None` when it waits.
    fn execute(&mut self, mut step: Step, began: Ns) -> Option<Ns> {
        if let Some(until) = self.awaited_first(&mut step) {
            return self.wait(began, 0, until, Continuation::Again(step));
        }
        match step {
            Step::Define(def) => self.defs.push(def),
            Step::Open(key, config) => self.open(key, config),
            Step::Work(ns) => return Some(self.now + ns.max(0)),
            Step::Begin(range) => self.thread.phases.push((range, self.now)),
            Step::End => {
                if let Some((range, start)) = self.thread.phases.pop() {
                    self.record(Span::new(start, self.now), 0, What::Range(range));
                }
            }
            Step::Queue(stream, item) => {
                self.enqueue(stream, item, 0, self.now, 0);
            }
            Step::Submit {
                call,
                mut cost,
                stream,
                item,
                returns,
                first_use,
            } => {
                if let Some((overhead, ns)) = first_use {
                    let span = Span::new(self.now, self.now + ns);
                    self.record(span, self.correlation + 1, What::Overhead(overhead));
                    cost += ns;
                }
                return self.submit(began, (call, cost), stream, item, returns);
            }
            Step::Call {
                call,
                cost,
                overhead,
            } => {
                let span = Span::new(began, began + cost);
                return Some(self.pass(span, call, overhead.map(What::Overhead)));
            }
            Step::Memory { call, cost, op, .. } => {
                let span = Span::new(began, self.now + cost);
                return Some(self.pass(span, call, Some(What::Memory(op))));
            }
            Step::Sync {
                call,
                target,
                record,
            } => {
                let until = self.conditions(target);
                let correlation = self.next_correlation();
                let then = Continuation::Return((call, correlation, Some(record)), 0);
                return self.wait(began, self.api.sync_ns, until, then);
            }
        }
        Some(self.now)
    }

    /// What must come before a step is carried out at all. A call that queues needs room in its stream, and a staged copy the end
    /// of what it follows. Memory is given back when the device is done.
    fn awaited_first(&mut self, step: &mut Step) -> Option<WaitFor> {
        match step {
            &mut Step::Submit {
                stream, returns, ..
            } => {
                let state = &self.streams[stream as usize];
                let ticket = if self.is_full(stream) {
                    state.completed + 1
                } else if matches!(returns, Returns::Staged(_)) && state.is_behind() {
                    state.submitted
                } else {
                    return None;
                };
                Some(WaitFor::stream(stream, ticket))
            }
            Step::Memory { waits_for, .. } => {
                let device = waits_for.take()?;
                Some(self.conditions(Target::Device(device)))
            }
            _ => None,
        }
    }

    /// A call that does not wait, with the record that it leaves: an overhead as long as it is, or an event at its end.
    fn pass(&mut self, span: Span, call: NameId, record: Option<What>) -> Ns {
        let correlation = self.next_correlation();
        if let Some(what) = record {
            let span = match what {
                What::Memory(_) => Span::at(span.end),
                _ => span,
            };
            self.record(span, correlation, what);
        }
        self.end_call(span, (call, correlation, None))
    }

    fn submit(
        &mut self,
        began: Ns,
        (call, cost): (NameId, Ns),
        stream: StreamKey,
        item: Item,
        returns: Returns,
    ) -> Option<Ns> {
        let correlation = self.next_correlation();
        let queued = self.now + cost;
        let (mut latency, mut event_turn, mut sync) = (0, 0, None);
        match &item {
            Item::Run(op) if matches!(op.what, What::Copy(_)) => latency = self.latency.copy_ns,
            Item::Run(_) => latency = self.latency.launch_ns,
            // Its nodes arrive one by one, while the call goes on.
            Item::Graph(_, upload) => latency = upload.fixed_ns - cost,
            Item::Record(event, _) => {
                let state = self.event(*event);
                state.queued += 1;
                event_turn = state.queued;
            }
            Item::Wait(event, wait) => {
                event_turn = self.event(*event).queued;
                sync = Some(*wait);
            }
            Item::Pause(_) => {}
        }
        let ticket = self.enqueue(stream, item, correlation, queued + latency, event_turn);
        if let Returns::After(after) = returns {
            let then = Continuation::Return((call, correlation, sync), after);
            let until = WaitFor::stream(stream, ticket);
            return self.wait(began, cost, until, then);
        }
        let beside = match returns {
            Returns::Staged(ns) => ns,
            _ => 0,
        };
        let span = Span::new(began, queued + beside);
        Some(self.end_call(span, (call, correlation, sync)))
    }

    /// Makes the thread wait, unless what it waits for is there already.
    fn wait(&mut self, began: Ns, cost: Ns, until: WaitFor, then: Continuation) -> Option<Ns> {
        let mut blocked = Blocked {
            began,
            cost,
            until,
            then,
        };
        if self.may_go_on(&mut blocked) {
            return self.unblock(blocked, 0);
        }
        self.thread.blocked = Some(blocked);
        None
    }

    fn may_go_on(&mut self, blocked: &mut Blocked) -> bool {
        let until = &mut blocked.until;
        while let Some((stream, ticket)) = until.streams.last() {
            if self.streams[*stream as usize].completed < *ticket {
                return false;
            }
            until.streams.pop();
        }
        match until.event {
            Some((event, turn)) => self.event(event).has_reached(turn),
            None => true,
        }
    }

    /// The wait is over, `wake` after now.
    fn unblock(&mut self, blocked: Blocked, wake: Ns) -> Option<Ns> {
        match blocked.then {
            Continuation::Return(call, after) => {
                let end = (self.now + wake + after).max(blocked.began + blocked.cost);
                Some(self.end_call(Span::new(blocked.began, end), call))
            }
            Continuation::Again(mut step) => {
                if let Step::Memory { cost, .. } = &mut step {
                    *cost += wake;
                }
                self.execute(step, blocked.began)
            }
        }
    }

    /// Lets the thread go on when its wait is over.
    pub(super) fn wake_thread(&mut self) {
        let Some(mut blocked) = self.thread.blocked.take() else {
            return;
        };
        if !self.may_go_on(&mut blocked) {
            self.thread.blocked = Some(blocked);
        } else if let Some(next) = self.unblock(blocked, self.latency.wake_ns) {
            self.at(next, SimEvent::Thread);
        }
    }

    fn conditions(&mut self, target: Target) -> WaitFor {
        match target {
            Target::Stream(key) => WaitFor::stream(key, self.streams[key as usize].submitted),
            Target::Event(event) => WaitFor {
                event: Some((event, self.event(event).queued)),
                ..WaitFor::default()
            },
            Target::Device(device) => WaitFor {
                streams: (self.streams.iter().zip(0..))
                    .filter(|(s, _)| s.config.place.device == device && s.is_behind())
                    .map(|(s, key)| (key, s.submitted))
                    .collect(),
                event: None,
            },
        }
    }

    /// Records a call and returns when the thread goes on.
    fn end_call(&mut self, span: Span, (name, correlation, sync): Called) -> Ns {
        if let Some(sync) = sync {
            self.record(span, correlation, What::Sync(sync));
        }
        let what = What::Call(HostCall {
            thread: THREAD,
            name,
            code: 0,
        });
        self.record(span, correlation, what);
        span.end + self.api.between_ns
    }

    fn next_correlation(&mut self) -> Correlation {
        // 0 means none.
        self.correlation = self.correlation.checked_add(1).unwrap_or(1);
        self.correlation
    }
}
