use pal::formula::*;
use pal::region::*;
use std::time::Instant;
fn main() {
    let dir = std::env::var("PAL_DATA").unwrap();
    for s in ["scene12", "scene2", "scene12_window", "scene2_window"] {
        let text = std::fs::read_to_string(format!("{dir}/sdd/{s}_constraints.geojson")).unwrap();
        let t = Instant::now();
        let c = parse_geojson(&text, &GeoJsonOptions::default()).unwrap();
        let tp = t.elapsed();
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(||{
    for _ in 0..3 {
    let t=Instant::now(); let r=Region::new(&c).unwrap(); let t0=t.elapsed(); let cells=r.decompose().unwrap(); let t1=t.elapsed();
    let t=Instant::now(); let g=r.with_uniform_knots(14).unwrap(); let gc=g.decompose().unwrap(); let t2=t.elapsed();
    println!("{s} th={threads} parse {tp:?} new {t0:?} atoms {} cells {} total {t1:?}; 14 knots {} cells {t2:?}", c.formula.atoms().len(), cells.len(), gc.len());
    }});
        }
        let m = c.membership().unwrap();
        let n = 2_000_000;
        let mut z = 1u64;
        let pts: Vec<f64> = (0..2 * n)
            .map(|i| {
                z = z.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let u = (z >> 11) as f64 / (1u64 << 53) as f64;
                if i % 2 == 0 { u * 7.34 } else { u * 10.0 }
            })
            .collect();
        for _ in 0..3 {
            let t = Instant::now();
            let v = m.contains_batch(&pts);
            let e = t.elapsed();
            println!(
                "membership {:.1} M/s inside {}",
                n as f64 / e.as_secs_f64() / 1e6,
                v.iter().filter(|b| **b).count()
            );
        }
    }
    for n in [3, 7, 11, 19] {
        let c: Constraint = Polygon::new(Ring::new(pal::shapes::star(n, 10.0)).unwrap(), vec![])
            .unwrap()
            .to_formula(&real("x"), &real("y"))
            .into();
        for _ in 0..3 {
            let t = Instant::now();
            let r = Region::new(&c).unwrap();
            let cells = r.decompose().unwrap();
            println!("star {n} cells {} {:?}", cells.len(), t.elapsed());
        }
    }
}
