//! A density on a triangle: constraint, family, queries. The same example in Python is `examples/python/triangle.py`.

use std::error::Error;

use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::reals;
use pal::query::ModeOptions;
use pal::region::Region;

fn main() -> Result<(), Box<dyn Error>> {
    // The constraint, with exact constants.
    let [y1, y2] = reals(["y1", "y2"]);
    let triangle = y1.ge(0) & y2.ge(0) & (&y1 + &y2).le(1);
    let region = Region::new(&triangle.clone().into())?;
    println!("area {} cells {}", region.exact_volume()?, region.decompose()?.len());

    // A family of densities that live on it, and one of them.
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(6), components: 2 });
    let family = Family::new(&region, &settings)?;
    let density = family.density(&family.random_params(1, 1))?;

    // Every question has an exact answer.
    let below = y1.le(&y2);
    println!("P(y1 <= y2)      {}", density.probability(&below)?);
    println!("mean             {:?}", density.mean());
    println!("median of y1     {}", density.marginal("y1")?.quantile(0.5)?);
    println!("log p(0.9, 0.9)  {}", density.log_prob(&[0.9, 0.9])[0]);
    let mode = density.mode(&ModeOptions::default())?;
    println!("mode             {:?} within {}", mode.point, mode.gap);

    // No sample leaves the constraint.
    let samples = density.sample(100_000, 2)?;
    assert!(samples.chunks(2).all(|point| triangle.contains(point)));
    let fraction = samples.chunks(2).filter(|point| point[0] <= point[1]).count() as f64 / 100_000.0;
    assert!((fraction - density.probability(&below)?).abs() < 0.01);
    Ok(())
}
