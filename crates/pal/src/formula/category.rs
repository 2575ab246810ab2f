//! Variables with one of several named values, as Boolean variables of which exactly one is true.

use super::{Connective, Constraint, Formula, Node, Var};

/// A variable that has one of several named values.
///
/// A category is a group of Boolean variables, one per value, with the names `category=value`. A formula about one value
/// speaks of all of them, so a constraint knows the categories that it is about by the names of its variables.
///
/// ```
/// use pal::formula::{Category, Constraint, reals};
/// let [x] = reals(["x"]);
/// let mode = Category::new("mode", &["walk", "bike", "car"])?;
/// let slow = Constraint::new(x.between(0, 30) & mode.is("walk")?.implies(x.le(6)));
/// assert_eq!(slow.booleans.len(), 3);
/// assert_eq!(Category::all_of(&slow), [mode.clone()]);
/// assert!(mode.is("train").unwrap_err().to_string().contains("walk, bike, car"));
/// # Ok::<(), pal::formula::CategoryError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    name: String,
    values: Vec<String>,
    variables: Vec<Var>,
}

/// Why a category cannot be made or asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CategoryError {
    /// Fewer than two values.
    #[error("the category `{0}` needs at least two values")]
    TooFewValues(String),
    /// A value that is listed twice.
    #[error("the category `{category}` has the value `{value}` twice")]
    Repeated {
        /// The name of the category.
        category: String,
        /// The value.
        value: String,
    },
    /// A name that cannot be told from a value.
    #[error("`{0}` has a `=`, which separates a category from its value; choose another name")]
    Separator(String),
    /// A value that the category does not have.
    #[error("the category `{category}` has no value `{value}`; it has {known}")]
    Unknown {
        /// The name of the category.
        category: String,
        /// The value that was asked for.
        value: String,
        /// The values that there are.
        known: String,
    },
}

impl Category {
    /// A category with these values, in this order, which is the order of their columns.
    pub fn new<S: AsRef<str>>(name: &str, values: &[S]) -> Result<Category, CategoryError> {
        let slots = Var::declare_all(&vec![name; values.len()]);
        Category::in_slots(name, values, &slots)
    }

    /// The category whose variables are declared at the moments of others, of which there are at least as many.
    pub(super) fn in_slots<S: AsRef<str>>(name: &str, values: &[S], slots: &[Var]) -> Result<Category, CategoryError> {
        let values: Vec<String> = values.iter().map(|value| value.as_ref().to_string()).collect();
        if name.contains('=') {
            return Err(CategoryError::Separator(name.to_string()));
        }
        if values.len() < 2 {
            return Err(CategoryError::TooFewValues(name.to_string()));
        }
        if let Some(k) = (0..values.len()).find(|k| values[..*k].contains(&values[*k])) {
            return Err(CategoryError::Repeated { category: name.to_string(), value: values[k].clone() });
        }
        let variable = |(value, slot): (&String, &Var)| slot.renamed(&format!("{name}={value}"));
        let variables = values.iter().zip(slots).map(variable).collect();
        Ok(Category { name: name.to_string(), values, variables })
    }

    /// The name of the category.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values, in the order of their columns.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The Boolean variables, one per value.
    pub fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// The formula that the category has a value, and no other.
    pub fn is(&self, value: &str) -> Result<Formula, CategoryError> {
        let Some(at) = self.values.iter().position(|known| known == value) else {
            let (category, value, known) = (self.name.clone(), value.to_string(), self.values.join(", "));
            return Err(CategoryError::Unknown { category, value, known });
        };
        Ok(self.only(at))
    }

    fn only(&self, chosen: usize) -> Formula {
        Formula::all(self.variables.iter().enumerate().map(|(at, var)| {
            let literal = Formula::from(var.clone());
            if at == chosen { literal } else { !literal }
        }))
    }

    /// The formula that the category has exactly one of its values.
    pub fn exactly_one(&self) -> Formula {
        Formula::any((0..self.values.len()).map(|at| self.only(at)))
    }

    /// The categories of a constraint: its Boolean variables with names `category=value` of which there are two or more.
    pub fn all_of(constraint: &Constraint) -> Vec<Category> {
        let mut found: Vec<Category> = Vec::new();
        for var in &constraint.booleans {
            let Some((name, value)) = var.name().split_once('=') else { continue };
            let at = found.iter().position(|category| category.name == name).unwrap_or_else(|| {
                found.push(Category { name: name.to_string(), values: Vec::new(), variables: Vec::new() });
                found.len() - 1
            });
            found[at].values.push(value.to_string());
            found[at].variables.push(var.clone());
        }
        found.retain(|category| category.values.len() > 1);
        found
    }

    /// Whether a part of a conjunction says that the category has exactly one of its values, in the words of
    /// [`Category::exactly_one`].
    pub(super) fn is_rule(&self, part: &Formula) -> bool {
        let alike = matches!(part.node(), Node::Connective(Connective::Or, parts) if parts.len() == self.values.len());
        alike && part.to_string() == self.exactly_one().to_string()
    }

    /// Whether the constraint says that the category has exactly one of its values, in those very words.
    pub(super) fn is_enforced_by(&self, formula: &Formula) -> bool {
        match formula.node() {
            Node::Connective(Connective::And, parts) => parts.iter().any(|part| self.is_rule(part)),
            _ => self.is_rule(formula),
        }
    }

    /// The constraint in which every category has exactly one of its values.
    pub fn enforce(constraint: &Constraint) -> Constraint {
        let open = |category: &Category| !category.is_enforced_by(&constraint.formula);
        let rules = Category::all_of(constraint).into_iter().filter(open).map(|category| category.exactly_one());
        let formula = rules.fold(constraint.formula.clone(), |formula, rule| formula & rule);
        Constraint { formula, ..constraint.clone() }
    }
}
