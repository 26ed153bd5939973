//! Jobs that stand still, that go on, and whose rank is stopped or gone, as `cuptop job` tells them. The ranks are Python with a runtime
//! library that is made here; one of them answers as NCCL's service does.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{fakes, has_python};

const PROGRAM: &str = r#"
import ctypes, json, os, socket, sys, threading, time

rank, kind = int(os.environ["RANK"]), sys.argv[1]
cuda = ctypes.CDLL(sys.argv[2] + "/libcudart.so.13")
ctypes.CDLL(sys.argv[2] + "/libcuda.so.1")

def load_batch():
    time.sleep(1000)

def serve(listener):
    count = lambda of: {"AllReduce": 200 if of == 2 else 201, "Broadcast": 0}
    ranks = [{"rank": of, "host": "gpu02" if of == 2 else "gpu01", "pid": 7, "collective_counts": count(of)} for of in range(3)]
    answer = "OK\n" + json.dumps({"communicators": [{"ranks": ranks, "missing_ranks": []}]})
    while True:
        client, _ = listener.accept()
        client.recv(100)
        client.sendall(answer.encode())
        client.close()

if kind == "ras" and rank == 0:
    listener = socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
    threading.Thread(target=serve, args=[listener], daemon=True).start()
print("running", flush=True)
while kind == "moves":
    time.sleep(0.004)
    time.sleep(0.004)
    sum(range(100_000))
    time.sleep(0.004)
    sum(range(100_000))
if rank == 2 and kind == "loader":
    import queue
    while True:
        try: queue.Queue().get(timeout=2)
        except queue.Empty: pass
if rank == 2 and kind != "symmetric":
    load_batch()
cuda.cudaStreamSynchronize(None)
"#;

/// Ranks that run; ended when this goes.
struct Job {
    ranks: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Job {
    fn start(kind: &str, port: u16) -> Job {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("train.py");
        std::fs::write(&program, PROGRAM).expect("written");
        let rank = |rank: u32| {
            let child = Command::new("python3")
                .arg(&program)
                .arg(kind)
                .arg(fakes())
                .envs([
                    ("WORLD_SIZE", "3"),
                    ("LOCAL_WORLD_SIZE", "3"),
                    ("MASTER_ADDR", "here"),
                ])
                .envs(["RANK", "LOCAL_RANK"].map(|it| (it, rank.to_string())))
                .env("MASTER_PORT", folder.path())
                .env("NCCL_RAS_ADDR", format!("localhost:{port}"))
                .stdout(Stdio::piped())
                .spawn();
            let mut child = child.expect("started");
            let mut line = [0; 8];
            let output = child.stdout.as_mut().expect("a pipe");
            std::io::Read::read_exact(output, &mut line).expect("text");
            child
        };
        Job {
            ranks: (0..3).map(rank).collect(),
            _folder: folder,
        }
    }

    /// What is said of it, and the exit code.
    fn asked(&self, options: &[&str]) -> (Value, i32) {
        let done = Command::new(env!("CARGO_BIN_EXE_cuptop"))
            .args(["job", &self.ranks[0].id().to_string(), "--json"])
            .args(options)
            .output()
            .expect("it runs");
        let whole: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        (whole["jobs"][0].clone(), done.status.code().unwrap_or(-1))
    }

    /// The same, once it is said to be in this state; how soon is a matter of load.
    fn asked_until(&self, state: &str, options: &[&str]) -> (Value, i32) {
        let begun = Instant::now();
        loop {
            let said = self.asked(options);
            if said.0["state"] == state || begun.elapsed() > Duration::from_secs(60) {
                return said;
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

/// The thread that leads a rank.
fn lead(said: &Value, rank: usize) -> &Value {
    let threads = said["ranks"][rank]["threads"].as_array().expect("threads");
    threads
        .iter()
        .find(|it| it["leads"] == true)
        .expect("one leads")
}

#[test]
fn a_rank_that_sleeps_while_others_wait_is_behind() {
    if !has_python() {
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a port").port();
    let job = Job::start("ras", port);
    let (said, code) = job.asked_until("still", &["--ras"]);
    assert_eq!(
        (said["state"].as_str(), code),
        (Some("still"), 1),
        "{said:#}"
    );
    assert_eq!(said["behind"], serde_json::json!([2]));
    assert_eq!(said["waiting"], serde_json::json!([0, 1]));
    let late = lead(&said, 2);
    assert_eq!(
        (
            late["doing"].as_str(),
            late["python"][0]["function"].as_str()
        ),
        (Some("asleep"), Some("load_batch"))
    );
    assert!(
        late["for_ns"]
            .as_u64()
            .is_some_and(|it| it >= 5_000_000_000),
        "{late}"
    );
    assert_eq!(
        lead(&said, 0)["native"],
        "cudaStreamSynchronize",
        "{said:#}"
    );
    // What the service says of a rank elsewhere has the command that looks there; nobody asks it unasked.
    let expected = "NCCL: rank 2 has launched 200 of 201 AllReduce: ssh gpu02 cuptop job 7";
    assert_eq!(said["nccl"], serde_json::json!([expected]));
    let (unasked, _) = job.asked(&[]);
    assert!(
        unasked["nccl"][0]
            .as_str()
            .is_some_and(|it| it.contains("not asked")),
        "{unasked}"
    );
    let doctor = Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["doctor", "--json"])
        .output()
        .expect("it runs");
    let doctor: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    let mut rows = doctor["parts"].as_array().expect("rows").iter();
    let row = rows.find(|it| it["name"] == "NCCL").expect("a row");
    let expected = format!("127.0.0.1:{port}: the version of NCCL is not known");
    assert!(
        row["text"]
            .as_str()
            .is_some_and(|it| it.contains(&expected)),
        "{row}"
    );
}

/// As PyTorch's loader waits whose workers have locked each other out.
#[test]
fn a_rank_that_wakes_and_waits_for_the_same_again_is_behind() {
    if !has_python() {
        return;
    }
    let job = Job::start("loader", 1);
    let (said, code) = job.asked_until("still", &["--no-ras"]);
    assert_eq!(
        (&said["behind"], code),
        (&serde_json::json!([2]), 1),
        "{said:#}"
    );
    let late = lead(&said, 2);
    assert_eq!(late["doing"], "stays", "{late}");
    assert!(
        late["for_ns"]
            .as_u64()
            .is_some_and(|it| it >= 5_000_000_000),
        "{late}"
    );
}

#[test]
fn a_rank_that_is_stopped_or_gone_is_behind_and_a_job_that_moves_has_none() {
    if !has_python() {
        return;
    }
    let mut job = Job::start("symmetric", 1);
    let (said, code) = job.asked(&["--no-ras"]);
    assert_eq!(
        (said["state"].as_str(), code),
        (Some("same-place"), 0),
        "{said:#}"
    );
    let pid = rustix::process::Pid::from_raw(job.ranks[1].id().cast_signed()).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    let (said, code) = job.asked(&["--no-ras"]);
    assert_eq!(
        (&said["behind"], code),
        (&serde_json::json!([1]), 1),
        "{said:#}"
    );
    assert_eq!(said["ranks"][1]["life"], "stopped");
    job.ranks[1].kill().expect("killed");
    job.ranks[1].wait().expect("ended");
    let (said, code) = job.asked(&["--no-ras"]);
    assert_eq!(
        (&said["behind"], code),
        (&serde_json::json!([1]), 1),
        "{said:#}"
    );
    assert_eq!(said["ranks"][1]["life"], "gone");
    let (said, code) = Job::start("moves", 1).asked(&["--no-ras"]);
    assert_eq!(
        (said["state"].as_str(), code),
        (Some("moves"), 0),
        "{said:#}"
    );
}
