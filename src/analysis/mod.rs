//! Figures of a trace: busy, idle, compute, copy, overlap, bandwidth, gaps.
