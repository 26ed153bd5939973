//! Collects CUPTI activity records on background threads and writes them to a recording.

pub mod recording;
