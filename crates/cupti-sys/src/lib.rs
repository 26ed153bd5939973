//! Finding and loading libcupti at run time; raw calls; record layouts.
