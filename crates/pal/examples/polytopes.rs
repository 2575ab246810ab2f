//! The exact volume of a polytope given by rows `b a1 .. an`, each meaning `b + a1 x1 + .. + an xn >= 0`, one per line on
//! standard input. Prints the seconds from the rows to the volume, and the volume: `bench/polytopes.py` runs it. With a
//! polynomial as argument: its integral in float64, a bound on the error, and how many cells took exact arithmetic.
//!
//! ```text
//! printf '1 1\n1 -1\n' | cargo run --release -p pal --example polytopes
//! ```

use std::error::Error;
use std::io::Read;
use std::time::Instant;

use pal::formula::{Constraint, Formula, Linear, Var};
use pal::moments::{Method, integrate};
use pal::number::{Rational, parse_rational};
use pal::polynomial::Polynomial;
use pal::region::Region;

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let rows = text.lines().map(|line| line.split_whitespace().map(parse_rational).collect::<Result<Vec<_>, _>>());
    let rows: Vec<Vec<Rational>> = rows.collect::<Result<_, _>>()?;
    let dimension = rows.first().map_or(0, |row| row.len().saturating_sub(1));
    let names: Vec<String> = (1..=dimension).map(|j| format!("x{j}")).collect();
    let variables = Var::declare_all(&names);
    // Starting threads is part of starting the process.
    rayon::current_num_threads();
    let start = Instant::now();
    let half_space = |row: &Vec<Rational>| {
        let (constant, normal) = row.split_first().ok_or("an empty row")?;
        Ok(Linear::new(variables.iter().cloned().zip(normal.iter().cloned()), constant.clone()).ge(0))
    };
    let formula = Formula::all(rows.iter().map(half_space).collect::<Result<Vec<_>, Box<dyn Error>>>()?);
    let constraint = Constraint { formula, reals: variables.clone(), booleans: Vec::new() };
    if let Some(text) = std::env::args().nth(1) {
        let integral = integrate(&Region::new(&constraint)?, &Polynomial::parse(&text)?, Method::Recurrence)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds} {:?} {:?} {}", integral.value, integral.error, integral.exact_cells);
        return Ok(());
    }
    let volume = Region::new(&constraint)?.exact_volume()?;
    println!("{} {volume}", start.elapsed().as_secs_f64());
    Ok(())
}
