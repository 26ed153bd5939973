//! Vector clocks of the host and the streams.

use super::super::plan::StreamId;

/// The host, a stream, or a stream inside a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Agent(usize);

impl Agent {
    pub(super) const HOST: Agent = Agent(0);

    pub(super) fn stream(stream: StreamId) -> Agent {
        Agent(stream + 1)
    }
}

/// For each agent, up to which of its accesses something is known to come after.
pub(super) type Clock = Vec<u32>;

/// All clocks.
pub(super) struct Clocks {
    of: Vec<Clock>,
    /// Counts what the host has come to know.
    host_version: u64,
    /// The version of the host's clock that each agent has joined.
    joined: Vec<u64>,
    /// Work done, in units of about ten nanoseconds.
    pub(super) work: u64,
}

impl Clocks {
    pub(super) fn new(streams: usize) -> Self {
        Self {
            of: vec![Clock::new(); streams + 1],
            host_version: 1,
            joined: vec![0; streams + 1],
            work: 0,
        }
    }

    /// One more agent.
    pub(super) fn add(&mut self) -> Agent {
        self.of.push(Clock::new());
        self.joined.push(0);
        Agent(self.of.len() - 1)
    }

    /// Counts an access of an agent; its number.
    pub(super) fn tick(&mut self, agent: Agent) -> u32 {
        if agent == Agent::HOST {
            self.host_version += 1;
        }
        let clock = &mut self.of[agent.0];
        if clock.len() <= agent.0 {
            clock.resize(agent.0 + 1, 0);
        }
        clock[agent.0] += 1;
        clock[agent.0]
    }

    /// Whether an earlier access of `earlier` is known to come before what `now` does.
    pub(super) fn is_before(&self, earlier: Agent, epoch: u32, now: Agent) -> bool {
        earlier == now
            || self.of[now.0]
                .get(earlier.0)
                .is_some_and(|known| *known >= epoch)
    }

    /// The host issues an operation on a stream: the operation comes after all that the host knows of.
    pub(super) fn issue(&mut self, stream: StreamId) {
        let agent = Agent::stream(stream);
        self.work += 1;
        if self.joined[agent.0] != self.host_version {
            self.joined[agent.0] = self.host_version;
            let host = std::mem::take(&mut self.of[0]);
            self.joins_clock(agent, &host);
            self.of[0] = host;
        }
    }

    /// The host waits for an agent.
    pub(super) fn host_joins(&mut self, agent: Agent) {
        let clock = std::mem::take(&mut self.of[agent.0]);
        self.host_joins_clock(&clock);
        self.of[agent.0] = clock;
    }

    pub(super) fn host_joins_clock(&mut self, clock: &Clock) {
        self.host_version += 1;
        self.joins_clock(Agent::HOST, clock);
    }

    pub(super) fn joins_clock(&mut self, agent: Agent, clock: &Clock) {
        let own = &mut self.of[agent.0];
        if own.len() < clock.len() {
            own.resize(clock.len(), 0);
        }
        for (own, other) in own.iter_mut().zip(clock) {
            *own = (*own).max(*other);
        }
        self.work += 1 + clock.len() as u64 / 16;
    }

    pub(super) fn snapshot(&mut self, agent: Agent) -> Clock {
        let clock = self.of[agent.0].clone();
        self.work += 1 + clock.len() as u64 / 16;
        clock
    }
}
