//! A training loop with four processes that load data, as `trace` records it: 40 steps of 56 ms, of which the GPU works for
//! 22. Python stacks were looked at 200 times a second.

use ratatui::layout::Size;

use super::{gpus, render, text};
use crate::tui::action::Action;
use crate::tui::app::{App, Effect};
use crate::tui::state::SourceLine;
use crate::tui::theme::Theme;
use activity::{
    Batch, Def, DeviceInfo, Direction, Frame, Ns, ProcessInfo, SampleDef, SampledThread, Samples,
    Sampling, StackSample,
};
use trace::Trace;
use trace::testing::{Scene, pinned};

const MS: Ns = 1_000_000;
const STEP: Ns = 56 * MS;
const STEPS: Ns = 40;

/// Stacks, outermost frame first: of the main process, and of one that loads data.
const STACKS: [&[(&str, &str, u32)]; 6] = [
    &[
        ("/me/train.py", "<module>", 30),
        ("/me/train.py", "main", 19),
    ],
    &[
        ("/me/train.py", "<module>", 30),
        ("/me/train.py", "main", 22),
        (
            "/x/site-packages/torch/nn/modules/linear.py",
            "forward",
            125,
        ),
    ],
    &[
        ("/me/train.py", "<module>", 30),
        ("/me/train.py", "main", 24),
        ("/x/site-packages/torch/autograd/graph.py", "backward", 825),
    ],
    &[
        (
            "/x/site-packages/torch/utils/data/_utils/worker.py",
            "_worker_loop",
            300,
        ),
        (
            "/x/site-packages/torch/utils/data/_utils/fetch.py",
            "fetch",
            50,
        ),
        ("/me/train.py", "__getitem__", 7),
    ],
    &[
        (
            "/x/site-packages/torch/utils/data/_utils/worker.py",
            "_worker_loop",
            300,
        ),
        (
            "/x/site-packages/torch/utils/data/_utils/fetch.py",
            "fetch",
            55,
        ),
        (
            "/x/site-packages/torch/utils/data/_utils/collate.py",
            "default_collate",
            398,
        ),
        (
            "/x/site-packages/torch/utils/data/_utils/collate.py",
            "collate",
            155,
        ),
    ],
    &[
        (
            "/x/site-packages/torch/utils/data/_utils/worker.py",
            "_worker_loop",
            275,
        ),
        ("/x/lib/python3.12/multiprocessing/queues.py", "get", 113),
    ],
];

fn samples(thread: u32, of: impl Fn(Ns) -> u32) -> Samples {
    let mut defs = Vec::new();
    let (mut frames, mut stacks) = (0, 0);
    let mut ids = Vec::new();
    for stack in STACKS {
        let mut caller = 0;
        for &(file, function, line) in stack {
            let frame = Frame {
                file: file.to_owned(),
                function: function.to_owned(),
                line,
            };
            (frames, stacks) = (frames + 1, stacks + 1);
            defs.push(SampleDef::Frame { id: frames, frame });
            defs.push(SampleDef::Stack {
                id: stacks,
                caller,
                frame: frames,
            });
            caller = stacks;
        }
        ids.push(caller);
    }
    let look = |time: Ns| StackSample {
        time,
        changed: vec![SampledThread {
            thread,
            stack: ids[of(time) as usize],
            is_running: of(time) < 5,
        }],
    };
    Samples {
        series: thread,
        defs,
        looks: (0..STEPS * STEP / (5 * MS))
            .map(|i| look(i * 5 * MS))
            .collect(),
        sampling: Sampling {
            hz: 200,
            ..Sampling::default()
        },
    }
}

fn trace() -> Trace {
    let mut scene = Scene::new();
    scene.device(DeviceInfo {
        name: "NVIDIA H200".to_owned(),
        ..DeviceInfo::default()
    });
    for step in 0..STEPS {
        let at = step * STEP;
        scene.copy_of(
            pinned(Direction::H2D, 7, 32 << 20),
            at + 28 * MS,
            at + 30 * MS,
        );
        for i in 0..20 {
            let start = at + 31 * MS + i * MS;
            scene.call("cudaLaunchKernel", start - 400_000, start - 390_000);
            scene.kernel("gemm", 7, start, start + 900_000);
        }
    }
    let mut trace = scene.trace();
    let begin = |process: u32, pid: u32| Batch {
        process,
        defs: vec![Def::Process(ProcessInfo {
            pid,
            command: "python train.py".to_owned(),
            ..ProcessInfo::default()
        })],
        ..Batch::default()
    };
    // Until 28 ms into a step it waits for a batch.
    let main = |time: Ns| match time % STEP / MS {
        0..28 => 0,
        28..40 => 1,
        _ => 2,
    };
    trace.apply(Batch {
        samples: Some(samples(1, main)),
        ..begin(0, 1)
    });
    for worker in 1..=4 {
        // Of ten looks eight are at reading, one at collating, and one waits for work.
        let does = |time: Ns| match time / (5 * MS) % 10 {
            0..8 => 3,
            8 => 4,
            _ => 5,
        };
        trace.apply(Batch {
            samples: Some(samples(4_711 + worker, does)),
            ..begin(worker, 4_711 + worker)
        });
    }
    trace
}

fn screen(width: u16, height: u16) -> String {
    let mut app = App::of_trace(trace(), None, gpus());
    app.state.size = Size::new(width, height);
    app.prepare();
    text(&render(&mut app, &Theme::default()))
}

#[test]
fn a_training_loop_with_four_loading_processes_fits_a_screen() {
    let seen = screen(120, 40);
    insta::assert_snapshot!("training_120x40", seen);
    // One step is on screen: 20 kernels of 0.9 ms in 56 ms.
    for row in ["GPU", "kernels 32 %", "H2D", "stream 7", "python", "main"] {
        assert!(seen.contains(row), "{row} is missing:\n{seen}");
    }
    // Nine of ten looks found a worker at work, eight of them in its own function.
    let workers = "4 DataLoader workers · busy 90 %: __getitem__ train.py:7 80 %";
    assert!(seen.contains(workers), "{seen}");
    assert!(!seen.contains("more below"), "{seen}");
    assert!(!seen.contains("4714"), "no row for one of them:\n{seen}");
}

#[test]
fn the_editor_opens_at_the_line_that_the_gpu_waits_for() {
    let mut app = App::of_trace(trace(), None, gpus());
    app.state.size = Size::new(120, 40);
    app.prepare();
    app.act(Action::LongestGap);
    let at = SourceLine {
        file: "/me/train.py".to_owned(),
        line: 19,
    };
    // The loader, for 28 ms of the 33 ms of the gap.
    assert_eq!(app.act(Action::Edit), Some(Effect::Edit(Some(at))));
}
