//! Time that the measuring thread itself was given, so that other work on the machine counts less.

use std::time::Instant;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// The thread's own time where the system tells it (Linux), else the clock's.
pub(crate) struct CpuTime {
    wall: WallTime,
    began: Instant,
}

impl Default for CpuTime {
    fn default() -> Self {
        CpuTime {
            wall: WallTime,
            began: Instant::now(),
        }
    }
}

impl CpuTime {
    fn now(&self) -> u64 {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let first = told.and_then(|text| text.split(' ').next()?.parse().ok());
        first.unwrap_or_else(|| self.began.elapsed().as_nanos() as u64)
    }
}

impl Measurement for CpuTime {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        self.now()
    }

    fn end(&self, began: u64) -> u64 {
        self.now().saturating_sub(began)
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        // Nanoseconds are written the same way whosever they are.
        self.wall.formatter()
    }
}
