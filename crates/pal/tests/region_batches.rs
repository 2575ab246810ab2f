//! Batches of regions: every answer of a row is that of its own region, made and asked alone.

use pal::density::{
    Compile, Family, FamilyKind, Knots, Model, RowInput, SplineMixture, SplineSettings, TablePrecision,
};
use pal::formula::{Constraint, Membership, Var, reals};
use pal::number::{Rational, from_f64, parse_rational};
use pal::random::Stream;
use pal::region::{BatchError, Region, RegionBatch, RegionMap, Status};

/// A room with a slanted wall and two pillars, one of them turned.
fn room() -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let free = x.between(0, 6) & y.between(0, 5) & (2 * &x + &y).ge(1);
    let straight = x.between(1, 2) & y.between(2, 3);
    let turned = (&x + &y).between(6, 7) & (&x - &y).between(1, 2);
    Constraint::new(free & !straight & !turned)
}

fn map() -> RegionMap {
    RegionMap::new(&Region::new(&room()).unwrap()).unwrap()
}

/// Centres and headings of windows all over the room and beyond.
fn places(count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut stream = Stream::new(seed, 0);
    let centres = (0..count).flat_map(|_| [stream.unit() * 7.0 - 0.5, stream.unit() * 6.0 - 0.5]).collect();
    let headings = (0..2 * count).map(|_| stream.normal()).collect();
    (centres, headings)
}

fn exact(x: f64) -> Rational {
    from_f64(x).unwrap()
}

/// The image of a local point, and whether the room contains it, in fractions from beginning to end.
fn contains_exactly(centre: &[f64], turn: [f64; 2], half_width: f64, u: &[f64]) -> bool {
    let [a, b] = turn.map(exact);
    let (u1, u2) = (exact(u[0]), exact(u[1]));
    let x = exact(centre[0]) + &a * &u1 - &b * &u2;
    let y = exact(centre[1]) + &b * &u1 + &a * &u2;
    let within =
        |value: &Rational, low: i32, high: i32| *value >= Rational::from(low) && *value <= Rational::from(high);
    let (two, one) = (Rational::from(2), Rational::ONE);
    let free = within(&x, 0, 6) && within(&y, 0, 5) && &two * &x + &y >= one;
    let straight = within(&x, 1, 2) && within(&y, 2, 3);
    let turned = within(&(&x + &y), 6, 7) && within(&(&x - &y), 1, 2);
    u.iter().all(|u| u.abs() <= half_width) && free && !straight && !turned
}

#[test]
fn points_of_windows_are_decided_exactly() {
    let (centres, headings) = places(300, 2);
    let windows = map().windows(&centres, &[0.75], Some(&headings), None).unwrap();
    let mut stream = Stream::new(3, 0);
    let points: Vec<f64> = (0..600).map(|_| 1.6 * (stream.unit() - 0.5)).collect();
    let got = windows.contains(&points).unwrap();
    for (row, inside) in got.iter().enumerate() {
        let (at, heading) = (2 * row..2 * row + 2, [headings[2 * row], headings[2 * row + 1]]);
        let length = heading[0].hypot(heading[1]);
        let want = contains_exactly(&centres[at.clone()], heading.map(|h| h / length), 0.75, &points[at.clone()]);
        assert_eq!(*inside, want, "row {row}");
        // The constraint of the row, by itself, says the same.
        let membership: Membership = windows.constraint(row).unwrap().membership().unwrap();
        assert_eq!(membership.contains(&points[at]), want, "row {row}");
    }
    assert!(got.iter().any(|inside| *inside) && got.iter().any(|inside| !inside));
    // On a wall, where only fractions decide: x = 2 belongs to the pillar, which is closed.
    let wall = map().windows(&[1.75, 2.5, 1.75, 2.5], &[0.5], None, None).unwrap();
    let next = f64::from_bits(0.25f64.to_bits() + 1);
    assert_eq!(wall.contains(&[0.25, 0.0, next, 0.0]).unwrap(), [false, true]);
    assert_eq!(wall.contains(&[f64::NAN, 0.0, f64::INFINITY, 0.0]).unwrap(), [false, false]);
}

#[test]
fn rows_are_their_own_regions() {
    let (mut centres, headings) = places(40, 5);
    // Nothing is outside of the room.
    centres[..2].copy_from_slice(&[20.0, 20.0]);
    let scales: Vec<f64> = (0..40).map(|k| 0.5 + f64::from(k) / 20.0).collect();
    let windows = map().windows(&centres, &[0.75, 0.5], Some(&headings), Some(&scales)).unwrap();
    let (volumes, statuses) = (windows.volumes(), windows.statuses());
    for (row, region) in windows.regions().enumerate() {
        let region = region.unwrap();
        let want = region.volume().unwrap();
        assert!((volumes[row] - want).abs() <= 1e-12 * want, "row {row}: {} {want}", volumes[row]);
        assert_eq!(statuses[row], region.status(), "row {row}");
    }
    assert!(statuses.contains(&Status::Empty) && statuses.contains(&Status::Bounded));
}

#[test]
fn statuses_tell_what_a_row_is() {
    let [x, y] = reals(["x", "y"]);
    let constraints = [
        x.between(0, 1) & y.between(0, 1),
        x.between(0, 1) & y.ge(0),
        x.equals(1) & y.between(0, 1),
        x.gt(1) & x.lt(0) & y.le(0),
    ];
    let regions = constraints.map(|formula| Region::new(&Constraint::over(formula, &["x", "y"]).unwrap()).unwrap());
    let batch = RegionBatch::new(&regions).unwrap();
    let names: Vec<&str> = batch.statuses().iter().map(Status::name).collect();
    assert_eq!(names, ["bounded", "unbounded", "lower-dimensional", "empty"]);
    assert_eq!(batch.volumes(), [1.0, f64::INFINITY, 0.0, 0.0]);
    let both = batch.concatenate(&[batch.select(&[3, 0, 0]).unwrap()]).unwrap();
    assert_eq!((both.len(), both.volumes()[4..].to_vec()), (7, vec![0.0, 1.0, 1.0]));
    assert!(matches!(batch.select(&[4]), Err(BatchError::Row { row: 4, rows: 4 })));
}

#[test]
fn wrong_input_is_named() {
    let map = map();
    let windows = |centres: &[f64], width: &[f64], headings: Option<&[f64]>, scales: Option<&[f64]>| {
        map.windows(centres, width, headings, scales).unwrap_err().to_string()
    };
    assert!(windows(&[1.0, 2.0, 3.0], &[1.0], None, None).contains("coordinates of centres"));
    assert!(windows(&[1.0, 2.0, 3.0, f64::NAN], &[1.0], None, None).contains("row 1 is NaN"));
    assert!(windows(&[1.0, 2.0], &[0.0], None, None).contains("half width is 0"));
    assert!(windows(&[1.0, 2.0], &[1.0], Some(&[0.0, 0.0]), None).contains("heading"));
    assert!(windows(&[1.0, 2.0], &[1.0], None, Some(&[-1.0])).contains("scale"));
    let [x, z] = reals(["x", "z"]);
    let other = Region::new(&(x.between(0, 1) & z.between(0, 1)).into()).unwrap();
    let error = RegionBatch::new(&[Region::new(&room()).unwrap(), other]).unwrap_err();
    assert_eq!(error.to_string(), "row 1 is over x, z, but the rows before it are over x, y, in this order");
    let variables = Var::declare(["x", "y"]);
    let infinite = RegionBatch::half_spaces(&variables, [1, 1, 1], &[1.0, 0.0], &[f64::INFINITY], None);
    assert!(infinite.unwrap_err().to_string().contains("a number in b of row 0 is inf"));
}

/// A family on the box of windows, with as many knots as given.
fn layer(width: f64, knots: usize, components: usize) -> Family {
    let [x, y] = reals(["x", "y"]);
    let (low, high) = (-exact(width), exact(width));
    let square = x.between(low.clone(), high.clone()) & y.between(low, high);
    let settings = SplineSettings { knots: Knots::Uniform(knots), components };
    Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap()
}

/// Rows of a batch with volume.
fn with_volume(batch: &RegionBatch) -> RegionBatch {
    let volumes = batch.volumes();
    batch.select(&(0..batch.len()).filter(|row| volumes[*row] > 0.0).collect::<Vec<_>>()).unwrap()
}

#[test]
fn log_densities_are_those_of_families_compiled_alone() {
    let (centres, headings) = places(40, 7);
    let windows = with_volume(&map().windows(&centres, &[0.75], Some(&headings), None).unwrap());
    for components in [3, 8, 17] {
        let family = layer(0.75, 6, components);
        let forms = family.on_regions(&windows).unwrap();
        let params: Vec<f64> = family.random_params(windows.len(), 3).iter().map(|x| x / 2.0).collect();
        let mut stream = Stream::new(1, 1);
        let points: Vec<f64> = (0..2 * windows.len()).map(|_| 1.5 * (stream.unit() - 0.5)).collect();
        let rows = forms.log_prob(&params, &points, true).unwrap();
        let inside = windows.contains(&points).unwrap();
        let densities = forms.densities(&params).unwrap();
        let per = family.num_params();
        let short: Vec<f32> = params.iter().map(|x| *x as f32).collect();
        let in_float32 = forms.log_prob(&short, &points, true).unwrap();
        let gradient = rows.gradient.unwrap();
        for (row, density) in densities.iter().enumerate() {
            let (log_prob, point) = (rows.log_prob[row], &points[2 * row..2 * row + 2]);
            let want = density.log_prob(point)[0];
            let own = &gradient[row * per..(row + 1) * per];
            assert_eq!(inside[row], log_prob > f64::NEG_INFINITY, "row {row}");
            if !inside[row] {
                assert!(own.iter().all(|x| *x == 0.0));
                continue;
            }
            assert!((log_prob - want).abs() < 1e-11, "row {row}: {log_prob} {want}");
            assert!((f64::from(in_float32.log_prob[row]) - want).abs() < 2e-4, "row {row}");
            // A derivative along a random direction, by a difference of log-densities of the general path.
            let direction: Vec<f64> = (0..per).map(|_| stream.normal()).collect();
            let single = forms.select(&[row]).unwrap();
            let shifted = |h: f64| {
                let moved = params[row * per..(row + 1) * per].iter().zip(&direction);
                single.density(0, &moved.map(|(x, d)| x + h * d).collect::<Vec<_>>()).unwrap().log_prob(point)[0]
            };
            let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            let derivative: f64 = own.iter().zip(&direction).map(|(g, d)| g * d).sum();
            let size: f64 = own.iter().map(|g| g.abs()).sum::<f64>() + 1.0;
            assert!((derivative - difference).abs() < 1e-6 * size, "row {row}: {derivative} {difference}");
        }
    }
}

/// A batch with the region of the family in every row is the fixed family.
#[test]
fn equal_rows_are_the_fused_pass_of_one_family() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let plane =
        x.between(0, 2) & y.between(0, 1) & (&x + 3 * &y).le(4) & !(&x - &y).between(0, parse_rational("1/9").unwrap());
    let solid = x.between(0, 1) & y.between(0, 1) & z.between(0, 1) & (&x + &y + &z).le(2);
    let cases = [Constraint::new(x.between(0, 1) | x.between(3, 4)), plane.into(), solid.into()];
    for (constraint, knots) in cases.iter().zip([9, 6, 4]) {
        let region = Region::new(constraint).unwrap();
        let settings = SplineSettings { knots: Knots::Uniform(knots), components: 5 };
        let family = Family::new(&region, &settings.into()).unwrap();
        let (rows, n) = (9, family.dimension());
        let forms = family.on_regions(&RegionBatch::new(&vec![region; rows]).unwrap()).unwrap();
        let params = family.random_params(rows, 1);
        let mut stream = Stream::new(2, 0);
        let points: Vec<f64> = (0..rows * n).map(|_| 2.0 * stream.unit()).collect();
        let got = forms.log_prob(&params, &points, true).unwrap();
        let want = family.log_prob(&params, &points).unwrap();
        assert_eq!(forms.contains(&points).unwrap(), family.contains(&points));
        for (a, b) in got.log_prob.iter().zip(&want) {
            assert!(a == b || (a - b).abs() < 1e-11, "{a} {b}");
        }
        let gradient = family.log_prob_vjp(&params, &points, &vec![1.0; rows]).unwrap();
        for (a, b) in got.gradient.unwrap().iter().zip(&gradient) {
            assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
        }
        // With a head in front, and more components than one register of the head has lanes.
        for components in [5, 18] {
            let settings = SplineSettings { knots: Knots::Uniform(knots), components };
            let family = Family::new(&Region::new(constraint).unwrap(), &settings.into()).unwrap();
            let forms = family.on_regions(forms.regions()).unwrap();
            let width = components * (1 + 3 * n);
            let outputs: Vec<f64> = (0..rows * width).map(|_| stream.normal()).collect();
            let want = family.log_prob_rows(RowInput::StudentT, &outputs, &points, true).unwrap().unwrap();
            let got = forms.log_prob_rows(RowInput::StudentT, &outputs, &points, true).unwrap();
            for (a, b) in got.log_prob.iter().zip(&want.log_prob) {
                assert!(a == b || (a - b).abs() < 1e-11, "{a} {b}");
            }
            for (a, b) in got.gradient.unwrap().iter().zip(&want.gradient.unwrap()) {
                assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
            }
        }
        let want = Region::new(constraint).unwrap().volume().unwrap();
        assert!(forms.volumes().iter().all(|v| (v / want - 1.0).abs() < 1e-12));
    }
}

#[test]
fn the_box_of_the_family_bounds_all_rows() {
    let [x, y] = reals(["x", "y"]);
    let half_plane = Constraint::over(x.ge(0), &["x", "y"]).unwrap();
    let batch =
        RegionBatch::new(&[Region::new(&half_plane).unwrap(), Region::new(&(y.le(&x)).into()).unwrap()]).unwrap();
    let family = layer(1.0, 4, 1);
    let forms = family.on_regions(&batch).unwrap();
    assert!(forms.volumes().iter().all(|volume| (volume - 2.0).abs() < 1e-14));
    let zeros = vec![0.0; 2 * family.num_params()];
    let inside = forms.log_prob(&zeros, &[0.5, -0.5, 0.5, -0.5], false).unwrap().log_prob;
    assert!(inside.iter().all(|log_prob| (log_prob + 2f64.ln()).abs() < 1e-14), "{inside:?}");
    let beyond = f64::from_bits(1f64.to_bits() + 1);
    assert_eq!(forms.contains(&[beyond, 0.0, 1.0, 0.0]).unwrap(), [false, true]);
    let error = family.on_regions(&RegionBatch::new(&[Region::new(&x.ge(2).into()).unwrap()]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("over x"), "{error}");
    let sum = SplineMixture::compile(&Region::new(&x.between(0, 1).into()).unwrap(), &SplineSettings::default());
    assert_eq!(sum.unwrap().num_components(), 8);
}

#[test]
fn tables_in_float32_serve_float32() {
    let (centres, headings) = places(30, 9);
    let windows = with_volume(&map().windows(&centres, &[0.75], Some(&headings), None).unwrap());
    let family = layer(0.75, 8, 3);
    let double = family.on_regions(&windows).unwrap();
    let single = family.on_regions_with(&windows, TablePrecision::Float32).unwrap();
    assert!((single.bytes() as f64) < 0.6 * double.bytes() as f64);
    let params: Vec<f32> = family.random_params(windows.len(), 1).iter().map(|x| *x as f32).collect();
    let points = vec![0.1; 2 * windows.len()];
    let [a, b] = [&single, &double].map(|forms| forms.log_prob(&params, &points, true).unwrap());
    assert!(a.log_prob.iter().zip(&b.log_prob).all(|(a, b)| a == b || (a - b).abs() < 1e-4));
    let params: Vec<f64> = params.iter().map(|x| f64::from(*x)).collect();
    assert!(single.log_prob(&params, &points, false).unwrap_err().to_string().contains("compiled for float32"));
}

#[test]
fn threads_change_nothing() {
    let (centres, headings) = places(100, 8);
    let windows = with_volume(&map().windows(&centres, &[0.75], Some(&headings), None).unwrap());
    let family = layer(0.75, 7, 4);
    let params = family.random_params(windows.len(), 1);
    let points = vec![0.1; 2 * windows.len()];
    let results = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| family.on_regions(&windows).unwrap().log_prob(&params, &points, true).unwrap())
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn files_bring_back_all_kinds_of_rows() {
    let (centres, headings) = places(5, 4);
    let windows = map().windows(&centres, &[0.75], Some(&headings), None).unwrap();
    let variables = windows.variables().to_vec();
    let (normals, offsets) = ([1.0, 0.0, 0.0, 1.0].repeat(4), [1.0, 2.0, 3.0, 0.1, 1.0, 2.0, 0.5, 0.25]);
    let mask = [true, true, true, false];
    let unions = RegionBatch::half_spaces(&variables, [2, 2, 2], &normals, &offsets, Some(&mask)).unwrap();
    let whole = RegionBatch::new(&[Region::new(&room()).unwrap()]).unwrap();
    let batch = windows.concatenate(&[unions, whole]).unwrap().select(&[7, 0, 5, 6, 6, 1, 2, 3, 4]).unwrap();
    let bytes = batch.to_bytes().unwrap();
    let back = RegionBatch::from_bytes(&bytes).unwrap();
    assert_eq!((back.len(), back.variables()), (batch.len(), batch.variables()));
    assert_eq!(back.volumes(), batch.volumes());
    for row in 0..batch.len() {
        let text = |batch: &RegionBatch| batch.constraint(row).unwrap().formula.to_string();
        assert_eq!(text(&back), text(&batch), "row {row}");
    }
    assert!(back.to_bytes().unwrap() == bytes, "equal batches make equal files");
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(RegionBatch::from_bytes(&damaged).is_err(), "the flipped bit in byte {at} was not noticed");
    }
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(RegionBatch::from_bytes(&damaged).unwrap_err().to_string().contains("checksum"));
    assert!(RegionBatch::from_bytes(b"no file").is_err());
    // The map is in the file once, however many windows there are.
    let many = windows.select(&[0; 500]).unwrap().to_bytes().unwrap();
    assert!(many.len() < windows.to_bytes().unwrap().len() + 500 * 8 * 8, "{}", many.len());
}

#[test]
fn local_coordinates_and_back() {
    // A window at (3, 1) that looks to the north with unit 2: two ahead is (3, 5), one to the left is (1, 1).
    let north = map().windows(&[3.0, 1.0].repeat(2), &[4.0], Some(&[0.0, 5.0].repeat(2)), Some(&[2.0, 2.0])).unwrap();
    assert_eq!(north.to_map(&[2.0, 0.0, 0.0, 1.0]).unwrap(), [3.0, 5.0, 1.0, 1.0]);
    assert_eq!(north.to_local(&[3.0, 5.0, 1.0, 1.0]).unwrap(), [2.0, 0.0, 0.0, 1.0]);
    assert!(matches!(north.to_local(&[1.0]), Err(BatchError::Length { given: 1, wanted: 4, .. })));
    // Rows that are no windows have the coordinates of the map.
    assert_eq!(map().repeat(2).to_local(&[1.0, 2.0, 3.0, 4.0]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let (centres, headings) = places(50, 31);
    let windows = map().windows(&centres, &[0.75], Some(&headings), None).unwrap();
    let points: Vec<f64> = centres.iter().map(|x| x + 0.3).collect();
    let back = windows.to_map(&windows.to_local(&points).unwrap()).unwrap();
    assert!(back.iter().zip(&points).all(|(a, b)| (a - b).abs() < 1e-14));
    let line = reals(["t"]).map(|t| Region::new(&t.between(0, 10).into()).unwrap());
    let windows = RegionMap::new(&line[0]).unwrap().windows(&[4.0], &[2.0], None, Some(&[0.5])).unwrap();
    assert_eq!((windows.to_local(&[5.0]).unwrap(), windows.to_map(&[2.0]).unwrap()), (vec![2.0], vec![5.0]));
}

#[test]
fn rows_of_maps_that_were_not_cut_yet_wait_for_nobody() {
    // Maps of files and of lists are cut when they are first needed, which is while many rows ask for the same cells.
    let (centres, headings) = places(2000, 37);
    let bytes = map().windows(&centres, &[0.75], Some(&headings), None).unwrap().to_bytes().unwrap();
    let whole = RegionBatch::new(&[Region::new(&room()).unwrap()]).unwrap().select(&[0; 2000]).unwrap();
    let family = layer(6.0, 4, 1);
    for _ in 0..3 {
        let windows = RegionBatch::from_bytes(&bytes).unwrap();
        assert_eq!(windows.volumes().len(), 2000);
        assert_eq!(RegionBatch::from_bytes(&bytes).unwrap().statuses().len(), 2000);
        assert_eq!(family.on_regions(&whole).unwrap().len(), 2000);
    }
}

#[test]
fn models_keep_the_regions_of_their_rows() {
    let (centres, headings) = places(12, 41);
    let windows = with_volume(&map().windows(&centres, &[0.75], Some(&headings), None).unwrap());
    let family = layer(0.75, 4, 2);
    let mut stream = Stream::new(43, 0);
    let params: Vec<f64> = (0..windows.len() * family.num_params()).map(|_| stream.normal()).collect();
    let model = Model::on_regions(family.clone(), params.clone(), &windows).unwrap();
    let back = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((back.rows(), back.params()), (windows.len(), &params[..]));
    assert!(back.to_bytes().unwrap() == model.to_bytes().unwrap());
    let points: Vec<f64> = (0..2 * windows.len()).map(|_| stream.unit() - 0.5).collect();
    let want = family.on_regions(&windows).unwrap().log_prob(&params, &points, false).unwrap().log_prob;
    assert!(want.iter().any(|value| value.is_finite()));
    for (row, density) in back.densities().unwrap().iter().enumerate() {
        let point = &points[2 * row..2 * row + 2];
        let got = density.log_prob(point)[0];
        assert!(got == want[row] || (got - want[row]).abs() < 1e-11, "row {row}: {got} {}", want[row]);
        assert_eq!(back.density(row).unwrap().log_prob(point), [got]);
    }
    let few = windows.select(&[0]).unwrap();
    let error = Model::on_regions(family, params, &few).unwrap_err().to_string();
    assert!(error.starts_with("1 regions given"), "{error}");
}
