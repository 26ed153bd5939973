//! Against a library with NVML's names and types and no GPU behind it (`tests/fake/libnvidia-ml.c` of the workspace).

use std::path::PathBuf;
use std::process::Command;

use super::*;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

const FIRST: [u8; 16] = [0x22; 16];
const SECOND: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn fake(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake/libnvidia-ml.c");
    let made = std::env::temp_dir().join(format!("libnvidia-ml-{name}-{}.so", std::process::id()));
    let status = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC"])
        .args(flags)
        .arg("-o")
        .args([&made, &source])
        .status()
        .expect("a compiler");
    assert!(status.success());
    made
}

#[test]
fn a_gpu_is_found_by_its_uuid_and_read() {
    let path = fake("whole", &[]);
    let nvml = Nvml::open(&path).expect("initialises");
    let device = nvml.device(&SECOND).expect("by UUID, not by index");
    assert_eq!(device.power_usage().ok(), Some(111_000));
    let first = nvml.device(&FIRST).expect("found");
    assert_eq!(first.power_usage().ok(), Some(222_000));
    assert_eq!(device.enforced_power_limit().ok(), Some(700_000));
    assert_eq!(device.clock_info(Clock::SM).ok(), Some(1111));
    assert_eq!(device.max_clock_info(Clock::SM).ok(), Some(1980));
    assert_eq!(device.temperature(TemperatureSensor::Gpu).ok(), Some(41));
    assert_eq!(event_reasons(&device).ok(), Some(0));
    let memory = device.memory_info().expect("told");
    assert_eq!((memory.used, memory.total), (700_000, 1_000_000));
    // 32 GT/s × 16 lanes × 128/130 / 8 bits.
    assert_eq!(pcie_peak(&device).map(|it| it / 1_000_000), Some(63_015));
    let missing = nvml.device(&[9; 16]).map_err(|it| describe(&it));
    assert_eq!(missing.err().as_deref(), Some("no such GPU"));

    let all = nvml.devices().expect("a list");
    let told: Vec<_> = all
        .iter()
        .map(|it| (uuid(it), it.name().ok(), it.minor_number().ok()))
        .collect();
    assert_eq!(
        told,
        [
            (Some(FIRST), Some("Fake A".to_owned()), Some(7)),
            (Some(SECOND), Some("Fake B".to_owned()), Some(3))
        ]
    );

    let mut gpm = Gpm::new(nvml, &device).expect("has GPM");
    let asked = [
        GpmMetricId::SmUtil,
        GpmMetricId::PcieRxPerSec,
        GpmMetricId::NvlinkTotalRxPerSec,
    ];
    assert!(gpm.sample(&device, &asked).expect("sampled").is_none());
    for _ in 0..3 {
        let answers = gpm.sample(&device, &asked).expect("sampled");
        let answers = answers.expect("two").into_iter();
        let told: Vec<_> = answers.map(|it| it.map_err(|it| describe(&it))).collect();
        let lacks = Err("not on this GPU".to_owned());
        assert_eq!(told, [Ok(30.0), Ok(1024.0), lacks]);
    }
}

#[test]
fn an_older_gpu_and_driver_have_no_gpm_and_the_rest() {
    let nvml = Nvml::open(&fake("old", &["-DNO_GPM"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    let lacks = |nvml, device| Gpm::new(nvml, device).map_err(|it| describe(&it)).err();
    assert_eq!(lacks(nvml, &device).as_deref(), Some("not in this driver"));
    assert_eq!(device.temperature(TemperatureSensor::Gpu).ok(), Some(41));
    let nvml = Nvml::open(&fake("ampere", &["-DGPM_UNSUPPORTED"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    assert_eq!(lacks(nvml, &device).as_deref(), Some("not on this GPU"));
}

#[test]
fn what_is_forbidden_or_missing_is_said() {
    let nvml = Nvml::open(&fake("forbidden", &["-DFORBIDDEN"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    let error = device.power_usage().expect_err("forbidden");
    assert!(is_for_good(&error) && describe(&error) == "not permitted");
    assert!(matches!(processes(&device), Err(NvmlError::NoPermission)));
    assert_eq!(device.clock_info(Clock::SM).ok(), Some(1111));
    let error = Nvml::open(&fake("unloaded", &["-DNO_INIT=9"])).expect_err("fails");
    assert!(error.contains("kernel module"), "{error}");
    let error = Nvml::open(Path::new("/nowhere/libnvidia-ml.so.1")).expect_err("not there");
    assert!(error.contains("cannot be loaded (/nowhere/"), "{error}");
}

#[test]
fn more_processes_than_there_was_room_for_are_all_read() {
    // In a process of its own: the variable must be there before the library asks.
    const LISTED: &str = "FAKE_NVML_PIDS";
    if std::env::var_os(LISTED).is_none() {
        let pids: Vec<String> = (100..140).map(|pid: u32| pid.to_string()).collect();
        let again = Command::new(std::env::current_exe().expect("itself"))
            .args([
                "--exact",
                "nvml::tests::more_processes_than_there_was_room_for_are_all_read",
            ])
            .env(LISTED, pids.join(","))
            .output()
            .expect("runs");
        assert!(again.status.success(), "{again:?}");
        return;
    }
    let nvml = Nvml::open(&fake("processes", &[])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    let processes = processes(&device).expect("listed");
    assert_eq!(processes.len(), 40);
    let first = GpuProcess {
        pid: 100,
        memory: Some(102_400),
    };
    assert_eq!(processes[0], first);
    assert_eq!(processes[1].memory, None);
    // Of two samples of a process the newer one counts, though it comes first.
    let shares = process_shares(&device, 1_000).expect("told");
    assert_eq!((shares.len(), shares[&100], shares[&139]), (40, 40, 79));
    // Nobody used the other one, which NVML says by finding nothing.
    let idle = nvml.device(&FIRST).expect("found");
    assert_eq!(process_shares(&idle, 1_000).map(|it| it.len()), Some(0));
    assert_eq!((busy(&idle), busy(&device)), (Some(0), Some(87)));
    assert_eq!(graphics_processes(&idle), Vec::new());
}

/// The second of two GPUs fails, as NVML tells it by an event.
#[test]
fn an_error_of_a_gpu_is_seen_with_its_number() {
    use crate::job::xid::Xids;
    use std::time::{Duration, Instant};
    // What is seen once there is something.
    let seen = |name, flags: &[&str]| {
        let path = fake(name, flags);
        let watched = Xids::watch(move || Nvml::open(&path)).expect("a thread");
        let begun = Instant::now();
        loop {
            match watched.seen() {
                Some(Ok(none)) if none.is_empty() => {}
                None => {}
                Some(seen) => return seen,
            }
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let fails = seen("fails", &["-DXID=79"]).expect("watched");
    let [xid] = fails[..] else {
        panic!("one: {fails:?}");
    };
    assert_eq!(
        (xid.gpu, xid.code, xid.words()),
        (1, 79, "GPU has fallen off the bus")
    );
    let refused = seen("silent", &["-DFORBIDDEN"]);
    assert_eq!(refused, Err("not permitted".to_owned()));
}
