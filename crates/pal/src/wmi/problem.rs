//! Problems as they are written in files: JSON lines, and the density files of pywmi and wmi-pa.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::nested;
use super::piecewise::Piecewise;
use super::weight::SymbolicWeight;
use crate::formula::{Constraint, Formula, Linear, SmtError, Var, parse_smtlib_term};
use crate::json::Members;
use crate::number::{NumberError, Rational, parse_rational};

/// A weighted-model-integration problem.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The name of the problem, or an empty string.
    pub name: String,
    /// The support over all variables of the domain, including the bounds of the domain.
    pub support: Constraint,
    pub(super) weight: Arc<SymbolicWeight>,
    /// The formulas whose weighted volumes within the support are asked for.
    pub queries: Vec<Formula>,
}

/// Why a problem cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// The line is not JSON of the right shape.
    #[error("not a problem in JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A bound of the domain is not a number.
    #[error("the bounds of `{variable}`: {error}")]
    Bound {
        /// the variable with that bound
        variable: String,
        /// why the bound is not a number
        error: NumberError,
    },
    /// A variable has a type other than real and bool.
    #[error("variable `{variable}` has type `{kind}`; real and bool are possible")]
    Type {
        /// the variable with that type
        variable: String,
        /// the type as written
        kind: String,
    },
    /// A name is declared twice.
    #[error("variable `{0}` is declared twice")]
    Duplicate(String),
    /// A field is probably misspelt: it would be left out without a word.
    #[error("unknown field `{field}`; `{meant}` is probably meant: write it so, or give the field another name")]
    Field {
        /// the field as written
        field: String,
        /// the field that is probably meant
        meant: &'static str,
    },
    /// A term cannot be read.
    #[error("{field}: {error}")]
    Term {
        /// the field of the term: support, weight or query
        field: String,
        /// what is wrong, and where in the term
        error: SmtError,
    },
}

/// The fields of the JSON-lines format.
const LINE_FIELDS: [&str; 5] = ["name", "domain", "support", "weight", "queries"];

/// The fields of density files.
const DENSITY_FIELDS: [&str; 4] = ["domain", "formula", "weights", "queries"];

/// The known field that an unknown one is probably a misspelling of. Files carry all kinds of further fields, such as
/// answers and sources, which are left alone.
fn meant(field: &str, known: &[&'static str]) -> Option<&'static str> {
    let written = field.to_lowercase();
    let begin = written.char_indices().next_back().map_or("", |(last, _)| &written[..last]);
    let near = |other: &&&'static str| {
        let few_edits = strsim::osa_distance(&written, other) <= (other.len() / 3).max(1);
        field.len() <= 64 && (few_edits || begin.len() > 3 && other.starts_with(begin))
    };
    if known.contains(&field) { None } else { known.iter().find(near).copied() }
}

/// One line of the JSON-lines format.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    domain: Domain<'a>,
    support: String,
    weight: String,
    #[serde(default)]
    queries: Vec<String>,
}

/// The domain of a problem in the JSON-lines format. The order of the real variables is that of the coordinates.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Domain<'a> {
    #[serde(borrow)]
    reals: Members<Ends<'a>>,
    #[serde(default)]
    booleans: Vec<String>,
}

/// A bound of a variable as text: a JSON string or number whose digits are all kept.
#[derive(Deserialize)]
struct Bound<'a>(#[serde(borrow)] &'a RawValue);

impl Bound<'_> {
    fn value(&self, variable: &str) -> Result<Rational, ProblemError> {
        parse_rational(self.0.get().trim_matches('"'))
            .map_err(|error| ProblemError::Bound { variable: variable.to_string(), error })
    }
}

/// A density file of pywmi or wmi-pa: terms in nested prefix notation, and a domain as a list or as tables.
#[derive(Deserialize)]
struct DensityLine<'a> {
    #[serde(borrow)]
    domain: &'a RawValue,
    formula: String,
    weights: String,
    #[serde(default)]
    queries: Vec<String>,
}

/// The lower and the upper bound of a variable.
type Ends<'a> = (Option<Bound<'a>>, Option<Bound<'a>>);

/// One variable of a density file whose domain is a list: its name, type and bounds.
#[derive(Deserialize)]
struct Listed<'a>(String, String, #[serde(borrow)] Option<Ends<'a>>);

/// The domain of a density file as tables with one entry per variable name.
#[derive(Deserialize)]
struct DomainTables<'a> {
    variables: Vec<String>,
    var_types: Members<String>,
    #[serde(borrow, default)]
    var_domains: Members<Option<Ends<'a>>>,
}

impl Problem {
    /// Creates a problem without a name over the variables of its support.
    pub fn new(support: Constraint, weight: &Piecewise, queries: Vec<Formula>) -> Problem {
        Problem { name: String::new(), support, weight: weight.weight.clone(), queries }
    }

    /// Reads one problem: a line of the JSON-lines format, or the text of a density file of pywmi or wmi-pa.
    ///
    /// ```
    /// use pal::{moments::Method, wmi::Problem};
    /// let problem = Problem::parse(r#"{"name": "half", "domain": {"reals": {"x": ["0", "1"]}, "booleans": ["a"]},
    ///     "support": "(or a (<= x 0.5))", "weight": "(ite a x (* 2 x))", "queries": ["a"]}"#).unwrap();
    /// let solution = problem.solve(Method::Exact).unwrap();
    /// assert_eq!(solution.total.exact.unwrap().to_string(), "3/4");
    /// assert_eq!(solution.queries[0].value, 0.5);
    /// ```
    pub fn parse(json: &str) -> Result<Problem, ProblemError> {
        let fields: Members<&RawValue> = serde_json::from_str(json)?;
        let has = |name: &str| fields.0.iter().any(|(field, _)| field == name);
        let is_density = has("formula") && has("weights");
        let known = if is_density { &DENSITY_FIELDS[..] } else { &LINE_FIELDS[..] };
        if let Some((field, meant)) = fields.0.iter().find_map(|(field, _)| Some((field, meant(field, known)?))) {
            return Err(ProblemError::Field { field: field.clone(), meant });
        }
        if is_density {
            return Problem::from_density(serde_json::from_str(json)?);
        }
        let line: Line = serde_json::from_str(json)?;
        let mut bounds = Vec::new();
        for (name, (low, high)) in &line.domain.reals.0 {
            let end = |bound: &Option<Bound>| bound.as_ref().map(|b| b.value(name)).transpose();
            bounds.push((name.clone(), end(low)?, end(high)?));
        }
        let terms = ProblemTerms { support: line.support, weight: line.weight, queries: line.queries };
        Problem::build(line.name, bounds, line.domain.booleans, terms)
    }

    fn from_density(density: DensityLine) -> Result<Problem, ProblemError> {
        let listed: Vec<Listed> = if density.domain.get().starts_with('[') {
            serde_json::from_str(density.domain.get())?
        } else {
            let mut tables: DomainTables = serde_json::from_str(density.domain.get())?;
            let entry = |name: String| {
                let kind = tables.var_types.take(&name).unwrap_or_default();
                let ends = tables.var_domains.take(&name).flatten();
                Listed(name, kind, ends)
            };
            std::mem::take(&mut tables.variables).into_iter().map(entry).collect()
        };
        let (mut bounds, mut booleans) = (Vec::new(), Vec::new());
        for Listed(name, kind, ends) in listed {
            match kind.as_str() {
                "bool" => booleans.push(name),
                "real" => {
                    let (low, high) = ends.unwrap_or((None, None));
                    let end = |bound: Option<Bound>| bound.map(|b| b.value(&name)).transpose();
                    bounds.push((name.clone(), end(low)?, end(high)?));
                }
                other => return Err(ProblemError::Type { variable: name, kind: other.to_string() }),
            }
        }
        let reals: BTreeSet<&str> = bounds.iter().map(|(name, ..)| name.as_str()).collect();
        let kinds = |name: &str| match (reals.contains(name), booleans.iter().any(|other| other == name)) {
            (true, _) => Some("real"),
            (_, true) => Some("bool"),
            _ => None,
        };
        let translate = |field: &str, text: &str| {
            nested::to_smtlib(text, &kinds).map_err(|error| ProblemError::Term { field: field.to_string(), error })
        };
        let terms = ProblemTerms {
            support: translate("formula", &density.formula)?,
            weight: translate("weights", &density.weights)?,
            queries: density.queries.iter().map(|q| translate("query", q)).collect::<Result<_, _>>()?,
        };
        Problem::build(String::new(), bounds, booleans, terms)
    }

    fn build(
        name: String,
        bounds: Vec<(String, Option<Rational>, Option<Rational>)>,
        booleans: Vec<String>,
        terms: ProblemTerms,
    ) -> Result<Problem, ProblemError> {
        let reals: Vec<&str> = bounds.iter().map(|(name, ..)| name.as_str()).collect();
        let scope = Constraint {
            formula: Formula::yes(),
            reals: Var::declare_all(&reals),
            booleans: Var::declare_all(&booleans),
        };
        let mut names: Vec<&Var> = scope.reals.iter().chain(&scope.booleans).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ProblemError::Duplicate(pair[0].name().to_string()));
        }
        let formula = |field: &str, text: &str| {
            parse_smtlib_term(text, &scope).map_err(|error| ProblemError::Term { field: field.to_string(), error })
        };
        let mut parts = vec![formula("support", &terms.support)?];
        for (var, (_, low, high)) in scope.reals.iter().zip(&bounds) {
            let x = Linear::from(var.clone());
            parts.extend(low.iter().map(|low| x.ge(low.clone())));
            parts.extend(high.iter().map(|high| x.le(high.clone())));
        }
        let queries = terms.queries.iter().enumerate().map(|(k, q)| formula(&format!("query {}", k + 1), q));
        let queries = queries.collect::<Result<_, _>>()?;
        let wrap = |error| ProblemError::Term { field: "weight".to_string(), error };
        let weight = Piecewise::parse(&terms.weight, &scope).map_err(wrap)?.weight;
        let support = Constraint { formula: Formula::all(parts), ..scope.clone() };
        Ok(Problem { name, support, weight, queries })
    }
}

/// The terms of a problem as text.
struct ProblemTerms {
    support: String,
    weight: String,
    queries: Vec<String>,
}
