//! How the variables of a constraint are declared in a script.

use std::collections::{HashMap, HashSet};

use super::super::{Category, Connective, Constraint, Formula, Node, Var};
use super::integer::written_bounds;
use super::scope::is_built_in;
use super::symbol::symbol;

/// The declarations of a script.
pub(super) struct WrittenDeclarations {
    /// Their text.
    pub(super) text: String,
    /// How Boolean variables of categories are written: `(= mode walk)`.
    pub(super) literals: HashMap<Var, String>,
    /// The categories that are written as constants, whose rules go without saying.
    pub(super) rules: Vec<Category>,
}

impl WrittenDeclarations {
    pub(super) fn of(constraint: &Constraint) -> WrittenDeclarations {
        let mut all = WrittenDeclarations { text: String::new(), literals: HashMap::new(), rules: Vec::new() };
        for var in &constraint.reals {
            all.text.push_str(&format!("(declare-const {} Real)\n", symbol(var.name())));
        }
        let variables = constraint.reals.iter().chain(&constraint.booleans).map(|var| var.name().to_string());
        let mut taken: HashSet<String> = variables.collect();
        // The categories by their first variables, and the sorts by their values.
        let categories: Vec<Category> =
            Category::all_of(constraint).into_iter().filter(|category| is_writable(category, constraint)).collect();
        let mut sorts: HashMap<Vec<String>, String> = HashMap::new();
        for var in &constraint.booleans {
            if all.literals.contains_key(var) {
                continue;
            }
            let category = categories.iter().find(|category| category.variables().first() == Some(var));
            if category.is_none_or(|category| !all.add(category, &mut taken, &mut sorts)) {
                all.text.push_str(&format!("(declare-const {} Bool)\n", symbol(var.name())));
            }
        }
        all
    }

    /// Declares a category as an integer or as a constant of an enumerated sort. Tells whether names allow that.
    fn add(
        &mut self,
        category: &Category,
        taken: &mut HashSet<String>,
        sorts: &mut HashMap<Vec<String>, String>,
    ) -> bool {
        let name = category.name();
        if taken.contains(name) || is_built_in(name) {
            return false;
        }
        let (constant, labels) = (symbol(name), category.values());
        let written: Vec<String>;
        if let Some(bounds) = written_bounds(category, &constant) {
            self.text.push_str(&format!("(declare-const {constant} Int)\n{bounds}"));
            written = labels
                .iter()
                .map(|label| label.strip_prefix('-').map_or(label.clone(), |n| format!("(- {n})")))
                .collect();
        } else {
            if !sorts.contains_key(labels) {
                let clash = |label: &String| taken.contains(label) || label == name || is_built_in(label);
                if labels.iter().any(clash) {
                    return false;
                }
                let sort = symbol(&format!("{name}-value"));
                let values: Vec<String> = labels.iter().map(|label| format!("({})", symbol(label))).collect();
                self.text.push_str(&format!("(declare-datatype {sort} ({}))\n", values.join(" ")));
                taken.extend(labels.iter().cloned());
                sorts.insert(labels.to_vec(), sort);
            }
            self.text.push_str(&format!("(declare-const {constant} {})\n", sorts[labels]));
            written = labels.iter().map(|label| symbol(label)).collect();
        }
        taken.insert(name.to_string());
        for (var, label) in category.variables().iter().zip(written) {
            self.literals.insert(var.clone(), format!("(= {constant} {label})"));
        }
        self.rules.push(category.clone());
        true
    }

    /// The formula without the parts that the declarations say already.
    pub(super) fn without_rules(&self, formula: &Formula) -> Formula {
        let said = |part: &Formula| self.rules.iter().any(|category| category.is_rule(part));
        match formula.node() {
            _ if self.rules.is_empty() => formula.clone(),
            Node::Connective(Connective::And, parts) => Formula::all(parts.iter().filter(|part| !said(part)).cloned()),
            _ if said(formula) => Formula::yes(),
            _ => formula.clone(),
        }
    }
}

/// Whether the constraint gives the category exactly one value, and its variables stand together.
fn is_writable(category: &Category, constraint: &Constraint) -> bool {
    let together = constraint.booleans.windows(category.values().len()).any(|window| window == category.variables());
    together && category.is_enforced_by(&constraint.formula)
}
