//! Settings of a site, a route or a global table: values by key, each with the line of its directive.

use std::collections::BTreeMap;

use crate::value::{Value, bare_or_quoted, quoted_key};

/// Value of a key, with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub value: Value,
    /// Line of the directive, counted from 1.
    pub line: usize,
}

/// Settings of one table. Keys of maps, such as `headers."X-Frame-Options"`, are stored in their dotted form, so that
/// each entry is on a separate line of the result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    values: BTreeMap<String, Setting>,
    /// True if [`Settings::close`] has set `deny = "all"` in place of a restriction that RockNet cannot express. An
    /// `allow` of a nested block must then not permit clients either.
    is_locked: bool,
}

/// Order of keys in the translated file. Other keys follow, in alphabetical order.
const ORDER: [&str; 30] = [
    "aliases",
    "listen",
    "tls",
    "cert",
    "key",
    "root",
    "alias",
    "index",
    "php",
    "proxy",
    "fastcgi",
    "uwsgi",
    "scgi",
    "cgi",
    "try",
    "fallback",
    "browse",
    "internal",
    "compress",
    "symlinks",
    "allow",
    "deny",
    "auth",
    "satisfy",
    "limit",
    "limits",
    "redirects",
    "headers",
    "errors",
    "log",
];

/// Keys that restrict access. If the check refuses one of their values, `deny = "all"` closes the table.
const ACCESS: [&str; 4] = ["allow", "deny", "auth", "internal"];

impl Settings {
    /// Sets a key, replacing an earlier value. Ignores `allow` if every client is denied already.
    pub fn set(&mut self, key: &str, value: Value, line: usize) {
        if key == "allow" && self.is_closed() {
            return;
        }
        self.values.insert(key.to_owned(), Setting { value, line });
    }

    /// Sets a key that has no value yet.
    pub fn set_default(&mut self, key: &str, value: Value, line: usize) {
        if !self.has(key) {
            self.set(key, value, line);
        }
    }

    /// Sets an entry of a map, such as `headers`.
    pub fn set_entry(&mut self, map: &str, name: &str, value: Value, line: usize) {
        // The entries of `limits` are keys of RockNet. Entries of other maps, such as field names, are always quoted.
        let name = if map == "limits" {
            bare_or_quoted(name)
        } else {
            quoted_key(name)
        };
        self.set(&format!("{map}.{name}"), value, line);
    }

    /// Returns true if a map has an entry, whose name may differ in case.
    pub fn has_entry(&self, map: &str, name: &str) -> bool {
        let key = format!("{map}.{}", quoted_key(name));
        self.values.keys().any(|known| known.eq_ignore_ascii_case(&key))
    }

    /// Removes an entry of a map, whose name may differ in case.
    pub fn remove_entry(&mut self, map: &str, name: &str) {
        let key = format!("{map}.{}", quoted_key(name));
        self.values.retain(|known, _| !known.eq_ignore_ascii_case(&key));
    }

    /// Denies every client, because a restriction cannot be expressed.
    pub fn close(&mut self, line: usize) {
        // RockNet refuses an `allow` with addresses beside `deny = "all"`.
        self.values.remove("allow");
        self.set("deny", Value::text("all"), line);
        self.is_locked = true;
    }

    /// Denies every client, as the original configuration does. Unlike after [`Settings::close`], nested blocks may
    /// permit clients again.
    pub fn deny_all(&mut self, line: usize) {
        self.values.remove("allow");
        self.set("deny", Value::text("all"), line);
    }

    /// Returns true if the table denies every client because a restriction cannot be expressed.
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Returns true if a key restricts access, and does not only cancel an inherited restriction.
    pub fn restricts(&self) -> bool {
        self.get("allow").is_some_and(|value| *value != Value::text("all"))
            || self.get("deny").is_some_and(|value| *value != Value::List(Vec::new()))
            || self.get("auth").is_some_and(|value| *value != Value::Flag(false))
            || self.get("internal") == Some(&Value::Flag(true))
    }

    /// Returns true if other settings have the same keys with the same values, whatever their lines are.
    pub fn has_same_values(&self, other: &Settings) -> bool {
        let mut both = self.values.iter().zip(&other.values);
        self.values.len() == other.values.len() && both.all(|(a, b)| a.0 == b.0 && a.1.value == b.1.value)
    }

    /// Returns true if every client is denied.
    pub fn is_closed(&self) -> bool {
        matches!(self.get("deny"), Some(Value::Text(all)) if all == "all")
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|setting| &setting.value)
    }

    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Returns true if a map, such as `redirects`, has an entry.
    pub fn has_map(&self, map: &str) -> bool {
        let prefix = format!("{map}.");
        let mut entries = self.values.range(prefix.clone()..);
        entries.next().is_some_and(|(key, _)| key.starts_with(&prefix))
    }

    pub fn remove(&mut self, key: &str) -> Option<Setting> {
        self.values.remove(key)
    }

    /// Removes a key that the configuration check refuses, and returns its setting. If the key restricts access, denies
    /// every client instead. Returns `None` if nothing can be removed.
    ///
    /// `deny = "all"` is never removed. The check refuses it beside an `allow` with addresses that the table inherits.
    /// So `allow = "all"` is added, which cancels that list and admits no client, because `deny` takes precedence.
    pub fn refuse(&mut self, key: &str) -> Option<Setting> {
        if key == "deny" && self.is_closed() {
            let all = Value::text("all");
            // The refusal has another cause, for which there is no remedy.
            if self.get("allow") == Some(&all) {
                return None;
            }
            let refused = self.values.get(key)?.clone();
            let allow = Setting {
                value: all,
                line: refused.line,
            };
            self.values.insert("allow".to_owned(), allow);
            return Some(refused);
        }
        let removed = self.values.remove(key)?;
        if ACCESS.contains(&key) || is_protective(key, &removed.value) {
            self.close(removed.line);
        }
        Some(removed)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds the settings of another table. They replace settings of this table with the same key.
    pub fn merge(&mut self, other: Settings) {
        self.is_locked |= other.is_locked;
        self.values.extend(other.values);
        if self.is_closed() {
            self.values.remove("allow");
        }
    }

    /// Cancels an inherited `deny` if these settings have only an `allow`, and vice versa: in nginx, the lists of a
    /// block replace both inherited lists. If the inherited settings are locked, replaces the lists of these settings
    /// by `deny = "all"` instead.
    pub fn cancel_inherited_lists(&mut self, inherited: &Settings, line: usize) {
        if inherited.is_locked {
            return self.keep_closed(line);
        }
        let cancelled = [
            ("allow", "deny", Value::List(Vec::new())),
            ("deny", "allow", Value::text("all")),
        ];
        for (own, other, value) in cancelled {
            if self.has(own) && !self.has(other) && inherited.has(other) && !self.is_closed() {
                self.set(other, value, line);
            }
        }
    }

    /// Replaces `allow` and `deny` by `deny = "all"`, because they would replace the `deny = "all"` of the locked
    /// settings that these settings inherit from.
    fn keep_closed(&mut self, line: usize) {
        let has_lists = self.has("allow") || self.has("deny");
        self.values.remove("allow");
        self.values.remove("deny");
        if has_lists {
            self.close(line);
        }
    }

    /// Returns the keys and settings in the order of the translated file.
    pub fn in_order(&self) -> Vec<(&str, &Setting)> {
        let mut all: Vec<_> = self
            .values
            .iter()
            .map(|(key, setting)| (key.as_str(), setting))
            .collect();
        all.sort_by_key(|(key, _)| {
            let base = key.split('.').next().unwrap_or(key);
            ORDER.iter().position(|known| *known == base).unwrap_or(ORDER.len())
        });
        all
    }
}

/// Returns true if a value protects the site: `tls` requires client certificates, or a handler processes files that the
/// server would otherwise send unchanged, such as scripts with passwords.
fn is_protective(key: &str, value: &Value) -> bool {
    const HANDLERS: [&str; 6] = ["php", "proxy", "fastcgi", "uwsgi", "scgi", "cgi"];
    match value {
        Value::Table(entries) if key == "tls" => entries.iter().any(|(key, _)| key == "client_ca"),
        value => HANDLERS.contains(&key) && *value != Value::Flag(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_restrictions_close_the_place() {
        for key in ACCESS {
            let mut settings = Settings::default();
            settings.set(key, Value::text("10.0.0.1"), 1);
            settings.refuse(key);
            assert!(settings.is_closed(), "{key}");
            // The check refuses `deny` beside an inherited `allow`.
            settings.refuse("deny");
            assert!(
                settings.is_closed() && settings.get("allow") == Some(&Value::text("all")),
                "{key}"
            );
            // Another refusal of `deny` must not open the place.
            assert!(settings.refuse("deny").is_none() && settings.is_closed(), "{key}");
        }
    }
}
