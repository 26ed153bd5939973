//! Against a library with NVML's names and types and no GPU behind it (`tests/fake/libnvidia-ml.c` of the workspace).

use std::path::{Path, PathBuf};
use std::process::Command;

use cupti_sys::library::{Library, Visibility};
use cupti_sys::nvml::{Gpm, GpuProcess, Memory, Nvml, NvmlError, code, metric};

const FIRST: [u8; 16] = [0x22; 16];
const SECOND: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn fake(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fake/libnvidia-ml.c");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("libnvidia-ml-{name}-{}.so", std::process::id()));
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

/// A number that the fake counts.
fn count(path: &Path, symbol: &std::ffi::CStr) -> i32 {
    let library = Library::open(path, Visibility::Local).expect("the fake");
    // SAFETY: that is its type in the fake.
    let count = unsafe { library.function::<unsafe extern "C" fn() -> i32>(symbol) };
    // SAFETY: it takes nothing and returns a number.
    unsafe { count.expect("in the fake")() }
}

#[test]
fn a_gpu_is_found_by_its_uuid_and_read() {
    let path = fake("whole", &[]);
    let nvml = Nvml::open(&path).expect("initialises");
    let device = nvml.device(&SECOND).expect("by UUID, not by index");
    assert_eq!(device.power(), Ok(111_000));
    assert_eq!(nvml.device(&FIRST).expect("found").power(), Ok(222_000));
    assert_eq!(device.power_limit(), Ok(700_000));
    assert_eq!((device.clock(), device.max_clock()), (Ok(1111), Ok(1980)));
    assert_eq!(device.temperature(), Ok(41));
    assert_eq!(device.event_reasons(), Ok(0));
    let (used, total) = (700_000, 1_000_000);
    assert_eq!(device.memory(), Ok(Memory { used, total }));
    // 32 GT/s × 16 lanes × 128/130 / 8 bits.
    assert_eq!(device.pcie_peak().map(|it| it / 1_000_000), Ok(63_015));
    assert_eq!(nvml.device(&[9; 16]).err(), Some(code::NOT_FOUND));

    let all = nvml.devices().expect("a list");
    let told: Vec<_> = all
        .iter()
        .map(|it| (it.uuid(), it.name(), it.minor_number()))
        .collect();
    assert_eq!(
        told,
        [
            (Ok(FIRST), Ok("Fake A".to_owned()), Ok(7)),
            (Ok(SECOND), Ok("Fake B".to_owned()), Ok(3))
        ]
    );
    drop(all);

    let mut gpm = Gpm::new(&device).expect("has GPM");
    let asked = [metric::SM, metric::PCIE_RX, metric::NVLINK_RX];
    assert_eq!(gpm.read_since_last(&asked), Ok(None));
    gpm.sample().expect("sampled");
    assert_eq!(gpm.read_since_last(&asked), Ok(None));
    for _ in 0..3 {
        gpm.sample().expect("sampled");
        assert_eq!(
            gpm.read_since_last(&asked),
            Ok(Some(vec![Ok(30.0), Ok(1024.0), Err(code::NOT_SUPPORTED)]))
        );
    }
    assert_eq!(count(&path, c"fake_nvml_samples"), 2);
    drop(gpm);
    assert_eq!(count(&path, c"fake_nvml_samples"), 0);
    assert_eq!(count(&path, c"fake_nvml_users"), 1);
    drop((nvml, device));
    assert_eq!(count(&path, c"fake_nvml_users"), 0);
}

#[test]
fn an_older_gpu_and_driver_have_no_gpm_and_the_rest() {
    let nvml = Nvml::open(&fake("old", &["-DNO_GPM"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    assert_eq!(Gpm::new(&device).err(), Some(code::FUNCTION_NOT_FOUND));
    assert_eq!(device.temperature(), Ok(41));
    assert_eq!(device.event_reasons(), Ok(0));
    // Without the second version, used is what is reserved too.
    assert_eq!(device.memory().map(|it| it.used), Ok(900_000));
    let nvml = Nvml::open(&fake("ampere", &["-DGPM_UNSUPPORTED"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    assert_eq!(Gpm::new(&device).err(), Some(code::NOT_SUPPORTED));
}

#[test]
fn what_is_forbidden_or_missing_is_said() {
    let nvml = Nvml::open(&fake("forbidden", &["-DFORBIDDEN"])).expect("initialises");
    let device = nvml.device(&SECOND).expect("found");
    assert_eq!(device.power(), Err(code::NO_PERMISSION));
    assert_eq!(device.processes(), Err(code::NO_PERMISSION));
    assert_eq!(device.clock(), Ok(1111));
    let error = Nvml::open(&fake("unloaded", &["-DNO_INIT=9"])).expect_err("fails");
    assert_eq!(error, NvmlError::Init(9));
    assert!(error.to_string().contains("kernel module"), "{error}");
    let error = Nvml::open(Path::new("/nowhere/libnvidia-ml.so.1")).expect_err("not there");
    assert!(matches!(error, NvmlError::Missing(_)), "{error}");
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
                "more_processes_than_there_was_room_for_are_all_read",
            ])
            .env(LISTED, pids.join(","))
            .output()
            .expect("runs");
        assert!(again.status.success(), "{again:?}");
        return;
    }
    let nvml = Nvml::open(&fake("processes", &[])).expect("initialises");
    let processes = nvml.device(&SECOND).expect("found").processes();
    let processes = processes.expect("listed");
    assert_eq!(processes.len(), 40);
    let first = GpuProcess {
        pid: 100,
        memory: Some(102_400),
    };
    assert_eq!(processes[0], first);
    assert_eq!(processes[1].memory, None);
    // Of two samples of a process the newer one counts, though it comes first.
    let shares = nvml.device(&SECOND).expect("found").process_shares(1_000);
    let shares = shares.expect("told");
    assert_eq!((shares.len(), shares[&100], shares[&139]), (40, 40, 79));
    // Nobody used the other one, which NVML says by finding nothing.
    let idle = nvml.device(&FIRST).expect("found");
    assert_eq!(idle.process_shares(1_000).map(|it| it.len()), Ok(0));
    let busy = nvml.device(&SECOND).expect("found").busy();
    assert_eq!((idle.busy(), busy), (Ok(0), Ok(87)));
    assert_eq!(idle.graphics_processes(), Ok(Vec::new()));
}
