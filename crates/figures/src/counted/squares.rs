//! Least squares with few unknowns and many equations, each of which names a few of them.

use super::Estimate;

/// 95 % of a normal distribution lie within so many standard deviations.
pub(super) const NORMAL_95: f64 = 1.96;
/// An unknown whose own part, apart from all others, is less than this part of what is known of it cannot be told.
const SINGULAR: f64 = 1e-6;

/// The normal equations.
#[derive(Clone, Debug)]
pub(super) struct Squares {
    unknowns: usize,
    /// The products of the factors, row by row.
    matrix: Vec<f64>,
    right: Vec<f64>,
    /// The sum of the squares of the values.
    values: f64,
    equations: usize,
}

impl Squares {
    pub(super) fn new(unknowns: usize) -> Squares {
        Squares {
            unknowns,
            matrix: vec![0.0; unknowns * unknowns],
            right: vec![0.0; unknowns],
            values: 0.0,
            equations: 0,
        }
    }

    /// Adds an equation: so much of each of these unknowns is this value.
    pub(super) fn add(&mut self, parts: &[(usize, f64)], value: f64) {
        for &(row, a) in parts {
            for &(column, b) in parts {
                self.matrix[row * self.unknowns + column] += a * b;
            }
            self.right[row] += a * value;
        }
        self.values += value * value;
        self.equations += 1;
    }

    /// The unknowns; `None` for those that the equations do not tell.
    pub(super) fn solve(&self) -> Vec<Option<Estimate>> {
        let n = self.unknowns;
        let known: Vec<bool> = (0..n).map(|k| self.at(k, k) > 0.0).collect();
        let Some((inverse, lost)) = self.inverse(&known) else {
            return vec![None; n];
        };
        let rows: Vec<usize> = (0..n).filter(|&k| known[k]).collect();
        let solution: Vec<f64> = rows
            .iter()
            .map(|&row| {
                let of = rows.iter().map(|&k| inverse[row * n + k] * self.right[k]);
                of.sum()
            })
            .collect();
        let explained: f64 = rows
            .iter()
            .zip(&solution)
            .map(|(&k, x)| self.right[k] * x)
            .sum();
        let free = self.equations.saturating_sub(rows.len()).max(1) as f64;
        let variance = (self.values - explained).max(0.0) / free;
        let mut found = vec![None; n];
        for (&k, &value) in rows.iter().zip(&solution) {
            let half = NORMAL_95 * (variance * inverse[k * n + k]).max(0.0).sqrt();
            let is_told = !lost[k] && half.is_finite() && self.equations > rows.len();
            found[k] = is_told.then_some(Estimate {
                value: value.max(0.0),
                half,
            });
        }
        found
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.matrix[row * self.unknowns + column]
    }

    /// The inverse of the matrix of those unknowns that are `known`, by Gauss and Jordan, and which of them it cannot
    /// tell. Those always come in the same proportion.
    fn inverse(&self, known: &[bool]) -> Option<(Vec<f64>, Vec<bool>)> {
        let n = self.unknowns;
        let mut left = self.matrix.clone();
        let mut right: Vec<f64> = vec![0.0; n * n];
        for k in 0..n {
            right[k * n + k] = 1.0;
            if !known[k] {
                left[k * n + k] = 1.0;
            }
        }
        let (mut lost, mut left_out) = (vec![false; n], Vec::new());
        for k in 0..n {
            let pivot = left[k * n + k];
            if !pivot.is_finite() {
                return None;
            }
            if known[k] && pivot <= SINGULAR * self.at(k, k) {
                // Nothing of its own: it counts as nothing, and neither it nor those that it comes with are told.
                left_out.push(k);
                for (other, is_lost) in lost.iter_mut().enumerate() {
                    *is_lost |=
                        other == k || (known[other] && right[k * n + other].abs() > SINGULAR);
                }
                continue;
            }
            for column in 0..n {
                left[k * n + column] /= pivot;
                right[k * n + column] /= pivot;
            }
            for row in (0..n).filter(|&row| row != k) {
                let factor = left[row * n + k];
                if factor == 0.0 {
                    continue;
                }
                for column in 0..n {
                    left[row * n + column] -= factor * left[k * n + column];
                    right[row * n + column] -= factor * right[k * n + column];
                }
            }
        }
        for k in left_out {
            right[k * n..][..n].fill(0.0);
        }
        Some((right, lost))
    }
}
