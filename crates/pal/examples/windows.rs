//! A region for each example: windows of one map, a density on each of them, and none outside. The same example in Python
//! is `examples/python/windows.py`.

use std::error::Error;

use pal::density::{Family, Knots, SplineSettings};
use pal::formula::reals;
use pal::number::from_f64;
use pal::region::{Region, RegionMap, Status};

fn main() -> Result<(), Box<dyn Error>> {
    // A hall with a pillar and a slanted wall.
    let [x, y] = reals(["x", "y"]);
    let pillar = x.between(2, 4) & y.between(2, 3);
    let hall = x.between(0, 9) & y.between(0, 6) & !pillar & (2 * &x + &y).le(20);
    let map = RegionMap::new(&Region::new(&hall.into())?)?;

    // Three places, each looking along its heading: boxes of half width 1.5 in local coordinates.
    let places = [1.5, 2.5, 6.0, 5.0, 4.5, 2.5];
    let headings = [1.0, 0.25, 0.0, -1.0, -3.0, 4.0];
    let windows = map.windows(&places, &[1.5], Some(&headings), None)?;
    println!("areas  {:?}", windows.volumes());
    println!("status {:?}", windows.statuses().iter().map(Status::name).collect::<Vec<_>>());

    // Where is 0.7 ahead and a little to the left? In the pillar, for the first one.
    let ahead = [0.7, 0.1].repeat(3);
    assert_eq!(windows.contains(&ahead)?, [false, true, true]);

    // A family on the box of the windows gives its grid to all rows.
    let width = from_f64(1.5)?;
    let square = x.between(-&width, width.clone()) & y.between(-&width, width);
    let settings = SplineSettings { knots: Knots::Uniform(8), components: 2 };
    let family = Family::new(&Region::new(&square.into())?, &settings.into())?;
    let rows = family.on_regions(&windows)?;
    let params = family.random_params(3, 1);
    let log_prob = rows.log_prob(&params, &ahead, true)?;
    println!("log-densities {:?}", log_prob.log_prob);
    assert_eq!(log_prob.log_prob[0], f64::NEG_INFINITY);

    // Every sample of a row is exactly inside of its own region.
    for (row, density) in rows.densities(&params)?.iter().enumerate() {
        let membership = windows.constraint(row)?.membership()?;
        let samples = density.sample(10_000, 2)?;
        assert!(samples.chunks(2).all(|point| membership.contains(point)));
        println!("mean of row {row}: {:?}", density.mean());
    }
    Ok(())
}
