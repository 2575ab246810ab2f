//! How close tables of moments come to the limits of the machine: achieved flops and bytes per second for n = 2 .. 10,
//! beside a sum of products in registers and a copy through memory, on one core.
//!
//! ```text
//! cargo run --release -p pal --example table_speed
//! ```
//!
//! Counted are what the recurrence needs: for every exponent and every vertex of a simplex a product and a sum per
//! variable and one more sum; and the traffic if every row of the table is written once and read once, with the four bytes
//! per variable that say where the rows before it are.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pal::moments::{Exponents, Moments};
use pal::region::Region;
use pal::shapes;

/// The shortest time of several runs, in seconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// Products and sums per second with all numbers in registers.
fn peak() -> f64 {
    const CHAINS: usize = 64;
    const STEPS: usize = 2_000_000;
    let seconds = fastest(|| {
        let mut sums = [1.0f64; CHAINS];
        let (a, b) = (black_box(1.000_000_1), black_box(1e-9));
        for _ in 0..STEPS {
            sums.iter_mut().for_each(|s| *s = *s * a + b);
        }
        black_box(sums);
    });
    (2 * CHAINS * STEPS) as f64 / seconds
}

/// Bytes read and written per second by a scaled copy of arrays that no cache holds.
fn bandwidth() -> f64 {
    const LEN: usize = 16 << 20;
    let from = vec![1.0f64; LEN];
    let mut to = vec![0.0f64; LEN];
    let seconds = fastest(|| {
        to.iter_mut().zip(&from).for_each(|(t, f)| *t = 3.0 * f);
        black_box(&mut to);
    });
    (2 * LEN * size_of::<f64>()) as f64 / seconds
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (peak, bandwidth) = (peak(), bandwidth());
    println!("registers {:.2} Gflop/s, memory {:.2} GB/s", peak / 1e9, bandwidth / 1e9);
    println!(" n degree   moments  seconds  Gflop/s of peak     GB/s of memory");
    for n in 2..=10usize {
        for wanted in [10_000, 1_000_000] {
            // The degree with about as many moments as wanted, as long as factorials are within the range of float64.
            let count = |d: usize| (1..=n).fold(1.0, |c, k| c * (d + k) as f64 / k as f64);
            let degree = (1..=160).take_while(|d| count(*d) <= f64::from(wanted)).last().unwrap_or(1);
            let region = Region::new(&shapes::simplex(n))?;
            let exponents = Exponents::total_degree(n, u16::try_from(degree)?)?;
            let seconds = pool.install(|| fastest(|| drop(black_box(Moments::compile(&region, &exponents)))));
            let rows = (exponents.len() * (n + 1)) as f64;
            let flops = rows * (2 * n + 1) as f64 / seconds;
            let bytes = (16.0 * rows + 4.0 * (exponents.len() * n) as f64) / seconds;
            println!(
                "{n:2} {degree:6} {:9} {seconds:8.4} {:8.2} {:6.1} % {:8.2} {:6.1} %",
                exponents.len(),
                flops / 1e9,
                100.0 * flops / peak,
                bytes / 1e9,
                100.0 * bytes / bandwidth
            );
        }
    }
    Ok(())
}
