//! How points look in tables: a column of numbers for each real variable, one of true and false for each Boolean one, one
//! of labels for each category.
//!
//! Inside the program a point is a row of numbers, as the library takes it: the real variables, then a 0 or 1 for each
//! Boolean variable, of which a category has one per value. Text files have the columns that are described here; array
//! files have the numbers.

use anyhow::{Context, Result, bail};
use pal::formula::{Category, Constraint};
use serde_json::Value;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PointColumn {
    pub name: String,
    pub kind: ColumnKind,
    /// The positions of its numbers in a row: one, or one for each label.
    positions: Vec<usize>,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Number,
    Boolean,
    /// One of these labels.
    Label(Vec<String>),
}

/// An entry of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Number(f64),
    Boolean(bool),
    Label(&'a str),
}

/// The names of columns, in their order.
pub fn column_names(columns: &[PointColumn]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

/// The number of numbers in a row of these columns.
pub fn width(columns: &[PointColumn]) -> usize {
    columns.iter().map(|column| column.positions.len()).sum()
}

/// Columns of numbers.
pub fn numbers(names: &[&str]) -> Vec<PointColumn> {
    names.iter().enumerate().map(|(at, name)| PointColumn::number(name, at)).collect()
}

/// The columns with more in front of them or behind them.
pub fn joined(parts: &[&[PointColumn]]) -> Vec<PointColumn> {
    let mut all: Vec<PointColumn> = Vec::new();
    for part in parts {
        let from = width(&all);
        all.extend(part.iter().map(|column| column.shifted(from)));
    }
    all
}

impl PointColumn {
    pub fn number(name: &str, at: usize) -> PointColumn {
        PointColumn { name: name.to_string(), kind: ColumnKind::Number, positions: vec![at] }
    }

    /// A column of true and false that stands alone.
    pub fn boolean(name: &str) -> PointColumn {
        PointColumn { name: name.to_string(), kind: ColumnKind::Boolean, positions: vec![0] }
    }

    /// The columns of the points of a constraint: its real variables, then its Boolean variables and categories in the
    /// order of their declaration.
    pub fn of(constraint: &Constraint) -> Vec<PointColumn> {
        let n = constraint.reals.len();
        let mut columns = numbers(&constraint.reals.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        let categories = Category::all_of(constraint);
        for (at, var) in constraint.booleans.iter().enumerate() {
            let category = categories.iter().find(|category| category.variables().contains(var));
            let Some(category) = category else {
                columns.push(PointColumn {
                    name: var.name().to_string(),
                    kind: ColumnKind::Boolean,
                    positions: vec![n + at],
                });
                continue;
            };
            if category.variables().first() != Some(var) {
                continue;
            }
            let position = |var| constraint.booleans.iter().position(|own| own == var).map(|at| n + at);
            columns.push(PointColumn {
                name: category.name().to_string(),
                kind: ColumnKind::Label(category.values().to_vec()),
                positions: category.variables().iter().filter_map(position).collect(),
            });
        }
        columns
    }

    pub fn is_number(&self) -> bool {
        self.kind == ColumnKind::Number
    }

    /// The same column under another name.
    pub fn renamed(&self, name: &str) -> PointColumn {
        PointColumn { name: name.to_string(), ..self.clone() }
    }

    /// The same column in rows that have nothing else.
    pub fn alone(&self) -> PointColumn {
        PointColumn { positions: (0..self.positions.len()).collect(), ..self.clone() }
    }

    /// The same column in rows that have more numbers in front.
    fn shifted(&self, by: usize) -> PointColumn {
        PointColumn { positions: self.positions.iter().map(|at| at + by).collect(), ..self.clone() }
    }

    /// The positions of its numbers in a row.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// The names of the Boolean variables behind the column; none for numbers.
    pub fn variables(&self) -> Vec<String> {
        match &self.kind {
            ColumnKind::Number => Vec::new(),
            ColumnKind::Boolean => vec![self.name.clone()],
            ColumnKind::Label(labels) => labels.iter().map(|label| format!("{}={label}", self.name)).collect(),
        }
    }

    /// The entry of a row.
    pub fn field<'a>(&'a self, row: &[f64]) -> Field<'a> {
        match &self.kind {
            ColumnKind::Number => Field::Number(row[self.positions[0]]),
            ColumnKind::Boolean => Field::Boolean(row[self.positions[0]] == 1.0),
            ColumnKind::Label(labels) => {
                let chosen = self.positions.iter().position(|at| row[*at] == 1.0);
                Field::Label(chosen.map_or("", |at| &labels[at]))
            }
        }
    }

    /// The numbers that an entry stands for; an empty one is missing, which is NaN.
    pub fn parse(&self, text: &str) -> Result<Vec<f64>> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(vec![f64::NAN; self.positions.len()]);
        }
        match &self.kind {
            ColumnKind::Number => Ok(vec![text.parse().ok().with_context(|| format!("`{text}` is not a number"))?]),
            ColumnKind::Boolean => Ok(vec![f64::from(u8::from(parse_boolean(text)?))]),
            ColumnKind::Label(labels) => {
                let at = labels.iter().position(|label| label == text).or_else(|| {
                    // Programs that know numbers only write integers as 2.0.
                    let number: f64 = text.parse().ok().filter(|number: &f64| number.fract() == 0.0)?;
                    labels.iter().position(|label| *label == format!("{number}"))
                });
                let Some(at) = at else {
                    bail!("`{text}` is not a value of `{}`; it has {}", self.name, labels.join(", "));
                };
                Ok((0..labels.len()).map(|k| f64::from(u8::from(k == at))).collect())
            }
        }
    }
}

/// Reads true, false, 1 or 0.
pub fn parse_boolean(text: &str) -> Result<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "1.0" => Ok(true),
        "false" | "0" | "0.0" => Ok(false),
        _ => bail!("`{text}` is neither true nor false; write true, false, 1 or 0"),
    }
}

impl Field<'_> {
    /// The entry as JSON. Infinities and NaN become null; integers are written without a decimal point, so that numbers of
    /// rows look like integers.
    pub fn json(self) -> Value {
        match self {
            Field::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 && !is_minus_zero(value) => {
                Value::from(value as i64)
            }
            Field::Number(value) => Value::from(value),
            Field::Boolean(value) => Value::from(value),
            Field::Label(label) => Value::from(label),
        }
    }

    /// The entry as JSON, in which a number has a decimal point even where it is an integer.
    pub fn coordinate(self) -> Value {
        match self {
            Field::Number(value) => Value::from(value),
            other => other.json(),
        }
    }
}

fn is_minus_zero(value: f64) -> bool {
    value == 0.0 && value.is_sign_negative()
}

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Field::Number(value) => write!(f, "{value}"),
            Field::Boolean(value) => write!(f, "{value}"),
            Field::Label(label) => f.write_str(label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<PointColumn> {
        let script = "(declare-datatype Mode ((walk) (bike))) (declare-const wet Bool) (declare-const m Mode)
            (declare-const x Real) (declare-const n Int) (assert (<= 0 n 2))";
        PointColumn::of(&pal::formula::parse_smtlib(script).unwrap())
    }

    #[test]
    fn a_category_is_one_column_of_labels() {
        let columns = columns();
        assert_eq!(column_names(&columns), ["x", "wet", "m", "n"]);
        assert_eq!(width(&columns), 7);
        let row = [1.5, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let fields: Vec<String> = columns.iter().map(|column| column.field(&row).to_string()).collect();
        assert_eq!(fields, ["1.5", "true", "bike", "2"]);
        let back: Vec<f64> =
            columns.iter().zip(&fields).flat_map(|(column, field)| column.parse(field).unwrap()).collect();
        assert_eq!(back, row);
        let behind = joined(&[&numbers(&["row"]), &columns]);
        assert_eq!(behind[3].field(&[&[7.0], &row[..]].concat()), Field::Label("bike"));
    }

    #[test]
    fn entries_from_text() {
        let columns = columns();
        for (text, want) in [("True", 1.0), ("1", 1.0), ("false", 0.0), ("0.0", 0.0)] {
            assert_eq!(columns[1].parse(text).unwrap(), [want]);
        }
        assert_eq!(columns[3].parse("1.0").unwrap(), [0.0, 1.0, 0.0]);
        assert!(columns[2].parse(" ").unwrap().iter().all(|value| value.is_nan()));
        let message = |at: usize, text: &str| columns[at].parse(text).unwrap_err().to_string();
        assert_eq!(message(1, "maybe"), "`maybe` is neither true nor false; write true, false, 1 or 0");
        assert_eq!(message(2, "car"), "`car` is not a value of `m`; it has walk, bike");
        assert_eq!(message(0, "far"), "`far` is not a number");
    }
}
