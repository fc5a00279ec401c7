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
    /// Parent domains of wildcards, such as `example.com` for `*.example.com`. A certificate for a name below one of
    /// them is ordered when a client requests the name.
    pub wildcard_parents: Vec<String>,
}

impl DesiredState {
    /// Returns true if the name is in `names`, or a host name below one of the wildcard parents.
    ///
    /// The wildcard `*.example.com` is no host name below `example.com`, although its certificate may still be stored
    /// from earlier settings with validation by DNS. That certificate cannot be renewed, because `wildcard_parents` has
    /// a parent only if the present settings lack this validation.
    pub fn covers(&self, name: &str) -> bool {
        let is_below = |parent: &String| {
            name.strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.') && !rest.starts_with('*'))
        };
        self.names.contains(name) || self.wildcard_parents.iter().any(is_below)
    }

    /// Returns `names`, and each name below a wildcard parent that has a stored certificate, which must be renewed too.
    pub fn known_names(&self, storage: &dyn Storage) -> BTreeSet<String> {
        let mut names = self.names.clone();
        if !self.wildcard_parents.is_empty() {
            let stored = persistence::stored_host_names(storage).into_iter();
            names.extend(stored.filter(|name| self.covers(name)));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Access;
    use crate::storage::memory::MemoryStorage;

    #[test]
    fn stored_wildcards_are_not_renewed_as_host_names() {
        let storage = MemoryStorage::default();
        // The wildcard was ordered before `ask` replaced the validation by DNS.
        for name in ["+.example.com", "+10.0.0.1", "shop.example.com", "example.org"] {
            let item = format!("acme/certificates/{name}.pem");
            storage.write(&item, b"", Access::Owner).unwrap();
        }
        let mut desired = DesiredState {
            wildcard_parents: vec!["example.com".to_owned()],
            ..DesiredState::default()
        };
        let known: Vec<String> = desired.known_names(&storage).into_iter().collect();
        assert_eq!(known, ["shop.example.com"]);
        assert!(desired.covers("a.b.example.com"));
        assert!(!desired.covers("*.example.com") && !desired.covers("example.com"));
        desired.names.insert("*.example.com".to_owned());
        assert!(desired.covers("*.example.com"));
    }
}
