//! Key of the configuration, with its name, sections, kind, documentation and bindings.

use super::target::{Model, Target};
use crate::binding::{BoundKey, Kind, Section, SettingGroup};

/// Key of the configuration, as the check, the reference, the JSON Schema and editors use it.
#[derive(Debug)]
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Sections that may contain the key.
    pub sections: &'static [Section],
    /// Kind of its values.
    pub kind: Kind,
    /// Documentation in the reference: the effect, with units and bounds that the kind does not state. The first
    /// sentence is the summary.
    pub doc: &'static str,
    /// Renders the default if it cannot be taken from the bound value.
    default: Option<fn() -> String>,
    /// Values of the model that the key sets.
    pub(crate) targets: &'static [Target],
    /// Group in which `rocknet explain` lists the key; `None` if it does not list the key.
    pub(crate) group: Option<SettingGroup>,
    /// Example: lines of TOML that belong in the section of the key, or that begin with a header. Empty if the key has
    /// no example.
    pub example: &'static str,
    /// Names of the setting in other servers. If the operator writes one of them, the check proposes this key.
    pub foreign_names: &'static [&'static str],
}

impl Key {
    /// Returns the key with its binding to a part of the model; `None` if the key sets nothing in that part.
    pub(crate) fn bound<T: Model>(&'static self) -> Option<BoundKey<T>> {
        let binding = self.targets.iter().find_map(T::binding)?;
        Some(BoundKey {
            name: self.name,
            kind: &self.kind,
            binding,
        })
    }

    /// Returns the default as TOML; empty without a default.
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
            foreign_names: &[],
        }
    }

    /// Sets the default of a key whose default cannot be taken from the bound value.
    pub(super) const fn default(mut self, write: fn() -> String) -> Key {
        self.default = Some(write);
        self
    }

    /// Sets the default to an empty list or map.
    pub(super) const fn empty_by_default(self) -> Key {
        match self.kind {
            Kind::Map { .. } => self.default(|| "{}".to_owned()),
            _ => self.default(|| "[]".to_owned()),
        }
    }

    /// Binds the key to the values of the model that it sets. The default of these values is the default of the key.
    pub(super) const fn sets(mut self, targets: &'static [Target]) -> Key {
        self.targets = targets;
        self
    }

    /// Sets the group in which `rocknet explain` lists the key.
    pub(super) const fn group(mut self, group: SettingGroup) -> Key {
        self.group = Some(group);
        self
    }

    pub(super) const fn example(mut self, text: &'static str) -> Key {
        self.example = text;
        self
    }

    pub(super) const fn foreign_names(mut self, names: &'static [&'static str]) -> Key {
        self.foreign_names = names;
        self
    }
}
