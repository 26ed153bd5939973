//! The screen: a live timeline in the terminal.
