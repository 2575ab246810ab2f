//! Objects of JSON whose names are unique. RFC 8259 leaves open what a repeated name means, and readers disagree; here it
//! is an error.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The members of an object in the order of the text.
pub(crate) struct Members<T>(pub Vec<(String, T)>);

impl<T> Members<T> {
    /// Takes out a member by its name.
    pub fn take(&mut self, name: &str) -> Option<T> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.swap_remove(at).1)
    }
}

impl<T> Default for Members<T> {
    fn default() -> Members<T> {
        Members(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
                let (mut members, mut names) = (Vec::new(), HashSet::new());
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("the name `{name}` occurs twice in one object")));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader(PhantomData))
    }
}
