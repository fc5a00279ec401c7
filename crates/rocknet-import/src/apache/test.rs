//! Translates `RewriteCond` to conditions of rules.

use rocknet_config::model::RegexPattern;

use crate::condition::{self, Condition, Conditions, both, of_equal, of_value};
use crate::directive::Directive;
use crate::value::Value;

/// Maximum number of alternatives of one rule, each of which becomes a rule of its own.
const MAX_ALTERNATIVES: usize = 16;

/// Returns the alternatives under which a rule with these conditions applies, without any if it never does. Returns
/// `None` if a condition has no counterpart. `names_groups`: true if the target refers to the groups of the last
/// condition.
pub(super) fn alternatives(conditions: &[Directive], names_groups: bool) -> Option<Vec<Conditions>> {
    let mut all = vec![Conditions::new()];
    let mut either: Option<Vec<Conditions>> = None;
    for (at, condition) in conditions.iter().enumerate() {
        let is_last = at + 1 == conditions.len();
        let flags = CondFlags::read(condition.argument(2))?;
        let found = one(condition, &flags, names_groups && is_last)?;
        let joined = match either.take() {
            Some(before) => join(before, found),
            None => found,
        };
        if flags.is_or && !is_last {
            either = Some(joined);
        } else {
            all = both(&all, &joined);
        }
        if all.len() > MAX_ALTERNATIVES {
            return None;
        }
    }
    Some(all)
}

/// Flags of a condition, such as `[NC,OR]`.
struct CondFlags {
    ignores_case: bool,
    is_or: bool,
}

impl CondFlags {
    /// Returns the flags; `None` for a flag that is not known.
    fn read(text: &str) -> Option<CondFlags> {
        let mut flags = CondFlags {
            ignores_case: false,
            is_or: false,
        };
        let list = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
        for flag in list.map(str::trim).filter(|flag| !flag.is_empty()) {
            match flag.to_ascii_lowercase().as_str() {
                "nc" | "nocase" => flags.ignores_case = true,
                "or" | "ornext" => flags.is_or = true,
                "nv" | "novary" => {}
                _ => return None,
            }
        }
        Some(flags)
    }
}

/// Joins alternatives, the last of them in one condition if their values can be listed.
fn join(mut left: Vec<Conditions>, right: Vec<Conditions>) -> Vec<Conditions> {
    for alternative in right {
        let merged = match (left.last().map(Vec::as_slice), &alternative[..]) {
            (Some([a]), [b]) if !a.is_negated && !b.is_negated => merge(a, b),
            _ => None,
        };
        match (merged, left.last_mut()) {
            (Some(merged), Some(last)) => *last = vec![merged],
            _ => left.push(alternative),
        }
    }
    left
}

/// Returns a condition for two of the same kind, one of which must hold; `None` if there is no such condition.
fn merge(a: &Condition, b: &Condition) -> Option<Condition> {
    let ([(key, left)], [(other, right)]) = (&a.keys[..], &b.keys[..]) else {
        return None;
    };
    if key != other {
        return None;
    }
    if let (Value::Table(left), Value::Table(right)) = (left, right) {
        let ([(name, Value::Text(left))], [(other, Value::Text(right))]) = (&left[..], &right[..]) else {
            return None;
        };
        let mark = |text: &str| match (text.strip_prefix("~*"), text.strip_prefix('~')) {
            (Some(rest), _) => Some(("~*", rest.to_owned())),
            (None, Some(rest)) => Some(("~", rest.to_owned())),
            (None, None) => None,
        };
        let ((mark_left, left), (mark_right, right)) = (mark(left)?, mark(right)?);
        let is_same = name.eq_ignore_ascii_case(other) && mark_left == mark_right && !left.contains("(?<");
        return is_same.then(|| Condition::entry(key, name, format!("{mark_left}{left}|{right}")));
    }
    if !matches!(*key, "path" | "host" | "method" | "client" | "exists") {
        return None;
    }
    let list = |value: &Value| match value {
        Value::List(list) => list.clone(),
        single => vec![single.clone()],
    };
    let mut values = list(left);
    values.extend(list(right));
    Some(Condition::new(key, Value::one_or_list(values)))
}

/// Returns the alternatives of one condition.
fn one(condition: &Directive, flags: &CondFlags, names_groups: bool) -> Option<Vec<Conditions>> {
    let (subject, pattern) = (condition.argument(0), condition.argument(1));
    let (is_negated, pattern) = match pattern.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    if matches!(pattern, "-f" | "-d" | "-l" | "-s" | "-F" | "-U") {
        return existence(subject, pattern, is_negated);
    }
    if pattern.starts_with(['<', '>']) || pattern.starts_with('-') {
        return None;
    }
    if let Some(text) = pattern.strip_prefix('=') {
        return equal(subject, text.trim_matches('"'), flags.ignores_case, is_negated);
    }
    matching(subject, pattern, flags.ignores_case, is_negated, names_groups)
}

/// Returns the condition of a test for a file, folder or link.
fn existence(subject: &str, test: &str, is_negated: bool) -> Option<Vec<Conditions>> {
    let kinds: &[&str] = match (test, is_negated) {
        ("-f" | "-s" | "-F", false) => &["file"],
        ("-f" | "-s" | "-F", true) => &["folder", "nothing"],
        ("-d", false) => &["folder"],
        ("-d", true) => &["file", "nothing"],
        // A link counts as what it leads to.
        ("-l", true) => return Some(vec![Conditions::new()]),
        ("-l", false) => return Some(Vec::new()),
        _ => return None,
    };
    let mut condition = Condition::new("exists", Value::texts(kinds.iter().copied()));
    let path = subject
        .replace("%{DOCUMENT_ROOT}/%{REQUEST_URI}", "{path}")
        .replace("%{DOCUMENT_ROOT}%{REQUEST_URI}", "{path}")
        .replace("%{REQUEST_FILENAME}", "{path}")
        .replace("%{DOCUMENT_ROOT}", "")
        .replace("/%{REQUEST_URI}", "{path}")
        .replace("%{REQUEST_URI}", "{path}")
        .replace("\\.", ".");
    if path != "{path}" {
        if path.contains(['%', '$']) || !(path.starts_with('/') || path.starts_with("{path}")) {
            return None;
        }
        condition.keys.push(("exists_at", Value::Text(path)));
    }
    Some(vec![vec![condition]])
}

/// Returns the name of the header field that a variable stands for: `User-Agent` for `%{HTTP_USER_AGENT}`.
fn field(subject: &str) -> Option<String> {
    let name = subject.strip_prefix("%{")?.strip_suffix('}')?;
    if let Some(field) = name.strip_prefix("HTTP:") {
        return Some(field.to_owned());
    }
    let rest = name
        .strip_prefix("HTTP_")
        .filter(|rest| !matches!(*rest, "HOST" | "" | "PROTOCOL"))?;
    let words = rest.split('_').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    Some(words.collect::<Vec<_>>().join("-"))
}

/// Returns the alternatives for a variable that must equal a text.
fn equal(subject: &str, text: &str, ignores_case: bool, is_negated: bool) -> Option<Vec<Conditions>> {
    let single = |key, value| Some(vec![vec![Condition::new(key, value).negated_if(is_negated)]]);
    match subject {
        "%{HTTP_HOST}" | "%{SERVER_NAME}" if !text.is_empty() => single("host", Value::Text(text.to_ascii_lowercase())),
        "%{REQUEST_METHOD}" => single("method", Value::Text(text.to_ascii_uppercase())),
        "%{REMOTE_ADDR}" if text.parse::<std::net::IpAddr>().is_ok() => single("client", Value::text(text)),
        "%{REQUEST_URI}" if text.starts_with('/') && !text.contains('*') => single("path", Value::text(text)),
        "%{HTTPS}" | "%{REQUEST_SCHEME}" | "%{SERVER_PORT}" => secure(subject, text, is_negated),
        "%{ENV:REDIRECT_STATUS}" => first_pass(text.is_empty() != is_negated),
        subject if !ignores_case => of_equal("header", &field(subject)?, text, is_negated),
        _ => None,
    }
}

/// Returns the condition for requests with or without TLS.
fn secure(subject: &str, text: &str, is_negated: bool) -> Option<Vec<Conditions>> {
    let is_secure = match (subject, text.to_ascii_lowercase().as_str()) {
        ("%{HTTPS}", "on") | ("%{REQUEST_SCHEME}", "https") | ("%{SERVER_PORT}", "443") => !is_negated,
        ("%{HTTPS}", "off") | ("%{REQUEST_SCHEME}", "http") | ("%{SERVER_PORT}", "80") => is_negated,
        _ => return None,
    };
    let scheme = if is_secure { "https" } else { "http" };
    Some(vec![vec![Condition::new("scheme", Value::text(scheme))]])
}

/// Returns the alternatives of a condition about the first pass of a request through the rules. Rules of RockNet are
/// applied once, so this is always the first pass.
fn first_pass(is_first: bool) -> Option<Vec<Conditions>> {
    Some(if is_first { vec![Conditions::new()] } else { Vec::new() })
}

/// Returns the alternatives for a variable that must match an expression.
fn matching(
    subject: &str,
    expression: &str,
    ignores_case: bool,
    is_negated: bool,
    names_groups: bool,
) -> Option<Vec<Conditions>> {
    let single = |key, value| Some(vec![vec![Condition::new(key, value).negated_if(is_negated)]]);
    let named = if names_groups {
        named_groups(expression)
    } else {
        expression.to_owned()
    };
    let regex = RegexPattern::new(&named, ignores_case).ok()?;
    let plain = expression.trim_start_matches('^').trim_end_matches('$');
    match subject {
        "%{REQUEST_METHOD}" => single("method", condition::methods(&expression.to_ascii_uppercase())?),
        "%{REMOTE_ADDR}" => single("client", Value::Text(condition::network(expression)?)),
        "%{HTTP_HOST}" | "%{SERVER_NAME}" => host(expression, &named, is_negated),
        "%{REQUEST_URI}" if matches!(expression, "." | ".*" | "^" | ".+") => first_pass(!is_negated),
        "%{REQUEST_URI}" => single("path", Value::Text(regex.to_string())),
        "%{HTTPS}" | "%{REQUEST_SCHEME}" | "%{SERVER_PORT}" => secure(subject, plain, is_negated),
        "%{ENV:REDIRECT_STATUS}" if matches!(expression, "^$" | "." | ".+" | "200" | "^200$") => {
            first_pass((expression == "^$") != is_negated)
        }
        "%{QUERY_STRING}" => query(expression, ignores_case, is_negated, names_groups),
        subject => Some(of_value("header", &field(subject)?, &regex, is_negated)),
    }
}

/// Returns the condition for the host, which is compared in lower case and without the port.
fn host(expression: &str, named: &str, is_negated: bool) -> Option<Vec<Conditions>> {
    if matches!(expression, "." | ".+" | ".*") {
        return first_pass(!is_negated);
    }
    // A request without a host is rare, and `^$` excludes it from redirects.
    if expression == "^$" {
        return first_pass(is_negated);
    }
    let inner = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    let name = inner.map(|inner| inner.replace("\\.", ".").replace("\\-", "-").to_ascii_lowercase());
    let is_name =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    let value = match name.filter(is_name) {
        Some(name) => name,
        None => RegexPattern::new(named, true).ok()?.to_string(),
    };
    Some(vec![vec![
        Condition::new("host", Value::Text(value)).negated_if(is_negated),
    ]])
}

/// Returns the condition for a parameter, if the expression for the query consists of one: `^id=([0-9]+)$`.
fn query(expression: &str, ignores_case: bool, is_negated: bool, names_groups: bool) -> Option<Vec<Conditions>> {
    let starts = ["(?:^|&)", "(^|&)", "(&|^)", "^"];
    let start = starts
        .iter()
        .find(|start| expression.starts_with(**start))
        .copied()
        .unwrap_or("");
    if names_groups && start.starts_with('(') && !start.starts_with("(?") {
        return None;
    }
    let rest = &expression[start.len()..];
    let ends = ["(?:&|$)", "(&|$)", "($|&)", "$"];
    let end = ends.iter().find(|end| rest.ends_with(**end)).copied().unwrap_or("");
    let (name, value) = rest[..rest.len() - end.len()].split_once('=')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !is_name || value.contains('&') || value.contains('|') && !value.contains('(') {
        return None;
    }
    let value = if names_groups {
        named_groups(value)
    } else {
        value.to_owned()
    };
    let end = if end.is_empty() { "" } else { "$" };
    let regex = RegexPattern::new(&format!("^{value}{end}"), ignores_case).ok()?;
    Some(vec![vec![
        Condition::entry("query", name, regex.to_string()).negated_if(is_negated),
    ]])
}

/// Returns an expression whose groups have the names `c1`, `c2` and so on, by which a target refers to them.
fn named_groups(expression: &str) -> String {
    let mut out = String::new();
    let (mut number, mut is_class) = (0, false);
    let mut chars = expression.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class && chars.peek() != Some(&'?') => {
                number += 1;
                out.push_str(&format!("?<c{number}>"));
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<Vec<String>> {
        let tree = super::super::read(text).unwrap();
        let written = |conditions: &Conditions| {
            let keys = condition::keys(conditions).unwrap().into_iter();
            let mut out = String::new();
            Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).collect()).write(&mut out);
            out.replace('"', "'")
        };
        alternatives(&tree, text.contains("groups")).map(|all| all.iter().map(written).collect())
    }

    #[test]
    fn conditions_become_keys() {
        for (text, expected) in [
            (
                "%{HTTP_USER_AGENT} !^Good",
                "{ unless = { header = { User-Agent = '~^Good' } } }",
            ),
            (
                "%{HTTP_USER_AGENT} ^$",
                "{ unless = { header = { User-Agent = '~.' } } }",
            ),
            (
                "%{HTTP_USER_AGENT} bot [nocase]",
                "{ header = { User-Agent = '~*bot' } }",
            ),
            ("%{HTTP_HOST} !^www\\. [NC]", "{ unless = { host = '~*^www\\\\.' } }"),
            ("%{HTTP_HOST} ^A\\.test$", "{ host = 'a.test' }"),
            ("%{REQUEST_URI} !^/static/", "{ unless = { path = '~^/static/' } }"),
            (
                "%{REQUEST_METHOD} !^(GET|HEAD)$",
                "{ unless = { method = ['GET', 'HEAD'] } }",
            ),
            (
                "%{REMOTE_ADDR} !^192\\.0\\.2\\.1$",
                "{ unless = { client = '192.0.2.1' } }",
            ),
            (
                "%{REQUEST_FILENAME}.html -f",
                "{ exists = 'file', exists_at = '{path}.html' }",
            ),
            ("%{QUERY_STRING} ^id=([0-9]+)$", "{ query = { id = '~^([0-9]+)$' } }"),
            ("%{ENV:REDIRECT_STATUS} =\"\"", "{ }"),
            (
                "%{HTTP:X-Forwarded-Proto} =http",
                "{ header = { X-Forwarded-Proto = '~^http$' } }",
            ),
        ] {
            let found = written(&format!("RewriteCond {text}")).unwrap();
            assert_eq!(found, [expected.replace("{ }", "{  }").as_str()], "{text}");
        }
        for text in [
            "%{QUERY_STRING} <script",
            "%{TIME_HOUR} >12",
            "%{HTTP_X} (?!a)",
            "%{HTTP_X} a [unknown]",
        ] {
            assert_eq!(written(&format!("RewriteCond {text}")), None, "{text}");
        }
        assert_eq!(written("RewriteCond %{ENV:REDIRECT_STATUS} 200"), Some(Vec::new()));
    }

    #[test]
    fn alternatives_are_joined_if_one_condition_can_hold_them() {
        let text = "RewriteCond %{HTTP_USER_AGENT} ^a [OR]\nRewriteCond %{HTTP_USER_AGENT} ^b\nRewriteCond %{REQUEST_FILENAME} \
                    -f [ornext]\nRewriteCond %{REQUEST_FILENAME} -d\n";
        assert_eq!(
            written(text).unwrap(),
            ["{ header = { User-Agent = '~^a|^b' }, exists = ['file', 'folder'] }"]
        );
        let text = "RewriteCond %{HTTP_REFERER} a [OR]\nRewriteCond %{HTTPS} off\n";
        assert_eq!(
            written(text).unwrap(),
            ["{ header = { Referer = '~a' } }", "{ scheme = 'http' }"]
        );
    }

    #[test]
    fn groups_get_names() {
        assert_eq!(named_groups(r"^(a)\((?:b)[(](c)$"), r"^(?<c1>a)\((?:b)[(](?<c2>c)$");
    }
}
