//! Translates access control and authentication of nginx, whose directives depend on each other.

use super::{ConfigLevel, Scope, constant, limit};
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

impl Scope<'_> {
    /// Translates access control and authentication, once their directives are collected.
    pub fn finish(&mut self) {
        self.finish_access();
        limit::finish(&self.limits, &mut self.settings, &mut self.notes);
        let (realm, file) = self.auth;
        match (realm, file) {
            (Some(realm), _) if realm.argument(0) == "off" => {
                // Outside of locations, `off` is RockNet's default, too.
                if self.level == ConfigLevel::Location {
                    self.settings.set("auth", Value::Flag(false), realm.line);
                }
            }
            (Some(realm), Some(file)) if constant(file.argument(0)).is_some() => {
                let auth = vec![
                    ("realm".to_owned(), Value::text(realm.argument(0))),
                    ("file".to_owned(), Value::text(file.argument(0))),
                ];
                self.settings.set("auth", Value::Table(auth), realm.line);
                let message =
                    "hashes of the file must be bcrypt, SHA-crypt, apr1 or argon2: `rocknet check` reports others";
                self.notes.differs(file, message);
            }
            (Some(directive), _) | (None, Some(directive)) => {
                self.settings.close(directive.line);
                let message = "`auth_basic` and a constant `auth_basic_user_file` must stand together, so \
                     `deny = \"all\"` denies every client here: write `auth`";
                self.notes.skip(directive, message);
            }
            (None, None) => {}
        }
        self.finish_satisfy();
    }

    /// Adapts access control to `satisfy any` with a password: an allowed address needs none, and every other client
    /// needs one, also a denied one.
    fn finish_satisfy(&mut self) {
        let is_any = self.settings.get("satisfy") == Some(&Value::text("any"));
        let has_password = matches!(self.settings.get("auth"), Some(Value::Table(_)));
        let Some(first) = self
            .access
            .first()
            .filter(|_| is_any && has_password && !self.settings.is_locked())
        else {
            return;
        };
        let specific = self.access.iter().take_while(|d| d.argument(0) != "all");
        let allowed: Vec<String> = specific.filter(|d| d.is("allow")).map(address).collect();
        let line = first.line;
        match allowed.is_empty() {
            true => {
                self.settings.remove("deny");
                self.settings.set("allow", Value::text("all"), line);
            }
            false => self.settings.set("allow", Value::texts(allowed), line),
        }
    }

    /// Translates `allow` and `deny`. nginx applies the first match; RockNet applies every `deny` first.
    fn finish_access(&mut self) {
        let Some(first) = self.access.first() else { return };
        let line = first.line;
        // nginx never reaches the directives after one for `all`.
        let last = self.access.iter().position(|d| d.argument(0) == "all");
        let (specific, all) = match last {
            Some(at) => (&self.access[..at], Some(self.access[at])),
            None => (&self.access[..], None),
        };
        let allow: Vec<String> = specific.iter().filter(|d| d.is("allow")).map(address).collect();
        let deny: Vec<String> = specific.iter().filter(|d| d.is("deny")).map(address).collect();
        let is_closed = all.is_some_and(|all| all.is("deny"));
        let denies_first = specific.iter().skip_while(|d| d.is("deny")).all(|d| d.is("allow"));
        // The three flags mean that all other clients are denied, that no address is allowed, and that no address is
        // denied.
        match (is_closed, allow.is_empty(), deny.is_empty()) {
            (true, true, _) => self.settings.deny_all(line),
            (true, false, true) => self.settings.set("allow", Value::texts(allow), line),
            (true, false, false) if denies_first => {
                self.settings.set("allow", Value::texts(allow), line);
                self.settings.set("deny", Value::texts(deny), line);
            }
            (false, true, false) => self.settings.set("deny", Value::texts(deny), line),
            (false, _, true) => self.settings.set("allow", Value::text("all"), line),
            (false, false, false) if denies_first => self.settings.set("deny", Value::texts(deny), line),
            _ => {
                self.settings.close(line);
                let message = "an `allow` before a `deny` is an exception, which RockNet does not have, so \
                     `deny = \"all\"` denies every client here";
                self.notes.skip(first, message);
            }
        }
    }
}

/// Returns the address of an `allow` or `deny`.
fn address(directive: &&Directive) -> String {
    match directive.argument(0) {
        "unix:" => "unix".to_owned(),
        address => address.to_owned(),
    }
}
