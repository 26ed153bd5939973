//! Recordings that grow as a test wants them to.

use std::path::Path;
use std::time::{Duration, Instant};

use activity::feed::{Feed, Message, Outcome};
use activity::{Activity, Batch, Health, HostCall, ProcessInfo, Span, What};
use recording::file::{Clocks, Entry, Identity, State, Writer};

/// When a test gives up on something that is to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A time that is not of this machine's clock.
pub(crate) const BEGIN: i64 = 1_790_000_000_000_000_000;

/// A rank that records host calls, each with the next time and correlation id.
pub(crate) struct Rank {
    writer: Writer,
    name: u32,
    count: u32,
}

impl Rank {
    pub(crate) fn start(directory: &Path, rank: u32, world: u32) -> Rank {
        std::fs::create_dir_all(directory).expect("a directory");
        let identity = Identity {
            pid: 1_000 + rank,
            start: Clocks::now(),
            locked: true,
            ..Identity::default()
        };
        let mut writer = Writer::create(directory, identity, 0).expect("a recording");
        writer.add(&Entry::Process(ProcessInfo {
            pid: identity.pid,
            rank: Some(rank),
            world: Some(world),
            host: "gpu01".to_owned(),
            ..ProcessInfo::default()
        }));
        let name = writer.name(b"cudaLaunchKernel");
        let mut rank = Rank {
            writer,
            name,
            count: 0,
        };
        rank.publish();
        rank
    }

    /// Records so many calls more, and publishes them.
    pub(crate) fn record(&mut self, calls: u32) {
        for _ in 0..calls {
            self.count += 1;
            let start = BEGIN + i64::from(self.count) * 1_000;
            self.writer.record(&Activity {
                span: Span::new(start, start + 700),
                correlation: self.count,
                what: What::Call(HostCall {
                    thread: 7,
                    name: self.name,
                    code: 0,
                }),
            });
        }
        self.publish();
    }

    pub(crate) fn publish(&mut self) {
        let health = self.health();
        self.writer.publish(&health);
    }

    fn health(&self) -> Health {
        Health {
            received: self.count.into(),
            ..Health::default()
        }
    }

    #[allow(dead_code, reason = "not all who grow recordings look at their files")]
    pub(crate) fn path(&self) -> &Path {
        self.writer.path()
    }

    pub(crate) fn end(self) {
        let health = self.health();
        self.writer.close(&health, State::Closed);
    }
}

/// What came of a feed so far.
#[derive(Default)]
pub(crate) struct Came {
    /// By rank: the correlation ids, in the order in which they came.
    pub(crate) ids: std::collections::BTreeMap<u32, Vec<u32>>,
    ranks: std::collections::HashMap<u32, u32>,
    pub(crate) notices: Vec<String>,
    /// All that stood at some time, and what stands now.
    pub(crate) stood: Vec<String>,
    pub(crate) standing: Vec<String>,
    pub(crate) outcome: Option<Outcome>,
}

impl Came {
    fn take(&mut self, message: Message) {
        match message {
            Message::Batch(batch) => self.batch(batch),
            Message::Notice { text, .. } => self.notices.push(text),
            Message::Status(all) => {
                self.standing = all.into_iter().map(|it| it.text).collect();
                self.stood.extend(self.standing.iter().cloned());
            }
            Message::Finished(outcome) => self.outcome = Some(outcome),
            _ => {}
        }
    }

    fn batch(&mut self, batch: Batch) {
        use activity::Def;
        for def in &batch.defs {
            if let Def::Process(ProcessInfo {
                rank: Some(rank), ..
            }) = def
            {
                self.ranks.insert(batch.process, *rank);
            }
        }
        let rank = self.ranks.get(&batch.process).copied().unwrap_or(u32::MAX);
        let ids = self.ids.entry(rank).or_default();
        for it in &batch.items {
            // As [`Rank::record`] wrote it.
            let start = BEGIN + i64::from(it.correlation) * 1_000;
            assert_eq!(it.span, Span::new(start, start + 700));
            ids.push(it.correlation);
        }
    }

    /// Records of a rank.
    pub(crate) fn count(&self, rank: u32) -> usize {
        self.ids.get(&rank).map_or(0, Vec::len)
    }

    /// Takes messages until it is as it should be.
    pub(crate) fn until(&mut self, feed: &Feed, what: &str, is_so: impl Fn(&Came) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            match feed.receiver().recv_timeout(Duration::from_millis(50)) {
                Ok(message) => self.take(message),
                Err(_) => assert!(
                    began.elapsed() < PATIENCE && self.outcome.is_none(),
                    "{what}: {:?} {:?} {:?} {:?}",
                    self.ids
                        .iter()
                        .map(|(k, v)| (k, v.len()))
                        .collect::<Vec<_>>(),
                    self.standing,
                    self.notices,
                    self.outcome
                ),
            }
        }
    }

    pub(crate) fn stands(&self, part: &str) -> bool {
        self.standing.iter().any(|it| it.contains(part))
    }

    /// Each rank's records from the first to the last of `counts`, each once and in order.
    pub(crate) fn assert_whole(&self, counts: &[(u32, u32)]) {
        let expected: Vec<(u32, Vec<u32>)> = counts
            .iter()
            .map(|&(rank, count)| (rank, (1..=count).collect()))
            .collect();
        let found: Vec<(u32, Vec<u32>)> = self.ids.clone().into_iter().collect();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.0);
            assert!(
                found.1 == expected.1,
                "rank {}: {} records, the last is {:?}, and should be {}",
                found.0,
                found.1.len(),
                found.1.last(),
                expected.1.len()
            );
        }
        assert_eq!(found.len(), expected.len());
    }
}
