//! Plans that fail, and what is said then.

use activity::feed::FailureKind;

use super::*;

#[test]
fn memory_that_does_not_fit_says_how_much_was_asked_and_is_free() {
    let fake = Fake::new();
    fake.number(c"fake_set_memory", 1 << 20);
    let mut v = variant(&[]);
    v.buffers.push(buffer("huge", 64 << 20, HostMemory::None));
    let (result, _, _) = fake.run(&plan(vec![v]));
    let fault = result.expect_err("too large");
    assert_eq!(
        fault.message,
        "allocating 64 MiB of device memory for buffer `huge`: out of memory (CUDA_ERROR_OUT_OF_MEMORY); \
         1022 KiB of the GPU's 1 MiB are free"
    );
    assert_eq!(fake.live(), 0);
}

#[test]
fn an_allocation_inside_a_pass_names_its_step() {
    let fake = Fake::new();
    fake.number(c"fake_set_memory", 1 << 20);
    let mut v = variant(&[
        launch(2, 0),
        OpKind::Alloc {
            buffer: 1,
            stream: Some(0),
        },
    ]);
    v.buffers.push(BufferSpec {
        preallocated: false,
        ..buffer("huge", 64 << 20, HostMemory::None)
    });
    let (result, _, _) = fake.run(&plan(vec![v]));
    let fault = result.expect_err("too large");
    assert_eq!(fault.site, Some(1));
    assert!(fault.message.contains("64 MiB"), "{}", fault.message);
    assert_eq!(fake.live(), 0);
}

#[test]
fn an_illegal_access_is_laid_at_the_kernel_that_did_it() {
    let fake = Fake::new();
    let v = variant(&[
        copy(Direction::H2D, 0, 1024, 0, 0),
        launch(1, 0),
        OpKind::Sync(SyncTarget::Stream(0)),
    ]);
    let p = plan(vec![v]);
    let (result, _, _) = fake.run(&p);
    let fault = result
        .expect_err("it must fail")
        .located("t.toml", &p.sites);
    assert_eq!(fault.kind, FailureKind::Program { code: 4 });
    assert_eq!(
        fault.message,
        "t.toml:2:1: variant `v`: waiting for stream `main`: an illegal memory access was encountered \
         (CUDA_ERROR_ILLEGAL_ADDRESS), caused by kernel `out_of_bounds` (line 2)"
    );
    // Two kernels could have done it: both are named, and the place is where it was noticed.
    let fake = Fake::new();
    let p = plan(vec![variant(&[launch(2, 0), launch(1, 1)])]);
    let fault = fake.run(&p).0.expect_err("it must fail");
    assert!(
        fault
            .message
            .ends_with("caused by one of the kernels `empty` (line 1), `out_of_bounds` (line 2)"),
        "{}",
        fault.message
    );
    assert_eq!(fault.site, None);
}

#[test]
fn a_wrong_launch_is_refused_before_anything_runs() {
    type Break = fn(&mut VariantPlan);
    let cases: [(Break, &str, &str); 4] = [
        (
            |v| v.kernels[0].entry = "add_on".to_owned(),
            "k.cu has no entry point `add_on`",
            "an entry point is declared as extern \"C\" __global__ void NAME(…)",
        ),
        (
            |v| {
                v.launches[0].args.pop();
            },
            "kernel `add_one` takes arguments of [8, 4] bytes and is given [8]",
            "look at the parameters of `add_one` in k.cu",
        ),
        (
            |v| v.launches[0].args[1] = Arg::U64(1),
            "kernel `add_one` takes arguments of [8, 4] bytes and is given [8, 8]",
            "look at the parameters of `add_one` in k.cu",
        ),
        (
            |v| v.launches[0].block = [64, 32, 1],
            "a block of 64 x 32 x 1 = 2048 threads is too large: kernel `add_one` can have 1024",
            "make `block` smaller and `grid` larger",
        ),
    ];
    for (break_it, message, help) in cases {
        let fake = Fake::new();
        let mut v = variant(&[launch(0, 0)]);
        break_it(&mut v);
        let fault = fake.run(&plan(vec![v])).0.expect_err("it is refused");
        assert_eq!(
            (fault.message.as_str(), fault.help.as_str()),
            (message, help)
        );
        assert_eq!(fault.kind, FailureKind::Input);
        assert!(!fake.log().iter().any(|line| line.starts_with("launch")));
        assert_eq!(fake.live(), 0);
    }
}

#[test]
fn too_few_gpus_is_the_machines_fault() {
    let fake = Fake::new();
    let fault = fake
        .run(&plan(vec![two_devices()]))
        .0
        .expect_err("one is not enough");
    assert_eq!(fault.kind, FailureKind::Machine);
    assert_eq!(
        fault.message,
        "the scenario needs 2 GPUs and this process sees 1 GPU"
    );
}
