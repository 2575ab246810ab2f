//! The regions of rows: windows of a map, or maps that a column of the data names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use pal::formula::{Constraint, Formula, Linear};
use pal::number::{Rational, from_f64};
use pal::region::{Region, RegionBatch, RegionMap};
use pal_burn::{RegionPlan, WindowPlan};

use super::data::Columns;
use super::options::parse_names;
use crate::input::{ConstraintOption, ConstraintReading};
use crate::model_file::names;

/// The options of `pal train` about regions of rows.
#[derive(clap::Args)]
pub struct RegionOptions {
    /// Rows see a window of the map: half of its width along each local axis, or one number for all axes. The network
    /// learns a density in local coordinates, which are 0 at --centre and have the unit of the map
    #[arg(long, value_name = "W[,W...]", value_delimiter = ',', requires = "centre")]
    windows: Vec<f64>,
    /// --windows: the columns of the place that a row looks from, in the order of the variables
    #[arg(long, value_name = "NAMES", value_parser = parse_names, requires = "windows")]
    centre: Option<std::vec::Vec<String>>,
    /// --windows: the columns of the direction that a row looks into, a vector of any length: the first local axis
    /// points there, the second one to the left of it
    #[arg(long, value_name = "NAMES", value_parser = parse_names, requires = "windows")]
    heading: Option<std::vec::Vec<String>>,
    /// --windows: inputs that are places of the map, one name for each coordinate of each place, such as x1,y1,x2,y2. The
    /// network sees them in local coordinates
    #[arg(long, value_name = "NAMES", value_parser = parse_names, requires = "windows")]
    places: Option<std::vec::Vec<String>>,
    /// The column that names the map of a row: a file in the folder that --constraint gives
    #[arg(long, value_name = "COLUMN")]
    constraint_column: Option<String>,
}

impl RegionOptions {
    /// Returns what the options say; `None` if all rows have the same constraint.
    pub fn plan(self, columns: &Columns) -> Result<Option<RegionPlan>> {
        let RegionOptions { windows, centre, heading, places, constraint_column: map } = self;
        if windows.is_empty() {
            return Ok(map.map(|map| RegionPlan { map: Some(map), window: None }));
        }
        let n = columns.outputs.len();
        let half_width = if windows.len() == 1 { vec![windows[0]; n] } else { windows };
        let (centre, places) = (centre.unwrap_or_default(), places.unwrap_or_default());
        let window = WindowPlan { half_width, centre, heading, places };
        window.check(&columns.inputs, n).map_err(anyhow::Error::msg).context("--windows")?;
        Ok(Some(RegionPlan { map, window: Some(window) }))
    }

    /// Whether the constraints of rows are files in a folder.
    pub fn has_folder(&self) -> bool {
        self.constraint_column.is_some()
    }
}

/// Where maps come from. Each of them is read and prepared once.
enum Maps {
    One(RegionMap),
    Folder { reading: Box<ConstraintReading>, known: RefCell<HashMap<String, RegionMap>> },
}

/// Finds the regions of rows.
pub struct RegionReader {
    plan: RegionPlan,
    /// The names of the variables, in the order of coordinates.
    variables: Vec<String>,
    maps: Maps,
}

/// The text of the column that names maps, and how to say where a row is.
pub struct MapNames<'a> {
    pub names: &'a [String],
    pub place: &'a dyn Fn(usize) -> String,
}

impl RegionReader {
    /// A reader for the map or the folder of maps that an option gives.
    pub fn new(plan: RegionPlan, columns: &Columns, constraint: &ConstraintOption) -> Result<RegionReader> {
        let folder = constraint.folder()?;
        match (&plan.map, folder) {
            (Some(_), Some(reading)) => {
                let (variables, known) = (columns.outputs.clone(), RefCell::default());
                Ok(RegionReader { plan, variables, maps: Maps::Folder { reading: Box::new(reading), known } })
            }
            (Some(column), None) => bail!(
                "{}: this is a file; with the column `{column}`, which names the map of each row, give the folder of the maps",
                constraint.name()
            ),
            (None, Some(_)) => bail!(
                "{}: this is a directory; --constraint-column names the column that says which file in it belongs to a row",
                constraint.name()
            ),
            (None, None) => RegionReader::on_map(plan, columns.clone().order(constraint.constraint()?)?)
                .with_context(|| constraint.name()),
        }
    }

    /// A reader for windows of one map.
    pub fn on_map(plan: RegionPlan, map: Constraint) -> Result<RegionReader> {
        let variables = names(&map).into_iter().map(str::to_string).collect();
        Ok(RegionReader { plan, variables, maps: Maps::One(prepare(&map)?) })
    }

    pub fn plan(&self) -> &RegionPlan {
        &self.plan
    }

    /// The names of the variables, in the order of coordinates.
    pub fn variables(&self) -> Vec<&str> {
        self.variables.iter().map(String::as_str).collect()
    }

    /// The constraint of the map, if there is only one.
    pub fn map(&self) -> Option<&Constraint> {
        match &self.maps {
            Maps::One(map) => Some(map.region().constraint()),
            Maps::Folder { .. } => None,
        }
    }

    /// The columns with the numbers of a window: centre, then heading.
    pub fn columns(&self) -> Vec<String> {
        let Some(window) = &self.plan.window else { return Vec::new() };
        [&window.centre[..], window.heading.as_deref().unwrap_or_default()].concat()
    }

    /// What is wrong with the numbers of a window, all of them finite.
    pub fn trouble(&self, numbers: &[f64]) -> Option<String> {
        let heading = self.plan.window.as_ref()?.heading.as_ref()?;
        let own = &numbers[numbers.len() - heading.len()..];
        own.iter().all(|x| *x == 0.0).then(|| format!("the heading `{}` is 0 and has no direction", heading.join(",")))
    }

    /// The regions of rows, given the numbers of [`RegionReader::columns`] row by row, and the names of the maps.
    pub fn regions(&self, rows: usize, numbers: &[f64], maps: &MapNames) -> Result<RegionBatch> {
        let Maps::Folder { .. } = &self.maps else {
            let Maps::One(map) = &self.maps else { unreachable!("there are two kinds of maps") };
            return self.of_map(map, rows, numbers);
        };
        // Rows of the same map together, and then back in their order.
        let mut members: Vec<(&String, Vec<usize>)> = Vec::new();
        let mut found: HashMap<&String, usize> = HashMap::new();
        for (row, name) in maps.names.iter().enumerate() {
            let at = *found.entry(name).or_insert_with(|| {
                members.push((name, Vec::new()));
                members.len() - 1
            });
            members[at].1.push(row);
        }
        let width = self.columns().len();
        let mut batches = Vec::new();
        let mut order = vec![0; rows];
        let mut count = 0;
        for (name, members) in &members {
            let map = self.map_named(name).with_context(|| (maps.place)(members[0]))?;
            let own: Vec<f64> =
                members.iter().flat_map(|row| &numbers[row * width..(row + 1) * width]).copied().collect();
            batches.push(self.of_map(&map, members.len(), &own)?);
            for row in members {
                order[*row] = count;
                count += 1;
            }
        }
        let Some((first, others)) = batches.split_first() else { bail!("there are no rows") };
        Ok(first.concatenate(others)?.select(&order)?)
    }

    fn of_map(&self, map: &RegionMap, rows: usize, numbers: &[f64]) -> Result<RegionBatch> {
        let Some(window) = &self.plan.window else { return Ok(map.repeat(rows)) };
        let n = self.variables.len();
        let width = self.columns().len().max(1);
        let part = |from: usize, to: usize| -> Vec<f64> {
            numbers.chunks(width).flat_map(|row| &row[from..to]).copied().collect()
        };
        let headings = window.heading.as_ref().map(|_| part(n, width));
        Ok(map.windows(&part(0, n), &window.half_width, headings.as_deref(), None)?)
    }

    /// Reads the map of that name, if it is not known yet.
    fn map_named(&self, name: &str) -> Result<RegionMap> {
        let Maps::Folder { reading, known } = &self.maps else { unreachable!("one map has no name") };
        if let Some(map) = known.borrow().get(name) {
            return Ok(map.clone());
        }
        let path = reading.path(name);
        let read = || -> Result<RegionMap> {
            let constraint = reading.parse(&path)?;
            let own = self::names(&constraint).join(", ");
            let constraint = constraint.with_order(&self.variables);
            prepare(&constraint.with_context(|| {
                format!("the map is over {own}, and its rows are over {}", self.variables.join(", "))
            })?)
        };
        let map = read().with_context(|| path.display().to_string())?;
        known.borrow_mut().insert(name.to_string(), map.clone());
        Ok(map)
    }

    /// The box around the regions of all rows, as a constraint: that of the windows, or the one around all maps that were
    /// read.
    pub fn surrounding_box(&self) -> Result<Constraint> {
        let mut ends: Vec<(Rational, Rational)> = Vec::new();
        match (&self.plan.window, &self.maps) {
            (Some(window), _) => {
                for half in &window.half_width {
                    let half = from_f64(*half).context("a half width that is not finite")?;
                    ends.push((-half.clone(), half));
                }
            }
            (None, Maps::One(map)) => widen(&mut ends, map).context("the constraint")?,
            (None, Maps::Folder { reading, known }) => {
                for (name, map) in &*known.borrow() {
                    widen(&mut ends, map).with_context(|| reading.path(name).display().to_string())?;
                }
            }
        }
        ensure!(!ends.is_empty(), "none of the maps has a point");
        let side = |(name, (low, high)): (&String, (Rational, Rational))| {
            Linear::from(pal::formula::Var::new(name)).between(low, high)
        };
        let sides = self.variables.iter().zip(ends).map(side);
        Ok(Constraint::over(Formula::all(sides.collect::<Vec<_>>()), &self.variables)?)
    }

    /// Turns the inputs that are places of the map into local coordinates.
    pub fn localise(&self, regions: &RegionBatch, inputs: &[String], values: &mut [f64]) -> Result<()> {
        let Some(window) = &self.plan.window else { return Ok(()) };
        let position = |name: &String| inputs.iter().position(|other| other == name);
        for place in window.places.chunks(self.variables.len()) {
            let at: Vec<usize> =
                place.iter().map(position).collect::<Option<_>>().context("a place is not an input")?;
            let points: Vec<f64> = values.chunks(inputs.len()).flat_map(|row| at.iter().map(|at| row[*at])).collect();
            let local = regions.to_local(&points)?;
            for (row, local) in values.chunks_mut(inputs.len()).zip(local.chunks(at.len())) {
                at.iter().zip(local).for_each(|(at, value)| row[*at] = *value);
            }
        }
        Ok(())
    }

    /// Why a point that is not in the region of its row is outside.
    pub fn outside(&self, local: &[f64]) -> String {
        match &self.plan.window {
            Some(window) if local.iter().zip(&window.half_width).any(|(u, w)| u.abs() > *w) => {
                "outside the window of the row".to_string()
            }
            _ => "outside the constraint".to_string(),
        }
    }
}

/// Extends the ends of a box to a map.
fn widen(ends: &mut Vec<(Rational, Rational)>, map: &RegionMap) -> Result<()> {
    let unbounded = "the map is unbounded; densities need bounds, such as those of --windows";
    let Some(own) = map.region().bounding_box().context(unbounded)? else { return Ok(()) };
    if ends.is_empty() {
        *ends = own;
        return Ok(());
    }
    for ((low, high), (own_low, own_high)) in ends.iter_mut().zip(own) {
        *low = own_low.min(low.clone());
        *high = own_high.max(high.clone());
    }
    Ok(())
}

/// Prepares the map of a constraint.
fn prepare(constraint: &Constraint) -> Result<RegionMap> {
    let booleans = constraint.formula.boolean_variables();
    ensure!(
        booleans.is_empty(),
        "the constraint has Boolean variables, and regions of rows are over real ones only; \
         replace each by true or false, or by a condition on the reals"
    );
    Ok(RegionMap::new(&Region::new(constraint)?)?)
}

/// The option of commands that read trained networks.
#[derive(clap::Args)]
pub struct OtherMaps {
    /// For networks whose rows have regions of their own: another map than the one of the training, or the folder with
    /// the maps that a column of the data names
    #[arg(long = "constraint", value_name = "FILE")]
    file: Option<std::path::PathBuf>,
    #[command(flatten)]
    reading: crate::input::Reading,
}

impl OtherMaps {
    /// The reader for the rows of a network; `None` if all rows have the constraint of the network.
    pub fn reader(
        &self,
        plan: Option<&RegionPlan>,
        map: Option<&Constraint>,
        columns: &Columns,
        network: &Path,
    ) -> Result<Option<RegionReader>> {
        let name = network.display();
        let Some(plan) = plan.cloned() else {
            ensure!(
                self.file.is_none(),
                "--constraint: the rows of {name} do not have regions of their own; the constraint is in the file"
            );
            return Ok(None);
        };
        let given = self.file.as_ref().map(|file| self.reading.option(file));
        match (given, map) {
            (Some(constraint), _) => RegionReader::new(plan, columns, &constraint).map(Some),
            (None, Some(map)) => RegionReader::on_map(plan, map.clone()).map(Some),
            (None, None) => {
                let column = plan.map.unwrap_or_default();
                bail!(
                    "{name}: the column `{column}` names the map of each row; --constraint gives the folder of the maps"
                )
            }
        }
    }
}
