//! Rows of data for training: which columns they have, which rows can be used, and their division into training,
//! validation and test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pal::formula::{Constraint, Membership};
use pal_burn::Split;

use crate::input;
use crate::model_file::names;
use crate::numbers::counted;
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
}

impl Data {
    pub fn rows(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    fn pick(&self, rows: &[usize]) -> Data {
        let width = self.inputs.len() / self.rows().max(1);
        let take = |values: &[f64], width: usize| -> Vec<f64> {
            rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
        };
        Data {
            inputs: take(&self.inputs, width),
            points: take(&self.points, self.dimension),
            dimension: self.dimension,
        }
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

/// How rows are read from files.
#[derive(Clone, Copy)]
pub struct DataReader<'a> {
    pub columns: &'a Columns,
    pub group: Option<&'a str>,
    pub membership: &'a Membership,
    /// Whether rows that cannot be used are left out; otherwise they are errors.
    pub drop_invalid: bool,
}

/// The largest number of rows that an error names.
const NAMED: usize = 5;

impl DataReader<'_> {
    /// Reads the usable rows of a file and their groups. The last number says how many rows were left out.
    pub fn read(&self, path: &Path) -> Result<(Data, Vec<String>, usize)> {
        let Columns { inputs, outputs } = self.columns;
        let names = [&inputs[..], &outputs[..]].concat();
        let dataset = Dataset::read(path, ColumnNames { numbers: &names, text: self.group })?;
        let (width, dimension) = (names.len(), outputs.len());
        let points: Vec<f64> =
            dataset.numbers.chunks_exact(width).flat_map(|row| &row[inputs.len()..]).copied().collect();
        let inside = self.membership.contains_batch(&points);
        let trouble = |row: usize| -> Option<String> {
            let values = &dataset.numbers[row * width..(row + 1) * width];
            let bad = values.iter().position(|value| !value.is_finite());
            match bad {
                Some(at) if values[at].is_nan() => Some(format!("`{}` is missing or not a number", names[at])),
                Some(at) => Some(format!("`{}` is infinite", names[at])),
                None => (!inside[row]).then(|| "outside the constraint".to_string()),
            }
        };
        let invalid: Vec<usize> = (0..dataset.rows()).filter(|row| trouble(*row).is_some()).collect();
        if !invalid.is_empty() && !self.drop_invalid {
            let some = invalid.iter().take(NAMED);
            let some: Vec<String> =
                some.map(|row| format!("{}: {}", dataset.place(*row), trouble(*row).unwrap_or_default())).collect();
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
        let mut left_out = invalid.iter().copied().peekable();
        let mut data = Data { dimension, ..Data::default() };
        let mut groups = Vec::new();
        for row in 0..dataset.rows() {
            if left_out.next_if_eq(&row).is_some() {
                continue;
            }
            let values = &dataset.numbers[row * width..(row + 1) * width];
            data.inputs.extend(&values[..inputs.len()]);
            data.points.extend(&values[inputs.len()..]);
            groups.push(dataset.text.get(row).cloned().unwrap_or_else(|| row.to_string()));
        }
        Ok((data, groups, invalid.len()))
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
        Ok(Parts { train, validation, test, dropped })
    }
}
