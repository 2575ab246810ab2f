//! A chart: how the free coordinates of a flat determine all coordinates.
//!
//! Gaussian elimination over the rationals solves the equalities of a flat for some variables,
//!
//! ```text
//! y_d  =  b_d + sum over free j of a_dj y_j        for every dependent variable d
//! ```
//!
//! With N for the matrix of the derivatives of all coordinates with respect to the free ones, a set of free coordinates
//! of volume v is the image of a part of the flat with the surface measure `v sqrt(det(N^T N))`.

use crate::double_double::{DoubleDouble, RELATIVE_ERROR};
use crate::formula::{Formula, Linear, Substitution, Var};
use crate::linear_algebra::{rational_determinant, reduced_rows};
use crate::number::{self, Rational};

/// How the free coordinates of a flat determine all coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    variables: Vec<Var>,
    /// For each free coordinate, the position of its variable among all variables.
    free: Vec<usize>,
    dependents: Vec<DependentVariable>,
    square_factor: Rational,
}

/// A variable that is an affine function of the free ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependentVariable {
    /// The position among all variables.
    pub position: usize,
    /// The value where all free coordinates are 0.
    pub constant: Rational,
    /// The derivative with respect to every free coordinate.
    pub coefficients: Vec<Rational>,
}

/// An affine function in float64 with the low parts of its coefficients.
struct RoundedImage<'c> {
    dependent: &'c DependentVariable,
    /// The constant, then the coefficients: numbers and bounds on what rounding left of them.
    numbers: Vec<(DoubleDouble, f64)>,
}

impl Chart {
    /// Solves equalities `sum_j a_j y_j = b`, given as rows of all a_j and b, for as many variables as they determine.
    /// Variables that come late in `preferred` are solved for first. `None` if the equalities contradict each other.
    pub(super) fn solve(variables: &[Var], equalities: &[Vec<Rational>], preferred: &[usize]) -> Option<Chart> {
        let n = variables.len();
        let (pivots, rest) = reduced_rows(equalities, preferred.iter().rev().copied());
        if !rest.is_empty() {
            return None;
        }
        let free: Vec<usize> = (0..n).filter(|j| pivots.iter().all(|(column, _)| column != j)).collect();
        let mut dependents: Vec<DependentVariable> = pivots
            .into_iter()
            .map(|(position, row)| {
                let coefficients = free.iter().map(|j| -&row[*j]).collect();
                DependentVariable { position, constant: row[n].clone(), coefficients }
            })
            .collect();
        dependents.sort_by_key(|dependent| dependent.position);
        Some(Chart::with(variables.to_vec(), free, dependents))
    }

    fn with(variables: Vec<Var>, free: Vec<usize>, dependents: Vec<DependentVariable>) -> Chart {
        // det(I + A^T A) = det(I + A A^T): the smaller matrix will do.
        let dot = |a: &[Rational], b: &[Rational]| a.iter().zip(b).fold(Rational::ZERO, |sum, (x, y)| sum + x * y);
        let rows: Vec<Vec<Rational>> = if dependents.len() <= free.len() {
            dependents.iter().map(|dependent| dependent.coefficients.clone()).collect()
        } else {
            (0..free.len()).map(|j| dependents.iter().map(|d| d.coefficients[j].clone()).collect()).collect()
        };
        let entry = |i: usize, j: usize| dot(&rows[i], &rows[j]) + Rational::from(i64::from(i == j));
        let gram: Vec<Vec<Rational>> =
            (0..rows.len()).map(|i| (0..rows.len()).map(|j| entry(i, j)).collect()).collect();
        let square_factor = rational_determinant(&gram);
        Chart { variables, free, dependents, square_factor }
    }

    /// All variables, in the order of coordinates.
    pub fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// For each free coordinate, the position of its variable among all variables.
    pub fn free(&self) -> &[usize] {
        &self.free
    }

    /// The free variables, in the order of coordinates.
    pub fn free_variables(&self) -> Vec<Var> {
        self.free.iter().map(|position| self.variables[*position].clone()).collect()
    }

    /// The number of free coordinates.
    pub fn dimension(&self) -> usize {
        self.free.len()
    }

    /// The dependent variables, in the order of coordinates.
    pub fn dependents(&self) -> &[DependentVariable] {
        &self.dependents
    }

    /// A dependent variable as a term in the free ones.
    pub fn image(&self, dependent: &DependentVariable) -> Linear {
        let free = self.free.iter().map(|position| self.variables[*position].clone());
        Linear::new(free.zip(dependent.coefficients.iter().cloned()), dependent.constant.clone())
    }

    /// The exact square of the factor between volumes of free coordinates and surface measure: `det(N^T N)`.
    pub fn square_factor(&self) -> &Rational {
        &self.square_factor
    }

    /// The factor between volumes of free coordinates and surface measure.
    pub fn factor(&self) -> f64 {
        self.log_factor().exp()
    }

    /// The logarithm of [`Chart::factor`].
    pub fn log_factor(&self) -> f64 {
        let (mut size, mut halvings) = (self.square_factor.clone(), 0u32);
        // Beyond the range of float64 the logarithm still has a value.
        let quarter = Rational::from_parts(1.into(), (1u128 << 100).into());
        while number::to_f64(&size).is_infinite() {
            (size, halvings) = (size * &quarter, halvings + 100);
        }
        0.5 * (number::to_f64(&size).ln() + f64::from(halvings) * std::f64::consts::LN_2)
    }

    /// The terms that take the place of the dependent variables.
    pub fn substitution(&self) -> Substitution {
        let replace = |change: Substitution, dependent: &DependentVariable| {
            change.real(self.variables[dependent.position].name(), self.image(dependent))
        };
        self.dependents.iter().fold(Substitution::new(), replace)
    }

    /// The equalities as a formula, one for every dependent variable.
    pub fn equalities(&self) -> Formula {
        let equality = |dependent: &DependentVariable| {
            Linear::from(self.variables[dependent.position].clone()).equals(self.image(dependent))
        };
        Formula::all(self.dependents.iter().map(equality))
    }

    /// The matrix N of derivatives of all coordinates with respect to the free ones, row by row.
    pub fn jacobian(&self) -> Vec<f64> {
        let k = self.dimension();
        let mut matrix = vec![0.0; self.variables.len() * k];
        self.free.iter().enumerate().for_each(|(j, position)| matrix[position * k + j] = 1.0);
        for dependent in &self.dependents {
            let row = &mut matrix[dependent.position * k..(dependent.position + 1) * k];
            row.iter_mut().zip(&dependent.coefficients).for_each(|(entry, a)| *entry = number::to_f64(a));
        }
        matrix
    }

    /// Points with all coordinates from their free coordinates, both row by row: dependent coordinates are the exact
    /// image, rounded once. Where a free coordinate is not finite they are NaN.
    pub fn fill(&self, free: &[f64]) -> Vec<f64> {
        let (n, k) = (self.variables.len(), self.dimension());
        let images = self.images();
        let rows = free.len().checked_div(k).unwrap_or(1);
        let mut points = vec![0.0; rows * n];
        for (row, point) in points.chunks_mut(n.max(1)).enumerate() {
            let free = &free[row * k..(row + 1) * k];
            self.free.iter().zip(free).for_each(|(position, x)| point[*position] = *x);
            images.iter().for_each(|image| point[image.dependent.position] = image.rounded(free));
        }
        points
    }

    /// The free coordinates of points, row by row. Where a point is off the flat they are NaN, so that it is outside of
    /// every region: a dependent coordinate may differ from its image by two units of rounding, `2 epsilon`, of the
    /// sizes of the terms of the image together. `epsilon` is that of the format that the points come from.
    pub fn restrict(&self, points: &[f64], epsilon: f64) -> Vec<f64> {
        let (n, k) = (self.variables.len(), self.dimension());
        let images = self.images();
        let mut free = Vec::with_capacity(points.len() / n.max(1) * k);
        for point in points.chunks_exact(n.max(1)) {
            let start = free.len();
            free.extend(self.free.iter().map(|position| point[*position]));
            let on = images.iter().all(|image| image.admits(&free[start..], point, epsilon));
            if !on {
                free[start..].fill(f64::NAN);
            }
        }
        free
    }

    /// The free coordinates of points that are taken to be on the flat, row by row.
    pub fn restrict_all(&self, points: &[f64]) -> Vec<f64> {
        let rows = points.chunks_exact(self.variables.len().max(1));
        rows.flat_map(|point| self.free.iter().map(|position| point[*position])).collect()
    }

    /// The chart of what is left when some free coordinates, given by their positions among the free ones, have values.
    pub(crate) fn given(&self, values: &[(usize, Rational)]) -> Chart {
        let is_given = |j: usize| values.iter().any(|(given, _)| *given == j);
        let removed: Vec<usize> = values.iter().map(|(j, _)| self.free[*j]).collect();
        let place = |position: usize| position - removed.iter().filter(|removed| **removed < position).count();
        let kept: Vec<usize> = (0..self.dimension()).filter(|j| !is_given(*j)).collect();
        let dependents = self.dependents.iter().map(|dependent| DependentVariable {
            position: place(dependent.position),
            constant: values
                .iter()
                .fold(dependent.constant.clone(), |sum, (j, x)| sum + &dependent.coefficients[*j] * x),
            coefficients: kept.iter().map(|j| dependent.coefficients[*j].clone()).collect(),
        });
        let variables = (0..self.variables.len()).filter(|position| !removed.contains(position));
        let variables = variables.map(|position| self.variables[position].clone()).collect();
        let free = kept.iter().map(|j| place(self.free[*j])).collect();
        Chart::with(variables, free, dependents.collect())
    }

    fn images(&self) -> Vec<RoundedImage<'_>> {
        let image = |dependent| RoundedImage::new(dependent);
        self.dependents.iter().map(image).collect()
    }
}

impl<'c> RoundedImage<'c> {
    fn new(dependent: &'c DependentVariable) -> RoundedImage<'c> {
        let numbers = [&dependent.constant].into_iter().chain(&dependent.coefficients);
        RoundedImage { dependent, numbers: numbers.map(DoubleDouble::nearest).collect() }
    }

    /// The sum in twice the digits of float64, and the sizes of its terms together.
    fn sum(&self, free: &[f64]) -> (DoubleDouble, f64) {
        let (mut sum, mut size) = (self.numbers[0].0, self.numbers[0].0.high.abs());
        for ((a, _), x) in self.numbers[1..].iter().zip(free) {
            sum = sum.plus(a.times(DoubleDouble::new(*x)));
            size += (a.high * x).abs();
        }
        (sum, size)
    }

    /// The float64 nearest to the exact image.
    fn rounded(&self, free: &[f64]) -> f64 {
        let (sum, size) = self.sum(free);
        let lost = self.numbers[1..].iter().zip(free).map(|((_, error), x)| error * x.abs()).sum::<f64>();
        let operations = 4.0 * self.numbers.len() as f64;
        let error = 2.0 * (operations * RELATIVE_ERROR * size + self.numbers[0].1 + lost) + f64::MIN_POSITIVE;
        // All numbers within the error must round to the same one.
        if sum.high + (sum.low + error) == sum.high && sum.high + (sum.low - error) == sum.high {
            return sum.high;
        }
        self.exact(free).map_or(f64::NAN, |value| number::to_f64(&value))
    }

    fn exact(&self, free: &[f64]) -> Option<Rational> {
        let terms = self.dependent.coefficients.iter().zip(free);
        terms
            .into_iter()
            .try_fold(self.dependent.constant.clone(), |sum, (a, x)| Some(sum + a * number::from_f64(*x).ok()?))
    }

    fn admits(&self, free: &[f64], point: &[f64], epsilon: f64) -> bool {
        let (sum, size) = self.sum(free);
        let distance = (point[self.dependent.position] - sum.high) - sum.low;
        distance.abs() <= 2.0 * epsilon * size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn ratio(p: i64, q: u64) -> Rational {
        Rational::from_parts(p.into(), q.into())
    }

    /// a + b + c = 1 and 3 b - 7 d = 1/3, solved for c and d.
    fn chart() -> Chart {
        let variables = Var::declare(["a", "b", "c", "d"]);
        let row = |numbers: [i64; 4], right: Rational| numbers.map(Rational::from).into_iter().chain([right]).collect();
        let rows = [row([1, 1, 1, 0], Rational::ONE), row([0, 3, 0, -7], ratio(1, 3))];
        Chart::solve(&variables, &rows, &[0, 1, 2, 3]).unwrap()
    }

    #[test]
    fn the_last_variables_depend_on_the_first() {
        let chart = chart();
        assert_eq!(chart.free(), [0, 1]);
        let text: Vec<String> = chart.dependents().iter().map(|d| chart.image(d).to_string()).collect();
        assert_eq!(text, ["-a - b + 1", "3/7*b - 1/21"]);
        // N has the rows (1, 0), (0, 1), (-1, -1), (0, 3/7).
        assert_eq!(chart.square_factor(), &(ratio(2, 1) * (ratio(2, 1) + ratio(9, 49)) - Rational::ONE));
    }

    #[test]
    fn contradictions_are_noticed() {
        let variables = Var::declare(["a"]);
        let rows = [vec![Rational::ONE, Rational::ONE], vec![Rational::ONE, Rational::ZERO]];
        assert!(Chart::solve(&variables, &rows, &[0]).is_none());
    }

    #[test]
    fn images_are_rounded_once() {
        let chart = chart();
        let mut stream = Stream::new(1, 0);
        for k in 0..2000 {
            let scale = ((k % 61) as f64 - 30.0).exp2();
            let free = [stream.unit() * scale, (stream.unit() - 0.5) * scale];
            let point = chart.fill(&free);
            for dependent in chart.dependents() {
                let exact = free.iter().zip(&dependent.coefficients);
                let exact = exact.fold(dependent.constant.clone(), |s, (x, a)| s + number::from_f64(*x).unwrap() * a);
                assert_eq!(point[dependent.position], number::to_f64(&exact), "{free:?}");
            }
            assert_eq!(chart.restrict(&point, f64::EPSILON), free);
        }
    }

    #[test]
    fn points_off_the_flat_have_no_free_coordinates() {
        let chart = chart();
        let mut point = chart.fill(&[0.25, 0.5]);
        assert_eq!(chart.restrict(&point, f64::EPSILON), [0.25, 0.5]);
        point[2] += 1e-14;
        assert!(chart.restrict(&point, f64::EPSILON).iter().all(|x| x.is_nan()));
        assert_eq!(chart.restrict(&point, f64::from(f32::EPSILON)), [0.25, 0.5]);
        point[2] = f64::NAN;
        assert!(chart.restrict(&point, f64::EPSILON).iter().all(|x| x.is_nan()));
        assert!(chart.fill(&[f64::INFINITY, 0.0])[2].is_nan());
    }

    #[test]
    fn given_values_move_constants() {
        let chart = chart().given(&[(1, ratio(1, 3))]);
        let names: Vec<String> = chart.variables().iter().map(Var::to_string).collect();
        assert_eq!((names.join(" "), chart.free()), ("a c d".to_string(), &[0][..]));
        let text: Vec<String> = chart.dependents().iter().map(|d| chart.image(d).to_string()).collect();
        assert_eq!(text, ["-a + 2/3", "2/21"]);
        assert_eq!(chart.square_factor(), &ratio(2, 1));
    }
}
