//! The command line: thin glue between sources, the screen and the reports.
