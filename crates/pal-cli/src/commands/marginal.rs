//! `pal marginal`: exact marginal densities.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pal::density::Density;
use pal::query::Marginal;

use crate::input;
use crate::listing::{Listing, numbered, with_row};
use crate::model_file::ModelArgument;
use crate::options::{ConditionOptions, RowChoice, RowOption};
use crate::progress::Progress;
use crate::table::{self, Table};
use crate::{Global, Outcome};

/// Compute exact marginal densities
///
/// For one variable: the density and the distribution function at given positions or as a curve, quantiles, or the
/// exact polynomial pieces. For several variables: the joint density at given points. A table of points with column
/// names may have them in any order; without names the columns must be in the order of the --variable options. The
/// answer is a table: CSV on standard output, or a file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal marginal model.safetensors --variable x -o curve.csv\n  \
    pal marginal model.safetensors --variable x --quantiles 0.05,0.5,0.95\n  \
    pal marginal model.safetensors --variable x --at 0.5,1,2 --given y=2\n  \
    pal marginal model.safetensors --variable x --variable y --points points.csv\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// The variable; may be repeated for a joint density
    #[arg(long = "variable", value_name = "VAR", required = true)]
    variables: Vec<String>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
    /// The .csv or .npy file to write; without it the table is printed as CSV
    #[arg(long, short, value_name = "TABLE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Question {
    /// Density and distribution function at these positions
    #[arg(long, value_name = "P,P,...", value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_number)]
    at: Vec<f64>,
    /// Density and distribution function at the positions in a table, .csv or .npy; for several variables their joint
    /// density. Columns are found by name; without names they must be in the order of --variable
    #[arg(long, value_name = "TABLE")]
    points: Option<PathBuf>,
    /// Quantiles: the positions below which these fractions of the mass lie
    #[arg(long, value_name = "P,P,...", value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_number)]
    quantiles: Vec<f64>,
    /// The polynomial pieces: their ends and Legendre coefficients
    #[arg(long)]
    pieces: bool,
}

/// The number of points of the curve inside every piece.
const INSIDE: usize = 15;

/// The names of columns, and values row by row.
type Answer = (Vec<String>, Vec<f64>);

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    args.check_question()?;
    table::check_output(args.output.as_deref())?;
    let model = args.model.load()?;
    let names: Vec<&str> = args.variables.iter().map(String::as_str).collect();
    let points = args.question.points.as_deref().map(|path| read_points(path, &names)).transpose()?;
    let answer = || -> Result<Vec<(usize, Answer)>> {
        let rows = args.row.or_first().of(&model)?;
        let densities = {
            let _progress = Progress::waiting("preparing", !global.quiet);
            args.condition.densities(&model, rows.clone())?
        };
        let progress = Progress::of(densities.len(), "integrating", !global.quiet);
        let answer = |(row, density)| {
            let answer = args.answer(density, &names, points.as_ref())?;
            progress.step();
            Ok((row, answer))
        };
        rows.zip(&densities).map(answer).collect()
    };
    let answers = answer().with_context(|| args.model.name())?;
    // RowChoice may differ in the degree of their pieces.
    let widest =
        answers.iter().map(|(_, (names, _))| names).max_by_key(|names| names.len()).cloned().unwrap_or_default();
    let many = args.row.or_first() == RowChoice::All;
    let columns = with_row(many, widest.iter().map(String::as_str).collect());
    let noun = if args.question.pieces { "piece" } else { "point" };
    let listing = Listing { path: args.output.as_deref(), columns, noun, start };
    listing.write(global, |sink| {
        for (row, (names, values)) in &answers {
            let values = padded(values, names.len(), widest.len());
            sink(&numbered(many.then_some(*row), values, widest.len()))?;
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

/// Fills rows up with zeros.
fn padded(values: &[f64], from: usize, to: usize) -> Vec<f64> {
    values.chunks_exact(from.max(1)).flat_map(|row| row.iter().copied().chain(vec![0.0; to - from])).collect()
}

/// Reads the points of a table, with columns in the order of `names`.
pub fn read_points(path: &Path, names: &[&str]) -> Result<Table> {
    let table = Table::read(path)?;
    let select = || -> Result<Table> {
        let points = table.select(names)?;
        if let Some(at) = points.values.iter().position(|value| value.is_nan()) {
            let (row, name) = (at / names.len(), names[at % names.len()]);
            bail!("row {row} (counted from 0), `{name}`: NaN; give numbers");
        }
        Ok(points)
    };
    select().with_context(|| input::name(path))
}

fn parse_number(text: &str) -> Result<f64> {
    let number: f64 = text.trim().parse().map_err(|_| anyhow!("not a number; give numbers with commas in between"))?;
    ensure!(!number.is_nan(), "NaN is no position");
    Ok(number)
}

impl Args {
    /// Fails if something else than the joint density of several variables is asked for.
    fn check_question(&self) -> Result<()> {
        let question = &self.question;
        let [_, second, ..] = &self.variables[..] else { return Ok(()) };
        let alone = [
            ("--at", !question.at.is_empty()),
            ("--quantiles", !question.quantiles.is_empty()),
            ("--pieces", question.pieces),
        ];
        if let Some((option, _)) = alone.iter().find(|(_, given)| *given) {
            bail!("--variable {second}: {option} is for one variable; for the joint density of several give --points");
        }
        ensure!(
            question.points.is_some(),
            "the joint density of several variables needs --points: a table with their columns"
        );
        Ok(())
    }

    fn answer(&self, density: &Density, names: &[&str], points: Option<&Table>) -> Result<Answer> {
        let [name] = names else {
            let points = points.context("no points")?;
            let values = density.marginal_density(names, &points.values)?;
            let columns = names.iter().map(|name| name.to_string()).chain(["density".to_string()]).collect();
            let rows = points.values.chunks_exact(names.len()).zip(values);
            return Ok((columns, rows.flat_map(|(point, value)| [point, &[value]].concat()).collect()));
        };
        let marginal = density.marginal(name)?;
        let question = &self.question;
        if question.pieces {
            return Ok(pieces(&marginal));
        }
        if !question.quantiles.is_empty() {
            let mut values = Vec::new();
            for p in &question.quantiles {
                values.extend([*p, marginal.quantile(*p).context("--quantiles")?]);
            }
            return Ok((vec!["probability".to_string(), name.to_string()], values));
        }
        let positions: Vec<f64> = match points {
            Some(table) => table.values.clone(),
            None => question.at.clone(),
        };
        let columns = [name, "density", "cdf"].map(str::to_string).to_vec();
        let values = if positions.is_empty() && points.is_none() {
            curve(&marginal).into_iter().flat_map(|(y, value)| [y, value, marginal.cdf(y)]).collect()
        } else {
            positions.iter().flat_map(|y| [*y, marginal.density(*y), marginal.cdf(*y)]).collect()
        };
        Ok((columns, values))
    }
}

/// Points to draw a marginal density through.
pub fn curve(marginal: &Marginal) -> Vec<(f64, f64)> {
    let (low, high) = marginal.support();
    // Pieces that meet may end and begin a rounding error apart, which is no gap in which the curve comes down to 0.
    let hair = 1e-12 * (high - low).max(low.abs()).max(high.abs());
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in marginal.polyline(INSIDE) {
        if let [.., before, down] = points[..]
            && point.1 == 0.0
            && down.1 == 0.0
            && before.0 == down.0
            && point.0 - down.0 <= hair
            && point.0 > low
            && down.0 < high
        {
            points.pop();
            continue;
        }
        // Nor may the curve step back there.
        let before = points.last().map_or(point.0, |last| last.0);
        points.push((point.0.max(before), point.1));
    }
    points
}

fn pieces(marginal: &Marginal) -> Answer {
    let pieces: Vec<_> = marginal.pieces().collect();
    let most = pieces.iter().map(|piece| piece.legendre.len()).max().unwrap_or(0);
    let coefficients = (0..most).map(|k| format!("legendre{k}"));
    let columns = ["low", "high"].map(str::to_string).into_iter().chain(coefficients).collect();
    let row = |piece: &pal::query::MarginalPiece| {
        let coefficients = piece.legendre.iter().copied();
        let filled = coefficients.chain(std::iter::repeat(0.0)).take(most);
        [piece.low, piece.high].into_iter().chain(filled).collect::<Vec<f64>>()
    };
    (columns, pieces.iter().flat_map(row).collect())
}
