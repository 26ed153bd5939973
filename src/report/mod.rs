//! Figures for people (text) and programs (JSON).
