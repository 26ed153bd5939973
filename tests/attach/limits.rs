//! What cannot be traced or kept, and what is said about it.

use std::time::Duration;

use activity::What;
use activity::feed::{FailureKind, Message, Outcome};

use crate::harness::{fakes, trace, trace_with};

#[test]
fn keeping_the_last_deletes_what_is_older_and_shows_all_of_it_live() {
    let made = fakes();
    // 1 s is kept; a launch each 10 ms for some 4 s.
    let mut seen = trace_with(made, &["slowly", "400"], &[], |request| {
        request.collect.keep = Some(Duration::from_secs(1));
    });
    seen.has_kernels(0, 400);
    assert_eq!(seen.processes(), 1);
    assert_eq!(seen.health(0).losses(), 0);
    assert_eq!(seen.ended_well(0), Some(true));
    let names: std::collections::HashSet<&str> = seen.names().into_values().collect();
    assert!(
        names.contains("_Z3oddv")
            && names.contains("_Z4evenv")
            && names.contains("cudaLaunchKernel")
    );
    // Each part numbers its names anew: what is shown must still be each kernel's own.
    for item in seen.items(0) {
        if let What::Kernel(kernel) = item.what {
            let wanted = if item.correlation % 2 == 1 {
                "_Z3oddv"
            } else {
                "_Z4evenv"
            };
            assert_eq!(
                seen.kernel_name(kernel.shape),
                wanted,
                "{}",
                item.correlation
            );
        }
    }

    let feed = recording::open(&[seen.directory.path().join("run")]).expect("opens");
    seen.batches.clear();
    seen.notices.clear();
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => seen.batches.push(batch),
            Message::Notice { text, .. } => seen.notices.push(text),
            _ => {}
        }
    }
    let kept = seen.kernels(0);
    assert_eq!(kept.last(), Some(&400));
    assert!(kept.len() < 350, "{}", kept.len());
    assert!(
        kept.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "no holes"
    );
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("earlier records are gone")),
        "{:?}",
        seen.notices
    );
    assert_eq!(seen.health(0).received, 800);
}

#[test]
fn another_profiler_is_named_and_the_program_runs_on() {
    let made = fakes();
    let seen = trace(made, &["return", "10"], &[("FAKE_TAKEN", "1")]);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("Some Other Profiler")),
        "{:?}",
        seen.notices
    );
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Machine),
        "{:?}",
        seen.outcome
    );
}

#[test]
fn cuda_13_0_0_is_refused_and_says_why() {
    let made = fakes();
    let seen = trace(made, &["return", "10"], &[("FAKE_VERSION", "130000")]);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("13.0.85 or later")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn a_program_without_cuda_is_said_to_be_silent() {
    let made = fakes();
    let seen = trace(made, &["no-cuda"], &[]);
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Machine
            && failure.message.contains("no process of it reported in")),
        "{:?}",
        seen.outcome
    );
}

#[test]
fn a_recording_over_its_limit_ends_and_the_program_does_not() {
    let made = fakes();
    let limit = 64 * 1024;
    let seen = trace_with(made, &["return", "5000"], &[], |request| {
        request.collect.max_bytes = limit;
    });
    assert_eq!(seen.outcome, Outcome::Complete);
    let health = seen.health(0);
    let read = seen.items(0).len() as u64;
    assert_eq!(health.received, 10_000);
    assert_eq!(health.lost, 10_000 - read, "what is not there is counted");
    assert!(
        seen.notices.iter().any(|text| text.contains("size limit")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn a_file_size_limit_of_the_system_is_a_full_disk_and_no_signal() {
    let made = fakes();
    let seen = trace_with(made, &[], &[], |request| {
        // ulimit counts blocks of 512 bytes.
        let script = "ulimit -f 128; exec \"$@\"";
        let program = request.command.clone();
        request.command = ["sh", "-c", script, "sh"].iter().map(Into::into).collect();
        request.command.extend(program);
        request.command.extend(["return".into(), "5000".into()]);
    });
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    let health = seen.health(0);
    assert_eq!(health.received, 10_000);
    assert_eq!(health.lost, 10_000 - seen.items(0).len() as u64);
    assert!(health.lost > 0);
    assert!(
        seen.notices.iter().any(|text| text.contains("no space")),
        "{:?}",
        seen.notices
    );
}

/// The header is written on a thread of the program, which a signal would end there. `ulimit` counts 512 bytes.
#[test]
fn a_limit_below_a_header_ends_no_program() {
    let made = fakes();
    for blocks in [1, 7, 8, 9] {
        let seen = trace_with(made, &[], &[], |request| {
            let script = format!("(ulimit -f {blocks}; \"$@\"); echo ended with $?");
            let program = std::mem::take(&mut request.command);
            request.command = ["sh", "-c", &script, "sh"].iter().map(Into::into).collect();
            request.command.extend(program);
            request.command.extend(["return".into(), "5000".into()]);
        });
        let ended = seen.lines.iter().any(|(_, line)| line == "ended with 0");
        assert!(ended, "{blocks}: {:?}", seen.lines);
        let is_said = seen.notices.iter().any(|text| text.contains("no space"));
        assert!(is_said, "{blocks}: {:?}", seen.notices);
    }
}

#[test]
fn keeping_the_last_of_a_size_bounds_the_directory_and_counts_what_nobody_read() {
    let made = fakes();
    let (most, launches) = (2 << 20, 100_000);
    let seen = trace_with(made, &["return", "100000"], &[], |request| {
        request.collect.keep = Some(Duration::from_secs(3600));
        request.collect.max_bytes = most;
    });
    let kept: u64 = std::fs::read_dir(seen.directory.path().join("run"))
        .expect("a directory")
        .map(|entry| entry.expect("readable").metadata().expect("a file").len())
        .sum();
    assert!((most / 4..=most).contains(&kept), "{kept} bytes");
    let health = seen.health(0);
    // A call and a kernel each: what the reader was too slow for is counted, and nothing else is lost.
    assert_eq!(health.received, 2 * launches);
    let arrived = seen.items(0).len() as u64;
    assert_eq!(arrived + health.lost, 2 * launches, "{:?}", seen.notices);
    assert_eq!(health.losses(), health.lost);
    let is_said = seen
        .notices
        .iter()
        .any(|text| text.contains("faster than it was read"));
    assert_eq!(is_said, health.lost > 0, "{:?}", seen.notices);
}

#[test]
fn no_room_for_a_header_is_called_that() {
    let made = fakes();
    let seen = trace_with(made, &[], &[], |request| {
        // What a full disk leaves: a file of no length.
        let script = format!(": > '{}/1-1.cuptop'", request.dir.display());
        request.command = ["sh", "-c", &script].iter().map(Into::into).collect();
    });
    let said = format!("{:?} {:?}", seen.outcome, seen.notices);
    assert!(
        said.contains("no space was left for its recording"),
        "{said}"
    );
    assert!(said.contains("its header is missing"), "{said}");
    assert!(!said.contains("not a recording"), "{said}");
}
