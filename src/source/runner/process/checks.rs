//! Runs every bundled kernel on the GPU and compares its results with the CPU's.

use super::super::check::{Case, Checked, Inputs, cases};
use super::super::driver::Driver;
use super::super::fault::{Fault, FaultKind};
use super::super::protocol::Event;
use super::lab::{Lab, Value};
use super::memory::random;

/// A value that no kernel writes: an output that still holds it was not written.
const POISON: f32 = f32::from_bits(0x7fc1_2345);

/// Checks all; the first failures end up in the fault.
pub(super) fn check_kernels(driver: &Driver, say: &dyn Fn(&Event)) -> Result<(), Fault> {
    let mut lab = Lab::new(driver)?;
    let mut wrong = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let checked = check(&mut lab, case, index as u64)?;
        if !checked.is_ok() {
            wrong.push(format!("`{}` at {}", checked.kernel, checked.size));
        }
        say(&Event::Checked(checked));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Program,
        format!("wrong results: {}", wrong.join(", ")),
        "the kernel, the compiler or the GPU is at fault",
    ))
}

fn check(lab: &mut Lab, case: &Case, seed: u64) -> Result<Checked, Fault> {
    let mut state = seed;
    let mut values =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random(&mut state)).collect() };
    let a = values(case.input_len());
    let b = match case.inputs {
        Inputs::TwoMatrices => values(case.input_len()),
        _ => Vec::new(),
    };
    let input = lab.upload(&a)?;
    let second = lab.upload(&b)?;
    let output = match case.inputs {
        Inputs::InPlace => None,
        Inputs::Scalar => Some(lab.upload(&[0.0])?),
        Inputs::Array | Inputs::Matrix | Inputs::TwoMatrices => {
            Some(lab.upload(&vec![POISON; a.len()])?)
        }
    };
    let mut arguments = vec![Value::Memory(&input)];
    if case.inputs == Inputs::TwoMatrices {
        arguments.push(Value::Memory(&second));
    }
    arguments.extend(output.as_ref().map(Value::Memory));
    arguments.push(Value::Int(case.n as i32));
    arguments.extend(case.extra.map(Value::Int));
    lab.launch(case.file, case.entry, case.grid, case.block, &arguments)?;
    let result = lab.download(output.as_ref().unwrap_or(&input))?;
    Ok(case.compare(&result, &case.reference(&a, &b), POISON))
}
