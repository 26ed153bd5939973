use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use activity::feed::{Feed, Message};

/// All that reading a text in blocks of this size gives, as words.
fn told(text: &[u8], block: usize) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, text).expect("a file");
    let name = path.display().to_string();
    let feed = Feed::spawn("test", move |outlet| {
        load_by(block, &name, &path, outlet).send(&mut 0, outlet)
    })
    .expect("a thread");
    let mut told = Vec::new();
    for message in feed.receiver() {
        match message {
            Message::Progress(_) => {}
            Message::Batch(batch) => {
                told.push(format!("{:?} {:?}", batch.defs, batch.health));
                told.extend(batch.items.iter().map(|item| format!("{item:?}")));
            }
            other => {
                let place = folder.path().display().to_string();
                told.push(format!("{other:?}").replace(&place, ""));
            }
        }
    }
    told
}

/// Events as they are common and as they are not, of which some look like two.
const EVENTS: [&str; 12] = [
    r#"{"ph": "X", "cat": "kernel", "name": "f", "ts": 5, "dur": 2, "args": {"device": 0, "stream": 7, "correlation": 3, "grid": [1, 2, 3]}}"#,
    r#"{"ph": "X", "cat": "kernel", "name": "g", "ts": 3, "dur": 9, "args": {"device": 0, "stream": 7, "correlation": 4}}"#,
    r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpy", "pid": 5, "tid": 5, "ts": 1.25, "dur": 1, "args": {"correlation": 6}}"#,
    r#"{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1, "dur": "7.5", "args": {"device": 0, "stream": 7, "correlation": 6, "bytes": 12}}"#,
    r#"{"ph": "X", "cat": "cpu_op", "name": "a}, {\"ph\": \"b", "pid": 5, "tid": 5, "ts": 2, "dur": 1, "args": {"x": [{"ph": 1}, {"ph": 2},
        {"ph": "X", "cat": "kernel", "name": "not one", "ts": 1, "dur": 1}]}}"#,
    r#"{"ph": "X", "cat": "cpu_op", "name": "b \"}, {", "pid": 5, "tid": 5, "ts": 2, "dur": NaN}"#,
    r#"{"ph": "s", "id": 4, "name": "ac2g"}"#,
    r#"{"ph": "X", "cat": "python_function", "name": "p", "ts": 1, "dur": 1, "args": {"y": [{}, {"ph": "X"}]}}"#,
    r#"{"name": "thread_name", "ph": "M", "pid": 5, "tid": 5, "args": {"name": "t"}}"#,
    "null",
    "[{\"ph\": \"X\"}, {\"ph\": \"X\"}]",
    r#"{"ph": "i", "cat": "cpu_instant_event", "ts": 1}"#,
];

/// How much of what a trace is read as has a word.
fn count(text: &str, word: &str) -> usize {
    let all = told(text.as_bytes(), BLOCK);
    all.iter().filter(|it| it.contains(word)).count()
}

/// The name of a process.
fn name(pid: i32, name: &str) -> String {
    format!(r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{name}"}}}}"#)
}

/// TensorFlow names a call after what it puts on a stream, whose number it has.
#[test]
fn tensorflows_launches_are_calls() {
    let stream = r#"{"ph":"M","pid":2,"tid":31,"name":"thread_name","args":{"name":"Stream #31"}}"#;
    let event = |pid: i32, tid: i32, name: &str, number: i32, details: &str| {
        format!(
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":5.0,"dur":2,"name":"{name}","args":{{"correlation_id":"{number}","memcpy_details":"{details}"}}}}"#
        )
    };
    let with = |on_host: String| {
        let copy = "size:4096 dest:0 async:1";
        let all = [
            name(2, "/device:GPU:0"),
            name(5, "/host:CPU"),
            stream.to_owned(),
            event(2, 31, "volta_sgemm", 9, ""),
            event(2, 31, "MemcpyH2D", 8, copy),
            on_host,
        ];
        format!(r#"{{"traceEvents":[{}]}}"#, all.join(","))
    };
    for (on_host, calls, synchronous) in [
        (event(5, 4, "volta_sgemm", 9, ""), 1, 0),
        (
            event(5, 4, "MemcpyH2D", 8, "size:4096 dest:0 async:1"),
            1,
            0,
        ),
        (
            event(5, 4, "MemcpyH2D", 8, "size:4096 dest:0 async:0"),
            1,
            1,
        ),
        // Nothing on a stream has its number.
        (event(5, 4, "volta_sgemm", 7, ""), 0, 0),
        (event(5, 4, "MatMul", 0, ""), 0, 0),
    ] {
        let trace = with(on_host);
        assert_eq!(count(&trace, "what: Call("), calls, "{trace}");
        assert_eq!(count(&trace, "is_async: false"), synchronous, "{trace}");
    }
}

/// Calls of ROCm with nothing but an external id have what they launch by it. CUDA's mean the operator by that.
#[test]
fn what_rocm_launches_is_known_by_its_external_id() {
    let linked = |call: &str, more: &str| {
        let event = |cat: &str, name: &str, args: &str| {
            format!(
                r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":5,"dur":2,"args":{{"External id":30{args}}}}}"#
            )
        };
        let kernel = event("kernel", "f", r#","device":0,"stream":0"#);
        let call = event("cuda_runtime", call, more);
        count(&format!("[{call},{kernel}]"), "correlation: 30")
    };
    assert_eq!(linked("hipLaunchKernel", ""), 2);
    assert_eq!(linked("hipLaunchKernel", r#","correlation":7"#), 1);
    assert_eq!(linked("cudaLaunchKernel", ""), 1);
}

/// A trace of XLA as `jax.profiler` writes it: modules lie over the streams again, and the names come last.
#[test]
fn traces_of_xla_and_tensorflow_have_operations() {
    let event = |pid: i32, tid: i32, name: &str, args: &str| {
        format!(
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":5.0,"dur":2,"name":"{name}","args":{{{args}}}}}"#
        )
    };
    let thread = |tid: i32, name: &str| {
        format!(
            r#"{{"ph":"M","pid":2,"tid":{tid},"name":"thread_name","args":{{"name":"{name}"}}}}"#
        )
    };
    let details = r#""correlation_id":"9","kernel_details":"regs:40 static_shared:16 dynamic_shared:64 grid:7,3,1 block:96,1,1 occ_pct:50""#;
    let copy = r#""correlation_id":"8","memcpy_details":"kind_src:pageable kind_dst:device size:4096 dest:0 async:1""#;
    let xla = [
        event(2, 31, "loop_fusion", details),
        event(2, 31, "loop_fusion", details),
        event(2, 32, "MemcpyH2D", copy),
        event(2, 1, "jit_train(3)", ""),
        event(5, 4, "cuLaunchKernel", r#""correlation_id":"9""#),
        event(5, 4, "$train.py:12 step", ""),
        thread(31, "Stream #31(Compute)"),
        thread(32, "Stream #32(MemcpyH2D)"),
        thread(1, "XLA Modules"),
        name(2, "/device:GPU:1"),
        name(5, "/host:CPU"),
    ];
    let trace = format!(r#"{{"traceEvents":[{}]}}"#, xla.join(","));
    assert_eq!(count(&trace, "what: Kernel("), 2);
    assert_eq!(
        count(
            &trace,
            "direction: H2D, from: Pageable, to: Device, is_async: true, bytes: 4096"
        ),
        1
    );
    assert_eq!(count(&trace, "what: Call("), 1);
    let shape =
        "grid: [7, 3, 1], block: [96, 1, 1], registers: 40, static_shared: 16, dynamic_shared: 64";
    for known in [
        shape,
        "train.py(12): step",
        "not shown: 1 XLA Modules",
        "device: 1, context: 0, stream: 31",
    ] {
        assert!(count(&trace, known) > 0, "{known}");
    }
    // Streams with numbers are in "all" once more; without a GPU events are left out.
    let tensorflow = |others: &str| {
        let all = name(3, "/device:GPU:0/stream:all Compute");
        let op = event(3, 0, "MatMul", r#""op":"MatMul""#);
        format!("[{all},{op}{others}]")
    };
    let numbered = name(4, "/device:GPU:0/stream:12 Compute");
    let numbered = format!(",{numbered},{}", event(4, 0, "MatMul", ""));
    for others in ["", &numbered] {
        assert_eq!(count(&tensorflow(others), "what: Kernel("), 1, "{others}");
    }
    // When an op was put there is told of its GPU by another process.
    let host = name(6, "/job:localhost/replica:0/task:0/device:GPU:0 Compute");
    let host = format!(",{host},{}", event(6, 0, "MatMul", ""));
    assert_eq!(count(&tensorflow(&host), "kind: CpuOp"), 1);
    // One of the same full name put there what runs.
    let op = |pid: i32, kind: &str, name: &str| {
        event(pid, 0, kind, &format!(r#""name":"{name}","op":"{kind}""#))
    };
    let host = name(6, "/job:localhost/replica:0/task:0/gpu:0 Compute");
    let launched = [
        &host,
        &op(6, "Const", "b"),
        &op(6, "MatMul", "a"),
        &op(3, "MatMul", "a"),
    ];
    let launched = tensorflow(&launched.map(|it| format!(",{it}")).concat());
    assert_eq!(count(&launched, "what: Call("), 1);
    assert_eq!(count(&launched, "kind: CpuOp"), 1);
    assert_eq!(count(&launched, "correlation: 3"), 2);
    // Without streams the ops of a GPU have launched what is missing, and those of the CPU are its work.
    let [cpu, gpu] = [
        "/job:localhost/replica:0/task:0/cpu:0 Compute",
        "/job:localhost/replica:0/task:0/gpu:7 Compute",
    ];
    let unseen = [
        name(5, cpu),
        name(6, gpu),
        op(5, "Const", "b"),
        op(6, "MatMul", "a"),
    ];
    let unseen = format!("[{}]", unseen.join(","));
    assert_eq!(count(&unseen, "what: Call("), 1);
    assert_eq!(count(&unseen, "kind: CpuOp"), 1);
    assert!(count(&unseen, "TensorFlow cpu:0") > 0);
    let other = format!("[{}]", event(5, 4, "paint", ""));
    assert_eq!(count(&other, "what: "), 0);
    assert_eq!(count(&other, "not shown: 1 events without a category"), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A block as large as the text is read from front to back by one thread. A text that breaks off anywhere, or that has
    /// a byte changed, says the same too, with the same place.
    #[test]
    fn blocks_of_any_size_say_the_same(
        events in prop::collection::vec(prop::sample::select(&EVENTS[..]), 0..30),
        block in 1usize..400,
        is_list in any::<bool>(),
        cut in proptest::option::weighted(0.4, any::<prop::sample::Index>()),
        change in proptest::option::weighted(0.3, (any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:x \n".to_vec()))),
        more in prop::sample::select(vec!["", ",", ", \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"later\"},]", ", \"lost records\": 3"]),
    ) {
        let list = events.join(",\n");
        let mut text = if is_list {
            format!("[{list}").into_bytes()
        } else {
            format!("{{\"schemaVersion\": 1, \"traceEvents\": [\n{list}\n]{more}}}\n").into_bytes()
        };
        if let Some((at, byte)) = change {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Some(cut) = cut {
            text.truncate(cut.index(text.len()));
        }
        let expected = told(&text, 1 << 20);
        prop_assert_eq!(told(&text, block), expected);
    }
}

#[test]
fn what_follows_the_trace_is_told() {
    let says = |text: &[u8]| told(text, BLOCK).pop().expect("an end");
    assert_eq!(says(b"{\"traceEvents\": []} \n"), "Finished(Complete)");
    assert_eq!(says(b"[{\"ph\": \"M\"}]\n"), "Finished(Complete)");
    for text in [
        "{\"traceEvents\": []} {}",
        "[] x",
        "{\"traceEvents\": []}\0",
    ] {
        let said = says(text.as_bytes());
        assert!(
            said.contains("the text goes on behind the end of the trace"),
            "{said}"
        );
    }
}

/// A wrong checksum, and a length that is not what was unpacked, in the last eight bytes of the file.
#[test]
fn the_checksum_of_gzip_is_looked_at() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer
        .write_all(b"{\"traceEvents\": [{\"ph\": \"M\"}]}")
        .expect("gzip");
    let packed = packer.finish().expect("gzip");
    assert_eq!(
        told(&packed, BLOCK).pop().expect("an end"),
        "Finished(Complete)"
    );
    for at in [packed.len() - 8, packed.len() - 1] {
        let mut packed = packed.clone();
        packed[at] ^= 1;
        let said = told(&packed, BLOCK).pop().expect("an end");
        assert!(said.contains("cannot be read on"), "{said}");
    }
}

/// Twenty launches, a millisecond apart, whose kernels begin so many microseconds after them.
#[test]
fn a_clock_of_the_gpu_that_is_behind_is_set_right() {
    let says = |after: i64| {
        let event = |at: i64, of: &str, i: i64| {
            format!(
                r#"{{"ph":"X",{of},"ts":{at},"dur":2,"args":{{"device":0,"stream":7,"correlation":{i}}}}}"#
            )
        };
        let events = (1..21).flat_map(|i| {
            let host = r#""cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5"#;
            let kernel = r#""cat":"kernel","name":"k""#;
            [event(1000 * i, host, i), event(1000 * i + after, kernel, i)]
        });
        let events: Vec<String> = events.collect();
        let text = format!("{{\"traceEvents\":[{}]}}", events.join(","));
        told(text.as_bytes(), BLOCK).join("\n")
    };
    let behind = says(-95);
    let words = "the GPU's clock is 98.0 µs behind the CPU's";
    assert!(behind.contains(words), "{behind}");
    // The first begins 3 us after its launch.
    assert!(behind.contains("start: 1003000, end: 1005000"), "{behind}");
    assert!(!says(5).contains("behind the CPU"), "{behind}");
}

/// Memory on the CPU, and on a GPU; with a kernel operations tell.
#[test]
fn the_allocators_events_say_where_tensors_are() {
    let memory = |device: u32| {
        format!(
            r#"{{"ph":"i","s":"t","name":"[memory]","pid":5,"tid":5,"ts":1,"args":{{"Device Type":{device},"Device Id":0,"Bytes":4}}}}"#
        )
    };
    let told = |events: &[String]| {
        let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
        told(text.as_bytes(), BLOCK).concat()
    };
    let on_cpu = told(&[memory(0), memory(0)]);
    assert!(on_cpu.contains("has_tensors: Some(false)"), "{on_cpu}");
    assert!(
        on_cpu.contains("its tensors are all on the CPU"),
        "{on_cpu}"
    );
    let on_gpu = told(&[memory(0), memory(1)]);
    assert!(on_gpu.contains("has_tensors: Some(true)"), "{on_gpu}");
    for events in [vec![], vec![memory(0), EVENTS[0].to_owned()]] {
        let text = told(&events);
        assert!(text.contains("has_tensors: None"), "{text}");
    }
}

/// On a CPU PyTorch has operators for convolutions that no GPU has.
#[test]
fn convolutions_that_ran_on_the_cpu_are_told() {
    let told = |name: &str| {
        let one = format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":5,"tid":5,"ts":1,"dur":2,"args":{{}}}}"#
        );
        told(format!("[{one}]").as_bytes(), BLOCK).concat()
    };
    let on_cpu = "its convolutions ran on the CPU";
    assert!(told("aten::mkldnn_convolution").contains(on_cpu));
    assert!(!told("aten::conv2d").contains(on_cpu));
}

/// Ranges of a program's own tool, in the same format.
#[test]
fn a_trace_of_another_program_is_not_taken_for_pytorchs() {
    let told = |name: &str, more: &str| {
        let one = format!(r#"{{"ph":"X","name":"{name}","pid":5,"tid":5,"ts":1,"dur":2{more}}}"#);
        told(format!("[{one}]").as_bytes(), BLOCK).concat()
    };
    let other = "another program's Chrome JSON";
    assert!(told("WAIT_MMA", "").contains(other));
    assert!(!told("WAIT_MMA", r#","cat":"user_annotation""#).contains(other));
    assert!(!told("aten::add", "").contains(other));
}

/// A thread of the CPU beside GPUs of which nothing was recorded, as TensorFlow and JAX write it, and operators of MXNet by device.
#[test]
fn profiles_without_rows_of_a_gpu_are_told_by_who_wrote_them() {
    let told = |processes: [&str; 2], event: &str| {
        let process = |(pid, name)| {
            format!(r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{name}"}}}}"#)
        };
        let [one, other] = [0, 1].map(|pid| process((pid, processes[pid])));
        told(format!("[{one},{other},{event}]").as_bytes(), BLOCK).concat()
    };
    let ran = r#"{"ph":"X","name":"train_function","pid":1,"tid":5,"ts":1,"dur":2}"#;
    let of_tf = told(["/device:GPU:0", "/host:CPU"], ran);
    for word in [
        "TensorFlow and JAX wrote down what CPU threads did",
        "what: Range(",
    ] {
        assert!(of_tf.contains(word), "{of_tf}");
    }
    let operator = r#"{"ph":"B","cat":"operator","name":"CopyCPU2GPU","pid":1,"tid":5,"ts":1}"#;
    let of_mxnet = told(["cpu/0", "gpu/0"], operator);
    assert!(of_mxnet.contains("MXNet wrote down"), "{of_mxnet}");
    // Whatever else has processes and threads.
    let other = told(["gpu", "browser"], ran);
    assert!(other.contains("another program's Chrome JSON"), "{other}");
    assert!(!other.contains("what: Range("), "{other}");
}

/// As `SessionOptions.enable_profiling` writes it: the last two are of a build that asks CUPTI.
#[test]
fn profiles_of_onnx_runtime_have_nodes_by_who_ran_them() {
    let event = |cat: &str, name: &str, pid: i32, args: &str| {
        format!(
            r#"{{"cat" : "{cat}","pid" :{pid},"tid" :{pid},"dur" :9,"ts" :4,"ph" : "X","name" :"{name}","args" : {{{args}}}}}"#
        )
    };
    let node = |op: &str, on: &str| {
        let args = format!(
            r#""thread_scheduling_stats" : {{"main_thread": {{"core": 1}}}},"op_name" : "{op}","provider" : "{on}ExecutionProvider""#
        );
        event("Node", "n_kernel_time", 7, &args)
    };
    let mut events = vec![
        event("Session", "model_run", 7, ""),
        node("Conv", "CUDA"),
        node("TopK", "CPU"),
        event("Node", "n_fence_before", 7, r#""op_name" : "Conv""#),
    ];
    let read =
        |events: &[String]| told(format!("[{}]", events.join(",")).as_bytes(), BLOCK).concat();
    let all = read(&events);
    for word in [
        "Conv on CUDA",
        "TopK on CPU",
        "kind: Nvtx",
        "ONNX Runtime wrote down",
    ] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert_eq!(all.matches("what: Range(").count(), 3);
    let of_stream = r#""stream" : "7","op_name" : "Conv""#;
    events.push(event("Kernel", "gemm", -1, of_stream));
    events.push(event("Kernel", "MemcpyDeviceToHost", -1, of_stream));
    let all = read(&events);
    for word in [
        "what: Kernel(Kernel { place: Place { device: 0",
        "direction: D2H",
    ] {
        assert!(all.contains(word), "{word}: {all}");
    }
}

/// What PyTorch wrote before it had Kineto: times of the GPU by operator, without a category.
#[test]
fn times_of_the_gpu_by_an_old_profiler_are_named() {
    let told = |of: &str| {
        let one = format!(
            r#"{{"name":"aten::add","ph":"X","ts":1284.5,"dur":93.2,"tid":0,"pid":"{of}","args":{{}}}}"#
        );
        told(format!("[{one}]").as_bytes(), BLOCK).concat()
    };
    let old = told("CUDA functions");
    assert!(old.contains("record with torch.profiler"), "{old}");
    let other = told("CPU functions");
    assert!(
        other.contains("was the profiler told to record CUDA?"),
        "{other}"
    );
}
