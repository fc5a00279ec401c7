//! Matchers of Caddy: paths, and conditions that rules of RockNet can express.

use std::collections::HashMap;

use rocknet_config::model::RegexPattern;

use crate::condition::{self, Condition};
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
    /// Patterns that are added to `patterns` for directives that restrict access. Caddy's matcher `/api*` also matches
    /// `/api2`, which its authors rarely mean, so `patterns` has only `/api` and `/api/*` for it. A restriction must
    /// not become weaker, so `/api*` is kept here.
    pub beginnings: Vec<String>,
    pub hosts: Vec<String>,
    /// Conditions other than paths and hosts.
    pub conditions: Vec<Condition>,
    /// Addresses of clients, and true if the matcher stands for all other clients.
    pub clients: Option<(Vec<String>, bool)>,
    /// Reason why the matcher cannot be translated; `None` if it can.
    pub error: Option<String>,
    /// Difference between the paths of `patterns` and those that Caddy's matcher matches, if there is one.
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
        if self.error.is_some() {
            return None;
        }
        let mut conditions = Vec::new();
        if !self.patterns.is_empty() {
            conditions.push(Condition::new("path", Value::texts(self.patterns.iter())));
        }
        if !self.hosts.is_empty() {
            conditions.push(Condition::new("host", Value::texts(self.hosts.iter())));
        }
        if let Some((clients, is_negated)) = &self.clients {
            conditions.push(Condition::new("client", Value::texts(clients.iter())).negated_if(*is_negated));
        }
        conditions.extend(self.conditions.iter().cloned());
        condition::keys(&conditions)
    }

    /// Adds a path to the matcher.
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
            // In Caddy, `*/x/*` matches paths with a folder `x` at any depth, which no pattern of RockNet expresses.
            // `{` begins a placeholder, and `%` an encoded character, which patterns do not have.
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
    fn read(&mut self, directive: &Directive) {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("path", paths) if paths.iter().any(|path| matches!(*path, "*" | "/*")) => {}
            // A path and an expression must both match, for which there is no key.
            ("path", paths) if self.patterns.is_empty() => paths.iter().for_each(|path| self.path(path)),
            ("path_regexp", [expression] | [_, expression]) if self.patterns.is_empty() => {
                let found = regex::patterns(expression).filter(|found| found.difference.is_none());
                // With groups, the expression is kept as it is, because the target of a directive may refer to them, as
                // in `redir @id /item?id={re.id.1}`.
                match (found, RegexPattern::new(expression, false)) {
                    (Some(found), _) if !expression.contains('(') => self.patterns = found.patterns,
                    (_, Ok(regex)) => self.patterns = vec![regex.to_string()],
                    _ => self.fail(directive),
                }
            }
            ("host", hosts) => self.hosts.extend(hosts.iter().map(|host| (*host).to_owned())),
            ("method", methods) => {
                let methods = methods.iter().map(|method| method.to_ascii_uppercase());
                self.conditions.push(Condition::new("method", Value::texts(methods)));
            }
            ("header", [name, value]) if !name.starts_with('!') && !value.contains('{') => {
                self.conditions.push(Condition::entry("header", name, *value));
            }
            ("header", [name]) => self.conditions.push(match name.strip_prefix('!') {
                Some(name) => Condition::entry("header", name, ""),
                None => Condition::entry("header", name, "*"),
            }),
            ("header_regexp", [name, expression] | [_, name, expression]) => {
                match RegexPattern::new(expression, false) {
                    Ok(regex) => self
                        .conditions
                        .push(Condition::entry("header", name, regex.to_string())),
                    Err(_) => self.fail(directive),
                }
            }
            ("query", pairs) if !pairs.iter().any(|pair| pair.contains('{')) => {
                for pair in pairs {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    self.conditions.push(Condition::entry("query", name, value));
                }
            }
            ("protocol", [scheme @ ("http" | "https")]) => {
                self.conditions.push(Condition::new("scheme", Value::text(*scheme)));
            }
            ("remote_ip" | "client_ip", ranges) if self.clients.is_none() => {
                // `forwarded` is an option of the matcher, and no range.
                let ranges = ranges
                    .iter()
                    .filter(|range| **range != "forwarded")
                    .map(|range| match *range {
                        "private_ranges" => "private".to_owned(),
                        range => range.to_owned(),
                    });
                self.clients = Some((ranges.collect(), false));
            }
            ("file", _) => match file(directive) {
                Some(condition) => self.conditions.push(condition),
                None => self.fail(directive),
            },
            ("not", [name, rest @ ..]) => {
                let rest = rest.iter().map(|word| (*word).to_owned()).collect();
                let mut inner = Directive::new(*name, rest, directive.line);
                inner.block.clone_from(&directive.block);
                self.negate(directive, &[inner]);
            }
            ("not", []) => self.negate(directive, directive.children()),
            _ => self.fail(directive),
        }
    }

    /// Reads the conditions of `not`. A request matches unless all of them hold together.
    fn negate(&mut self, directive: &Directive, inner: &[Directive]) {
        let mut matcher = PathMatcher::default();
        for condition in &merged(inner) {
            // `not path /api*` excludes longer names such as `/api2`, too. The expression `~^/api` matches all of them.
            let is_beginning = |path: &String| path.starts_with('/') && path.ends_with('*') && !path.ends_with("/*");
            if condition.is("path") && condition.arguments.iter().any(is_beginning) {
                for path in &condition.arguments {
                    match path.strip_suffix('*') {
                        Some(start) if is_beginning(path) && !start.contains('*') => {
                            matcher.patterns.push(format!("~^{}", condition::escaped(start)));
                        }
                        // `*` matches every path. `PathMatcher::path` would add no pattern for it, so `not path /a* *`
                        // would exclude only the paths of `/a*`.
                        _ if path == "*" || path == "/*" => matcher.patterns.push("/*".to_owned()),
                        _ => matcher.path(path),
                    }
                }
            } else {
                matcher.read(condition);
            }
        }
        if let (Some((clients, is_negated)), true) = (&matcher.clients, inner.len() == 1 && self.clients.is_none()) {
            self.clients = Some((clients.clone(), !is_negated));
            return;
        }
        // The conditions become one `unless`, which cannot contain another `unless`.
        let has_other_clients = matches!(matcher.clients, Some((_, true)));
        let is_positive = !has_other_clients && !matcher.conditions.iter().any(|condition| condition.is_negated);
        match matcher.keys().filter(|keys| is_positive && !keys.is_empty()) {
            Some(keys) => self.conditions.push(Condition { keys, is_negated: true }),
            None => self.fail(directive),
        }
    }
}

/// Returns the conditions of a matcher. Repeated lines such as `path /a` and `path /b` become `path /a /b`, because
/// Caddy requires only one of their values. Conditions with names outside of `MERGED` stay separate.
fn merged(conditions: &[Directive]) -> Vec<Directive> {
    const MERGED: [&str; 4] = ["path", "method", "remote_ip", "client_ip"];
    let mut all: Vec<Directive> = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let same = |known: &&mut Directive| MERGED.contains(&&*known.name) && known.name == condition.name;
        match all.iter_mut().find(same) {
            Some(known) => known.arguments.extend(condition.arguments.iter().cloned()),
            None => all.push(condition.clone()),
        }
    }
    all
}

/// Returns the condition of a `file` matcher, which requires that a path exists on disk; `None` for forms that no
/// condition expresses.
fn file(directive: &Directive) -> Option<Condition> {
    let tried = directive.children().iter().find(|inner| inner.is("try_files"));
    let is_plain = directive.children().iter().all(|inner| inner.is("try_files"));
    let words = match tried {
        Some(tried) => tried.words(),
        None => directive.words(),
    };
    match words[..] {
        _ if !is_plain => None,
        // Caddy looks for a folder if a path ends with a slash, as the path of a request may.
        [] | ["{path}" | "{http.request.uri.path}"] => Some(Condition::new("exists", Value::texts(["file", "folder"]))),
        [path] => {
            let at = path.replace("{http.request.uri.path}", "{path}");
            let is_path = at.starts_with('/') || at.starts_with("{path}");
            let is_constant = is_path && !at.replace("{path}", "").contains('{');
            is_constant.then(|| Condition {
                keys: vec![("exists", Value::text("file")), ("exists_at", Value::Text(at))],
                is_negated: false,
            })
        }
        _ => None,
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
                matcher.read(&single);
            }
            None => merged(directive.children())
                .iter()
                .for_each(|inner| matcher.read(inner)),
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
    let takes_path = matches!(directive.name.as_str(), "root" | "rewrite" | "redir" | "push") && words.len() == 1;
    let is_block = matches!(directive.name.as_str(), "handle" | "handle_path" | "route");
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
        // Caddy refuses blocks with any other argument. `handle *.html { … }` evidently means a path, so it is read as
        // one. `handle html { … }` gets an error, because without a matcher the block would be for every path.
        Some(path) if path.starts_with('*') && is_block => matcher.path(path),
        Some(word) if is_block => matcher.error = Some(format!("`{word}` is no matcher")),
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
        let text = "@a path /x/* /y*\n@b {\n method post\n header X-A b\n}\n@c not remote_ip 10.0.0.0/8 private_ranges\n@d expression true\n@e {\n not path /s* /t/*\n not {\n  method GET\n  file\n }\n}\n@f path_regexp id ^/([0-9]+)$\n@g header_regexp X-A ^b\n";
        let all = named(&super::super::read(text).unwrap());
        assert_eq!(all["@a"].patterns, ["/x/*", "/y", "/y/*"]);
        let keys: Vec<_> = all["@b"].keys().unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["method", "header"]);
        let clients = (vec!["10.0.0.0/8".to_owned(), "private".to_owned()], true);
        assert_eq!(all["@c"].clients, Some(clients));
        assert!(all["@d"].error.is_some());
        let written = |name: &str| {
            let keys = all[name].keys().unwrap().into_iter();
            let mut out = String::new();
            Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).collect()).write(&mut out);
            out.replace('"', "'")
        };
        assert_eq!(
            written("@e"),
            "{ unless = [{ path = ['~^/s', '/t/*'] }, { method = 'GET', exists = ['file', 'folder'] }] }"
        );
        assert_eq!(written("@f"), "{ path = '~^/([0-9]+)$' }");
        assert_eq!(written("@g"), "{ header = { X-A = '~^b' } }");
    }

    #[test]
    fn one_of_the_values_of_repeated_conditions_suffices() {
        let check = |conditions: &str, expected: Option<&str>| {
            let all = named(&super::super::read(&format!("@a {{\n{conditions}\n}}\n")).unwrap());
            let written = all["@a"].keys().map(|keys| {
                let mut out = String::new();
                Value::Table(keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()).write(&mut out);
                out.replace('"', "'")
            });
            assert_eq!(written.as_deref(), expected, "{conditions}");
        };
        check(" path /a\n path /b/*", Some("{ path = ['/a', '/b/*'] }"));
        check(" method GET\n method HEAD", Some("{ method = ['GET', 'HEAD'] }"));
        check(
            " remote_ip 10.0.0.0/8\n remote_ip ::1",
            Some("{ client = ['10.0.0.0/8', '::1'] }"),
        );
        check(
            " not {\n  path /a\n  path /b\n }",
            Some("{ unless = { path = ['/a', '/b'] } }"),
        );
        check(" not path /a* /b/*", Some("{ unless = { path = ['~^/a', '/b/*'] } }"));
        // `*/x/*` has no pattern, beside another path, too.
        check(" not path */x/*", None);
        check(" not path /a* */x/*", None);
        // Every path is one of these paths.
        check(" path /a /*\n method GET", Some("{ method = 'GET' }"));
        // No key expresses these lines.
        check(" path /a*\n path_regexp ^/[a-c]+$", None);
        check(" header X-A b\n header X-A c", None);
    }
}
