//! `pal marginal`: exact marginal densities.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pal::query::Marginal;

use crate::densities::{AnyDensity, AnyModel};
use crate::listing::{Listing, numbered, with_row};
use crate::model_file::ModelArgument;
use crate::options::{ConditionOptions, RowChoice, RowOption};
use crate::points::{PointColumn, joined, numbers, width};
use crate::progress::Progress;
use crate::table::{self, Table, read_points};
use crate::{Global, Outcome};

/// Compute exact marginal densities
///
/// For one variable: the density and the distribution function at given positions or as a curve, quantiles, or the
/// exact polynomial pieces. For several variables: the joint density at given points. A table of points with column
/// names may have them in any order; without names the columns must be in the order of the --variable options. The
/// answer is a table: CSV on standard output, or a file.
///
/// For Boolean variables and categories: the probabilities of all their values together. If --given has the values of all
/// real variables, these are the probabilities at that point: what a classifier would say.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal marginal model.safetensors --variable x -o curve.csv\n  \
    pal marginal model.safetensors --variable x --quantiles 0.05,0.5,0.95\n  \
    pal marginal model.safetensors --variable x --at 0.5,1,2 --given y=2\n  \
    pal marginal model.safetensors --variable x --variable y --points points.csv\n  \
    pal marginal trips.safetensors --variable mode --variable wet\n  \
    pal marginal trips.safetensors --variable mode --given x=1.5,y=2\n\n\
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

/// The columns, and values row by row.
type Answer = (Vec<PointColumn>, Vec<f64>);

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    args.check_question()?;
    table::check_output(args.output.as_deref())?;
    let model = args.model.load()?;
    let names: Vec<&str> = args.variables.iter().map(String::as_str).collect();
    let discrete = args.discrete(&model)?;
    let points = args.question.points.as_deref().map(|path| read_points(path, &numbers(&names))).transpose()?;
    let answer = || -> Result<Vec<(usize, Answer)>> {
        let rows = args.row.or_first().of(&model)?;
        if let Some(columns) = &discrete {
            let _progress = Progress::waiting("integrating", !global.quiet);
            return args.tables(&model, columns);
        }
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
    // Rows may differ in the degree of their pieces.
    let widest = answers
        .iter()
        .map(|(_, (columns, _))| columns)
        .max_by_key(|columns| columns.len())
        .cloned()
        .unwrap_or_default();
    let many = args.row.or_first() == RowChoice::All;
    let most = width(&widest);
    let columns = with_row(many, widest);
    let noun = match (args.question.pieces, &discrete) {
        (true, _) => "piece",
        (false, Some(_)) => "value",
        (false, None) => "point",
    };
    let listing = Listing { path: args.output.as_deref(), columns, noun, start };
    listing.write(global, |sink| {
        for (row, (columns, values)) in &answers {
            let values = padded(values, width(columns), most);
            sink(&numbered(many.then_some(*row), values, most))?;
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

/// Fills rows up with zeros.
fn padded(values: &[f64], from: usize, to: usize) -> Vec<f64> {
    values.chunks_exact(from.max(1)).flat_map(|row| row.iter().copied().chain(vec![0.0; to - from])).collect()
}

fn parse_number(text: &str) -> Result<f64> {
    let number: f64 = text.trim().parse().map_err(|_| anyhow!("not a number; give numbers with commas in between"))?;
    ensure!(!number.is_nan(), "NaN is no position");
    Ok(number)
}

impl Args {
    /// Returns the columns of the variables if they are Boolean variables and categories.
    fn discrete(&self, model: &AnyModel) -> Result<Option<Vec<PointColumn>>> {
        let columns = PointColumn::of(model.constraint());
        let found: Vec<&PointColumn> = self
            .variables
            .iter()
            .filter_map(|name| columns.iter().find(|column| column.name == *name && !column.is_number()))
            .collect();
        if found.is_empty() {
            return Ok(None);
        }
        if found.len() < self.variables.len() {
            bail!(
                "--variable: `{}` has a table of probabilities and others a density; ask about real variables with \
                 --given {}=VALUE instead",
                found[0].name,
                found[0].name
            );
        }
        let question = &self.question;
        let others = [
            ("--at", !question.at.is_empty()),
            ("--points", question.points.is_some()),
            ("--quantiles", !question.quantiles.is_empty()),
            ("--pieces", question.pieces),
        ];
        if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
            bail!("{option} is for real variables; the values of `{}` have probabilities", found[0].name);
        }
        for (k, column) in found.iter().enumerate() {
            ensure!(!found[..k].contains(column), "--variable: `{}` is named twice", column.name);
        }
        Ok(Some(found.into_iter().cloned().collect()))
    }

    /// The probabilities of all values of some Boolean variables and categories, under the rows that are asked about.
    fn tables(&self, model: &AnyModel, columns: &[PointColumn]) -> Result<Vec<(usize, Answer)>> {
        let rows = self.row.or_first().of(model)?;
        let reals = &model.constraint().reals;
        let mut known = self.condition.given().known(&PointColumn::of(model.constraint()))?;
        // Known values of all reals are a point, at which the values have probabilities too.
        let of = |var: &pal::formula::Var| known.reals.iter().find(|(name, _)| name == var.name()).map(|(_, x)| *x);
        let point: Option<Vec<f64>> = reals.iter().map(of).collect();
        if point.is_some() {
            known.reals.clear();
        }
        let densities = self.condition.conditioned(model, rows.clone())?;
        let mut answers = Vec::new();
        for (row, density) in rows.zip(densities) {
            let density = density.given(&known).context("--given")?;
            // Columns of what is left: known variables have none.
            let left = density.columns();
            let own: Vec<PointColumn> = columns
                .iter()
                .map(|column| {
                    let found = left.iter().find(|own| own.name == column.name);
                    found.cloned().with_context(|| format!("--variable: the value of `{}` is given", column.name))
                })
                .collect::<Result<_>>()?;
            let values = density.table(&own, point.as_deref())?;
            let shown: Vec<PointColumn> = own.iter().map(PointColumn::alone).collect();
            let parts: Vec<&[PointColumn]> = shown.iter().map(std::slice::from_ref).collect();
            let probability = numbers(&["probability"]);
            answers.push((row, (joined(&[&parts[..], &[&probability]].concat()), values)));
        }
        Ok(answers)
    }

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
        Ok(())
    }

    fn answer(&self, density: &AnyDensity, names: &[&str], points: Option<&Table>) -> Result<Answer> {
        let [name] = names else {
            let points =
                points.context("the joint density of several variables needs --points: a table with their columns")?;
            let values = density.marginal_density(names, &points.values)?;
            let columns = numbers(&[names, &["density"]].concat());
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
            return Ok((numbers(&["probability", name]), values));
        }
        let positions: Vec<f64> = match points {
            Some(table) => table.values.clone(),
            None => question.at.clone(),
        };
        let columns = numbers(&[name, "density", "cdf"]);
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
    let names: Vec<String> = ["low", "high"].map(str::to_string).into_iter().chain(coefficients).collect();
    let columns = numbers(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let row = |piece: &pal::query::MarginalPiece| {
        let coefficients = piece.legendre.iter().copied();
        let filled = coefficients.chain(std::iter::repeat(0.0)).take(most);
        [piece.low, piece.high].into_iter().chain(filled).collect::<Vec<f64>>()
    };
    (columns, pieces.iter().flat_map(row).collect())
}
