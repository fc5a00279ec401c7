//! Names that need certificates, and the settings of their orders.

use std::collections::BTreeSet;

use rocknet_config::model::Acme;

use super::persistence;
use crate::storage::Storage;

/// Names that need certificates, according to the latest configuration.
#[derive(Default)]
pub struct DesiredState {
    pub settings: Acme,
    /// Names whose certificates are ordered before a client requests them.
    pub names: BTreeSet<String>,
    /// Parent domains of wildcards. A certificate for a name below one of them is ordered when a client requests the
    /// name.
    pub wildcard_parents: Vec<String>,
}

impl DesiredState {
    /// Returns true if the name is in `names` or below one of the wildcard parents.
    pub fn covers(&self, name: &str) -> bool {
        let is_below = |parent: &String| {
            name.strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        self.names.contains(name) || self.wildcard_parents.iter().any(is_below)
    }

    /// Returns `names`, and each name below a wildcard parent that has a stored certificate, which must be renewed too.
    pub fn known_names(&self, storage: &dyn Storage) -> BTreeSet<String> {
        let mut names = self.names.clone();
        if !self.wildcard_parents.is_empty() {
            // A host name is its own item name, so the two can be compared.
            let stored = persistence::stored_names(storage).into_iter();
            names.extend(stored.filter(|name| self.covers(name)));
        }
        names
    }
}
