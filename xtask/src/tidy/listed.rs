//! Exceptions of a rule. Each has a reason, and an exception that matches nothing is an error, so the list only
//! shrinks.

use std::collections::BTreeSet;

/// One exception of a rule.
pub struct Listed {
    /// Path of the file, or folder of the crate, from the root of the checkout.
    pub file: &'static str,
    /// Name in the file that the exception is for; empty for the whole file.
    pub name: &'static str,
    pub reason: &'static str,
}

/// Exceptions of one rule, and the indices of those that were used.
pub struct Exceptions {
    listed: &'static [Listed],
    used: BTreeSet<usize>,
}

impl Exceptions {
    pub fn new(listed: &'static [Listed]) -> Exceptions {
        Exceptions {
            listed,
            used: BTreeSet::new(),
        }
    }

    /// Returns true if `name` in `file` is listed, and marks the exception as used.
    pub fn has(&mut self, file: &str, name: &str) -> bool {
        let matches = |one: &Listed| one.file == file && (one.name.is_empty() || one.name == name);
        let found = self.listed.iter().position(matches);
        self.used.extend(found);
        found.is_some()
    }

    /// Returns a violation for each exception that was not used.
    pub fn left(&self, rule: &str) -> Vec<String> {
        let left = self
            .listed
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.used.contains(index));
        let shown = left.map(|(_, one)| {
            let name = if one.name.is_empty() { "the file" } else { one.name };
            let reason = one.reason;
            format!(
                "{}: {name} does not violate {rule}: remove the exception ({reason})",
                one.file
            )
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_exceptions_are_violations() {
        const LISTED: &[Listed] = &[
            Listed {
                file: "a.rs",
                name: "",
                reason: "r",
            },
            Listed {
                file: "b.rs",
                name: "B",
                reason: "r",
            },
        ];
        let mut exceptions = Exceptions::new(LISTED);
        assert!(!exceptions.has("c.rs", "B") && !exceptions.has("b.rs", "C"));
        assert_eq!(exceptions.left("rule").len(), 2);
        assert!(exceptions.has("a.rs", "A"));
        assert_eq!(exceptions.left("rule").len(), 1);
        assert!(exceptions.has("b.rs", "B"));
        assert!(exceptions.left("rule").is_empty());
    }
}
