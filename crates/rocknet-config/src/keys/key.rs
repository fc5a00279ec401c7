//! A key of the configuration: its name, tables, kind, documentation and bindings.

use super::target::{Model, Target};
use crate::binding::{BoundKey, Kind, Section, SettingGroup};

/// One key, with everything that the check, the reference and the editors need of it.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    /// The tables it may stand in.
    pub sections: &'static [Section],
    pub kind: Kind,
    /// Sentences for the reference: the effect, with units and bounds that the kind does not hold.
    pub doc: &'static str,
    /// Writes the default where the bound value does not give it.
    default: Option<fn() -> String>,
    /// The values of the model that the key sets.
    pub(crate) targets: &'static [Target],
    /// The part of an explanation that shows the key.
    pub(crate) group: Option<SettingGroup>,
    /// Lines of TOML, as they would stand under the key's header.
    pub example: &'static str,
    pub availability: Availability,
    /// Names of the key in other servers: a hint for configurations that come from there.
    pub elsewhere: &'static [&'static str],
}

/// The versions in which a key acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Now,
    /// Refused until this feature comes.
    Later(&'static str),
    /// Only `value` acts; any other waits for the feature.
    Only {
        value: Literal,
        feature: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    False,
    Text(&'static str),
}

impl Key {
    /// Returns the key as it is bound to a part of the model.
    pub(crate) fn bound<T: Model>(&'static self) -> Option<BoundKey<T>> {
        let binding = self.targets.iter().find_map(T::binding)?;
        Some(BoundKey {
            name: self.name,
            kind: &self.kind,
            binding,
        })
    }

    /// Returns the default as it would be written; empty when there is none.
    pub fn default_value(&self) -> String {
        let bound = || self.targets.iter().find_map(|target| target.default(&self.kind));
        self.default.map(|write| write()).or_else(bound).unwrap_or_default()
    }

    pub(super) const fn new(name: &'static str, sections: &'static [Section], kind: Kind, doc: &'static str) -> Key {
        Key {
            name,
            sections,
            kind,
            doc,
            default: None,
            targets: &[],
            group: None,
            example: "",
            availability: Availability::Now,
            elsewhere: &[],
        }
    }

    /// The default, for a key whose bound value does not give it.
    pub(super) const fn default(mut self, write: fn() -> String) -> Key {
        self.default = Some(write);
        self
    }

    /// The default of a list or map without entries.
    pub(super) const fn empty(self) -> Key {
        match self.kind {
            Kind::Map { .. } => self.default(|| "{}".to_owned()),
            _ => self.default(|| "[]".to_owned()),
        }
    }

    /// The values that the key sets, whose defaults are the default of the key.
    pub(super) const fn sets(mut self, targets: &'static [Target]) -> Key {
        self.targets = targets;
        self
    }

    /// The part of an explanation that shows the key.
    pub(super) const fn group(mut self, group: SettingGroup) -> Key {
        self.group = Some(group);
        self
    }

    pub(super) const fn example(mut self, text: &'static str) -> Key {
        self.example = text;
        self
    }

    pub(super) const fn available(mut self, availability: Availability) -> Key {
        self.availability = availability;
        self
    }

    pub(super) const fn elsewhere(mut self, names: &'static [&'static str]) -> Key {
        self.elsewhere = names;
        self
    }
}
