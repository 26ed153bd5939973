//! The trace store: lanes, columns and names. Plain data: no threads, no screen, no CUDA.
