//! The products of Chebyshev polynomials in which all enclosures of one density are written.
//!
//! Exponents are ordered by total degree, so that a series without its highest degrees is a prefix. A fibre along an
//! axis is the list of positions that differ in the exponent of that axis only; in a prefix it loses its tail and
//! nothing else.

use crate::moments::Exponents;

/// A set of exponents of products of Chebyshev polynomials, with the tables that restriction and bounds need.
pub(super) struct ChebyshevBasis<'e> {
    pub exponents: &'e Exponents,
    pub dimension: usize,
    /// The position where each total degree starts, and the number of exponents at the end.
    starts: Vec<usize>,
    fibres: Vec<Fibres>,
    /// The largest degree along each axis.
    degrees: Vec<usize>,
    /// `curvature[a * n + i]`: the sum over j of the largest `|d_i d_j T_a|` on the cube.
    curvature: Vec<f64>,
    /// The position of `e_i + e_j` at `i * n + j`, if the set has it.
    quadratic: Vec<Option<usize>>,
    /// The position of `e_i` at `i`, if the set has it.
    linear: Vec<Option<usize>>,
}

/// The fibres along one axis, by their first position.
struct Fibres {
    positions: Vec<u32>,
    starts: Vec<usize>,
}

impl<'e> ChebyshevBasis<'e> {
    pub fn new(exponents: &'e Exponents) -> ChebyshevBasis<'e> {
        let n = exponents.dimension();
        let levels: Vec<_> = exponents.levels().collect();
        let starts = levels.iter().map(|level| level.start).chain([exponents.len()]).collect();
        let degree = |axis: usize| exponents.iter().map(|a| usize::from(a[axis])).max().unwrap_or(0);
        // |T_k'| <= k^2 and |T_k''| <= k^2 (k^2 - 1) / 3 on [-1, 1].
        let curvature = |a: &[u16]| {
            let squares: Vec<f64> = a.iter().map(|k| f64::from(*k).powi(2)).collect();
            let all: f64 = squares.iter().sum();
            squares.into_iter().map(move |s| s * ((s - 1.0) / 3.0 + (all - s))).collect::<Vec<_>>()
        };
        let mut basis = ChebyshevBasis {
            exponents,
            dimension: n,
            starts,
            fibres: (0..n).map(|axis| Fibres::new(exponents, axis)).collect(),
            degrees: (0..n).map(degree).collect(),
            curvature: exponents.iter().flat_map(curvature).collect(),
            quadratic: vec![None; n * n],
            linear: vec![None; n],
        };
        for level in levels.iter().skip(1).take(2) {
            for position in level.clone() {
                let axes = exponents.get(position).iter().enumerate();
                let axes: Vec<usize> = axes.flat_map(|(i, k)| std::iter::repeat_n(i, usize::from(*k))).collect();
                match axes[..] {
                    [i] => basis.linear[i] = Some(position),
                    [i, j] => {
                        (basis.quadratic[i * n + j], basis.quadratic[j * n + i]) = (Some(position), Some(position));
                    }
                    _ => unreachable!("the second and third level hold the exponents of degree 1 and 2"),
                }
            }
        }
        basis
    }

    /// The number of exponents of at most a total degree.
    pub fn up_to(&self, degree: usize) -> usize {
        self.starts[(degree + 1).min(self.starts.len() - 1)]
    }

    /// The total degree of a prefix.
    pub fn degree(&self, len: usize) -> usize {
        self.starts.partition_point(|start| *start < len).saturating_sub(1)
    }

    /// The largest degree along an axis in a prefix of a total degree.
    pub fn axis_degree(&self, axis: usize, total: usize) -> usize {
        self.degrees[axis].min(total)
    }

    /// The positions of each total degree in a prefix.
    pub fn levels(&self, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.starts.windows(2).map(|pair| pair[0]..pair[1]).take_while(move |level| level.end <= len)
    }

    /// The fibres along an axis in a prefix.
    pub fn fibres(&self, axis: usize, len: usize) -> impl Iterator<Item = &[u32]> {
        let fibres = &self.fibres[axis];
        let all = fibres.starts.windows(2).map(|pair| &fibres.positions[pair[0]..pair[1]]);
        let kept = all.take_while(move |fibre| (fibre[0] as usize) < len);
        kept.map(move |fibre| &fibre[..fibre.partition_point(|position| (*position as usize) < len)])
    }

    /// For each axis i, the sum over j of the largest `|d_i d_j T_a|` on the cube, for the exponent `a` at a position.
    pub fn curvature(&self, position: usize) -> &[f64] {
        &self.curvature[position * self.dimension..(position + 1) * self.dimension]
    }

    /// The coefficient of `x_i`; 0 where the series is too short to have one.
    pub fn linear(&self, coefficients: &[f64], i: usize) -> f64 {
        self.linear[i].and_then(|position| coefficients.get(position)).copied().unwrap_or(0.0)
    }

    /// The coefficient of `x_i x_j`, or of `T_2(x_i)` if i = j; 0 where the series is too short to have one.
    pub fn quadratic(&self, coefficients: &[f64], i: usize, j: usize) -> f64 {
        let position = self.quadratic[i * self.dimension + j];
        position.and_then(|position| coefficients.get(position)).copied().unwrap_or(0.0)
    }
}

impl Fibres {
    fn new(exponents: &Exponents, axis: usize) -> Fibres {
        let mut fibre_of = vec![0; exponents.len()];
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for position in 0..exponents.len() {
            let below = exponents.predecessors(position)[axis].position();
            fibre_of[position] = below.map_or(lists.len(), |below| fibre_of[below]);
            match lists.get_mut(fibre_of[position]) {
                Some(list) => list.push(position as u32),
                None => lists.push(vec![position as u32]),
            }
        }
        let mut starts = vec![0];
        for list in &lists {
            starts.push(starts[starts.len() - 1] + list.len());
        }
        Fibres { positions: lists.concat(), starts }
    }
}
