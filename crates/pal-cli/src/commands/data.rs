//! `pal data`: makes data to try training on.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pal::formula::{GeoJsonOptions, parse_geojson, write_smtlib};
use pal_burn::data::{PAST, Position, Star, Walkers, WindowSettings, windows};
use serde::Serialize;

use super::demo::CAMPUS;
use crate::learn::parse_names;
use crate::progress::Progress;
use crate::table::dataset::{self, Column, ColumnNames, Dataset};
use crate::{Global, Outcome, output};

/// Make data to train on
///
/// The stars of the paper, windows of given tracks, or simulated walkers on the built-in map.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Nstar(NstarArgs),
    Trajectories(TrajectoriesArgs),
    Campus(CampusArgs),
}

/// The N-star problem: inputs uniform on a star, outputs from Cauchy distributions around them, truncated to the star
///
/// Columns x1, x2 (inputs), y1, y2 (outputs).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal data nstar --n 7 --points 800000 --seed 1 -o nstar7.parquet --write-constraint nstar7.smt2")]
struct NstarArgs {
    /// Tips of the star, an odd number from 3 on
    #[arg(long, value_name = "N")]
    n: usize,
    /// How many rows
    #[arg(long, value_name = "N", default_value_t = 800_000)]
    points: usize,
    /// The same seed gives the same rows
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Compute the mean of the true log-density of the rows, which a model can exceed only by chance
    #[arg(long)]
    truth: bool,
    /// Write the star as a constraint, a .smt2 file
    #[arg(long, value_name = "FILE")]
    write_constraint: Option<PathBuf>,
    /// A .csv or .parquet file
    #[arg(long, short, value_name = "TABLE")]
    output: PathBuf,
}

/// Windows of tracks: five positions at equal distances in time, the last of them now, and a future position
///
/// Columns: the track, x0, y0 (now) to x4, y4 (four steps ago), and the future under the names of --columns. Half of
/// the futures are drawn from all later positions of the track, half from its next --step positions. Tracks too short
/// for a window are left out.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal data trajectories --data tracks.csv --step 4 --futures 10 -o windows.parquet")]
struct TrajectoriesArgs {
    /// Positions, .csv or .parquet
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// The column that names the track
    #[arg(long, value_name = "COLUMN", default_value = "trajectory_id")]
    track: String,
    /// The column with the time
    #[arg(long, value_name = "COLUMN", default_value = "frame")]
    time: String,
    /// The columns with the position
    #[arg(long, value_name = "X,Y", default_value = "x,y", value_parser = parse_names)]
    columns: std::vec::Vec<String>,
    /// The number of positions from one point of a window to the next
    #[arg(long, value_name = "N", default_value_t = 4)]
    step: usize,
    /// How many future positions are drawn for each window
    #[arg(long, value_name = "N", default_value_t = 10)]
    futures: usize,
    /// Leave out positions that are closer than this to the one before
    #[arg(long, value_name = "D", default_value_t = 0.0)]
    min_distance: f64,
    /// The seed of the draws
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// A .csv or .parquet file
    #[arg(long, short, value_name = "TABLE")]
    output: PathBuf,
}

/// Simulated walkers on the built-in map of a campus
///
/// Columns trajectory_id, frame, x, y. All positions satisfy the constraint.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal data campus --people 300 --seed 1 -o campus.csv --write-map campus.geojson")]
struct CampusArgs {
    /// How many walkers
    #[arg(long, value_name = "N", default_value_t = 300)]
    people: usize,
    /// The same seed gives the same tracks
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write the map, a .geojson file
    #[arg(long, value_name = "FILE")]
    write_map: Option<PathBuf>,
    /// A .csv or .parquet file
    #[arg(long, short, value_name = "TABLE")]
    output: PathBuf,
}

#[derive(Serialize)]
pub struct Report {
    output: String,
    rows: usize,
    columns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracks: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    true_ll: Option<f64>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let report = {
        let _progress = Progress::waiting("making data", !global.quiet);
        make(args)?
    };
    // Nothing is added to a table on standard output.
    if report.output == "-" {
        return Ok(Outcome::Done);
    }
    let mut out = output::stdout();
    if global.json {
        output::json_line(&mut out, &report)?;
    } else if !global.quiet {
        let tracks = report.tracks.map_or(String::new(), |tracks| format!(" of {tracks} tracks"));
        let truth = report.true_ll.map_or(String::new(), |ll| format!(", true mean log-density {ll:.4}"));
        writeln!(out, "{}: {} rows{tracks}, columns {}{truth}", report.output, report.rows, report.columns.join(","))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Makes the data and returns the report, without printing it.
pub fn make(args: &Args) -> Result<Report> {
    match &args.what {
        What::Nstar(args) => nstar(args),
        What::Trajectories(args) => trajectories(args),
        What::Campus(args) => campus(args),
    }
}

/// The largest number of rows.
const MOST: usize = 1 << 28;

fn nstar(args: &NstarArgs) -> Result<Report> {
    dataset::check_output(&args.output)?;
    ensure!((1..=MOST).contains(&args.points), "--points {}: give between 1 and {MOST}", args.points);
    let star = Star::new(args.n).filter(|_| args.n <= 999);
    let star = star.with_context(|| format!("--n {}: stars have an odd number of tips, from 3 to 999", args.n))?;
    check_second(args.write_constraint.as_deref(), "smt2", &args.output)?;
    if let Some(path) = &args.write_constraint {
        output::replace(path, write_smtlib(star.constraint())?.as_bytes())?;
    }
    let rows = star.rows(args.points, args.seed);
    let column = |j: usize| rows.iter().skip(j).step_by(4).copied().collect();
    let names = ["x1", "x2", "y1", "y2"];
    let columns: Vec<Column> = names.iter().enumerate().map(|(j, name)| Column::Numbers(name, column(j))).collect();
    dataset::write(&args.output, &columns)?;
    let truth = args.truth.then(|| star.mean_log_density(&rows));
    Ok(report(&args.output, &columns, args.points, None, truth))
}

fn trajectories(args: &TrajectoriesArgs) -> Result<Report> {
    dataset::check_output(&args.output)?;
    let [x, y] = &args.columns[..] else {
        anyhow::bail!("--columns {}: give two", args.columns.join(","));
    };
    ensure!(args.step > 0, "--step 0: give at least 1");
    ensure!((1..=10_000).contains(&args.futures), "--futures {}: give between 1 and 10000", args.futures);
    ensure!(args.min_distance >= 0.0, "--min-distance {}: give at least 0", args.min_distance);
    let names = [args.time.clone(), x.clone(), y.clone()];
    let dataset = Dataset::read(&args.data, ColumnNames { numbers: &names, discrete: &[], text: Some(&args.track) })?;
    if let Some(at) = dataset.numbers.iter().position(|value| !value.is_finite()) {
        let place = dataset.place(at / 3);
        anyhow::bail!("{}: {place}, column `{}`: {}", args.data.display(), names[at % 3], dataset.numbers[at]);
    }
    let position =
        |(row, track): (&[f64], &String)| Position { track: track.clone(), time: row[0], place: [row[1], row[2]] };
    let positions: Vec<Position> = dataset.numbers.chunks_exact(3).zip(&dataset.text).map(position).collect();
    let settings =
        WindowSettings { step: args.step, futures: args.futures, min_distance: args.min_distance, seed: args.seed };
    let rows = windows(&positions, &settings);
    ensure!(
        !rows.is_empty(),
        "{}: no track has {} positions, which a window and a future take; try a smaller --step",
        args.data.display(),
        (PAST - 1) * args.step + 2
    );
    let mut names: Vec<String> = (0..PAST).flat_map(|k| [format!("{x}{k}"), format!("{y}{k}")]).collect();
    names.extend([x.clone(), y.clone()]);
    ensure!(!names.contains(&args.track), "--track {}: a column of the result has this name too", args.track);
    let tracks: std::collections::HashSet<&String> = rows.iter().map(|(track, _)| track).collect();
    let tracks = tracks.len();
    let mut columns = vec![Column::Text(&args.track, rows.iter().map(|(track, _)| track.clone()).collect())];
    columns.extend(
        names.iter().enumerate().map(|(j, name)| Column::Numbers(name, rows.iter().map(|(_, row)| row[j]).collect())),
    );
    dataset::write(&args.output, &columns)?;
    Ok(report(&args.output, &columns, rows.len(), Some(tracks), None))
}

fn campus(args: &CampusArgs) -> Result<Report> {
    dataset::check_output(&args.output)?;
    ensure!((1..=1_000_000).contains(&args.people), "--people {}: give between 1 and 1000000", args.people);
    check_second(args.write_map.as_deref(), "geojson", &args.output)?;
    if let Some(path) = &args.write_map {
        output::replace(path, CAMPUS.as_bytes())?;
    }
    let walkers = Walkers::new(&parse_geojson(CAMPUS, &GeoJsonOptions::default())?)?;
    let positions = walkers.tracks(args.people, args.seed)?;
    let numbers = |of: fn(&Position) -> f64| positions.iter().map(of).collect();
    let columns = [
        Column::Text("trajectory_id", positions.iter().map(|position| position.track.clone()).collect()),
        Column::Numbers("frame", numbers(|position| position.time)),
        Column::Numbers("x", numbers(|position| position.place[0])),
        Column::Numbers("y", numbers(|position| position.place[1])),
    ];
    dataset::write(&args.output, &columns)?;
    Ok(report(&args.output, &columns, positions.len(), Some(args.people), None))
}

/// Fails if a second file cannot be written besides the table, or has a name that says something else.
fn check_second(path: Option<&Path>, extension: &str, table: &Path) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    output::check_place(path)?;
    let name = path.display();
    ensure!(
        path.extension().is_some_and(|found| found == extension),
        "{name}: choose a name that ends in .{extension}"
    );
    ensure!(!pal_system::files::is_same_place(path, table), "{name}: the table would be written to the same file");
    Ok(())
}

fn report(path: &Path, columns: &[Column], rows: usize, tracks: Option<usize>, true_ll: Option<f64>) -> Report {
    let columns = columns.iter().map(|column| column.name().to_string()).collect();
    Report { output: path.display().to_string(), rows, columns, tracks, true_ll }
}
