//! Rows of data for training: which columns they have, which rows can be used, and their division into training,
//! validation and test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use pal::formula::Constraint;
use pal::region::{Region, RegionBatch, RegionMembership};
use pal_burn::Split;

use super::regions::{MapNames, RegionReader};

use crate::input;
use crate::numbers::counted;
use crate::points::{PointColumn, column_names, width};
use crate::table::NoColumn;
use crate::table::dataset::{ColumnNames, Dataset};

/// The names of the columns that a model is trained on.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The inputs; none for a density that depends on nothing.
    pub inputs: Vec<String>,
    /// The coordinates of the point: one column for each variable of the constraint, in the order of its variables, reals
    /// first.
    pub outputs: Vec<String>,
}

/// Whether two lists have the same names, in whatever order.
fn same_names(a: &[String], b: &[&str]) -> bool {
    a.len() == b.len() && b.iter().all(|name| a.iter().any(|other| other == name))
}

impl Columns {
    /// The constraint with its variables in the order of the columns, where these are its variables. The columns are put in
    /// the order of the constraint where they are reals, Boolean variables and categories in turn.
    pub fn order(&mut self, constraint: Constraint) -> Result<Constraint> {
        if !same_names(&self.outputs, &column_names(&PointColumn::of(&constraint))) {
            return Ok(constraint);
        }
        let is_real = |name: &&String| constraint.reals.iter().any(|var| var.name() == name.as_str());
        let reals: Vec<String> = self.outputs.iter().filter(is_real).cloned().collect();
        let constraint = constraint.with_order(&reals)?;
        self.outputs = PointColumn::of(&constraint).into_iter().map(|column| column.name).collect();
        Ok(constraint)
    }

    /// The outputs as columns of points of a constraint.
    pub fn points(&self, constraint: &Constraint) -> Vec<PointColumn> {
        PointColumn::of(constraint).iter().zip(&self.outputs).map(|(column, name)| column.renamed(name)).collect()
    }

    /// Takes other columns for the point. Names that are known already keep their order, whatever the order they come in.
    pub fn replace_outputs(&mut self, outputs: &[String], variables: &[&str]) {
        let known: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        if same_names(outputs, &known) {
            return;
        }
        self.outputs = match same_names(outputs, variables) {
            true => variables.iter().map(|name| name.to_string()).collect(),
            false => outputs.to_vec(),
        };
    }

    /// Fails if the columns cannot stand for the variables of a constraint.
    pub fn check(&self, variables: &[&str]) -> Result<()> {
        let known = variables.join(", ");
        ensure!(!variables.is_empty(), "the constraint has no real variables; a density needs at least one");
        ensure!(
            self.outputs.len() == variables.len(),
            "{} for outputs, but the constraint has {}, in this order: {known}; give one for each",
            counted(self.outputs.len(), "column"),
            counted(variables.len(), "variable")
        );
        for (name, variable) in self.outputs.iter().zip(variables) {
            ensure!(
                name == variable || !variables.contains(&name.as_str()),
                "the column `{name}` stands in the place of the variable `{variable}`, but has the name of another one; \
                 the variables are, in this order: {known}"
            );
        }
        for (k, name) in self.inputs.iter().enumerate() {
            ensure!(!self.inputs[..k].contains(name), "the input `{name}` is given twice");
            ensure!(!self.outputs.contains(name), "`{name}` is an input and an output; it can be one of them");
        }
        for (k, name) in self.outputs.iter().enumerate() {
            ensure!(!self.outputs[..k].contains(name), "the output `{name}` is given twice");
        }
        Ok(())
    }
}

/// Rows of inputs and points.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Inputs row by row, not scaled.
    pub inputs: Vec<f64>,
    /// Coordinates of points, row by row, with a 0 or 1 for each Boolean variable.
    pub points: Vec<f64>,
    /// The number of coordinates of a point.
    pub dimension: usize,
    /// The regions of the rows, where each has its own. Points are then in local coordinates.
    pub regions: Option<RegionBatch>,
}

impl Data {
    pub fn rows(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    fn pick(&self, rows: &[usize]) -> Result<Data> {
        let width = self.inputs.len() / self.rows().max(1);
        let take = |values: &[f64], width: usize| -> Vec<f64> {
            rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
        };
        Ok(Data {
            inputs: take(&self.inputs, width),
            points: take(&self.points, self.dimension),
            dimension: self.dimension,
            regions: self.regions.as_ref().map(|regions| regions.select(rows)).transpose()?,
        })
    }
}

/// Data divided into training, validation and test, and how many rows were left out.
#[derive(Debug)]
pub struct Parts {
    pub train: Data,
    pub validation: Data,
    pub test: Data,
    pub dropped: usize,
}

/// What points have to satisfy.
#[derive(Clone, Copy)]
pub enum RowConstraint<'a> {
    /// The same constraint for all rows.
    Same(&'a PointMembership),
    /// A region for each row.
    Own(&'a RegionReader),
}

/// The test of points of a constraint, which may have Boolean variables: exact, but for dependent variables, which are
/// tested up to rounding.
pub struct PointMembership {
    membership: RegionMembership,
    /// The number of Boolean variables.
    booleans: usize,
}

impl PointMembership {
    pub fn new(constraint: &Constraint) -> Result<PointMembership> {
        let membership = Region::new(constraint)?.point_membership()?;
        Ok(PointMembership { membership, booleans: constraint.booleans.len() })
    }

    /// Whether each point satisfies the constraint; points are given row by row.
    pub fn contains_batch(&self, points: &[f64]) -> Vec<bool> {
        match self.booleans {
            0 => self.membership.contains_batch(points),
            booleans => self.membership.contains_mixed_batch(points, booleans),
        }
    }
}

/// How rows are read from files.
#[derive(Clone, Copy)]
pub struct DataReader<'a> {
    pub columns: &'a Columns,
    /// The outputs as columns of points.
    pub points: &'a [PointColumn],
    pub group: Option<&'a str>,
    pub constraint: RowConstraint<'a>,
    /// Whether rows that cannot be used are left out; otherwise they are errors.
    pub drop_invalid: bool,
}

/// The largest number of rows that an error names.
const NAMED: usize = 5;

impl DataReader<'_> {
    /// Reads the usable rows of a file and their groups. The last number says how many rows were left out.
    pub fn read(&self, path: &Path) -> Result<(Data, Vec<String>, usize)> {
        let Columns { inputs, outputs } = self.columns;
        let (n, dimension) = (inputs.len(), width(self.points));
        let reals = self.points.iter().filter(|column| column.is_number()).map(|column| column.name.clone());
        let mut names: Vec<String> = inputs.iter().cloned().chain(reals).collect();
        // Rows with regions of their own have real variables only.
        let discrete: Vec<PointColumn> = self.points.iter().filter(|column| !column.is_number()).cloned().collect();
        if let RowConstraint::Own(reader) = self.constraint {
            names.extend(reader.columns());
        }
        let width = names.len() + width(&discrete);
        let wanted = ColumnNames { numbers: &names, discrete: &discrete, text: self.text_column() };
        let read = Dataset::read(path, wanted);
        let column_of = |at: usize| match names.get(at) {
            Some(name) => name.as_str(),
            // The numbers of a column of labels follow each other.
            None => discrete
                .iter()
                .flat_map(|column| column.positions().iter().map(|_| column.name.as_str()))
                .nth(at - names.len())
                .unwrap_or_default(),
        };
        let dataset = read.map_err(|error| match error.downcast_ref::<NoColumn>() {
            Some(missing) if outputs.contains(&missing.name) => {
                anyhow!("{error:#}; --outputs names the columns that hold the variables of the constraint")
            }
            _ => error,
        })?;
        let values = |row: usize| &dataset.numbers[row * width..(row + 1) * width];
        let incomplete = |row: usize| -> Option<String> {
            let values = values(row);
            let at = values.iter().position(|value| !value.is_finite())?;
            let what = if values[at].is_nan() { "is missing or not a number" } else { "is infinite" };
            let what = if values[at].is_nan() && at >= names.len() { "is missing" } else { what };
            Some(format!("`{}` {what}", column_of(at)))
        };
        let mut troubles: Vec<Option<String>> = (0..dataset.rows()).map(incomplete).collect();
        let pick = |rows: &[usize], from: usize, to: usize| -> Vec<f64> {
            rows.iter().flat_map(|row| &values(*row)[from..to]).copied().collect()
        };
        if let RowConstraint::Own(reader) = self.constraint {
            for (row, trouble) in troubles.iter_mut().enumerate().filter(|(_, trouble)| trouble.is_none()) {
                *trouble = reader.trouble(&values(row)[n + dimension..]);
            }
        }
        let complete: Vec<usize> = (0..dataset.rows()).filter(|row| troubles[*row].is_none()).collect();
        let mut points = pick(&complete, n, n + dimension);
        let mut own_inputs = pick(&complete, 0, n);
        let mut regions = None;
        let inside = match self.constraint {
            RowConstraint::Same(membership) => membership.contains_batch(&points),
            RowConstraint::Own(reader) if !complete.is_empty() => {
                let maps = self.maps(reader, path, &dataset)?;
                let maps: Vec<String> = complete.iter().filter_map(|row| maps.get(*row).cloned()).collect();
                let place = |at: usize| format!("{}: {}", input::name(path), dataset.place(complete[at]));
                let numbers = pick(&complete, n + dimension, width);
                let own = reader.regions(complete.len(), &numbers, &MapNames { names: &maps, place: &place })?;
                points = own.to_local(&points)?;
                reader.localise(&own, inputs, &mut own_inputs)?;
                let inside = own.contains(&points)?;
                regions = Some(own);
                inside
            }
            RowConstraint::Own(_) => Vec::new(),
        };
        for (at, row) in complete.iter().enumerate().filter(|(at, _)| !inside[*at]) {
            troubles[*row] = Some(match self.constraint {
                RowConstraint::Same(_) => "outside the constraint".to_string(),
                RowConstraint::Own(reader) => reader.outside(&points[at * dimension..(at + 1) * dimension]),
            });
        }
        let invalid: Vec<usize> = (0..dataset.rows()).filter(|row| troubles[*row].is_some()).collect();
        if !invalid.is_empty() && !self.drop_invalid {
            let some = invalid.iter().take(NAMED);
            let some: Vec<String> = some
                .map(|row| format!("{}: {}", dataset.place(*row), troubles[*row].as_deref().unwrap_or_default()))
                .collect();
            let more =
                if invalid.len() > NAMED { format!("; and {} more", invalid.len() - NAMED) } else { String::new() };
            bail!(
                "{}: {} of {} cannot be used: {}{more}; --drop-invalid leaves them out",
                input::name(path),
                invalid.len(),
                counted(dataset.rows(), "row"),
                some.join("; ")
            );
        }
        let good: Vec<usize> = (0..complete.len()).filter(|at| inside[*at]).collect();
        let take = |values: &[f64], width: usize| -> Vec<f64> {
            good.iter().flat_map(|at| &values[at * width..(at + 1) * width]).copied().collect()
        };
        let data = Data {
            inputs: take(&own_inputs, n),
            points: take(&points, dimension),
            dimension,
            regions: regions.map(|regions| regions.select(&good)).transpose()?,
        };
        let all = match self.group {
            None => None,
            Some(group) if self.text_column() == Some(group) => Some(dataset.text.clone()),
            Some(group) => Some(self.text(group, path)?),
        };
        let group = |at: &usize| {
            let row = complete[*at];
            all.as_ref().and_then(|all| all.get(row).cloned()).unwrap_or_else(|| row.to_string())
        };
        Ok((data, good.iter().map(group).collect(), invalid.len()))
    }

    /// The column of text that is read together with the numbers.
    fn text_column(&self) -> Option<&str> {
        match self.constraint {
            RowConstraint::Own(reader) => reader.plan().map.as_deref().or(self.group),
            RowConstraint::Same(_) => self.group,
        }
    }

    /// The names of the maps of all rows; none if there is one map.
    fn maps(&self, reader: &RegionReader, path: &Path, dataset: &Dataset) -> Result<Vec<String>> {
        match &reader.plan().map {
            None => Ok(Vec::new()),
            Some(column) if self.text_column() == Some(column) => Ok(dataset.text.clone()),
            Some(column) => self.text(column, path),
        }
    }

    /// Reads one more column of text.
    fn text(&self, column: &str, path: &Path) -> Result<Vec<String>> {
        ensure!(
            path != Path::new("-"),
            "standard input can be read once only, and two columns of text are needed; give a file"
        );
        Ok(Dataset::read(path, ColumnNames { numbers: &[], discrete: &[], text: Some(column) })?.text)
    }

    /// Divides one file by groups, 70 : 15 : 15, or reads one file each for training, validation and test.
    pub fn parts(&self, data: &Path, others: Option<(&PathBuf, Option<&PathBuf>)>, seed: u64) -> Result<Parts> {
        let (train, groups, dropped) = self.read(data)?;
        let name = || input::name(data);
        if let Some((validation, test)) = others {
            let empty = Data { dimension: train.dimension, ..Data::default() };
            let (validation, _, more) = self.read(validation)?;
            let (test, _, most) = test.map_or(Ok((empty, Vec::new(), 0)), |test| self.read(test))?;
            ensure!(train.rows() > 0, "{}: no rows to train on", name());
            ensure!(validation.rows() > 0, "no rows to validate on: the file of --val-data has none that can be used");
            return Ok(Parts { train, validation, test, dropped: dropped + more + most });
        }
        let what = if self.group.is_some() { "groups" } else { "rows" };
        let split = Split::new(&groups, seed).map_err(|error| {
            let found = error.groups;
            anyhow::anyhow!(
                "too few {what} to divide: {found}, where at least 3 are needed for training, validation and test"
            )
        });
        let split = split.with_context(name)?;
        let [train, validation, test] = [&split.train, &split.validation, &split.test].map(|rows| train.pick(rows));
        let (train, validation, test) = (train?, validation?, test?);
        Ok(Parts { train, validation, test, dropped })
    }
}
