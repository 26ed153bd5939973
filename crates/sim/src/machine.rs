//! The discrete-event model: a host thread, streams, events and devices, in one order of time.
//!
//! ```text
//! host thread ─ step ─► call record
//!                  └──► stream queue ─ head, when its turn has come ─► device ─ done ─► operation record
//!                            ▲                                                   │
//!                            └── event recorded, graph node done, thread wakes ◄─┘
//! ```
//!
//! [`Machine::advance`] handles everything up to a time; [`Machine::take`] hands over what was recorded.
//! Memory stays bounded: steps are taken one at a time, and a stream that holds
//! [`profile::Api::queue_depth`] items makes its thread wait, as the driver does. Nothing is
//! random, and things of one instant happen in the order in which they were caused.

mod host;
mod queue;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::host::Thread;
use super::device::Device;
use super::meter::Meter;
use super::program::{EventKey, Step, StreamKey};
use super::stream::Stream;
use activity::{Activity, Correlation, Def, Hardware, Ns, Span, What};
use profile::{Api, Latency, Profile};

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimEvent {
    /// The host thread takes its next step.
    Thread,
    /// The head of a stream may be ready.
    Stream(StreamKey),
    /// A node of the graph at the head of a stream is ready.
    Node(StreamKey, u32),
    /// Something on a device ends or can start; the number is the turn's generation.
    Device(usize, u64),
}

/// How often an event was recorded by calls, and by its streams.
#[derive(Clone, Default)]
struct EventState {
    queued: u64,
    /// Every recording up to this one was reached.
    reached: u64,
    /// Later recordings that were reached as well. An event recorded on two streams may be reached on the second first.
    /// That does not release those who wait for the first recording.
    ahead: Vec<u64>,
    /// Streams whose head waits for it.
    waiting: Vec<StreamKey>,
}

impl EventState {
    fn has_reached(&self, turn: u64) -> bool {
        turn <= self.reached || self.ahead.contains(&turn)
    }

    fn reach(&mut self, turn: u64) {
        self.ahead.push(turn);
        while let Some(i) = self.ahead.iter().position(|&t| t == self.reached + 1) {
            self.ahead.swap_remove(i);
            self.reached += 1;
        }
    }
}

/// The model, somewhere in its run.
pub struct Machine {
    api: Api,
    latency: Latency,
    now: Ns,
    sequence: u64,
    due: BinaryHeap<Reverse<(Ns, u64, SimEvent)>>,
    thread: Thread,
    devices: Vec<Device>,
    streams: Vec<Stream>,
    events: Vec<EventState>,
    correlation: Correlation,
    defs: Vec<Def>,
    items: Vec<Activity>,
}

impl Machine {
    /// A machine with `devices` devices whose host thread begins with `steps` at `start`.
    pub fn new(
        profile: &Profile,
        devices: u32,
        steps: impl Iterator<Item = Step> + Send + 'static,
        start: Ns,
    ) -> Machine {
        let mut machine = Machine {
            api: profile.api.clone(),
            latency: profile.latency.clone(),
            now: start,
            sequence: 0,
            due: BinaryHeap::new(),
            thread: Thread {
                steps: Box::new(steps),
                phases: Vec::new(),
                blocked: None,
                is_done: false,
            },
            devices: (0..devices).map(|_| Device::new(profile)).collect(),
            streams: Vec::new(),
            events: Vec::new(),
            correlation: 0,
            defs: Vec::new(),
            items: Vec::new(),
        };
        machine.at(start, SimEvent::Thread);
        machine
    }

    /// Handles everything up to and including `until`.
    pub fn advance(&mut self, until: Ns) {
        while let Some(Reverse((time, _, _))) = self.due.peek() {
            if *time > until {
                break;
            }
            let Some(Reverse((time, _, event))) = self.due.pop() else {
                break;
            };
            self.now = time;
            match event {
                SimEvent::Thread => self.run_thread(),
                SimEvent::Stream(stream) => self.pump(stream),
                SimEvent::Node(stream, node) => self.start_node(stream, node),
                SimEvent::Device(device, generation) => {
                    if self.devices[device].generation == generation {
                        self.turn(device);
                    }
                }
            }
        }
    }

    /// When the next thing happens; `None` when everything is over.
    pub fn next_time(&self) -> Option<Ns> {
        self.due.peek().map(|Reverse((time, _, _))| *time)
    }

    /// Whether the thread came to its end and every stream is empty. Once nothing more happens
    /// ([`Machine::next_time`] is `None`), `false` means that something waits for ever.
    pub fn is_done(&self) -> bool {
        self.thread.is_done && self.streams.iter().all(|s| s.queue.is_empty())
    }

    /// What was recorded since the last call.
    pub fn take(&mut self) -> (Vec<Def>, Vec<Activity>) {
        (
            std::mem::take(&mut self.defs),
            std::mem::take(&mut self.items),
        )
    }

    /// Samples the counters of its devices so many times a second.
    pub fn sample(&mut self, hz: u32) {
        for (device, id) in self.devices.iter_mut().zip(0..) {
            device.meter = Some(Meter::new(id, hz, self.now));
        }
    }

    /// The samples since the last call.
    pub fn take_samples(&mut self) -> Vec<Hardware> {
        let meters = self.devices.iter_mut().filter_map(|it| it.meter.as_mut());
        meters.flat_map(Meter::take).collect()
    }

    fn at(&mut self, time: Ns, event: SimEvent) {
        self.sequence += 1;
        self.due.push(Reverse((time, self.sequence, event)));
    }

    fn record(&mut self, span: Span, correlation: Correlation, what: What) {
        self.items.push(Activity::new(span, correlation, what));
    }

    fn event(&mut self, event: EventKey) -> &mut EventState {
        let index = event as usize;
        if self.events.len() <= index {
            self.events.resize(index + 1, EventState::default());
        }
        &mut self.events[index]
    }
}
