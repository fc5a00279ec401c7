//! Translates access control of Apache 2.2: `Order`, `Allow` and `Deny`.

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;

use super::requirement::{Requirement, network};

/// Directives of `mod_access_compat` in one section.
#[derive(Default)]
pub(super) struct OrderDraft {
    /// True if `Order` ends with `deny`, so that clients in neither list are denied.
    denies_others: bool,
    /// True if a directive has been read.
    is_used: bool,
    /// True after `Allow from all`.
    allows_all: bool,
    /// True after `Deny from all`.
    denies_all: bool,
    allow: Vec<String>,
    deny: Vec<String>,
    /// The first `Allow` with addresses, if any.
    exception: Option<Directive>,
    /// The last directive that RockNet cannot express, if any.
    unknown: Option<Directive>,
}

impl OrderDraft {
    /// Reads a directive with its arguments in lower case.
    pub fn read(&mut self, directive: &Directive, words: &[&str]) {
        self.is_used = true;
        let allows = directive.is("Allow");
        match words {
            [order, ..] if directive.is("Order") => self.denies_others = !order.starts_with("deny"),
            ["from", "all"] if allows => self.allows_all = true,
            ["from", "all"] => self.denies_all = true,
            ["from", from @ ..] => {
                if allows {
                    self.exception.get_or_insert_with(|| directive.clone());
                }
                for word in from {
                    match network(word) {
                        Some(network) if allows => self.allow.push(network),
                        Some(network) => self.deny.push(network),
                        None => self.unknown = Some(directive.clone()),
                    }
                }
            }
            _ => self.unknown = Some(directive.clone()),
        }
    }

    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns the clients that the directives permit.
    pub fn requirement(self, notes: &mut Vec<Note>) -> Requirement {
        let mut clients = Requirement {
            unknown: self.unknown,
            ..Requirement::default()
        };
        if self.denies_others {
            // `Deny` takes precedence.
            clients.is_denied = self.denies_all || !self.allows_all && self.allow.is_empty();
            clients.deny = self.deny;
            clients.allow = (!self.allows_all && !clients.is_denied).then_some(self.allow);
        } else if !self.allows_all {
            // `Allow` takes precedence, so with `Allow from all` no list is needed.
            clients.is_denied = self.denies_all && self.allow.is_empty();
            if self.denies_all {
                clients.allow = (!clients.is_denied).then_some(self.allow);
            } else {
                if let Some(exception) = self.exception.filter(|_| !self.deny.is_empty()) {
                    let message = "RockNet has no exceptions from `deny`, so these clients are denied too";
                    notes.differs(&exception, message);
                }
                clients.deny = self.deny;
            }
        }
        clients
    }
}
