//! Rows of data for training: which columns they have, which rows can be used, and their division into training,
//! validation and test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use pal::formula::Constraint;
use pal::region::{RegionBatch, RegionMembership};
use pal_burn::Split;

use super::regions::{MapNames, RegionReader};

use crate::input;
use crate::model_file::names;
use crate::numbers::counted;
use crate::table::NoColumn;
use crate::table::dataset::{ColumnNames, Dataset};

/// The names of the columns that a model is trained on.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The inputs; none for a density that depends on nothing.
    pub inputs: Vec<String>,
    /// The coordinates of the point: one column for each variable of the constraint, in the order of its variables.
    pub outputs: Vec<String>,
}

/// Whether two lists have the same names, in whatever order.
fn same_names(a: &[String], b: &[&str]) -> bool {
    a.len() == b.len() && b.iter().all(|name| a.iter().any(|other| other == name))
}

impl Columns {
    /// The constraint with its variables in the order of the columns, where these are its variables.
    pub fn order(&self, constraint: Constraint) -> Result<Constraint> {
        match same_names(&self.outputs, &names(&constraint)) {
            true => Ok(constraint.with_order(&self.outputs)?),
            false => Ok(constraint),
        }
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
    /// Coordinates of points, row by row.
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
    Same(&'a RegionMembership),
    /// A region for each row.
    Own(&'a RegionReader),
}

/// How rows are read from files.
#[derive(Clone, Copy)]
pub struct DataReader<'a> {
    pub columns: &'a Columns,
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
        let (n, dimension) = (inputs.len(), outputs.len());
        let mut names = [&inputs[..], &outputs[..]].concat();
        if let RowConstraint::Own(reader) = self.constraint {
            names.extend(reader.columns());
        }
        let width = names.len();
        let read = Dataset::read(path, ColumnNames { numbers: &names, text: self.text_column() });
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
            Some(format!("`{}` {what}", names[at]))
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
        Ok(Dataset::read(path, ColumnNames { numbers: &[], text: Some(column) })?.text)
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
