use pal::density::*;
use pal::formula::*;
use pal::region::Region;
use pal::shapes;
use std::time::Instant;
fn star(n: usize) -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let outline = Polygon::new(Ring::new(shapes::star(n, 10.0)).unwrap(), Vec::new()).unwrap();
    Constraint { formula: outline.to_formula(&x, &y), reals: vec![Var::new("x"), Var::new("y")], booleans: vec![] }
}
fn scene(k: usize) -> Constraint {
    let text = std::fs::read_to_string(format!("/work/shared/data/sdd/scene{k}_constraints.geojson")).unwrap();
    parse_geojson(&text, &GeoJsonOptions::default()).unwrap()
}
fn main() {
    let cases: Vec<(String, Constraint, u16)> = vec![
        ("star3".into(), star(3), 18),
        ("star7".into(), star(7), 18),
        ("star11".into(), star(11), 18),
        ("star19".into(), star(19), 18),
        ("scene2".into(), scene(2), 14),
        ("scene12".into(), scene(12), 14),
        ("scene2".into(), scene(2), 24),
        ("scene12".into(), scene(12), 24),
    ];
    for (name, c, degree) in cases {
        let start = Instant::now();
        let region = Region::new(&c).unwrap();
        let f = SumOfSquares::compile(
            &region,
            &SosSettings { degree, components: 4, basis: Basis::Orthonormal, subset: None },
        )
        .unwrap();
        let t = start.elapsed();
        let c = f.conditioning();
        println!(
            "{name} degree {degree}: elements {} {:?} {:?} check {:?}",
            f.domain().elements(),
            t,
            c,
            start.elapsed() - t
        );
    }
    for k in [2, 12] {
        let c = scene(k);
        for _ in 0..3 {
            let start = Instant::now();
            let region = Region::new(&c).unwrap();
            let f =
                Compiled::new(&region, &Settings::Spline(SplineSettings { knots: Knots::Uniform(14), mixtures: 8 }))
                    .unwrap();
            println!(
                "scene {k} spline: {:?} cells {} elements {}",
                start.elapsed(),
                f.domain().cells(),
                f.domain().elements()
            );
            let p = f.random_params(10_000, 1);
            let start = Instant::now();
            let z = f.log_normaliser(&p).unwrap();
            println!("10^4 normalisers {:?} {}", start.elapsed(), z[0]);
            let pts: Vec<f64> = (0..2_000_000)
                .map(|i| (i as f64 * 0.618033988749895 * if i % 2 == 0 { 1.0 } else { 0.3 }).fract() * 8.0)
                .collect();
            let start = Instant::now();
            let l = f.log_prob(&p[..f.num_params()], &pts).unwrap();
            let d = f.distribution(&p[..f.num_params()]).unwrap();
            let s0 = Instant::now();
            let s = d.sampler().unwrap();
            let t1 = s0.elapsed();
            let x = s.sample(1_000_000, 1);
            println!("sampler {:?} 10^6 samples {:?}", t1, s0.elapsed());
            let inside = f.domain().membership().contains_batch(&x);
            println!("inside {}", inside.iter().filter(|b| **b).count());
            let [xx, yy] = reals(["x", "y"]);
            let s0 = Instant::now();
            let e = f.event(&(xx.ge(3) & yy.ge(2) & (&xx + &yy).le(8))).unwrap();
            let pr = e.probability(&p[..1000 * f.num_params()]).unwrap();
            println!(
                "event 1000 {:?} {} {}",
                s0.elapsed(),
                pr[0],
                d.probability(&(xx.ge(3) & yy.ge(2) & (&xx + &yy).le(8))).unwrap()
            );
            let frac = x.chunks(2).filter(|q| q[0] >= 3.0 && q[1] >= 2.0 && q[0] + q[1] <= 8.0).count() as f64 / 1e6;
            println!("mc {frac}; mean {:?} {:?}", d.mean(), f.mean(&p[..f.num_params()]).unwrap());
            println!("10^6 log_prob {:?} inside {}", start.elapsed(), l.iter().filter(|x| x.is_finite()).count());
        }
    }
}
