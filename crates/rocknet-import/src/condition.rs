//! Conditions of rules, which other servers write as tests of variables.
//!
//! nginx and Apache compare texts, and a field that is absent is an empty text for them. RockNet compares only values
//! that are present, so some tests become exceptions (`unless`), or two alternatives.

use rocknet_config::model::RegexPattern;

use crate::directive::Directive;
use crate::value::Value;

/// A condition of a rule: keys such as `method = "GET"`, which must all match. If it is negated, its keys form an
/// exception, an entry of `unless`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub keys: Vec<(&'static str, Value)>,
    pub is_negated: bool,
}

/// Conditions that must all hold. A `Vec<Conditions>` is a list of alternatives, each of which becomes a separate rule.
pub(crate) type Conditions = Vec<Condition>;

impl Condition {
    pub fn new(key: &'static str, value: Value) -> Condition {
        Condition {
            keys: vec![(key, value)],
            is_negated: false,
        }
    }

    /// Returns a condition for an entry of `header`, `cookie` or `query`. A pattern that begins with `~` is a regular
    /// expression. `*` stands for any value that is present, and an empty pattern for an absent value.
    pub fn entry(map: &'static str, name: &str, pattern: impl Into<String>) -> Condition {
        Condition::new(map, Value::Table(vec![(name.to_owned(), Value::text(pattern))]))
    }

    pub fn negated_if(mut self, is_negated: bool) -> Condition {
        self.is_negated ^= is_negated;
        self
    }
}

/// Returns the alternatives for a value that must match an expression, or must not if `is_negated`. `map`: `header`,
/// `cookie` or `query`. `name`: name of the value in it. A value that is absent counts as an empty text.
pub(crate) fn of_value(map: &'static str, name: &str, regex: &RegexPattern, is_negated: bool) -> Vec<Conditions> {
    let text = regex.to_string();
    let matching = |pattern: &str| Condition::entry(map, name, pattern);
    let is_empty = text.trim_start_matches(['~', '*']) == "^$";
    match (regex.matches(b""), is_negated) {
        // An empty or absent value has no character, so `~.` does not match it.
        _ if is_empty => vec![vec![matching("~.").negated_if(!is_negated)]],
        (false, _) => vec![vec![matching(&text).negated_if(is_negated)]],
        // The expression matches an empty text, so an absent value meets the condition too.
        (true, false) => vec![vec![matching(&text)], vec![matching("")]],
        (true, true) => vec![vec![matching("*"), matching(&text).negated_if(true)]],
    }
}

/// Returns the alternatives of [`of_value`] for a value that must equal a text; `None` if RockNet cannot compile an
/// expression for it.
pub(crate) fn of_equal(map: &'static str, name: &str, text: &str, is_negated: bool) -> Option<Vec<Conditions>> {
    let regex = RegexPattern::new(&format!("^{}$", escaped(text)), false).ok()?;
    Some(of_value(map, name, &regex, is_negated))
}

/// Returns an expression that matches a text literally.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the keys of a rule whose conditions all hold; `None` if a rule cannot express them together.
pub(crate) fn keys(conditions: &[Condition]) -> Option<Vec<(&'static str, Value)>> {
    let mut keys: Vec<(&'static str, Value)> = Vec::new();
    let mut exceptions: Vec<Value> = Vec::new();
    for condition in conditions {
        if condition.is_negated {
            let table = condition.keys.iter();
            let table = Value::Table(table.map(|(key, value)| ((*key).to_owned(), value.clone())).collect());
            if !exceptions.contains(&table) {
                exceptions.push(table);
            }
            continue;
        }
        for (key, value) in &condition.keys {
            match (keys.iter_mut().find(|(known, _)| known == key), value) {
                (None, _) => keys.push((*key, value.clone())),
                (Some((_, known)), value) if known == value => {}
                (Some((_, Value::Table(known))), Value::Table(new)) => {
                    for (name, pattern) in new {
                        match known.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
                            None => known.push((name.clone(), pattern.clone())),
                            Some((_, other)) if other == pattern => {}
                            Some(_) => return None,
                        }
                    }
                }
                (Some((_, known)), value) => *known = common(key, known, value)?,
            }
        }
    }
    if !exceptions.is_empty() {
        keys.push(("unless", Value::one_or_list(exceptions)));
    }
    Some(keys)
}

/// Returns the values that two lists have in common; `None` if there are no such values, or if the values of the key
/// are patterns.
fn common(key: &str, left: &Value, right: &Value) -> Option<Value> {
    if !matches!(key, "method" | "exists") {
        return None;
    }
    let list = |value: &Value| match value {
        Value::List(list) => list.clone(),
        single => vec![single.clone()],
    };
    let right = list(right);
    let both: Vec<Value> = list(left).into_iter().filter(|value| right.contains(value)).collect();
    (!both.is_empty()).then(|| Value::one_or_list(both))
}

/// Returns the alternatives of conditions that must both hold.
pub(crate) fn both(left: &[Conditions], right: &[Conditions]) -> Vec<Conditions> {
    let pairs = left
        .iter()
        .flat_map(|left| right.iter().map(move |right| (left, right)));
    pairs
        .map(|(left, right)| left.iter().chain(right).cloned().collect())
        .collect()
}

/// Returns the methods of an expression such as `^(GET|HEAD)$`; `None` for other expressions.
pub(crate) fn methods(expression: &str) -> Option<Value> {
    let inner = expression.strip_prefix('^').unwrap_or(expression);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let inner = inner
        .strip_prefix("(?:")
        .or_else(|| inner.strip_prefix('('))
        .unwrap_or(inner);
    let inner = inner.strip_suffix(')').unwrap_or(inner);
    let methods: Vec<&str> = inner.split('|').collect();
    let is_name = |method: &&str| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    methods.iter().all(is_name).then(|| Value::texts(methods))
}

/// Returns the condition for the methods that a directive such as `limit_except` or `<Limit>` names. GET includes HEAD,
/// as in nginx and Apache.
pub(crate) fn methods_of(directive: &Directive) -> Condition {
    let mut methods: Vec<String> = directive
        .arguments
        .iter()
        .map(|method| method.to_ascii_uppercase())
        .collect();
    if methods.iter().any(|method| method == "GET") && !methods.iter().any(|method| method == "HEAD") {
        methods.push("HEAD".to_owned());
    }
    Condition::new("method", Value::texts(methods))
}

/// Returns the IPv4 address or network that an expression such as `^192\.0\.2\.1$` or `^10\.` matches; `None` for other
/// expressions.
pub(crate) fn network(expression: &str) -> Option<String> {
    let rest = expression.strip_prefix('^')?;
    let (rest, is_whole) = match rest.strip_suffix('$') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let plain = rest.replace("\\.", ".");
    if !plain.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if is_whole {
        return plain.parse::<std::net::Ipv4Addr>().is_ok().then_some(plain);
    }
    let parts: Vec<&str> = plain.strip_suffix('.')?.split('.').collect();
    let is_octet = |part: &&str| part.parse::<u8>().is_ok();
    if parts.len() > 3 || !parts.iter().all(is_octet) {
        return None;
    }
    let zeros = vec!["0"; 4 - parts.len()];
    let bits = parts.len() * 8;
    Some(format!("{}.{}/{bits}", parts.join("."), zeros.join(".")))
}

/// Message for the difference that [`is_beyond_network`] finds.
pub(crate) const OF_ADDRESS: &str = "`.` in the expression also matched digits";

/// Returns true if an expression also matches addresses outside of the network that [`network`] returns: for `^10.`,
/// also 100.1.1.1. In an expression for a whole address, an unescaped `.` can only match a dot.
pub(crate) fn is_beyond_network(expression: &str) -> bool {
    !expression.ends_with('$') && expression.replace("\\.", "").contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(alternatives: &[Conditions]) -> Vec<String> {
        let one = |conditions: &Conditions| {
            let keys = keys(conditions).unwrap();
            let table = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let mut out = String::new();
            Value::Table(table).write(&mut out);
            out
        };
        alternatives.iter().map(one).collect()
    }

    #[test]
    fn absent_values_are_empty_texts() {
        for (expression, is_negated, expected) in [
            ("bot", false, &["{ header = { A = \"~bot\" } }"][..]),
            ("bot", true, &["{ unless = { header = { A = \"~bot\" } } }"]),
            ("^$", false, &["{ unless = { header = { A = \"~.\" } } }"]),
            ("^$", true, &["{ header = { A = \"~.\" } }"]),
            (
                "^(x|)$",
                false,
                &["{ header = { A = \"~^(x|)$\" } }", "{ header = { A = \"\" } }"],
            ),
            (
                "^(x|)$",
                true,
                &["{ header = { A = \"*\" }, unless = { header = { A = \"~^(x|)$\" } } }"],
            ),
        ] {
            let regex = RegexPattern::new(expression, false).unwrap();
            assert_eq!(
                written(&of_value("header", "A", &regex, is_negated)),
                expected,
                "{expression}"
            );
        }
    }

    #[test]
    fn conditions_are_combined_if_a_rule_can_hold_both() {
        let header = |name: &str, pattern: &str| Condition::entry("header", name, pattern);
        assert!(keys(&[header("A", "1"), header("a", "2")]).is_none());
        assert_eq!(
            written(&[vec![header("A", "1"), header("B", "2")]]),
            ["{ header = { A = \"1\", B = \"2\" } }"]
        );
        let exists = |values: &[&str]| Condition::new("exists", Value::texts(values.iter().copied()));
        assert_eq!(
            written(&[vec![exists(&["folder", "nothing"]), exists(&["file", "nothing"])]]),
            ["{ exists = \"nothing\" }"]
        );
    }

    #[test]
    fn methods_and_networks_are_read_from_expressions() {
        assert_eq!(methods("^(GET|HEAD)$"), Some(Value::texts(["GET", "HEAD"])));
        assert_eq!(methods("^(GET|head)$"), None);
        for (expression, expected) in [
            (r"^192\.0\.2\.1$", Some("192.0.2.1")),
            (r"^10\.", Some("10.0.0.0/8")),
            (r"^192\.168\.1\.", Some("192.168.1.0/24")),
            (r"^10\.1", None),
            (r"10\.", None),
        ] {
            assert_eq!(network(expression).as_deref(), expected, "{expression}");
        }
    }
}
