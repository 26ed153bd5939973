//! The simulator against programs whose timeline can be worked out by hand.

use activity::{Direction, Ns, Span, What};
use sim::program::{Graph, Item, Node, Step, Target, Upload};

use crate::program::{
    Run, alloc, copy_in, copy_out, free, kernel, kernel_with, profile, record, submit,
    submit_blocking, sync, wait, whole_kernel, work,
};

// The profile of these tests has round numbers (`crate::program::profile`):
//   a submitting call takes 10 ns and its item is known to the device 100 ns after the call's end,
//   events take calls of 10 ns and are known at once; a sync call takes at least 5 ns;
//   on one stream operations follow each other after 20 ns,
//   a copy engine rests 30 ns between two copies,
//   who waited for an event starts 40 ns after it; the host wakes 50 ns after what it waits for;
//   graph nodes follow each other after 7 ns; one call follows another after 1 ns.

fn spans(run: &Run) -> Vec<(Ns, Ns)> {
    run.operations
        .iter()
        .map(|a| (a.span.start, a.span.end))
        .collect()
}

#[test]
fn one_stream_runs_in_order_with_its_gaps() {
    let run = Run::of(
        1,
        vec![
            submit(0, copy_in(1000)),
            submit(0, kernel(500, 0.1)),
            submit(0, copy_out(300)),
            sync(Target::Stream(0)),
        ],
    );
    // Copy: call [0,10), known at 110. Kernel 20 after 1110, copy out 20 after 1630.
    assert_eq!(spans(&run), [(110, 1110), (1130, 1630), (1650, 1950)]);
    // Calls start 1 ns after the previous one's end; the sync returns 50 ns after the last operation.
    let calls: Vec<_> = run
        .calls
        .iter()
        .map(|a| (a.span.start, a.span.end))
        .collect();
    assert_eq!(calls, [(0, 10), (11, 21), (22, 32), (33, 2000)]);
    assert!(run.is_done);
}

#[test]
fn a_call_and_its_operation_have_one_correlation() {
    let run = Run::of(1, vec![submit(0, copy_in(10)), submit(0, kernel(10, 0.1))]);
    let operations: Vec<_> = run.operations.iter().map(|a| a.correlation).collect();
    let calls: Vec<_> = run.calls.iter().map(|a| a.correlation).collect();
    assert_eq!(operations, calls);
    assert!(calls.iter().all(|c| *c != 0) && calls[0] != calls[1]);
}

#[test]
fn copies_of_one_direction_queue_and_opposite_ones_overlap() {
    let run = Run::of(
        3,
        vec![
            submit(0, copy_in(1000)),
            submit(1, copy_in(1000)),
            submit(2, copy_out(1500)),
        ],
    );
    // Known at 110, 121, 132. The second copy in waits for the engine, 30 after 1110.
    // Alone a copy runs at rate 1; in both directions together each runs at rate 1/2 here.
    // In: 22 ns alone until 132, then 978 at half speed: ends at 132 + 1956 = 2088.
    // Out: by 2088 it has done 978; the next copy in starts at 2118: 30 alone, 1008 done; 492 left at
    // half speed: ends at 2118 + 984 = 3102. The second copy in has 1000 - 492 = 508 left: ends at 3610.
    assert_eq!(spans(&run), [(110, 2088), (132, 3102), (2118, 3610)]);
}

#[test]
fn a_stream_that_waits_for_an_event_starts_after_it() {
    let run = Run::of(
        2,
        vec![
            submit(0, copy_in(1000)),
            record(0, 0),
            wait(0, 1),
            submit(1, kernel(500, 0.1)),
        ],
    );
    // The event is reached when the copy ends, at 1110; the other stream goes on 40 later.
    assert_eq!(spans(&run), [(110, 1110), (1150, 1650)]);
    let events: Vec<_> = run.events.iter().map(|a| a.span).collect();
    assert_eq!(events, [Span::at(1110)]);
}

#[test]
fn an_event_that_was_never_recorded_holds_nobody_up() {
    let run = Run::of(
        1,
        vec![
            wait(3, 0),
            submit(0, kernel(500, 0.1)),
            sync(Target::Event(3)),
        ],
    );
    // The wait's call [0,10); the launch [11,21), known at 121.
    assert_eq!(spans(&run), [(121, 621)]);
    assert_eq!(run.calls[2].span, Span::new(22, 27));
}

#[test]
fn a_wait_means_the_recording_before_it_not_a_later_one() {
    let run = Run::of(
        2,
        vec![
            submit(0, kernel(100, 0.1)),
            record(0, 0),
            wait(0, 1),
            submit(1, kernel(10, 0.1)),
            submit(0, kernel(5000, 0.1)),
            record(0, 0),
        ],
    );
    // First kernel known at 110, done at 210; the waiting stream goes on at 250.
    assert_eq!(spans(&run), [(110, 210), (230, 5230), (250, 260)]);
}

#[test]
fn a_recording_that_is_reached_early_does_not_stand_for_an_earlier_one() {
    let run = Run::of(
        3,
        vec![
            submit(0, kernel(1000, 0.1)),
            record(0, 0),
            wait(0, 2),
            submit(2, kernel(10, 0.1)),
            // Stream 1 has nothing to do, so this recording is reached at once.
            record(0, 1),
        ],
    );
    // The kernel is known at 110 and done at 1110; who waits for it goes on 40 later.
    assert_eq!(spans(&run), [(110, 1110), (1150, 1160)]);
}

#[test]
fn small_kernels_share_the_device_and_large_ones_queue() {
    let run = Run::of(
        4,
        vec![
            submit(0, kernel(1000, 0.5)),
            submit(1, kernel(1000, 0.5)),
            submit(2, kernel(1000, 0.5)),
        ],
    );
    // Known at 110, 121, 132; two fit; the third starts when the first ends.
    assert_eq!(spans(&run), [(110, 1110), (121, 1121), (1110, 2110)]);

    let run = Run::of(
        2,
        vec![submit(0, whole_kernel(1000)), submit(1, whole_kernel(1000))],
    );
    assert_eq!(spans(&run), [(110, 1110), (1110, 2110)]);
}

#[test]
fn a_kernel_takes_the_room_that_is_left_and_then_all() {
    let run = Run::of(
        2,
        vec![submit(0, kernel(1000, 0.75)), submit(1, whole_kernel(1000))],
    );
    // The second is known at 121 and has a quarter of the device until 1110: 247.25 done.
    // The rest, 752.75, at full speed: ends at 1862.75, which is rounded up.
    assert_eq!(spans(&run), [(110, 1110), (121, 1863)]);
}

#[test]
fn kernels_that_need_the_same_memory_bandwidth_slow_each_other_down() {
    let run = Run::of(
        2,
        vec![
            submit(0, kernel_with(1000, 0.5, 1.0)),
            submit(1, kernel_with(1000, 0.5, 1.0)),
        ],
    );
    // Alone for 11 ns, then at half speed. First: 989 left, ends at 121 + 1978 = 2099.
    // Second: 989 done by then, 11 left alone: ends at 2110.
    assert_eq!(spans(&run), [(110, 2099), (121, 2110)]);
}

#[test]
fn higher_priority_goes_first_when_room_is_made() {
    let run = Run::with_priorities(
        &[0, 0, -1],
        vec![
            submit(0, whole_kernel(1000)),
            submit(1, whole_kernel(200)),
            submit(2, whole_kernel(300)),
        ],
    );
    assert_eq!(spans(&run), [(110, 1110), (1110, 1410), (1410, 1610)]);
}

#[test]
fn a_blocking_submission_returns_after_its_operation() {
    let run = Run::of(
        1,
        vec![
            submit_blocking(0, copy_out(1000)),
            submit(0, kernel(10, 0.1)),
        ],
    );
    // The call returns 50 after 1110; the launch is [1161, 1171), known at 1271.
    assert_eq!(run.calls[0].span, Span::new(0, 1160));
    assert_eq!(spans(&run), [(110, 1110), (1271, 1281)]);
}

#[test]
fn a_full_stream_holds_its_thread_up() {
    let mut quick = profile();
    quick.api.queue_depth = 2;
    let run = Run::with_profile(
        &quick,
        1,
        vec![
            submit(0, kernel(1000, 0.1)),
            submit(0, kernel(1000, 0.1)),
            submit(0, kernel(1000, 0.1)),
        ],
    );
    // The third call begins at 22 and finds two in the queue; the first is gone at 1110, the call's own
    // 10 ns follow. It is known at 1220, long before the second ends at 2130.
    assert_eq!(run.calls[2].span, Span::new(22, 1120));
    assert_eq!(spans(&run), [(110, 1110), (1130, 2130), (2150, 3150)]);
}

#[test]
fn plain_free_waits_for_the_device() {
    let run = Run::of(
        1,
        vec![alloc(4096), submit(0, kernel(1000, 0.1)), free(4096)],
    );
    // The allocation's call is [0, 10), the launch's [11, 21), the kernel runs [121, 1121). The host
    // wakes 50 later, and the call takes 10 from there.
    assert_eq!(run.calls[2].span, Span::new(22, 1181));
    let memory: Vec<_> = run.memory.iter().map(|a| a.span).collect();
    assert_eq!(memory, [Span::at(10), Span::at(1181)]);
}

#[test]
fn a_graph_follows_its_edges() {
    let node = |ns, after: &[u32]| match kernel(ns, 0.25) {
        Item::Run(op) => Node {
            op: Some(op),
            after: after.to_vec(),
            portion_end: 4,
        },
        _ => unreachable!("a kernel is an operation"),
    };
    // A diamond: 0, then 1 and 2 side by side, then 3.
    let graph = Graph {
        nodes: vec![
            node(100, &[]),
            node(50, &[0]),
            node(80, &[0]),
            node(10, &[1, 2]),
        ],
    };
    let run = Run::of(
        1,
        vec![
            submit(
                0,
                Item::Graph(
                    graph.into(),
                    Upload {
                        fixed_ns: 10,
                        node_ns: 0,
                    },
                ),
            ),
            submit(0, kernel(5, 0.1)),
        ],
    );
    // Known at 110; nodes follow 7 ns after what they wait for; the next launch 20 after the last node.
    assert_eq!(
        spans(&run),
        [(110, 210), (217, 267), (217, 297), (304, 314), (334, 339)]
    );
    assert!(
        run.operations[..4]
            .iter()
            .all(|a| a.correlation == run.calls[0].correlation)
    );
}

#[test]
fn a_launch_hands_a_graph_over_in_portions() {
    let node = |after: &[u32], portion_end| match kernel(50, 0.25) {
        Item::Run(op) => Node {
            op: Some(op),
            after: after.to_vec(),
            portion_end,
        },
        _ => unreachable!("a kernel is an operation"),
    };
    let graph = Graph {
        nodes: vec![node(&[], 2), node(&[0], 2), node(&[1], 4), node(&[2], 4)],
    };
    let upload = Upload {
        fixed_ns: 5,
        node_ns: 1000,
    };
    let run = Run::of(1, vec![submit(0, Item::Graph(graph.into(), upload))]);
    // The device has the first two nodes at 5 + 2000 and the rest at 5 + 4000, each known 100 later;
    // nodes of one portion follow each other after 7.
    assert_eq!(
        spans(&run),
        [(2105, 2155), (2162, 2212), (4105, 4155), (4162, 4212)]
    );
}

#[test]
fn an_engine_looks_again_after_a_while() {
    let mut polling = profile();
    polling.latency.poll_ns = 10_000;
    let steps = || {
        vec![
            submit(0, copy_in(15_000)),
            submit(0, kernel(2_000, 0.1)),
            submit(0, kernel(2_000, 0.1)),
            submit(0, copy_out(300)),
        ]
    };
    let run = Run::with_profile(&polling, 1, steps());
    // The copy: [110, 15110). The first kernel is known at 121 and looked at then and at 10121: too early.
    // At 20121 it may start. The second, on the same engine, follows 20 after it. The copy out is known at
    // 143, looked at at 10143 and 20143: too early. After two looks nobody knows when the next is: half a period
    // after the 20 that it takes to follow a kernel.
    assert_eq!(
        spans(&run),
        [
            (110, 15_110),
            (20_121, 22_121),
            (22_141, 24_141),
            (29_161, 29_461)
        ]
    );
}

#[test]
fn a_pause_comes_between_two_operations_and_only_once() {
    let run = Run::of(
        1,
        vec![
            submit(0, kernel(1000, 0.1)),
            Step::Queue(0, Item::Pause(300)),
            submit(0, kernel(10, 0.1)),
            submit(0, kernel(10, 0.1)),
        ],
    );
    // 20 from kernel to kernel, and 300 more behind the first.
    assert_eq!(spans(&run), [(110, 1110), (1430, 1440), (1460, 1470)]);
}

#[test]
fn host_work_delays_what_comes_after_it() {
    let run = Run::of(1, vec![work(1000), submit(0, kernel(10, 0.1))]);
    assert_eq!(spans(&run), [(1110, 1120)]);
}

#[test]
fn bytes_and_directions_reach_the_record() {
    let run = Run::of(1, vec![submit(0, copy_in(1000)), submit(0, copy_out(300))]);
    let copies: Vec<_> = (run.operations.iter())
        .filter_map(|a| match a.what {
            What::Copy(copy) => Some((copy.direction, copy.bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(copies, [(Direction::H2D, 1000), (Direction::D2H, 300)]);
}
