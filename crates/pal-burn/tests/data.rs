//! Synthetic data satisfy their constraints, and the stars have the published likelihood.

use pal::formula::{GeoJsonOptions, parse_geojson};
use pal_burn::data::{Position, Star, Walkers, WindowSettings, windows};
use pal_burn::{Split, SplitError};

/// Mean true log-densities of the N-star problem, published to three digits.
#[test]
fn stars_have_the_published_likelihood() {
    for (tips, published) in [(3, -4.665), (7, -4.505), (11, -4.489), (19, -4.479)] {
        let star = Star::new(tips).unwrap();
        let rows = star.rows(20_000, 1);
        let membership = star.constraint().membership().unwrap();
        let both: Vec<f64> = rows.chunks(4).flat_map(|row| [row[0], row[1], row[2], row[3]]).collect();
        assert!(membership.contains_batch(&both).iter().all(|inside| *inside));
        // The standard deviation of a log-density is about 0.6, that of the mean 0.004.
        let mean = star.mean_log_density(&rows);
        assert!((mean - published).abs() < 0.02, "{tips}: {mean} {published}");
        assert_eq!(star.rows(10, 1), rows[..40]);
    }
    assert!(Star::new(4).is_none() && Star::new(1).is_none());
}

#[test]
fn windows_have_five_past_positions_and_a_later_one() {
    // Position k of track a is (k, 10 k); track b is too short.
    let place = |track: &str, k: usize| Position {
        track: track.to_string(),
        time: k as f64,
        place: [k as f64, 10.0 * k as f64],
    };
    let mut positions: Vec<Position> = (0..20).rev().map(|k| place("a", k)).collect();
    positions.extend((0..8).map(|k| place("b", k)));
    let rows = windows(&positions, &WindowSettings { step: 2, futures: 4, min_distance: 0.0, seed: 3 });
    // Windows end at 8, .., 18.
    assert_eq!(rows.len(), 11 * 4);
    for (at, (track, row)) in rows.iter().enumerate() {
        let now = 8.0 + (at / 4) as f64;
        assert_eq!(track, "a");
        for past in 0..5 {
            let k = now - 2.0 * past as f64;
            assert_eq!(row[2 * past..2 * past + 2], [k, 10.0 * k]);
        }
        let [x, y] = [row[10], row[11]];
        let reach = if at % 2 == 0 { 19.0 } else { f64::min(now + 2.0, 19.0) };
        assert!(x > now && x <= reach && y == 10.0 * x, "{at}: {x} {y}");
    }
}

#[test]
fn walkers_stay_on_the_map() {
    let text = include_str!("../../pal-cli/assets/campus.geojson");
    let campus = parse_geojson(text, &GeoJsonOptions::default()).unwrap();
    let tracks = Walkers::new(&campus).unwrap().tracks(60, 4).unwrap();
    let membership = campus.membership().unwrap();
    assert!(tracks.iter().all(|position| membership.contains(&position.place)));
    let longest = tracks.iter().map(|position| position.time).fold(0.0, f64::max);
    let people: std::collections::BTreeSet<&str> = tracks.iter().map(|position| position.track.as_str()).collect();
    assert!(people.len() == 60 && tracks.len() > 60 * 20 && longest < 400.0, "{} {longest}", tracks.len());
}

#[test]
fn groups_stay_together_and_fractions_are_kept() {
    let groups: Vec<usize> = (0..1000).map(|row| row / 10).collect();
    let split = Split::new(&groups, 5).unwrap();
    assert_eq!([&split.train, &split.validation, &split.test].map(Vec::len), [700, 150, 150]);
    let of = |rows: &[usize]| rows.iter().map(|row| groups[*row]).collect::<std::collections::BTreeSet<usize>>();
    let (a, b, c) = (of(&split.train), of(&split.validation), of(&split.test));
    assert!(a.is_disjoint(&b) && a.is_disjoint(&c) && b.is_disjoint(&c) && a.len() + b.len() + c.len() == 100);
    assert_ne!(split, Split::new(&groups, 6).unwrap());
    assert_eq!(Split::new(&["a", "b", "a"], 0), Err(SplitError { groups: 2 }));
}
