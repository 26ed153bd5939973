//! The few doors into the program that its tests and benches use. No interface: anything here may change.

#![allow(
    missing_docs,
    reason = "what is shown here is documented where it stands"
)]

pub mod fuzz;

pub mod activity {
    pub use crate::activity::{
        Activity, Batch, Collective, Copy, Def, DeviceInfo, Direction, EventRecord, Frame, Health,
        HostCall, Kernel, LaunchShape, Look, MemoryAction, MemoryKind, MemoryOp, Memset, Mode, Ns,
        Place, ProcessInfo, Range, RangeKind, SampleDef, Samples, Sampling, Seen, Span, Sync,
        SyncKind, What,
    };
    pub mod feed {
        pub use crate::activity::feed::{
            Failure, FailureKind, Feed, Message, Outcome, Progress, Standing,
        };
    }
    pub mod units {
        pub use crate::activity::units::{duration, factor, percent, rate};
    }
}
pub mod analysis {
    pub use crate::analysis::VariantFigures;
    pub mod causes {
        pub use crate::analysis::causes::{Causes, explain_device};
    }
    pub mod figures {
        pub use crate::analysis::figures::{Peaks, of, whole};
    }
    pub mod findings {
        pub use crate::analysis::findings::Finding;
    }
    pub mod graph {
        pub use crate::analysis::graph::Graph;
    }
    pub mod program {
        pub use crate::analysis::program::{Known, Program};
    }
    pub mod ranks {
        pub use crate::analysis::ranks::{Heat, Pattern, Ranks, Reason, Stretch, set};
    }
    pub mod steps {
        pub use crate::analysis::steps::{Origin, of, recent, without_ranges};
    }
    pub mod variants {
        pub use crate::analysis::variants::variants;
    }
    pub mod verdict {
        pub use crate::analysis::verdict::of;
    }
    pub mod whatif {
        pub use crate::analysis::whatif::WhatIf;
    }
}
pub mod export {
    pub use crate::export::{Entry, FORMATS, Format, Timeline, to, to_file};
}
pub mod report {
    pub use crate::report::{Report, text};
    /// The report for people.
    pub fn text(report: &Report) -> String {
        text::render(report, &text::Options::default())
    }
    pub mod compare {
        pub use crate::report::compare::Comparison;
    }
    pub mod expect {
        pub use crate::report::expect::check;
    }
    pub mod whatif {
        pub use crate::report::whatif::{Answer, known};
    }
}
pub mod scenario {
    pub use crate::scenario::{
        Compiled, Diagnostics, FIGURES, Operand, Overrides, Severity, Source, compile, keys,
        schema, template,
    };
    pub mod bundled {
        pub use crate::scenario::bundled::{Bundled, SCENARIOS};
    }
    pub mod edit {
        pub use crate::scenario::edit::FORMS;
    }
    pub mod expect {
        pub use crate::scenario::expect::{Compare, Figure, Kind};
    }
    pub mod expr {
        pub use crate::scenario::expr::Loc;
        pub mod parse {
            pub use crate::scenario::expr::parse::{Piece, expression};
        }
        pub mod value {
            pub use crate::scenario::expr::value::{Unit, Value};
        }
    }
    pub mod figures {
        pub use crate::scenario::figures::Kind;
    }
    pub mod hazards {
        pub use crate::scenario::hazards::{Side, find};
    }
    pub mod plan {
        pub use crate::scenario::plan::*;
    }
    pub mod view {
        pub use crate::scenario::view::View;
    }
}
pub mod source {
    pub mod attach {
        pub use crate::source::attach::{
            AttachRequest, Graphs, Output, Recorder, Waits, When, run,
        };
    }
    pub mod file {
        use std::path::PathBuf;

        pub use crate::source::file::{Format, OpenError, Opened};
        /// Nobody listens to what ssh says.
        pub fn open(paths: &[PathBuf]) -> Result<Opened, OpenError> {
            crate::source::file::open(paths, &mut |_| {})
        }
        /// The same for who looks.
        pub fn open_drafted(paths: &[PathBuf]) -> Result<Opened, OpenError> {
            crate::source::file::open_drafted(paths, Some(&mut |_| {}))
        }
    }
    pub mod hosts {
        use crate::activity::feed::Feed;
        use crate::source::file::follow_hosts;
        pub use crate::source::hosts::Place;
        use crate::source::hosts::connect_by;

        /// Follows places by a program in the place of ssh, as for a screen that opens when the links are there.
        pub fn follow(
            ssh: &[String],
            places: &[Place],
            say: &mut dyn FnMut(&str),
        ) -> Result<Feed, String> {
            let hosts = connect_by(ssh, places, Some(say))?;
            follow_hosts(&[], hosts, true).map_err(|error| error.to_string())
        }
    }
    pub mod recording {
        pub use crate::source::recording::{Follower, Saver, open, tee};
    }
    pub mod runner {
        pub use crate::source::runner::{PROCESS_COMMAND, RunRequest, probe, process_main, run};
    }
    pub mod sim {
        pub use crate::source::sim::{Pace, Profile, run};
        pub mod machine {
            pub use crate::source::sim::machine::Machine;
        }
        pub mod profile {
            pub use crate::source::sim::profile::Profile;
        }
        pub mod program {
            pub use crate::source::sim::program::{
                Engine, EventKey, Graph, HostThread, Item, Node, Operation, Order, Returns, Step,
                StreamConfig, StreamKey, Target, Upload,
            };
        }
    }
}
pub mod trace {
    pub use crate::trace::{
        Clock, Clocks, Lane, LaneKind, Measure, Process, SourceInfo, SourceKind, Trace,
    };
}
pub mod tui {
    pub use crate::tui::theme::ColorLevel;
    pub use crate::tui::{Peaks, Running, Session, Theme, Wanted, render, run};
    pub mod action {
        pub use crate::tui::action::Action;
    }
    pub mod app {
        pub use crate::tui::app::App;
    }
}
