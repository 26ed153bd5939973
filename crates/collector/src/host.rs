//! Host calls, the names of their functions and threads, and the events that some of them record.

use std::collections::{HashMap, HashSet};

use activity::{Activity, EventRecord, HostCall, Place, Span, What};
use cupti_sys::kinds::{self, domain};
use cupti_sys::names::{self, callback_name};
use cupti_sys::{Api, records};

use recording::file::{Entry, Writer};

/// Events or calls that may wait for each other. CUPTI delivers both within a flush or two.
const MOST_WAITING: usize = 1 << 16;
/// Threads that are named; more than any program has at a time.
const MOST_THREADS: usize = 1 << 12;

#[derive(Debug)]
pub(crate) struct Host {
    api: Api,
    /// By domain and callback id.
    functions: [Vec<Option<Function>>; 2],
    /// The part of the recording that the functions' names are of.
    part: u32,
    threads: HashSet<u32>,
    /// Event records whose call has not come yet, by correlation.
    events: HashMap<u32, (Place, u32)>,
    /// Calls that record an event and whose event record has not come yet, by correlation.
    calls: HashMap<u32, i64>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    name: u32,
    records_event: bool,
}

impl Host {
    pub(crate) fn new(api: Api) -> Host {
        Host {
            api,
            functions: [const { Vec::new() }; 2],
            part: 0,
            threads: HashSet::new(),
            events: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    /// A call, whose times are sound.
    pub(crate) fn call(
        &mut self,
        kind: u32,
        it: &records::ApiCall,
        span: Span,
        writer: &mut Writer,
    ) {
        let function = self.function(kind, it.callback_id, writer);
        if self.threads.len() < MOST_THREADS && self.threads.insert(it.thread) {
            let path = format!("/proc/self/task/{}/comm", it.thread);
            if let Ok(name) = std::fs::read(path) {
                writer.add(&Entry::Thread(it.thread, name.trim_ascii_end()));
            }
        }
        let what = What::Call(HostCall {
            thread: it.thread,
            name: function.name,
            code: it.code,
        });
        writer.record(&Activity::new(span, it.correlation, what));
        if function.records_event {
            if let Some((place, event)) = self.events.remove(&it.correlation) {
                write_event(it.correlation, place, event, span.end, writer);
            } else {
                if self.calls.len() >= MOST_WAITING {
                    self.calls.clear();
                }
                self.calls.insert(it.correlation, span.end);
            }
        }
    }

    /// An event record: it has no time, so it gets that of its call. Returns how many others had to be given up.
    pub(crate) fn event(
        &mut self,
        correlation: u32,
        place: Place,
        event: u32,
        writer: &mut Writer,
    ) -> u64 {
        if let Some(time) = self.calls.remove(&correlation) {
            write_event(correlation, place, event, time, writer);
            return 0;
        }
        let is_full = self.events.len() >= MOST_WAITING;
        let given_up = if is_full { self.end() } else { 0 };
        self.events.insert(correlation, (place, event));
        given_up
    }

    /// How many events waited for their call in vain.
    pub(crate) fn end(&mut self) -> u64 {
        let waiting = self.events.len() as u64;
        self.events.clear();
        waiting
    }

    fn function(&mut self, kind: u32, id: u32, writer: &mut Writer) -> Function {
        let (index, domain) = if kind == kinds::DRIVER {
            (0, domain::DRIVER_API)
        } else {
            (1, domain::RUNTIME_API)
        };
        if self.part != writer.identity.part {
            self.part = writer.identity.part;
            self.functions = [const { Vec::new() }; 2];
        }
        let at = id as usize;
        if let Some(Some(known)) = self.functions[index].get(at) {
            return *known;
        }
        let name = callback_name(&self.api, domain, id)
            .unwrap_or_else(|| format!("{} function {id}", ["driver", "runtime"][index]));
        crate::nodes::note_call(&name);
        let function = Function {
            name: writer.name(name.as_bytes()),
            records_event: name.starts_with("cudaEventRecord") || name.starts_with("cuEventRecord"),
        };
        if id < names::LIMIT {
            let table = &mut self.functions[index];
            if table.len() <= at {
                table.resize(at + 1, None);
            }
            table[at] = Some(function);
        }
        function
    }
}

fn write_event(correlation: u32, place: Place, event: u32, time: i64, writer: &mut Writer) {
    let what = What::Event(EventRecord { place, event });
    writer.record(&Activity::new(Span::at(time), correlation, what));
}
