//! Reading constraints and other text from files or from standard input, with errors that name the file, the place in
//! it and what would work.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use pal::formula::{self, Constraint, GeoJsonOptions, MapError, Meaning};
use pal::number::{Rational, parse_rational};
use pal::region::Region;

use crate::files;

/// The constraint as the first argument of a command, and how to read it.
#[derive(clap::Args)]
pub struct Input {
    /// The constraint: .smt2, .geojson, .json, .wkt, .wkb, .png or .pishield; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

/// The constraint as an option, for commands whose first argument is something else.
#[derive(clap::Args)]
pub struct ConstraintOption {
    /// The constraint: .smt2, .geojson, .json, .wkt, .wkb, .png or .pishield; `-` reads standard input
    #[arg(long = "constraint", value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

impl ConstraintOption {
    /// The name of the file in messages.
    pub fn name(&self) -> String {
        name(&self.file)
    }

    /// Reads the constraint; errors name the file.
    pub fn constraint(&self) -> Result<Constraint> {
        self.reading.parse(&self.file).with_context(|| self.name())
    }

    /// The reader of the constraints in a folder, if the option gives one.
    pub fn folder(&self) -> Result<Option<ConstraintReading>> {
        if is_stdin(&self.file) || self.file.is_file() {
            return Ok(None);
        }
        if !self.file.exists() {
            return Err(no_such_file()).with_context(|| self.name());
        }
        Ok(Some(ConstraintReading { folder: self.file.clone(), reading: self.reading.clone() }))
    }
}

/// How the constraints in a folder are read.
pub struct ConstraintReading {
    folder: PathBuf,
    reading: Reading,
}

impl ConstraintReading {
    /// The file of a constraint, which is named with or without its extension.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        let with = |extension: &str| self.folder.join(format!("{name}.{extension}"));
        let known = ["geojson", "json", "smt2"].map(with);
        if path.is_file() { path } else { known.into_iter().find(|path| path.is_file()).unwrap_or(path) }
    }

    /// Reads a constraint; errors do not name the file.
    pub fn parse(&self, path: &Path) -> Result<Constraint> {
        self.reading.parse(path)
    }
}

/// How to read a constraint.
#[derive(clap::Args, Clone)]
pub struct Reading {
    /// The format of the constraint; by default its extension tells
    #[arg(long, value_enum)]
    format: Option<ConstraintFormat>,
    /// Maps: what the polygons mean [default: forbidden]
    #[arg(long, value_enum)]
    meaning: Option<PolygonMeaning>,
    /// Maps: the bounds of the map, exact decimals; they override those of the file
    #[arg(long, value_name = "x0,y0,x1,y1", allow_hyphen_values = true, value_parser = parse_bounds)]
    bounds: Option<Bounds>,
    /// PNG: by how many pixels polygons may reach beyond obstacle pixels, to have fewer corners [default: 0.75]
    #[arg(long, value_name = "PIXELS", allow_negative_numbers = true)]
    tolerance: Option<f64>,
}

/// By how many pixels outlines are straightened: staircases of lines with any slope become straight.
const TOLERANCE: f64 = 0.75;

/// Pixels darker than this are obstacles.
const THRESHOLD: f64 = 0.5;

/// What constraints may be called, for messages.
const ENDINGS: &str = ".smt2, .geojson, .json, .wkt, .wkb, .png or .pishield";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConstraintFormat {
    /// SMT-LIB 2
    Smt2,
    /// GeoJSON polygons
    Geojson,
    /// Well-known text: polygons
    Wkt,
    /// Well-known binary: polygons
    Wkb,
    /// A picture in which dark pixels are obstacles
    Png,
    /// Requirements of PiShield
    Pishield,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolygonMeaning {
    /// The polygons are obstacles within the bounds
    Forbidden,
    /// What the polygons cover is allowed, and nothing else
    Walkable,
}

#[derive(Clone)]
struct Bounds([Rational; 4]);

fn parse_bounds(text: &str) -> Result<Bounds> {
    let numbers: Vec<Rational> = text.split(',').map(|part| parse_rational(part.trim())).collect::<Result<_, _>>()?;
    let count = numbers.len();
    let bounds: [Rational; 4] =
        numbers.try_into().map_err(|_| anyhow!("{count} numbers given, four needed: x0,y0,x1,y1"))?;
    if bounds[0] >= bounds[2] || bounds[1] >= bounds[3] {
        bail!("x0 must be below x1 and y0 below y1");
    }
    Ok(Bounds(bounds))
}

impl Input {
    /// The name of the file in messages.
    pub fn name(&self) -> String {
        name(&self.file)
    }

    /// Returns the file, and the first option that only a constraint can have, if one was given.
    pub fn as_path(&self) -> (&Path, Option<&'static str>) {
        let options = [
            ("--format", self.reading.format.is_some()),
            ("--meaning", self.reading.meaning.is_some()),
            ("--bounds", self.reading.bounds.is_some()),
            ("--tolerance", self.reading.tolerance.is_some()),
        ];
        (&self.file, options.into_iter().find(|(_, given)| *given).map(|(option, _)| option))
    }

    /// Reads the constraint and prepares the region; errors name the file.
    pub fn region(&self) -> Result<Region> {
        let read = || -> Result<Region> { Ok(Region::new(&self.reading.parse(&self.file)?)?) };
        read().with_context(|| self.name())
    }

    /// Reads the constraint; errors name the file.
    pub fn constraint(&self) -> Result<Constraint> {
        self.reading.parse(&self.file).with_context(|| self.name())
    }

    /// Reads the questions of an SMT-LIB script with their lines; other formats ask one question, without a line.
    pub fn questions(&self) -> Result<Vec<(Option<usize>, Constraint)>> {
        let read = || -> Result<Vec<(Option<usize>, Constraint)>> {
            if self.reading.known_format(&self.file)? != ConstraintFormat::Smt2 {
                return Ok(vec![(None, self.reading.parse(&self.file)?)]);
            }
            self.reading.refuse_map_options(ConstraintFormat::Smt2)?;
            let text = decode(read_bytes(&self.file, &CONSTRAINT)?, &CONSTRAINT)?;
            let questions = formula::parse_smtlib_questions(&text)?;
            Ok(questions.into_iter().map(|question| (Some(question.line), question.constraint)).collect())
        };
        read().with_context(|| self.name())
    }
}

impl Reading {
    /// The option of a constraint that is read in this way.
    pub fn option(&self, file: &Path) -> ConstraintOption {
        ConstraintOption { file: file.to_path_buf(), reading: self.clone() }
    }

    fn parse(&self, file: &Path) -> Result<Constraint> {
        let format = self.known_format(file)?;
        let bytes = read_bytes(file, &CONSTRAINT)?;
        self.refuse_tolerance(format)?;
        let meaning = match self.meaning {
            Some(PolygonMeaning::Walkable) => Meaning::Walkable,
            Some(PolygonMeaning::Forbidden) | None => Meaning::Forbidden,
        };
        let bounds = self.bounds.as_ref().map(|bounds| bounds.0.clone());
        let polygons = match format {
            ConstraintFormat::Smt2 | ConstraintFormat::Pishield => {
                let text = decode(bytes, &CONSTRAINT)?;
                self.refuse_map_options(format)?;
                let smt2 = format == ConstraintFormat::Smt2;
                return if smt2 { Ok(formula::parse_smtlib(&text)?) } else { Ok(formula::parse_pishield(&text)?) };
            }
            ConstraintFormat::Geojson => {
                let text = decode(bytes, &CONSTRAINT)?;
                return Ok(formula::parse_geojson(&text, &GeoJsonOptions { meaning, bounds })?);
            }
            ConstraintFormat::Wkt => formula::parse_wkt(&decode(bytes, &CONSTRAINT)?)?,
            ConstraintFormat::Wkb => formula::parse_wkb(&bytes)?,
            ConstraintFormat::Png => {
                let mask = formula::Mask::from_png(&bytes, THRESHOLD)?;
                let polygons = formula::mask_polygons(&mask, self.tolerance.unwrap_or(TOLERANCE))?;
                let whole = [0, 0, mask.width as i64, mask.height() as i64].map(Rational::from);
                let bounds = bounds.unwrap_or(whole);
                return Ok(formula::map_constraint(&polygons, meaning, Some(&bounds))?);
            }
        };
        formula::map_constraint(&polygons, meaning, bounds.as_ref()).map_err(|error| match error {
            MapError::NoBounds => anyhow!("{error} with --bounds x0,y0,x1,y1"),
            other => other.into(),
        })
    }

    fn refuse_tolerance(&self, format: ConstraintFormat) -> Result<()> {
        if self.tolerance.is_some() && format != ConstraintFormat::Png {
            bail!("--tolerance is for pictures, .png files");
        }
        Ok(())
    }

    /// Refuses options of maps for formulas.
    fn refuse_map_options(&self, format: ConstraintFormat) -> Result<()> {
        self.refuse_tolerance(format)?;
        if self.meaning.is_some() || self.bounds.is_some() {
            let example = if format == ConstraintFormat::Smt2 { "(assert (<= 0 x 1))" } else { "y_0 >= 0" };
            bail!(
                "--meaning and --bounds are for GeoJSON and other maps; write bounds as assertions, such as {example}"
            );
        }
        Ok(())
    }

    fn known_format(&self, file: &Path) -> Result<ConstraintFormat> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        if is_stdin(file) {
            bail!("say what it is with --format smt2 or --format geojson");
        }
        let extension = file.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("smt2" | "smt") => Ok(ConstraintFormat::Smt2),
            Some("geojson" | "json") => Ok(ConstraintFormat::Geojson),
            Some("wkt") => Ok(ConstraintFormat::Wkt),
            Some("wkb") => Ok(ConstraintFormat::Wkb),
            Some("png") => Ok(ConstraintFormat::Png),
            Some("pishield") => Ok(ConstraintFormat::Pishield),
            // A missing file is a better explanation than an unknown extension.
            _ if !file.exists() => Err(no_such_file()),
            _ if file.is_dir() => Err(directory(&CONSTRAINT)),
            Some("safetensors") => {
                bail!("this is a compiled family or a model; give the constraint: a {ENDINGS} file")
            }
            Some(other) => {
                bail!("unknown extension `.{other}`; use {ENDINGS}, or say --format smt2, --format geojson and so on")
            }
            None => bail!("no extension; use {ENDINGS}, or say --format smt2, --format geojson and so on"),
        }
    }
}

/// What a text file should hold, for messages.
pub struct ExpectedText {
    /// `give ...`
    pub file: &'static str,
    /// `it should hold ...`
    pub content: &'static str,
}

const CONSTRAINT: ExpectedText = ExpectedText {
    file: "a .smt2, .geojson, .json, .wkt, .wkb, .png or .pishield file",
    content: "an SMT-LIB 2 script or a GeoJSON map",
};

/// The name of a file in messages.
pub fn name(file: &Path) -> String {
    if is_stdin(file) { "standard input".into() } else { file.display().to_string() }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Reads the text of a file, or of standard input for `-`. Errors do not name the file.
pub fn read(file: &Path, wanted: &ExpectedText) -> Result<String> {
    decode(read_bytes(file, wanted)?, wanted)
}

fn read_bytes(file: &Path, wanted: &ExpectedText) -> Result<Vec<u8>> {
    if is_stdin(file) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).context("cannot read")?;
        return Ok(bytes);
    }
    files::reading(file)?;
    fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_such_file(),
        _ if file.is_dir() => directory(wanted),
        _ => anyhow!(error).context("cannot read"),
    })
}

fn no_such_file() -> anyhow::Error {
    anyhow!("no such file")
}

fn directory(wanted: &ExpectedText) -> anyhow::Error {
    anyhow!("this is a directory; give {}", wanted.file)
}

/// Decodes UTF-8 without its byte order mark.
fn decode(bytes: Vec<u8>, wanted: &ExpectedText) -> Result<String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("not UTF-8 text at byte offset {at} (0x{:02x}); save the file as UTF-8", error.as_bytes()[at])
    })?;
    let text = text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text);
    if text.trim().is_empty() {
        bail!("the file is empty; it should hold {}", wanted.content);
    }
    Ok(text)
}
