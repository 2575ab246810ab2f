//! Exact linear algebra and a volume that needs no vertices, independent of the methods of the library.

use pal::number::Rational;

/// Returns the rank and, for a square matrix, the determinant, by Gaussian elimination.
fn eliminate(mut rows: Vec<Vec<Rational>>) -> (usize, Rational) {
    let columns = rows.first().map_or(0, Vec::len);
    let (mut rank, mut product) = (0, Rational::ONE);
    for column in 0..columns {
        let Some(found) = (rank..rows.len()).find(|i| !rows[*i][column].is_zero()) else {
            product = Rational::ZERO;
            continue;
        };
        if found != rank {
            rows.swap(rank, found);
            product = -product;
        }
        product *= &rows[rank][column];
        let (done, rest) = rows.split_at_mut(rank + 1);
        for row in rest {
            let factor = &row[column] / &done[rank][column];
            for (entry, pivot) in row.iter_mut().zip(&done[rank]) {
                *entry -= &factor * pivot;
            }
        }
        rank += 1;
    }
    (rank, product)
}

pub fn rank(rows: Vec<Vec<Rational>>) -> usize {
    eliminate(rows).0
}

pub fn determinant(rows: Vec<Vec<Rational>>) -> Rational {
    eliminate(rows).1
}

pub fn absolute(value: Rational) -> Rational {
    if value < Rational::ZERO { -value } else { value }
}

pub fn factorial(n: usize) -> Rational {
    Rational::from((1..=n as u64).product::<u64>())
}

/// Returns the rows `point_i - point_0`.
pub fn differences<'a>(points: impl IntoIterator<Item = &'a Vec<Rational>>) -> Vec<Vec<Rational>> {
    let mut points = points.into_iter();
    let Some(base) = points.next() else { return Vec::new() };
    points.map(|p| p.iter().zip(base).map(|(a, b)| a - b).collect()).collect()
}

pub fn dot(a: &[Rational], b: &[Rational]) -> Rational {
    a.iter().zip(b).fold(Rational::ZERO, |sum, (a, b)| sum + a * b)
}

/// Returns the volume of `{x : a . x <= b for all rows}` by Lasserre's recursion over facets,
///
/// `vol = 1/n sum_i b_i / |a_ij| vol(facet i, projected along axis j)`,
///
/// which uses half-spaces only, no vertices and no triangulation. The polytope must be bounded.
pub fn lasserre(rows: &[(Vec<Rational>, Rational)], n: usize) -> Rational {
    let Some(rows) = tightest(rows) else { return Rational::ZERO };
    if n == 1 {
        let end = |positive: bool| {
            let ends = rows.iter().filter(move |(a, _)| (a[0] > Rational::ZERO) == positive).map(|(a, b)| b / &a[0]);
            if positive { ends.min() } else { ends.max() }
        };
        let length = end(true).expect("bounded") - end(false).expect("bounded");
        return length.max(Rational::ZERO);
    }
    let mut sum = Rational::ZERO;
    for (i, (a, b)) in rows.iter().enumerate() {
        if b.is_zero() {
            continue;
        }
        let axis = a.iter().position(|a| !a.is_zero()).expect("a row without a normal was dropped");
        let facet = rows.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, (c, d))| {
            let factor = &c[axis] / &a[axis];
            let normal = (0..n).filter(|j| *j != axis).map(|j| &c[j] - &factor * &a[j]).collect();
            (normal, d - &factor * b)
        });
        let facet: Vec<_> = facet.collect();
        let inner = lasserre(&facet, n - 1);
        if !inner.is_zero() {
            sum += b / absolute(a[axis].clone()) * inner;
        }
    }
    sum / Rational::from(n)
}

/// Returns the tightest row for each direction, or `None` if a row with normal zero cannot hold.
fn tightest(rows: &[(Vec<Rational>, Rational)]) -> Option<Vec<(Vec<Rational>, Rational)>> {
    let mut kept: Vec<(Vec<Rational>, Rational)> = Vec::new();
    for (a, b) in rows {
        let Some(lead) = a.iter().find(|a| !a.is_zero()) else {
            if b < &Rational::ZERO {
                return None;
            }
            continue;
        };
        let scale = absolute(lead.clone());
        let (a, b): (Vec<_>, _) = (a.iter().map(|a| a / &scale).collect(), b / &scale);
        match kept.iter_mut().find(|(known, _)| *known == a) {
            Some((_, old)) => *old = old.clone().min(b),
            None => kept.push((a, b)),
        }
    }
    Some(kept)
}
