//! Matchers of Caddy: paths, and conditions that rules of RockNet can express.

use std::collections::HashMap;

use crate::directive::Directive;
use crate::regex;
use crate::value::Value;

/// Named matchers of a site, by their name with `@`.
pub(super) type NamedMatchers = HashMap<String, PathMatcher>;

/// A matcher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathMatcher {
    /// Patterns of paths; empty for every path.
    pub patterns: Vec<String>,
    /// Patterns for longer names that begin with a path, such as `/api2` for the matcher `/api*`. The original matcher
    /// matched these names, too.
    pub beginnings: Vec<String>,
    pub hosts: Vec<String>,
    /// Conditions other than paths and hosts, as keys of a rule.
    pub conditions: Vec<(&'static str, Value)>,
    /// Addresses of clients, and true if the matcher stands for all other clients.
    pub clients: Option<(Vec<String>, bool)>,
    /// Reason why the matcher cannot be translated; `None` if it can.
    pub error: Option<String>,
    /// Difference between the paths that the patterns and the matcher match, if there is one.
    pub difference: Option<&'static str>,
}

impl PathMatcher {
    /// Returns true if only the path is matched, so that a route can express the matcher.
    pub fn is_path(&self) -> bool {
        self.hosts.is_empty() && self.conditions.is_empty() && self.clients.is_none() && self.error.is_none()
    }

    /// Returns true if the matcher has host names and no other condition.
    pub fn is_host(&self) -> bool {
        let has_names = !self.hosts.is_empty() && self.error.is_none();
        has_names && self.patterns.is_empty() && self.conditions.is_empty() && self.clients.is_none()
    }

    /// Returns the matcher as keys of a rule; `None` if a rule cannot express it.
    pub fn keys(&self) -> Option<Vec<(&'static str, Value)>> {
        if self.clients.is_some() || self.error.is_some() {
            return None;
        }
        let mut keys = Vec::new();
        if !self.patterns.is_empty() {
            keys.push(("path", Value::texts(self.patterns.iter())));
        }
        if !self.hosts.is_empty() {
            keys.push(("host", Value::texts(self.hosts.iter())));
        }
        keys.extend(self.conditions.iter().cloned());
        Some(keys)
    }

    fn path(&mut self, path: &str) {
        let path = path.to_owned();
        if path == "*" || path == "/*" {
            return;
        }
        match path.strip_suffix('*') {
            // `/api*` matches `/api`, `/api/x` and `/apix`.
            Some(start) if !start.contains('*') && !start.ends_with('/') && start.starts_with('/') => {
                self.difference = Some("the matcher also matched names that only begin with the path");
                self.patterns.push(start.to_owned());
                self.patterns.push(format!("{start}/*"));
                self.beginnings.push(path);
            }
            _ if path.starts_with("*/") && path.ends_with("/*") || path.contains(['{', '%']) => {
                self.error = Some(format!("`{path}` has no pattern"));
            }
            _ => self.patterns.push(path),
        }
    }

    fn fail(&mut self, directive: &Directive) {
        self.error = Some(format!("`{}` has no counterpart", directive.text()));
    }

    /// Reads a condition of a named matcher.
    fn read(&mut self, directive: &Directive, is_negated: bool) {
        let words = directive.words();
        if is_negated && !matches!(directive.name.as_str(), "remote_ip" | "client_ip") {
            return self.fail(directive);
        }
        match (directive.name.as_str(), &words[..]) {
            ("path", paths) if self.patterns.is_empty() => paths.iter().for_each(|path| self.path(path)),
            ("path_regexp", [expression] | [_, expression]) if self.patterns.is_empty() => {
                match regex::patterns(expression) {
                    Some(found) => {
                        self.patterns = found.patterns;
                        self.beginnings = found.beginnings;
                        self.difference = found.difference;
                    }
                    None => self.fail(directive),
                }
            }
            ("host", hosts) => self.hosts.extend(hosts.iter().map(|host| (*host).to_owned())),
            ("method", methods) => {
                let methods = methods.iter().map(|method| method.to_ascii_uppercase());
                self.conditions.push(("method", Value::texts(methods)));
            }
            ("header", [name, value]) if !name.starts_with('!') && !value.contains('{') => {
                self.map("header", name, value);
            }
            ("header", [name]) => match name.strip_prefix('!') {
                Some(name) => self.map("header", name, ""),
                None => self.map("header", name, "*"),
            },
            ("query", [pair]) if !pair.contains('{') => {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                self.map("query", name, value);
            }
            ("protocol", [scheme @ ("http" | "https")]) => self.conditions.push(("scheme", Value::text(*scheme))),
            ("remote_ip" | "client_ip", ranges) if self.clients.is_none() => {
                let ranges = ranges.iter().map(|range| match *range {
                    "private_ranges" => "private".to_owned(),
                    range => range.to_owned(),
                });
                self.clients = Some((ranges.collect(), is_negated));
            }
            ("not", [name, rest @ ..]) => {
                let rest = rest.iter().map(|word| (*word).to_owned()).collect();
                self.read(&Directive::new(*name, rest, directive.line), true);
            }
            ("not", []) => match directive.children() {
                [inner] => self.read(inner, true),
                _ => self.fail(directive),
            },
            _ => self.fail(directive),
        }
    }

    fn map(&mut self, key: &'static str, name: &str, value: &str) {
        let entry = (name.to_owned(), Value::text(value));
        for (known, table) in &mut self.conditions {
            if let (true, Value::Table(entries)) = (*known == key, table) {
                entries.push(entry);
                return;
            }
        }
        self.conditions.push((key, Value::Table(vec![entry])));
    }
}

/// Returns the named matchers that are defined directly in a block.
pub(super) fn named(block: &[Directive]) -> NamedMatchers {
    let mut all = NamedMatchers::new();
    for directive in block.iter().filter(|directive| directive.name.starts_with('@')) {
        let mut matcher = PathMatcher::default();
        match directive.arguments.split_first() {
            Some((name, rest)) => {
                let mut single = Directive::new(name, rest.to_vec(), directive.line);
                single.block.clone_from(&directive.block);
                matcher.read(&single, false);
            }
            None => directive.children().iter().for_each(|inner| matcher.read(inner, false)),
        }
        all.insert(directive.name.clone(), matcher);
    }
    all
}

/// Splits the matcher from the arguments of a directive. Without a matcher, every path is matched.
pub(super) fn split<'d>(directive: &'d Directive, named: &NamedMatchers) -> (PathMatcher, Vec<&'d str>) {
    let mut words = directive.words();
    let mut matcher = PathMatcher::default();
    // A path that is the only argument of one of these directives is not a matcher.
    let takes_path = matches!(directive.name.as_str(), "root" | "rewrite" | "redir") && words.len() == 1;
    match words.first() {
        _ if takes_path => return (matcher, words),
        Some(&"*") => {}
        Some(path) if path.starts_with('/') => matcher.path(path),
        Some(name) if name.starts_with('@') => {
            matcher = named.get(*name).cloned().unwrap_or_else(|| PathMatcher {
                error: Some(format!("{name} is not defined in this block")),
                ..PathMatcher::default()
            });
        }
        _ => return (matcher, words),
    }
    words.remove(0);
    (matcher, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_matchers_become_conditions() {
        let text = "@a path /x/* /y*\n@b {\n method post\n header X-A b\n}\n@c not remote_ip 10.0.0.0/8 private_ranges\n@d expression true\n";
        let all = named(&super::super::read(text).unwrap());
        assert_eq!(all["@a"].patterns, ["/x/*", "/y", "/y/*"]);
        let keys: Vec<_> = all["@b"].keys().unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["method", "header"]);
        let clients = (vec!["10.0.0.0/8".to_owned(), "private".to_owned()], true);
        assert_eq!(all["@c"].clients, Some(clients));
        assert!(all["@d"].error.is_some());
    }
}
