//! Shares of a whole: a constraint with an equality, and densities on the flat that remains. The same example in Python is
//! `examples/python/shares.py`.

use std::error::Error;

use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{Linear, reals};
use pal::region::Region;

fn main() -> Result<(), Box<dyn Error>> {
    // Three shares of a budget, each with bounds, and a combination that is excluded.
    let [a, b, c] = reals(["a", "b", "c"]);
    let number = |text: &str| Linear::try_from(text);
    let bounds = a.between(0, number("0.7")?) & b.between(0, number("0.8")?) & c.between(number("0.1")?, 1);
    let excluded = a.gt(number("0.4")?) & b.gt(number("0.4")?);
    let region = Region::new(&((&a + &b + &c).equals(1) & bounds & !excluded).into())?;
    let flat = region.flat()?.ok_or("an equality holds on the whole region")?;
    println!("{flat}");
    let measure = flat.surface_measure()?;
    println!("surface {} = {} sqrt({})", measure.value(), measure.free_volume, measure.square_factor);

    // Points have all coordinates; the density is per unit of surface measure.
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(6), components: 2 });
    let family = Family::new(&region, &settings)?;
    let density = family.density(&family.random_params(1, 1))?;
    println!("P(c <= a)          {}", density.probability(&c.le(&a))?);
    println!("mean               {:?}", density.mean());
    println!("median of c        {}", density.marginal("c")?.quantile(0.5)?);
    println!("log p(1/4,1/4,1/4) {}", density.log_prob(&[0.25, 0.25, 0.25])[0]);

    // Dependent coordinates are filled in: all samples add up to 1, up to the rounding of their sum.
    let samples = density.sample(100_000, 2)?;
    assert!(family.contains(&samples).iter().all(|inside| *inside));
    assert!(samples.chunks(3).all(|y| (y[0] + y[1] + y[2] - 1.0).abs() < 5e-16));
    let fraction = samples.chunks(3).filter(|y| y[2] <= y[0]).count() as f64 / 100_000.0;
    assert!((fraction - density.probability(&c.le(&a))?).abs() < 0.01);
    Ok(())
}
