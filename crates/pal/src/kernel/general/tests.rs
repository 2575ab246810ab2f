//! Masses against closed forms and the exact integrator, gradients against differences, samples against probabilities.

use super::*;
use crate::formula::reals;
use crate::kernel::KernelFamily;
use crate::kernel::triweight;
use crate::random::Stream;
use integral::GeneralKernel;

fn line() -> GeneralKernelFamily {
    let [x] = reals(["x"]);
    let region = Region::new(&(x.between(0, 1) | x.between(2, 3) | x.between(3, 5)).into()).unwrap();
    GeneralKernelFamily::new(&region, &KernelSettings { components: 3 }).unwrap()
}

/// A box with a slanted side and a block cut out of it.
fn hall() -> GeneralKernelFamily {
    let [x, y, z] = reals(["x", "y", "z"]);
    let free = x.between(0, 4) & y.between(0, 2) & z.between(0, 3) & (&x + &y + 2 * &z).le(9);
    let block = x.between(1, 2) & y.ge(1) & (&z - &x).le(1);
    let region = Region::new(&(free & !block).into()).unwrap();
    GeneralKernelFamily::new(&region, &KernelSettings { components: 2 }).unwrap()
}

fn params(family: &GeneralKernelFamily, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, 0);
    (0..family.num_params()).map(|_| 0.4 * stream.normal()).collect()
}

fn random_kernel(n: usize, stream: &mut Stream) -> GeneralKernel {
    let mut between = |low: f64, high: f64| low + (high - low) * stream.unit();
    let mut kernel = GeneralKernel { n, place: [0.0; 3], factor: [[0.0; 3]; 3] };
    for i in 0..n {
        kernel.place[i] = between(-1.2, 1.2);
        kernel.factor[i][i] = between(0.05, 0.9);
        (0..i).for_each(|j| kernel.factor[i][j] = between(-0.8, 0.8));
    }
    kernel
}

/// Two ways to the same integral: the divergence theorem on walls, and sums of positive terms inside.
#[test]
fn walls_and_simplices_have_the_same_masses() {
    let mut stream = Stream::new(3, 0);
    for family in [line(), hall()] {
        let n = family.dimension();
        let rule = simplices::rule(n, 0);
        for _ in 0..30 {
            let kernel = random_kernel(n, &mut stream);
            let parts = simplices::seen_by(&kernel, &family.0.simplices);
            let inside: f64 = parts.iter().map(|part| part.mass(&kernel, &rule)).sum();
            let mass = kernel.mass(&family.0.walls);
            assert!((mass - inside).abs() < 1e-13, "{kernel:?}: {mass} {inside}");
        }
    }
}

/// Along the axes a kernel's mass in a box is a product of integrals of one variable.
#[test]
fn masses_in_boxes_are_products() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let region = Region::new(&(x.between(-1, 1) & y.between(-1, 1) & z.between(-1, 1)).into()).unwrap();
    let family = GeneralKernelFamily::new(&region, &KernelSettings { components: 1 }).unwrap();
    let part = family.within(&(x.le(0) & z.ge(0))).unwrap();
    let mut stream = Stream::new(5, 0);
    for _ in 0..20 {
        let mut kernel = random_kernel(3, &mut stream);
        (0..3).for_each(|i| (0..i).for_each(|j| kernel.factor[i][j] = 0.0));
        let between = |j: usize, low: f64, high: f64| {
            let u = |v: f64| (v - kernel.place[j]) / kernel.factor[j][j];
            triweight::integral(u(high)) - triweight::integral(u(low))
        };
        let whole: f64 = (0..3).map(|j| between(j, -1.0, 1.0)).product();
        assert!((kernel.mass(&family.0.walls) - whole).abs() < 1e-14);
        let quarter = between(0, -1.0, 0.0) * between(1, -1.0, 1.0) * between(2, 0.0, 1.0);
        assert!((kernel.mass(&part.0.walls) - quarter).abs() < 1e-14);
    }
}

#[test]
fn gradients_of_masses_and_densities_are_those_of_differences() {
    let mut stream = Stream::new(7, 0);
    for family in [line(), hall()] {
        let n = family.dimension();
        for _ in 0..20 {
            let kernel = random_kernel(n, &mut stream);
            let (_, of_mass) = kernel.mass_with_gradient(&family.0.walls);
            let point = kernel.to_box(&[0.3, -0.4, 0.2]);
            let (density, of_density) = kernel.density_with_gradient(&point).unwrap();
            assert!((density - kernel.density(&point)).abs() < 1e-12 * density);
            let h = 1e-6;
            let compare = |change: &dyn Fn(&mut GeneralKernel, f64), mass: f64, density: f64| {
                let moved = |by: f64| {
                    let mut kernel = kernel;
                    change(&mut kernel, by);
                    [kernel.mass(&family.0.walls), kernel.density(&point)]
                };
                let (up, down) = (moved(h), moved(-h));
                let [want_mass, want_density] = [0, 1].map(|k| (up[k] - down[k]) / (2.0 * h));
                assert!((mass - want_mass).abs() < 1e-7, "{kernel:?}: {mass} {want_mass}");
                assert!((density - want_density).abs() < 1e-5 * (1.0 + want_density.abs()), "{density} {want_density}");
            };
            for i in 0..n {
                compare(&|kernel, by| kernel.place[i] += by, of_mass.place[i], of_density.place[i]);
                for j in 0..=i {
                    compare(&|kernel, by| kernel.factor[i][j] += by, of_mass.factor[i][j], of_density.factor[i][j]);
                }
            }
        }
    }
}

#[test]
fn gradients_of_log_densities_and_probabilities_are_those_of_differences() {
    for (family, point) in [(line(), vec![2.3]), (hall(), vec![0.7, 0.4, 1.1])] {
        let params = params(&family, 11);
        let event = {
            let first = crate::formula::Linear::from(family.variables()[0].clone());
            family.within(&first.le(2)).unwrap()
        };
        let found = general_log_prob_each(&[&family], &params, &point, true).unwrap();
        let (_, of_event) = family.probability_with_gradient(&event, &params).unwrap();
        let h = 1e-5;
        let values = |params: &[f64]| {
            let log_prob = family.log_prob(params, &point).unwrap()[0];
            [log_prob, family.probability(&event, params).unwrap()[0]]
        };
        for k in 0..params.len() {
            let moved = |by: f64| {
                let mut params = params.clone();
                params[k] += by;
                values(&params)
            };
            let (up, down) = (moved(h), moved(-h));
            let want = [0, 1].map(|j| (up[j] - down[j]) / (2.0 * h));
            assert!(
                (found.gradient[k] - want[0]).abs() < 1e-6 * (1.0 + want[0].abs()),
                "{k}: {} {want:?}",
                found.gradient[k]
            );
            assert!((of_event[k] - want[1]).abs() < 1e-6, "{k}: {} {want:?}", of_event[k]);
        }
        for j in 0..point.len() {
            let moved = |by: f64| {
                let mut point = point.clone();
                point[j] += by;
                family.log_prob(&params, &point).unwrap()[0]
            };
            let want = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((found.point_gradient[j] - want).abs() < 1e-6 * (1.0 + want.abs()));
        }
    }
}

#[test]
fn densities_integrate_to_one_and_probabilities_add_up() {
    for family in [line(), hall()] {
        let params = params(&family, 2);
        let first = crate::formula::Linear::from(family.variables()[0].clone());
        let parts = [first.le(1), first.between(1, 3), first.ge(3)].map(|event| family.within(&event).unwrap());
        let sum: f64 = parts.iter().map(|part| family.probability(part, &params).unwrap()[0]).sum();
        assert!((sum - 1.0).abs() < 1e-13, "{sum}");
        // An event so small that differences of walls would have no digits.
        let tiny = Rational::ONE / Rational::from(1_000_000_000);
        let small = family.within(&first.between(2, Rational::from(2) + tiny)).unwrap();
        let larger = Rational::from(2) + Rational::ONE / Rational::from(1_000_000);
        let larger = family.within(&first.between(2, larger)).unwrap();
        let [p, q] = [&small, &larger].map(|event| family.probability(event, &params).unwrap()[0]);
        assert!((p * 1000.0 / q - 1.0).abs() < 1e-5, "{p} {q}");
    }
}

#[test]
fn samples_are_inside_and_as_frequent_as_probabilities_say() {
    for (family, count) in [(line(), 4000), (hall(), 1500)] {
        let (params, n) = (params(&family, 6), family.dimension());
        let samples = family.sample(&params, count, 9).unwrap();
        assert!(samples.chunks(n).all(|point| family.contains(point)));
        let first = crate::formula::Linear::from(family.variables()[0].clone());
        let p = family.probability(&family.within(&first.le(2)).unwrap(), &params).unwrap()[0];
        let share = samples.chunks(n).filter(|point| point[0] <= 2.0).count() as f64 / count as f64;
        assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / count as f64).sqrt() + 1e-9, "{share} {p}");
        let (mean, covariance) = &family.mean_and_covariance(&params).unwrap()[0];
        for j in 0..n {
            let average = samples.chunks(n).map(|point| point[j]).sum::<f64>() / count as f64;
            let deviation = covariance[j * n + j].sqrt();
            assert!((average - mean[j]).abs() < 4.5 * deviation / (count as f64).sqrt(), "{j}: {average} {mean:?}");
        }
        // The mean is the expectation of the variable.
        let expected =
            family.expectation(&params, &[crate::polynomial::Polynomial::parse(family.variables()[0].name()).unwrap()]);
        assert!((expected.unwrap()[0] - mean[0]).abs() < 1e-10);
    }
}

#[test]
fn rows_have_regions_of_their_own() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let cube = x.between(-1, 1) & y.between(-1, 1) & z.between(-1, 1);
    let family =
        GeneralKernelFamily::new(&Region::new(&cube.clone().into()).unwrap(), &KernelSettings { components: 2 });
    let family = family.unwrap();
    let regions =
        [(&x + &y + &z).le(0), (&x - &z).ge(0)].map(|wall| Region::new(&(cube.clone() & wall).into()).unwrap());
    let rows = family.on_regions(&RegionBatch::new(&regions).unwrap()).unwrap();
    let zeros = vec![0.0; family.num_params()];
    for (row, region) in rows.iter().zip(&regions) {
        assert!((row.volume() - 4.0).abs() < 1e-12);
        // On a region of its own the family is that of the region, up to the box.
        let alone = GeneralKernelFamily::new(region, &KernelSettings { components: 2 }).unwrap();
        let point = [0.25, -0.5, 0.125];
        let [a, b] = [row, &alone].map(|family| family.log_prob(&zeros, &point).unwrap()[0]);
        assert!((a - b).abs() < 1e-12, "{a} {b}");
        assert!(row.sample(&zeros, 50, 1).unwrap().chunks(3).all(|point| alone.contains(point)));
    }
    let empty = [Region::new(&(cube & x.ge(2)).into()).unwrap()];
    let error = family.on_regions(&RegionBatch::new(&empty).unwrap()).unwrap_err();
    assert!(matches!(&error, DensityError::RowsWithoutVolume(rows) if *rows == [0]), "{error}");
}

#[test]
fn other_numbers_of_variables_are_refused_with_a_way_out() {
    let [x, y] = reals(["x", "y"]);
    let square = Region::new(&(x.between(0, 1) & y.between(0, 1)).into()).unwrap();
    let error = GeneralKernelFamily::new(&square, &KernelSettings::default()).unwrap_err().to_string();
    assert!(error.contains("KernelFamily"), "{error}");
    assert!(KernelFamily::new(&square, &KernelSettings::default()).is_ok());
}
