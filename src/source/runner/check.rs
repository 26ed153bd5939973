//! Every bundled kernel against the CPU: random inputs, sizes that fill blocks and sizes that do not,
//! and a reference computed in f64.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::activity::feed::{Failure, FailureKind};

use super::child::{Child, ChildEvent};
use super::protocol::{Event, Job};

/// What came of one kernel at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The kernel's entry point.
    pub kernel: String,
    /// The size, in words ("n = 300").
    pub size: String,
    /// How far the result is from the reference: the largest difference, over the largest value of the
    /// reference where that is more than 1. Huge when the kernel wrote what is not a number.
    pub error: f64,
    /// The most that rounding explains.
    pub limit: f64,
}

impl Checked {
    /// Whether the result is right.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.error <= self.limit
    }
}

/// How long one kernel may take, the compilation of its file included.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs every bundled kernel on GPU 0, in a process of its own. Calls `each` with every result.
///
/// # Errors
/// When a result is wrong, or the kernels could not be run.
pub fn check_kernels(mut each: impl FnMut(&Checked)) -> Result<(), Failure> {
    let failure = |kind, message: String, help: &str| Failure {
        kind,
        message,
        help: help.to_owned(),
    };
    let mut child = Child::start(&Job::CheckKernels).map_err(|error| {
        let message = format!("the process for it cannot be started: {error}");
        failure(FailureKind::Machine, message, "")
    })?;
    loop {
        match child.recv(PATIENCE) {
            ChildEvent::Event(event) => match *event {
                Event::Checked(checked) => each(&checked),
                Event::Error {
                    kind,
                    message,
                    help,
                } => return Err(failure(kind.into(), message, &help)),
                Event::Done { .. } => return Ok(()),
                _ => {}
            },
            ChildEvent::Output { .. } => {}
            ChildEvent::Nothing => {
                let message = format!("a kernel did not end within {} s", PATIENCE.as_secs());
                return Err(failure(FailureKind::Program { code: 4 }, message, ""));
            }
            ChildEvent::End => {
                let end = child.end();
                let message = format!("the process ended without a word: {}", end.describe());
                let kind = FailureKind::Program { code: end.code() };
                return Err(failure(kind, message, ""));
            }
        }
    }
}

/// One kernel at one size.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) file: &'static str,
    pub(crate) entry: &'static str,
    /// Values in one direction: elements, or rows of a matrix.
    pub(crate) n: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) inputs: Inputs,
    /// A number after the pointers and `n`, where the kernel takes one.
    pub(crate) extra: Option<i32>,
    /// The error that rounding explains (see [`Checked::error`]).
    pub(crate) limit: f64,
}

/// What a kernel is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// One array of n, changed in place.
    InPlace,
    /// An array of n in, another out.
    Array,
    /// An array of n in, one value out, which starts at 0.
    Scalar,
    /// A matrix of n x n in, another out.
    Matrix,
    /// Two matrices of n x n in, a third out.
    TwoMatrices,
}

/// One rounding of an f32.
const ROUNDING: f64 = 1.0 / (1_u64 << 24) as f64;

/// All kernels at sizes that fit their blocks and at sizes that do not.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [1_usize, 255, 4096, 100_003];
    for n in sizes {
        let line = |file, entry, inputs, extra, limit| Case {
            file,
            entry,
            n,
            grid: [n.div_ceil(1024) as u32, 1, 1],
            block: [256, 1, 1],
            inputs,
            extra,
            limit,
        };
        cases.push(Case {
            grid: [n.div_ceil(256) as u32, 1, 1],
            ..line("add.cu", "add_one", Inputs::InPlace, None, ROUNDING)
        });
        cases.push(line("copy.cu", "copy_f4", Inputs::Array, None, 0.0));
        // The hardware's sine is off by 2^-21 at most in this range.
        let sine = 1.0 / f64::from(1 << 20);
        cases.push(line("sin.cu", "sin_once", Inputs::InPlace, None, sine));
        cases.push(line(
            "sin.cu",
            "sin_four",
            Inputs::InPlace,
            None,
            4.0 * sine,
        ));
        let steps = 100;
        let limit = f64::from(steps) * ROUNDING;
        cases.push(line(
            "fma.cu",
            "fma_loop",
            Inputs::InPlace,
            Some(steps),
            limit,
        ));
        // A thread adds up to a few values, a tree the rest: far fewer roundings than values.
        let limit = 64.0 * ROUNDING;
        cases.push(line("reduce.cu", "reduce_sum", Inputs::Scalar, None, limit));
    }
    for n in [1_usize, 32, 100, 300] {
        let tiles = n.div_ceil(32) as u32;
        for entry in [
            "transpose_naive",
            "transpose_tiled",
            "transpose_tiled_padded",
        ] {
            cases.push(Case {
                file: "transpose.cu",
                entry,
                n,
                grid: [tiles, tiles, 1],
                block: [32, 8, 1],
                inputs: Inputs::Matrix,
                extra: None,
                limit: 0.0,
            });
        }
        cases.push(Case {
            file: "transpose.cu",
            entry: "transpose_row",
            n,
            grid: [n.div_ceil(256) as u32, 1, 1],
            block: [256, 1, 1],
            inputs: Inputs::Matrix,
            extra: Some(n as i32 / 2),
            limit: 0.0,
        });
    }
    for n in [1_usize, 100, 128, 300, 512] {
        let product = |entry, side: usize| Case {
            file: "matmul.cu",
            entry,
            n,
            grid: [n.div_ceil(side) as u32, n.div_ceil(side) as u32, 1],
            block: [16, 16, 1],
            inputs: Inputs::TwoMatrices,
            extra: None,
            // n products and sums, each rounded at most once; their errors are not all of one sign.
            limit: n.max(4) as f64 * ROUNDING,
        };
        cases.push(product("matmul_naive", 16));
        cases.push(product("matmul_tiled", 128));
    }
    cases
}

impl Case {
    /// How many values each input array has.
    pub(crate) fn input_len(&self) -> usize {
        match self.inputs {
            Inputs::InPlace | Inputs::Array | Inputs::Scalar => self.n,
            Inputs::Matrix | Inputs::TwoMatrices => self.n * self.n,
        }
    }

    /// The result in f64.
    pub(crate) fn reference(&self, a: &[f32], b: &[f32]) -> Vec<f64> {
        let n = self.n;
        let wide = a.iter().map(|&v| f64::from(v));
        let steps = self.extra.unwrap_or(0);
        match self.entry {
            "add_one" => wide.map(|v| v + 1.0).collect(),
            "copy_f4" => wide.collect(),
            "sin_once" => wide.map(f64::sin).collect(),
            "sin_four" => wide.map(|v| v.sin().sin().sin().sin()).collect(),
            "fma_loop" => wide
                .map(|v| (0..steps).fold(v, |v, _| v * 0.999_023_437_5 + 0.000_976_562_5))
                .collect(),
            "reduce_sum" => vec![wide.sum()],
            "matmul_naive" | "matmul_tiled" => product(a, b, n),
            // A transposition, of one row or of all.
            _ => (0..n * n)
                .map(|i| f64::from(a[i % n * n + i / n]))
                .collect(),
        }
    }

    /// Whether the kernel is to write the value at `i` of its output; it must leave the others as they were.
    pub(crate) fn writes(&self, i: usize) -> bool {
        match (self.entry, self.extra) {
            ("transpose_row", Some(row)) => i % self.n == row as usize,
            _ => true,
        }
    }

    /// Compares a result; `poison` is what the output held before.
    pub(crate) fn compare(&self, result: &[f32], reference: &[f64], poison: f32) -> Checked {
        let scale = reference.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
        let mut error = 0.0_f64;
        for (i, (&got, &wanted)) in result.iter().zip(reference).enumerate() {
            let off = if self.writes(i) {
                (f64::from(got) - wanted).abs() / scale
            } else if got.to_bits() == poison.to_bits() {
                0.0
            } else {
                f64::INFINITY
            };
            // Not max(), which would let a NaN pass.
            if off > error || off.is_nan() {
                error = if error.is_nan() { error } else { off };
            }
        }
        Checked {
            kernel: self.entry.to_owned(),
            size: format!("n = {}", self.n),
            // JSON has no infinity or NaN.
            error: if error.is_finite() { error } else { f64::MAX },
            limit: self.limit,
        }
    }
}

fn product(a: &[f32], b: &[f32], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n * n];
    for (row, out) in a.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        for (&x, b) in row.iter().zip(b.chunks_exact(n)) {
            for (o, &y) in out.iter_mut().zip(b) {
                *o += f64::from(x) * f64::from(y);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(entry: &str, n: usize) -> Case {
        cases()
            .into_iter()
            .find(|c| c.entry == entry && c.n == n)
            .expect("a case")
    }

    #[test]
    fn every_kernel_with_a_result_is_checked() {
        let checked: std::collections::BTreeSet<&str> = cases().iter().map(|c| c.entry).collect();
        for (file, text) in crate::scenario::bundled::KERNELS {
            let names = text.split("__global__ void ").skip(1);
            for name in names.map(|rest| rest.trim_start()) {
                let name = name.split('(').next().expect("a name");
                // Without a result (empty, spin), made to fail (oob), or behind __launch_bounds__.
                if !["empty", "spin", "out_of_bounds", "__launch_bounds__"].contains(&name) {
                    assert!(checked.contains(name), "{name} of {file}");
                }
            }
        }
        assert!(checked.contains("matmul_tiled") && checked.contains("fma_loop"));
    }

    #[test]
    fn references_by_hand() {
        let matmul = Case {
            n: 2,
            ..case("matmul_tiled", 1)
        };
        let out = matmul.reference(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]);
        assert_eq!(out, [19.0, 22.0, 43.0, 50.0]);
        let transpose = Case {
            n: 2,
            ..case("transpose_tiled", 1)
        };
        let out = transpose.reference(&[1.0, 2.0, 3.0, 4.0], &[]);
        assert_eq!(out, [1.0, 3.0, 2.0, 4.0]);
        let out = case("reduce_sum", 255).reference(&[0.5; 255], &[]);
        assert_eq!(out, [127.5]);
    }

    #[test]
    fn a_wrong_a_missing_and_a_stray_value_are_all_seen() {
        let add = case("add_one", 4096);
        let good = add.compare(&[1.5, 2.0], &[1.5, 2.0], f32::NAN);
        assert!(good.is_ok() && good.error == 0.0);
        assert!(!add.compare(&[1.5, 2.1], &[1.5, 2.0], f32::NAN).is_ok());
        assert!(!add.compare(&[1.5, f32::NAN], &[1.5, 2.0], f32::NAN).is_ok());
        assert!(!add.compare(&[f32::NAN, 2.0], &[1.5, 2.0], f32::NAN).is_ok());
        // Row 0 of 2 x 2 becomes column 0; column 1 must stay as it was.
        let row = Case {
            n: 2,
            extra: Some(0),
            ..case("transpose_row", 1)
        };
        let reference = [1.0, 3.0, 2.0, 4.0];
        let poison = f32::NAN;
        assert!(
            row.compare(&[1.0, poison, 2.0, poison], &reference, poison)
                .is_ok()
        );
        assert!(
            !row.compare(&[1.0, 3.0, 2.0, poison], &reference, poison)
                .is_ok()
        );
    }
}
