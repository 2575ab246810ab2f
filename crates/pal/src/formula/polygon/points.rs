//! Exact predicates on a fixed set of points.
//!
//! Every decision about a polygon's shape is one of two questions about its given points: how do two coordinates
//! compare, and does the path `a -> b -> c` turn left or right. Nothing is ever constructed, so nothing is rounded.
//!
//! Comparisons are made once, by sorting, and kept as ranks. Turns are computed on an integer grid where a common
//! denominator of moderate size exists, which holds for practically every map; otherwise on the rationals themselves.

use std::cmp::Ordering;

use crate::number::Rational;

/// Grid coordinates stay below 2^62, so that differences, their products and the difference of these fit in `i128`.
const GRID_LIMIT: i128 = 1 << 62;

/// Points with their order along both axes.
pub(super) struct Points<'a> {
    exact: Vec<&'a [Rational; 2]>,
    grid: Option<Vec<[i64; 2]>>,
    /// Equal coordinates have equal ranks, so ranks compare exactly as the coordinates do.
    ranks: Vec<[u32; 2]>,
}

impl<'a> Points<'a> {
    pub(super) fn new(exact: Vec<&'a [Rational; 2]>) -> Self {
        let mut ranks = vec![[0; 2]; exact.len()];
        let mut order: Vec<usize> = (0..exact.len()).collect();
        for axis in 0..2 {
            order.sort_unstable_by(|&i, &j| exact[i][axis].cmp(&exact[j][axis]));
            let mut rank = 0;
            for k in 0..order.len() {
                if k > 0 && exact[order[k]][axis] != exact[order[k - 1]][axis] {
                    rank += 1;
                }
                ranks[order[k]][axis] = rank;
            }
        }
        let grid = grid(&exact);
        Points { exact, grid, ranks }
    }

    pub(super) fn point(&self, i: usize) -> &'a [Rational; 2] {
        self.exact[i]
    }

    /// The ranks of the coordinates of a point. They compare lexicographically (by x, then y) as the points do.
    pub(super) fn rank(&self, i: usize) -> [u32; 2] {
        self.ranks[i]
    }

    /// `Greater` if the path `a -> b -> c` turns left, `Less` if right, `Equal` if the three are collinear.
    pub(super) fn turn(&self, a: usize, b: usize, c: usize) -> Ordering {
        match &self.grid {
            Some(grid) => {
                let [[ax, ay], [bx, by], [cx, cy]] = [a, b, c].map(|i| grid[i].map(i128::from));
                ((bx - ax) * (cy - ay)).cmp(&((by - ay) * (cx - ax)))
            }
            None => turn(self.exact[a], self.exact[b], self.exact[c]),
        }
    }

    /// Whether `c`, known to be collinear with `a` and `b`, lies on the closed segment between them.
    pub(super) fn is_between(&self, a: usize, b: usize, c: usize) -> bool {
        let [ra, rb, rc] = [a, b, c].map(|i| self.ranks[i]);
        (0..2).all(|axis| ra[axis].min(rb[axis]) <= rc[axis] && rc[axis] <= ra[axis].max(rb[axis]))
    }
}

/// The turn of the path `a -> b -> c` through any three points, in the sense of [`Points::turn`].
pub(super) fn turn(a: &[Rational; 2], b: &[Rational; 2], c: &[Rational; 2]) -> Ordering {
    let left = (&b[0] - &a[0]) * (&c[1] - &a[1]);
    left.cmp(&((&b[1] - &a[1]) * (&c[0] - &a[0])))
}

fn grid(exact: &[&[Rational; 2]]) -> Option<Vec<[i64; 2]>> {
    let mut scale = 1i128;
    for q in exact.iter().flat_map(|p| p.iter()).map(Rational::denominator) {
        let q = i128::try_from(q).ok().filter(|q| *q < GRID_LIMIT)?;
        scale = scale / gcd(scale, q) * q;
        if scale >= GRID_LIMIT {
            return None;
        }
    }
    let on_grid = |a: &Rational| {
        let p = i128::try_from(a.numerator()).ok()?;
        let q = i128::try_from(a.denominator()).ok()?;
        let scaled = p.checked_mul(scale / q)?;
        (scaled.abs() < GRID_LIMIT).then_some(scaled as i64)
    };
    exact.iter().map(|p| Some([on_grid(&p[0])?, on_grid(&p[1])?])).collect()
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::parse_rational;

    fn points(texts: &[[&str; 2]]) -> Vec<[Rational; 2]> {
        texts.iter().map(|p| p.map(|t| parse_rational(t).unwrap())).collect()
    }

    #[test]
    fn the_grid_and_the_rationals_agree() {
        // Nearly collinear: the middle point is off the diagonal by one unit in the last place of its decimals.
        for (middle, want) in [("0.5", Ordering::Equal), ("0.500000000000001", Ordering::Greater)] {
            let list = points(&[["0", "0"], ["1", "1"], ["0.5", middle]]);
            let set = Points::new(list.iter().collect());
            assert!(set.grid.is_some());
            assert_eq!(set.turn(0, 1, 2), want);
            assert_eq!(turn(&list[0], &list[1], &list[2]), want);
        }
    }

    #[test]
    fn huge_and_unrelated_coordinates_fall_back_to_rationals() {
        let list = points(&[["0", "0"], ["1e30", "1e30"], ["1/3", "1/3"], ["1e-40", "2e-40"], ["-1/7", "-1/7"]]);
        let set = Points::new(list.iter().collect());
        assert!(set.grid.is_none());
        assert_eq!(set.turn(0, 1, 2), Ordering::Equal);
        assert_eq!(set.turn(0, 1, 3), Ordering::Greater);
        assert!(set.is_between(0, 1, 2) && !set.is_between(0, 1, 4));
        assert!(set.rank(4) < set.rank(0) && set.rank(0) < set.rank(3));
    }
}
