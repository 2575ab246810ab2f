//! `--row`: which densities of a model a question is about.

use std::ops::Range;

use anyhow::{Result, anyhow, ensure};

use crate::densities::AnyModel;
use crate::numbers::counted;

/// The option `--row`.
#[derive(clap::Args)]
pub struct RowOption {
    /// The row of the model that is asked about, counted from 0, or `all`; tables of all rows have a column `row` in
    /// front [default: 0, and `all` for query, mode and moments]
    #[arg(long, value_name = "R", value_parser = parse_rows)]
    row: Option<RowChoice>,
}

/// The rows of a model that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChoice {
    One(usize),
    All,
}

fn parse_rows(text: &str) -> Result<RowChoice> {
    match text {
        "all" => Ok(RowChoice::All),
        number => {
            number.parse().map(RowChoice::One).map_err(|_| anyhow!("give the number of a row, from 0 on, or `all`"))
        }
    }
}

impl RowOption {
    pub fn is_given(&self) -> bool {
        self.row.is_some()
    }

    /// Returns the rows that were asked for, or all of them by default.
    pub fn or_all(&self) -> RowChoice {
        self.row.unwrap_or(RowChoice::All)
    }

    /// Returns the rows that were asked for, or the first one by default.
    pub fn or_first(&self) -> RowChoice {
        self.row.unwrap_or(RowChoice::One(0))
    }
}

impl RowChoice {
    /// Returns the positions of these rows in a model.
    pub fn of(self, model: &AnyModel) -> Result<Range<usize>> {
        match self {
            RowChoice::All => Ok(0..model.rows()),
            RowChoice::One(row) => {
                let count = model.rows();
                ensure!(row < count, "--row {row}: the model has {}, counted from 0", counted(count, "row"));
                Ok(row..row + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_from_text() {
        assert_eq!((parse_rows("all").unwrap(), parse_rows("7").unwrap()), (RowChoice::All, RowChoice::One(7)));
        assert!(parse_rows("-1").is_err() && parse_rows("").is_err());
    }
}
