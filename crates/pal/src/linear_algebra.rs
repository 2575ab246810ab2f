//! Exact linear algebra on integers: determinants, linear systems, common denominators.
//!
//! Everything rests on one step of fraction-free elimination. With the pivot `p` in row k and the pivot `q` of the step
//! before (1 at first), every other row becomes
//!
//! ```text
//! row  <-  (p row  -  row[column of p] (row k)) / q
//! ```
//!
//! Every entry is then a minor of the matrix that one began with: the division leaves no remainder, and numbers stay as
//! short as determinants of the input are. In rationals, each entry would be reduced by a greatest common divisor at
//! every step.
//!
//! Reference: E. H. Bareiss, Sylvester's identity and multistep integer-preserving Gaussian elimination, Mathematics of
//! Computation 22 (1968).

use dashu_int::UBig;
use dashu_int::ops::{Gcd, UnsignedAbs};

use crate::number::{Integer, Rational};

/// A matrix on its way to triangular or diagonal form.
struct Elimination {
    rows: Vec<Vec<Integer>>,
    /// How many rows have served as pivot rows; they come first.
    rank: usize,
    /// The last pivot: the determinant of the pivot rows in the pivot columns, both in the order in which they were
    /// taken.
    pivot: Integer,
    /// Whether an odd number of rows was exchanged.
    odd: bool,
}

impl Elimination {
    fn new(rows: Vec<Vec<Integer>>) -> Self {
        Elimination { rows, rank: 0, pivot: Integer::ONE, odd: false }
    }

    /// Brings a row with a non-zero entry in the column to the place of the next pivot row; false if there is none.
    fn find_pivot(&mut self, column: usize) -> bool {
        let Some(found) = (self.rank..self.rows.len()).find(|row| !self.rows[*row][column].is_zero()) else {
            return false;
        };
        if found != self.rank {
            self.rows.swap(self.rank, found);
            self.odd = !self.odd;
        }
        true
    }

    /// Takes the entry of the next pivot row in the given column as pivot and eliminates the column from the rows
    /// below, and from those above as well if asked to. Columns before `first` are left as they are: their entries are
    /// not looked at again.
    fn eliminate(&mut self, column: usize, first: usize, above: bool) {
        let (done, rest) = self.rows.split_at_mut(self.rank);
        let [pivot_row, below @ ..] = rest else { unreachable!("a pivot was found in this row") };
        let pivot_row = &*pivot_row;
        let pivot = &pivot_row[column];
        let others = if above { done.iter_mut() } else { [].iter_mut() };
        for row in others.chain(below) {
            let factor = row[column].clone();
            for (entry, p) in row[first..].iter_mut().zip(&pivot_row[first..]) {
                *entry = (pivot * &*entry - &factor * p) / &self.pivot;
            }
        }
        self.pivot = pivot.clone();
        self.rank += 1;
    }
}

/// The determinant of a square matrix; 1 for the empty one.
pub(crate) fn determinant(rows: Vec<Vec<Integer>>) -> Integer {
    let n = rows.len();
    let mut elimination = Elimination::new(rows);
    for k in 0..n {
        if !elimination.find_pivot(k) {
            return Integer::ZERO;
        }
        elimination.eliminate(k, k + 1, false);
    }
    if elimination.odd { -elimination.pivot } else { elimination.pivot }
}

/// The determinant of a square matrix of rationals.
pub(crate) fn rational_determinant(rows: &[Vec<Rational>]) -> Rational {
    let mut scale = Integer::ONE;
    let integral = rows.iter().map(|row| {
        let denominator = common_denominator(row);
        let numerators = numerators_over(row, &denominator);
        scale *= Integer::from(denominator);
        numerators
    });
    let integral = integral.collect();
    Rational::from_parts_signed(determinant(integral), scale)
}

/// Columns in which independent rows form a regular matrix, and its determinant with the columns in this order. `None`
/// if the rows are dependent.
pub(crate) fn regular_columns(rows: &[Vec<Integer>]) -> Option<(Vec<usize>, Integer)> {
    let mut elimination = Elimination::new(rows.to_vec());
    let mut columns = Vec::with_capacity(rows.len());
    for k in 0..rows.len() {
        let column = elimination.rows[k].iter().position(|entry| !entry.is_zero())?;
        elimination.eliminate(column, 0, false);
        columns.push(column);
    }
    Some((columns, elimination.pivot))
}

/// The column of a pivot, and its row.
pub(crate) type PivotRow = (usize, Vec<Rational>);

/// The reduced row echelon form of a matrix of rationals whose pivots are sought in the given columns, in this order:
/// for each pivot its column and its row, in which it is 1 and the only entry of its column that is not 0. Rows without a
/// pivot, which are 0 in all of these columns, come after them, if they are not 0 altogether.
pub(crate) fn reduced_rows(
    rows: &[Vec<Rational>],
    columns: impl IntoIterator<Item = usize>,
) -> (Vec<PivotRow>, Vec<Vec<Rational>>) {
    let integral = rows.iter().map(|row| numerators_over(row, &common_denominator(row)));
    let mut elimination = Elimination::new(integral.collect());
    let mut pivots = Vec::new();
    for column in columns {
        if elimination.find_pivot(column) {
            elimination.eliminate(column, 0, true);
            pivots.push(column);
        }
    }
    let (done, rest) = elimination.rows.split_at(pivots.len());
    let over = |row: &Vec<Integer>, pivot: &Integer| -> Vec<Rational> {
        row.iter().map(|entry| Rational::from_parts_signed(entry.clone(), pivot.clone())).collect()
    };
    let done = pivots.iter().zip(done).map(|(column, row)| (*column, over(row, &row[*column]))).collect();
    let rest = rest.iter().filter(|row| row.iter().any(|entry| !entry.is_zero()));
    (done, rest.map(|row| over(row, &Integer::ONE)).collect())
}

/// The number of independent rows of a matrix.
pub(crate) fn rank(rows: Vec<Vec<Integer>>) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut elimination = Elimination::new(rows);
    for column in 0..columns {
        if elimination.find_pivot(column) {
            elimination.eliminate(column, column + 1, false);
        }
    }
    elimination.rank
}

/// The first unknown of a square linear system with several right-hand sides, which follow the matrix in every row: its
/// value for each of them. `None` if the matrix is singular.
pub(crate) fn first_unknown(rows: Vec<Vec<Integer>>) -> Option<Vec<Rational>> {
    let unknowns = rows.len();
    let mut elimination = Elimination::new(rows);
    for column in 0..unknowns {
        if !elimination.find_pivot(column) {
            return None;
        }
        elimination.eliminate(column, column + 1, true);
    }
    let Elimination { rows, pivot, .. } = elimination;
    Some(rows[0][unknowns..].iter().map(|p| Rational::from_parts_signed(p.clone(), pivot.clone())).collect())
}

/// How the first dependent column of a matrix is made of the columns before it, which are independent:
/// `column = sum over j of (numerators_j / denominator) (column j)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// One for each column before the dependent one, whose position is therefore `numerators.len()`.
    pub numerators: Vec<Integer>,
    /// Positive.
    pub denominator: Integer,
}

impl Dependency {
    pub fn coefficients(&self) -> impl Iterator<Item = Rational> {
        self.numerators.iter().map(|p| Rational::from_parts_signed(p.clone(), self.denominator.clone()))
    }
}

/// The first column that is a combination of those before it; `None` if all `columns` columns are independent.
///
/// With the right-hand side of a linear system as the last column, this solves a system of full column rank.
pub(crate) fn first_dependency(rows: Vec<Vec<Integer>>, columns: usize) -> Option<Dependency> {
    let mut elimination = Elimination::new(rows);
    for column in 0..columns {
        if elimination.find_pivot(column) {
            elimination.eliminate(column, column + 1, true);
            continue;
        }
        let Elimination { rows, rank, pivot, .. } = elimination;
        let numerators = rows.into_iter().take(rank).map(|mut row| std::mem::take(&mut row[column])).collect();
        let (numerators, denominator) = with_positive_denominator(numerators, pivot);
        return Some(Dependency { numerators, denominator });
    }
    None
}

/// Numerators over a denominator that is not zero, with its sign moved to them.
pub(crate) fn with_positive_denominator(
    mut numerators: Vec<Integer>,
    mut denominator: Integer,
) -> (Vec<Integer>, Integer) {
    if denominator < Integer::ZERO {
        numerators.iter_mut().for_each(|p| *p = -std::mem::take(p));
        denominator = -denominator;
    }
    (numerators, denominator)
}

/// The least common multiple of two positive integers.
pub(crate) fn lcm(a: &UBig, b: &UBig) -> UBig {
    if b.is_one() || a == b {
        return a.clone();
    }
    a / a.gcd(b) * b
}

/// The least common denominator.
pub(crate) fn common_denominator<'r>(values: impl IntoIterator<Item = &'r Rational>) -> UBig {
    values.into_iter().fold(UBig::ONE, |d, x| lcm(&d, x.denominator()))
}

/// The numerator of a rational over a multiple of its denominator.
pub(crate) fn numerator_over(value: &Rational, denominator: &UBig) -> Integer {
    if value.denominator() == denominator {
        return value.numerator().clone();
    }
    value.numerator() * Integer::from(denominator / value.denominator())
}

/// The numerators of rationals over a common multiple of their denominators.
pub(crate) fn numerators_over<'r>(values: impl IntoIterator<Item = &'r Rational>, denominator: &UBig) -> Vec<Integer> {
    values.into_iter().map(|x| numerator_over(x, denominator)).collect()
}

/// The greatest common divisor of integers; 1 if all of them are 0.
pub(crate) fn common_divisor<'i>(integers: impl IntoIterator<Item = &'i Integer>) -> UBig {
    let mut divisor = UBig::ZERO;
    for a in integers.into_iter().filter(|a| !a.is_zero()) {
        divisor = if divisor.is_zero() { a.unsigned_abs() } else { divisor.gcd(a.unsigned_abs()) };
        if divisor.is_one() {
            break;
        }
    }
    if divisor.is_zero() { UBig::ONE } else { divisor }
}

/// A vector as a positive multiple of an integer vector without a common divisor.
pub(crate) fn primitive(vector: &[Rational]) -> (Vec<Integer>, Rational) {
    let denominator = common_denominator(vector);
    let mut integers = numerators_over(vector, &denominator);
    let divisor = Integer::from(common_divisor(&integers));
    if !divisor.is_one() {
        integers.iter_mut().for_each(|a| *a = &*a / &divisor);
    }
    (integers, Rational::from_parts(divisor, denominator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn matrix(rows: &[&[i64]]) -> Vec<Vec<Integer>> {
        rows.iter().map(|row| row.iter().map(|a| Integer::from(*a)).collect()).collect()
    }

    #[test]
    fn ranks_and_first_unknowns() {
        assert_eq!(rank(matrix(&[&[1, 2, 3], &[2, 4, 6], &[0, 0, 5]])), 2);
        assert_eq!(rank(matrix(&[&[0, 0], &[0, 0]])), 0);
        assert_eq!(rank(matrix(&[&[0, 1], &[1, 0], &[1, 1]])), 2);
        assert_eq!(rank(Vec::new()), 0);
        // x + y = 3 and 7, 2 y - x = 0 and 2.
        let found = first_unknown(matrix(&[&[1, 1, 3, 7], &[-1, 2, 0, 2]])).unwrap();
        assert_eq!(found, [2, 4].map(Rational::from));
        let half = first_unknown(matrix(&[&[0, 1, 5], &[-2, 0, 1]])).unwrap();
        assert_eq!(half, [Rational::from_parts_signed((-1).into(), 2.into())]);
        assert_eq!(first_unknown(matrix(&[&[1, 2, 1], &[2, 4, 2]])), None);
    }

    /// Entries from -9 to 9, one of three of them 0, so that pivots have to be looked for.
    fn random(stream: &mut Stream, rows: usize, columns: usize) -> Vec<Vec<Integer>> {
        let mut entry = || match stream.bits() % 3 {
            0 => Integer::ZERO,
            _ => Integer::from((stream.bits() % 19) as i64 - 9),
        };
        (0..rows).map(|_| (0..columns).map(|_| entry()).collect()).collect()
    }

    fn product(a: &[Vec<Integer>], b: &[Vec<Integer>]) -> Vec<Vec<Integer>> {
        let entry = |row: &[Integer], j: usize| row.iter().zip(b).fold(Integer::ZERO, |sum, (x, y)| sum + x * &y[j]);
        a.iter().map(|row| (0..b[0].len()).map(|j| entry(row, j)).collect()).collect()
    }

    /// The sum over all permutations.
    fn leibniz(rows: &[Vec<Integer>]) -> Integer {
        match rows {
            [] => Integer::ONE,
            [first, rest @ ..] => first.iter().enumerate().fold(Integer::ZERO, |sum, (j, a)| {
                let without = |row: &Vec<Integer>| [&row[..j], &row[j + 1..]].concat();
                let minor = leibniz(&rest.iter().map(without).collect::<Vec<_>>());
                if j % 2 == 0 { sum + a * minor } else { sum - a * minor }
            }),
        }
    }

    #[test]
    fn determinants_have_their_closed_forms() {
        assert_eq!(determinant(matrix(&[&[2, 0, 1], &[1, 3, 2], &[1, 1, 1]])), Integer::ZERO);
        assert_eq!(determinant(matrix(&[&[0, 2, 1], &[1, 0, 3], &[4, 1, 0]])), Integer::from(25));
        assert_eq!(determinant(Vec::new()), Integer::ONE);
        for n in 1..9usize {
            // Vandermonde: the product of the differences of the points 1, 4, 9, ..
            let points: Vec<i64> = (1..=n as i64).map(|k| k * k).collect();
            let rows = points.iter().map(|x| (0..n).map(|k| Integer::from(*x).pow(k)).collect()).collect();
            let pairs = (0..n).flat_map(|j| (0..j).map(move |i| (i, j)));
            let want = pairs.fold(Integer::ONE, |p, (i, j)| p * Integer::from(points[j] - points[i]));
            assert_eq!(determinant(rows), want, "n = {n}");
            // Hilbert: 1 / det is an integer, OEIS A005249.
            let hilbert: Vec<Vec<Rational>> = (0..n)
                .map(|i| (0..n).map(|j| Rational::from_parts(1.into(), UBig::from(i + j + 1))).collect())
                .collect();
            let known = ["1", "12", "2160", "6048000", "266716800000", "186313420339200000"];
            if let Some(known) = known.get(n - 1) {
                assert_eq!((Rational::ONE / rational_determinant(&hilbert)).to_string(), *known);
            }
        }
    }

    #[test]
    fn determinants_agree_with_leibniz_and_multiply() {
        let mut stream = Stream::new(1, 0);
        let mut singular = 0;
        for k in 0..200 {
            let n = k % 6;
            let (a, b) = (random(&mut stream, n, n), random(&mut stream, n, n));
            let (det_a, det_b) = (determinant(a.clone()), determinant(b.clone()));
            assert_eq!(det_a, leibniz(&a));
            if n > 0 {
                assert_eq!(determinant(product(&a, &b)), &det_a * &det_b);
            }
            singular += usize::from(det_a.is_zero());
        }
        assert!(singular > 10, "{singular}");
    }

    #[test]
    fn regular_columns_have_the_stated_determinant() {
        let mut stream = Stream::new(2, 0);
        let (mut regular, mut dependent) = (0, 0);
        for k in 0..300 {
            let (m, n) = (1 + k % 4, 4 + k % 2);
            let mut rows = random(&mut stream, m, n);
            if k % 5 == 0 && m > 1 {
                rows[m - 1] = rows[0].iter().zip(&rows[m - 2]).map(|(a, b)| a + Integer::from(3) * b).collect();
            }
            match regular_columns(&rows) {
                Some((columns, det)) => {
                    let minor: Vec<Vec<Integer>> =
                        rows.iter().map(|row| columns.iter().map(|c| row[*c].clone()).collect()).collect();
                    assert!(!det.is_zero());
                    assert_eq!(leibniz(&minor), det);
                    regular += 1;
                }
                None => {
                    // All products of rows: the Gram determinant vanishes iff rows are dependent.
                    let transposed: Vec<Vec<Integer>> =
                        (0..n).map(|j| rows.iter().map(|row| row[j].clone()).collect()).collect();
                    assert!(determinant(product(&rows, &transposed)).is_zero());
                    dependent += 1;
                }
            }
        }
        assert!(regular > 100 && dependent > 30, "{regular} {dependent}");
    }

    #[test]
    fn dependencies_hold_and_columns_before_them_are_independent() {
        let mut stream = Stream::new(3, 0);
        let mut found = [0; 6];
        for k in 0..300 {
            let (m, n) = (1 + k % 5, 1 + k % 6);
            let rows = random(&mut stream, m, n);
            let gram = |columns: usize| {
                let left: Vec<Vec<Integer>> =
                    (0..columns).map(|j| rows.iter().map(|row| row[j].clone()).collect()).collect();
                let right: Vec<Vec<Integer>> = rows.iter().map(|row| row[..columns].to_vec()).collect();
                if columns == 0 { Integer::ONE } else { determinant(product(&left, &right)) }
            };
            let Some(dependency) = first_dependency(rows.clone(), n) else {
                assert!(!gram(n).is_zero());
                continue;
            };
            let at = dependency.numerators.len();
            assert!(dependency.denominator > Integer::ZERO && !gram(at).is_zero() && gram(at + 1).is_zero());
            for row in &rows {
                let sum = row.iter().zip(&dependency.numerators).fold(Integer::ZERO, |sum, (a, x)| sum + a * x);
                assert_eq!(sum, &row[at] * &dependency.denominator);
            }
            found[at] += 1;
        }
        assert!(found[..4].iter().all(|count| *count > 5), "{found:?}");
    }

    #[test]
    fn systems_are_solved_and_contradictions_found() {
        // x + y + z = 6 twice, x = y, 3 z = 1
        let rows = matrix(&[&[1, 1, 1, 6], &[2, 2, 2, 12], &[1, -1, 0, 0], &[0, 0, 3, 1]]);
        let solution: Vec<String> = first_dependency(rows, 4).unwrap().coefficients().map(|x| x.to_string()).collect();
        assert_eq!(solution, ["17/6", "17/6", "1/3"]);
        assert_eq!(first_dependency(matrix(&[&[1, 1], &[1, 2]]), 2), None);
    }

    #[test]
    fn vectors_are_made_primitive() {
        let rational = |p: i64, q: u64| Rational::from_parts(p.into(), q.into());
        let vector = [rational(-4, 3), rational(0, 1), rational(10, 9)];
        let (integers, factor) = primitive(&vector);
        assert_eq!(integers, [-6, 0, 5].map(Integer::from));
        assert_eq!(factor, rational(2, 9));
        let zero = primitive(&[Rational::ZERO, Rational::ZERO]);
        assert_eq!(zero, (vec![Integer::ZERO; 2], Rational::ONE));
        assert_eq!(common_denominator(&[rational(1, 6), rational(3, 4)]), UBig::from(12u8));
        assert_eq!(numerators_over(&[rational(1, 6), rational(3, 4)], &UBig::from(24u8)), [4, 18].map(Integer::from));
    }
}
