//! The thresholds of all rules, each beside what justifies it.
