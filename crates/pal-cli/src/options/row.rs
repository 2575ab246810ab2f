//! `--row`: which densities of a model a question is about.

use std::ops::Range;

use anyhow::{Result, anyhow, ensure};
use pal::density::Model;

use crate::numbers::counted;

/// The option `--row`.
#[derive(clap::Args)]
pub struct RowOption {
    /// The density that is asked about: the number of its row in the model, from 0 on, or `all`. [default: `all` for query, mode
    /// and moments, else 0; with `all` tables have a column `row` in front]
    #[arg(long, value_name = "R", value_parser = parse_rows)]
    row: Option<Rows>,
}

/// The rows of a model that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    One(usize),
    All,
}

fn parse_rows(text: &str) -> Result<Rows> {
    match text {
        "all" => Ok(Rows::All),
        number => number.parse().map(Rows::One).map_err(|_| anyhow!("give the number of a row, from 0 on, or `all`")),
    }
}

impl RowOption {
    pub fn is_given(&self) -> bool {
        self.row.is_some()
    }

    /// Returns the rows that were asked for, or all of them by default.
    pub fn or_all(&self) -> Rows {
        self.row.unwrap_or(Rows::All)
    }

    /// Returns the rows that were asked for, or the first one by default.
    pub fn or_first(&self) -> Rows {
        self.row.unwrap_or(Rows::One(0))
    }
}

impl Rows {
    /// Returns the positions of these rows in a model.
    pub fn of(self, model: &Model) -> Result<Range<usize>> {
        match self {
            Rows::All => Ok(0..model.rows()),
            Rows::One(row) => {
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
        assert_eq!((parse_rows("all").unwrap(), parse_rows("7").unwrap()), (Rows::All, Rows::One(7)));
        assert!(parse_rows("-1").is_err() && parse_rows("").is_err());
    }
}
