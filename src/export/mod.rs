//! Writing a timeline or a screen for other programs and people.

pub mod screen;
