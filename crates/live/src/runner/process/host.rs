//! The host thread's own work, as scenarios name it: being busy, and plain CPU versions of what the
//! kernels do. It is one thread and straightforward loops, which the compiler vectorises where it can.
//! That is the CPU that a GPU is compared with, not the best that a tuned library could do.

use std::hint::black_box;
use std::time::{Duration, Instant};

use activity::Ns;

/// Computes until `ns` have passed.
pub(super) fn busy(ns: Ns) {
    let start = Instant::now();
    let length = Duration::from_nanos(ns.unsigned_abs());
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// Adds up, in eight partial sums so that additions do not wait for one another.
pub(super) fn sum(values: &[f32]) -> f32 {
    let mut partial = [0.0_f32; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (p, v) in partial.iter_mut().zip(chunk) {
            *p += v;
        }
    }
    black_box(partial.iter().sum::<f32>() + rest.iter().sum::<f32>())
}

/// Replaces each value by its sine.
pub(super) fn sin(values: &mut [f32]) {
    for v in values {
        *v = v.sin();
    }
}

/// `c = a b` for row-major n x n matrices: row by row of `b`, so that all accesses run along memory.
pub(super) fn matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    if n == 0 {
        return;
    }
    for (row, out) in a.chunks_exact(n).zip(c.chunks_exact_mut(n)) {
        out.fill(0.0);
        for (&x, other) in row.iter().zip(b.chunks_exact(n)) {
            for (o, &y) in out.iter_mut().zip(other) {
                *o += x * y;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_take_in_the_odd_ones_at_the_end() {
        let values: Vec<f32> = (1..=19).map(|v| v as f32).collect();
        assert_eq!(sum(&values), 190.0);
        assert_eq!(sum(&[]), 0.0);
    }

    #[test]
    fn a_product_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let mut c = [f32::NAN; 4];
        matmul(&a, &b, &mut c, 2);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    }

    #[test]
    fn sines_of_known_angles() {
        let mut values = [0.0, std::f32::consts::FRAC_PI_2];
        sin(&mut values);
        assert_eq!(values, [0.0, 1.0]);
    }

    #[test]
    fn busy_lasts_at_least_as_long_as_asked() {
        let start = Instant::now();
        busy(2_000_000);
        assert!(start.elapsed() >= Duration::from_millis(2));
    }
}
