//! Collects CUPTI activity records and writes them to a recording.
