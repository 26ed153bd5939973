//! Time grows with what is read and not with its square, in places where it once did: four times the input may take at most six
//! and a half times the processor's time (it is four where all is well, and was seven to fourteen).

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::recording_of;

/// Seconds of processor time that a command line of cuptop takes, by the shell's own count.
fn seconds(args: &[&str]) -> f64 {
    let output = Command::new("bash")
        .args([
            "-c",
            "TIMEFORMAT='%U %S'; time \"$@\" > /dev/null 2>&1",
            "bash",
        ])
        .arg(env!("CARGO_BIN_EXE_cuptop"))
        .args(args)
        .output()
        .expect("a shell");
    // What is wrong with a file is an answer, too.
    let code = output.status.code();
    let is_answer = code == Some(if args[0] == "check" { 2 } else { 0 });
    assert!(is_answer, "{args:?}: {code:?}");
    let said = String::from_utf8(output.stderr).expect("text");
    said.split_whitespace()
        .map(|it| it.parse::<f64>().expect("seconds"))
        .sum()
}

/// Other work on the machine only ever adds to it: the least of some tries counts.
fn assert_linear(command: &[&str], make: impl Fn(usize, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |n: usize| {
        let at = folder.path().join(n.to_string());
        make(n, &at);
        at.to_str().expect("UTF-8").to_owned()
    };
    let (small, large) = (of(1), of(4));
    let args = |path| [&command[..1], &[path], &command[1..]].concat();
    let (mut least, mut most) = (f64::MAX, f64::MAX);
    for _ in 0..4 {
        least = least.min(seconds(&args(small.as_str())));
        most = most.min(seconds(&args(large.as_str())));
        if most <= 6.5 * least {
            return;
        }
    }
    panic!("{command:?}: {least} s, and {most} s for four times as much");
}

/// An event of Kineto's on a thread, in microseconds.
fn event(out: &mut String, cat: &str, name: &str, thread: usize, ts: f64, dur: f64, args: &str) {
    let comma = if out.is_empty() { "" } else { "," };
    write!(
        out,
        r#"{comma}{{"ph":"X","cat":"{cat}","name":"{name}","pid":77,"tid":{thread},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
    )
    .expect("memory");
}

/// A launch and its kernel.
fn launch(out: &mut String, i: usize, thread: usize, ts: f64, dur: f64) {
    let correlation = format!(r#""correlation":{}"#, i + 1);
    event(
        out,
        "cuda_runtime",
        "cudaLaunchKernel",
        thread,
        ts,
        dur,
        &correlation,
    );
    let args = format!(r#""device":0,"stream":7,"grid":[1,1,1],"block":[32,1,1],{correlation}"#);
    event(out, "kernel", "k", 7, ts + 3.0 * dur, 2.0 * dur, &args);
}

fn write_trace(at: &Path, events: &str) {
    let text = format!(
        r#"{{"deviceProperties":[{{"id":0,"name":"X","numSms":10}}],"traceEvents":[{events}]}}"#
    );
    std::fs::write(at, text).expect("written");
}

#[test]
fn ranges_that_overlap_on_a_thread() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (4_000 * n, String::new());
        for i in 0..n {
            event(
                &mut out,
                "user_annotation",
                &format!("r{i}"),
                100,
                8.0 * i as f64,
                7.0 * n as f64,
                "",
            );
            launch(&mut out, i, 100, 8.0 * i as f64, 1.0);
        }
        write_trace(at, &out);
    });
}

#[test]
fn threads_with_a_range_each_around_all() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (4_000 * n, String::new());
        for i in 0..n {
            event(
                &mut out,
                "user_annotation",
                &format!("r{i}"),
                1000 + i,
                0.0,
                10.0 * n as f64,
                "",
            );
            launch(&mut out, i, 1000 + i, 8.0 * i as f64, 1.0);
        }
        write_trace(at, &out);
    });
}

/// GPUs of one process, each launch by a thread of its own.
#[test]
fn devices_by_the_thousand() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (500 * n, String::new());
        for i in 0..4 * n {
            let (ts, device, correlation) = (10.0 * i as f64, i % n, i + 1);
            let args = format!(r#""correlation":{correlation}"#);
            event(
                &mut out,
                "cuda_runtime",
                "cudaLaunchKernel",
                i,
                ts,
                1.0,
                &args,
            );
            let args = format!(r#""device":{device},"stream":{i},{args}"#);
            event(&mut out, "kernel", "k", 7, ts + 3.0, 5.0, &args);
        }
        write_trace(at, &out);
    });
}

#[test]
fn threads_that_wait_all_the_time() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (4_000 * n, String::new());
        for i in 0..n {
            event(
                &mut out,
                "cuda_runtime",
                "cudaDeviceSynchronize",
                1000 + i,
                0.0,
                10.0 * n as f64,
                "",
            );
            launch(&mut out, i, 1000 + i, 8.0 * i as f64, 1.0);
        }
        write_trace(at, &out);
    });
}

/// Processes of one GPU, each with a few launches all the time.
#[test]
fn processes_by_the_thousand() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (1_000 * n, String::new());
        for i in 0..4 * n {
            let ts = 10.0 * i as f64;
            let args = format!(r#""cuptop process":{},"correlation":{}"#, i % n, i + 1);
            event(
                &mut out,
                "cuda_runtime",
                "cudaLaunchKernel",
                i,
                ts,
                1.0,
                &args,
            );
            let args = format!(r#""stream":{i},{args}"#);
            event(&mut out, "kernel", "k", 7, ts + 3.0, 5.0, &args);
        }
        write_trace(at, &out);
    });
}

/// Marked steps, and as many streams with one kernel each.
#[test]
fn steps_times_streams() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (2_000 * n, String::new());
        for i in 0..n {
            let (ts, correlation) = (1_000.0 * i as f64, format!(r#""correlation":{}"#, i + 1));
            let step = format!("ProfilerStep#{i}");
            event(&mut out, "user_annotation", &step, 1, ts, 999.0, "");
            event(
                &mut out,
                "cuda_runtime",
                "cudaLaunchKernel",
                1,
                ts,
                1.0,
                &correlation,
            );
            let args = format!(r#""device":0,"stream":{i},{correlation}"#);
            event(&mut out, "kernel", "k", i, ts + 2.0, 5.0, &args);
        }
        write_trace(at, &out);
    });
}

/// All launches come before the first kernel, and a wait within each gap behind it.
#[test]
fn launches_far_ahead_of_waits() {
    assert_linear(&["report"], |n, at| {
        let (n, mut out) = (3_000 * n, String::new());
        for i in 0..n {
            let correlation = format!(r#""correlation":{}"#, i + 1);
            let ts = 10.0 * i as f64;
            event(
                &mut out,
                "cuda_runtime",
                "cudaLaunchKernel",
                1,
                ts,
                8.0,
                &correlation,
            );
            let ts = (10 * n + 1_000 + 1_300 * i) as f64;
            let args = format!(r#""device":0,"stream":7,{correlation}"#);
            event(&mut out, "kernel", "k", 7, ts, 100.0, &args);
            event(
                &mut out,
                "cuda_runtime",
                "cudaDeviceSynchronize",
                1,
                ts + 1_100.0,
                50.0,
                "",
            );
        }
        write_trace(at, &out);
    });
}

/// A thread that waits for the device behind each launch, on ever more streams.
#[test]
fn waits_for_ever_more_streams() {
    assert_linear(&["whatif", "--edit", "no-sync"], |n, at| {
        let (n, mut out) = (1_500 * n, String::new());
        for i in 0..n {
            let (ts, correlation) = (100.0 * i as f64, format!(r#""correlation":{}"#, i + 1));
            event(
                &mut out,
                "cuda_runtime",
                "cudaLaunchKernel",
                1,
                ts,
                5.0,
                &correlation,
            );
            let args = format!(r#""device":0,"stream":{},{correlation}"#, i % (n / 6));
            event(&mut out, "kernel", "k", 7, ts + 9.0, 50.0, &args);
            event(
                &mut out,
                "cuda_runtime",
                "cudaDeviceSynchronize",
                1,
                ts + 6.0,
                60.0,
                "",
            );
        }
        write_trace(at, &out);
    });
}

#[test]
fn functions_inside_each_other() {
    assert_linear(&["report", "--json"], |n, at| {
        let (n, mut out) = (6_000 * n, String::new());
        for i in 0..n {
            let name = format!("a.py({i}): f{i}");
            event(
                &mut out,
                "python_function",
                &name,
                100,
                i as f64,
                (5 * n - 2 * i) as f64,
                "",
            );
            launch(&mut out, i, 100, (n + 2 * i) as f64, 0.1);
        }
        write_trace(at, &out);
    });
}

#[test]
fn keys_that_nobody_knows() {
    assert_linear(&["check"], |n, at| {
        let keys: String = (0..4_000 * n).map(|i| format!("k{i} = 1\n")).collect();
        let text = format!("name = \"x\"\n[[variant]]\nname = \"v\"\nsteps = []\n{keys}");
        std::fs::write(at, text).expect("written");
    });
}

#[test]
fn a_folder_of_many_runs() {
    let one = recording_of("pipeline");
    let mut files = one
        .path()
        .join("run")
        .read_dir()
        .expect("a folder")
        .flatten();
    let file = files.next().expect("a recording").path();
    assert_linear(&["report"], |n, at| {
        std::fs::create_dir(at).expect("made");
        for i in 1..=16 * n {
            std::fs::copy(&file, at.join(format!("{i}-{i:06x}.cuptop"))).expect("copied");
        }
    });
}
