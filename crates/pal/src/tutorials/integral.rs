//! From a constraint to an integral.
//!
//! The running example of the PAL paper (Section 2) is a square with a triangular obstacle in it: `(x, y)` lies in
//! `[-1, 1]^2`, but not in the triangle with the corners `(-1/2, -1/2)`, `(0, 1/2)` and `(1/2, -1/2)`. All its areas
//! and moments are easy to find by hand, so that every number below can be checked.
//!
//! # A constraint
//!
//! [`reals`](crate::formula::reals()) makes variables. Comparisons of linear terms are *atoms*, and `&`, `|`, `!`
//! combine them. Constants are exact: there is no rounding between what you write and what is decided.
//!
//! ```
//! use pal::formula::reals;
//!
//! let [x, y] = reals(["x", "y"]);
//! let square = x.between(-1, 1) & y.between(-1, 1);
//! // The three edges of the triangle, times 2 so that all coefficients are integers.
//! let triangle = (2 * &y).ge(-1) & (2 * &y).le(4 * &x + 1) & (2 * &y).le(-4 * &x + 1);
//! let free = square & !triangle;
//!
//! // The obstacle is closed, so its uppermost corner does not belong to the free space. The next float64 above does.
//! assert!(!free.contains(&[0.0, 0.5]));
//! assert!(free.contains(&[0.0, 0.5_f64.next_up()]));
//! ```
//!
//! Constraints also come from files: [`parse_smtlib`](crate::formula::parse_smtlib) reads SMT-LIB 2, in which `0.5` is
//! the fraction 1/2, and [`parse_geojson`](crate::formula::parse_geojson()) reads maps.
//!
//! # A region
//!
//! A [`Region`](crate::region::Region) cuts what satisfies the constraint into disjoint convex cells. Only as many
//! atoms are decided as it takes to know that the formula holds on a cell: a square around an obstacle with three edges
//! takes three cells.
//!
//! ```
//! # use pal::formula::parse_smtlib;
//! use pal::number::Rational;
//! use pal::region::{Region, Status};
//!
//! let free = parse_smtlib("(declare-const x Real) (declare-const y Real)
//!     (assert (and (<= -1 x 1) (<= -1 y 1)))
//!     (assert (or (< y -0.5) (< (+ (* 2 x) 0.5) y) (< (- 0.5 (* 2 x)) y)))")?;
//! let region = Region::new(&free)?;
//! assert!(matches!(region.status(), Status::Bounded));
//! let cells = region.decompose()?;
//! assert_eq!(cells.len(), 3);
//!
//! // The square has area 4, the triangle 1/2. The cells have exact areas, too, which add up.
//! assert_eq!(region.exact_volume()?.to_string(), "7/2");
//! let sum = cells.iter().map(|cell| cell.exact_volume()).fold(Rational::ZERO, |sum, area| sum + area);
//! assert_eq!(sum, region.exact_volume()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An integral
//!
//! [`integrate`](crate::moments::integrate()) takes a region, a polynomial and a method. Over the square, `x^2` has the
//! integral 4/3. Over a triangle with corners `(x_i, y_i)` it is `area / 12 ((sum x_i)^2 + sum x_i^2)`, here 1/48.
//!
//! ```
//! # use pal::{formula::reals, region::Region};
//! # let [x, y] = reals(["x", "y"]);
//! # let triangle = (2 * &y).ge(-1) & (2 * &y).le(4 * &x + 1) & (2 * &y).le(-4 * &x + 1);
//! # let region = Region::new(&(x.between(-1, 1) & y.between(-1, 1) & !triangle).into())?;
//! use pal::moments::{Exponents, Method, Moments, integrate};
//! use pal::polynomial::Polynomial;
//!
//! let square = Polynomial::parse("x^2")?;
//! let exact = integrate(&region, &square, Method::Exact)?.exact.expect("the method is exact");
//! assert_eq!(exact.to_string(), "21/16"); // 4/3 - 1/48
//!
//! // In float64 the integral comes with a bound on its error.
//! let rounded = integrate(&region, &square, Method::Recurrence)?;
//! assert!((rounded.value - 21.0 / 16.0).abs() <= rounded.error && rounded.error < 1e-12);
//!
//! // All six moments up to degree 2 at once. After that, integrating any such polynomial is a dot product:
//! // (1 + x)^2 = 1 + 2 x + x^2 has the integral 7/2 + 0 + 21/16.
//! let moments = Moments::compile(&region, &Exponents::total_degree(2, 2)?)?;
//! let mut coefficients = vec![0.0; moments.exponents().len()];
//! let position = moments.exponents().positions();
//! for (exponent, value) in [([0, 0], 1.0), ([1, 0], 2.0), ([2, 0], 1.0)] {
//!     coefficients[position[exponent.as_slice()]] = value;
//! }
//! assert!((moments.integrate(&coefficients)? - 77.0 / 16.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A weight with cases
//!
//! *Weighted model integration* adds two things: weights that are different polynomials on different parts, and Boolean
//! variables, over whose values the integral is summed. A [`Problem`](crate::wmi::Problem) is read from JSON or built
//! with [`Problem::new`](crate::wmi::Problem::new). The integral of `|x|` is 2 over the square and 1/12 over the
//! triangle; with the Boolean variable `double`, which doubles the weight, the sum is three times the difference.
//!
//! ```
//! use pal::moments::Method;
//! use pal::wmi::Problem;
//!
//! let problem = Problem::parse(r#"{
//!     "domain": {"reals": {"x": ["-1", "1"], "y": ["-1", "1"]}, "booleans": ["double"]},
//!     "support": "(or (< y -0.5) (< (+ (* 2 x) 0.5) y) (< (- 0.5 (* 2 x)) y))",
//!     "weight": "(* (ite double 2 1) (ite (>= x 0) x (- x)))",
//!     "queries": ["double"]}"#)?;
//! let solution = problem.solve(Method::Exact)?;
//! assert_eq!(solution.total.exact.expect("the method is exact").to_string(), "23/4"); // 3 (2 - 1/12)
//! let doubled = &solution.queries[0];
//! assert_eq!(doubled.exact.as_ref().expect("the method is exact").to_string(), "23/6");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to go from here
//!
//! [`tutorials::density`](super::density) puts densities on such a region. `pal check`, `pal cells`, `pal integrate`
//! and `pal wmi` do what this page does in the terminal.
