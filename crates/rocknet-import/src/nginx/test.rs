//! Translates the tests of `if` to conditions of rules.

use rocknet_config::model::RegexPattern;

use crate::condition::{self, Condition, Conditions, of_equal, of_value};
use crate::directive::Directive;
use crate::value::Value;

/// Returns alternative sets of conditions for the test of an `if`: the block applies if all conditions of one set hold.
/// Returns `None` if the test has no counterpart.
pub(super) fn conditions(block: &Directive) -> Option<Vec<Conditions>> {
    let text = block.arguments.join(" ");
    let text = text.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
    let (subject, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    if subject.starts_with(['-', '!']) {
        return existence(subject, rest);
    }
    if rest.is_empty() {
        // A variable alone is true in nginx if its value is neither empty nor `0`.
        let (map, name) = entry(subject)?;
        return Some(vec![vec![Condition::entry(map, &name, "~[^0]|..")]]);
    }
    let (operator, pattern) = rest.split_once(' ').unwrap_or((rest, ""));
    let pattern = pattern.trim();
    match operator {
        "=" | "!=" => equal(subject, pattern, operator == "!="),
        "~" | "~*" | "!~" | "!~*" => matching(subject, pattern, operator.ends_with('*'), operator.starts_with('!')),
        _ => None,
    }
}

/// Difference between a test and its conditions.
pub(super) struct TestDifference {
    pub message: &'static str,
    /// True if a refusal by these conditions applies to fewer requests.
    pub weakens_refusals: bool,
}

/// Returns the difference between the test of an `if` and the conditions that [`conditions`] returns, if there is one.
pub(super) fn difference(block: &Directive) -> Option<TestDifference> {
    let text = block.arguments.join(" ");
    let text = text.trim().strip_prefix('(')?.trim();
    let (subject, rest) = text.split_once([' ', ')']).unwrap_or((text, ""));
    if ["$arg_", "$cookie_"].iter().any(|start| subject.starts_with(start)) {
        return Some(TestDifference {
            message: "the name distinguishes upper and lower case, and every value counts, where nginx uses the first one",
            weakens_refusals: true,
        });
    }
    let operator = rest.trim().split(' ').next().unwrap_or_default();
    let pattern = rest.trim().strip_prefix(operator).unwrap_or_default();
    let pattern = pattern.trim().strip_suffix(')').unwrap_or(pattern).trim();
    if subject == "$remote_addr" && operator.contains('~') && condition::is_beyond_network(pattern) {
        return Some(TestDifference {
            message: condition::OF_ADDRESS,
            weakens_refusals: !operator.starts_with('!'),
        });
    }
    let is_of_file = subject.starts_with(['-', '!']) && rest.contains("$request_uri");
    let is_equality = subject == "$request_uri" && matches!(operator, "=" | "!=");
    (is_of_file || is_equality).then_some(TestDifference {
        message: "the query of the request is ignored, which is a part of `$request_uri`",
        weakens_refusals: is_of_file || operator == "!=",
    })
}

/// Returns the condition of a test for a file or folder. `test`: the operator, such as `!-f`.
fn existence(test: &str, path: &str) -> Option<Vec<Conditions>> {
    let kinds: &[&str] = match test {
        "-f" => &["file"],
        "!-f" => &["folder", "nothing"],
        "-d" => &["folder"],
        "!-d" => &["file", "nothing"],
        "-e" => &["file", "folder"],
        "!-e" => &["nothing"],
        _ => return None,
    };
    let mut condition = Condition::new("exists", Value::texts(kinds.iter().copied()));
    let path = match path.strip_prefix("$request_filename") {
        Some(rest) => format!("$uri{rest}"),
        None => path.strip_prefix("$document_root")?.to_owned(),
    };
    let path = path.replace("$document_uri", "$uri").replace("$request_uri", "$uri");
    match path.as_str() {
        "$uri" => {}
        path => {
            let at = path.replace("$uri", "{path}");
            let is_path = at.starts_with('/') || at.starts_with("{path}");
            if at.contains('$') || !is_path {
                return None;
            }
            condition.keys.push(("exists_at", Value::Text(at)));
        }
    }
    Some(vec![vec![condition]])
}

/// Returns the map and the name of a variable for a field, cookie or parameter; `None` for other variables.
fn entry(variable: &str) -> Option<(&'static str, String)> {
    let name = variable.strip_prefix('$')?;
    let found = [("http_", "header"), ("cookie_", "cookie"), ("arg_", "query")]
        .iter()
        .find_map(|(start, map)| Some((*map, name.strip_prefix(start)?)));
    let (map, name) = found.filter(|(_, name)| !name.is_empty())?;
    Some(match map {
        "header" => (map, field_name(name)),
        map => (map, name.to_owned()),
    })
}

/// Returns the name of a header field for its variable: `User-Agent` for `user_agent`.
pub(super) fn field_name(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

/// Returns the alternatives for a variable that must equal a text.
fn equal(variable: &str, text: &str, is_negated: bool) -> Option<Vec<Conditions>> {
    let single = |key, value| Some(vec![vec![Condition::new(key, value).negated_if(is_negated)]]);
    match (variable, text) {
        ("$request_method", text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase()) => {
            single("method", Value::text(text))
        }
        ("$host" | "$http_host" | "$server_name", text) if !text.is_empty() && !text.contains(['$', ':']) => {
            single("host", Value::Text(text.to_ascii_lowercase()))
        }
        ("$scheme", "http" | "https") => single("scheme", Value::text(text)),
        ("$https", "on") => single("scheme", Value::text("https")),
        ("$https", "") => single("scheme", Value::text("http")),
        ("$remote_addr", text) if text.parse::<std::net::IpAddr>().is_ok() => single("client", Value::text(text)),
        ("$uri" | "$document_uri", text) if text.starts_with('/') && !text.contains('*') => {
            single("path", Value::text(text))
        }
        ("$request_uri", text) if text.starts_with('/') && !text.contains(['*', '?']) => {
            single("path", Value::text(text))
        }
        (_, text) if !text.contains('$') => {
            let (map, name) = entry(variable)?;
            of_equal(map, &name, text, is_negated)
        }
        _ => None,
    }
}

/// Returns true if an expression for the path with its query matches by the path alone. It is then anchored at the
/// beginning of the path, and no part of it can match the `?` before the query.
fn is_about_path(expression: &str) -> bool {
    let Some(rest) = expression.strip_prefix("^/") else {
        return false;
    };
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        let is_path = match c {
            '[' => is_class_of_path(&mut chars),
            '\\' => chars.next().is_some_and(is_escape_of_path),
            c => c.is_ascii_alphanumeric() || "/_-~,;:@!+*(){}".contains(c),
        };
        if !is_path {
            return false;
        }
    }
    true
}

/// Returns true if an escape, given by the character after its backslash, cannot match `?`.
fn is_escape_of_path(escaped: char) -> bool {
    "dwb./-_~".contains(escaped)
}

/// Reads a class of an expression up to its end. Returns true if it contains only letters, digits and a few signs, so
/// that it cannot match `?`.
fn is_class_of_path(chars: &mut std::str::Chars<'_>) -> bool {
    let mut before = None;
    loop {
        let is_member = match chars.next() {
            None => return false,
            Some(']') => return true,
            Some('\\') => chars.next().is_some_and(|c| c != 'b' && is_escape_of_path(c)),
            // The range from a digit to a letter, such as `9-A`, contains `?`.
            Some('-') => {
                let next = chars.clone().next();
                let is_range = |of: fn(&char) -> bool| before.as_ref().is_some_and(of) && next.as_ref().is_some_and(of);
                let is_end = before.is_none() || next == Some(']');
                let is_letter = |c: &char| c.is_ascii_alphabetic();
                is_end || is_range(char::is_ascii_digit) || is_range(is_letter)
            }
            Some(c) => {
                before = Some(c);
                c.is_ascii_alphanumeric() || "/_.~".contains(c)
            }
        };
        if !is_member {
            return false;
        }
    }
}

/// Returns the alternatives for a variable that must match an expression.
fn matching(variable: &str, expression: &str, ignores_case: bool, is_negated: bool) -> Option<Vec<Conditions>> {
    let single = |key, value| Some(vec![vec![Condition::new(key, value).negated_if(is_negated)]]);
    let regex = RegexPattern::new(expression, ignores_case).ok();
    match variable {
        "$request_method" => single("method", condition::methods(expression)?),
        "$remote_addr" => single("client", Value::Text(condition::network(expression)?)),
        // Hosts are compared in lower case.
        "$host" | "$http_host" | "$server_name" => {
            let regex = RegexPattern::new(expression, true).ok().filter(|_| regex.is_some())?;
            single("host", Value::Text(regex.to_string()))
        }
        "$uri" | "$document_uri" => single("path", Value::Text(regex?.to_string())),
        "$request_uri" if is_about_path(expression) => single("path", Value::Text(regex?.to_string())),
        variable => {
            let (map, name) = entry(variable)?;
            Some(of_value(map, &name, &regex?, is_negated))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_become_conditions() {
        for (test, expected) in [
            ("$request_method = POST", Some("{ method = \"POST\" }")),
            (
                "$request_method !~ ^(GET|HEAD)$",
                Some("{ unless = { method = [\"GET\", \"HEAD\"] } }"),
            ),
            (
                "$http_user_agent ~* \"bot|crawl er\"",
                Some("{ header = { User-Agent = \"~*bot|crawl er\" } }"),
            ),
            (
                "$http_user_agent = ''",
                Some("{ unless = { header = { User-Agent = \"~.\" } } }"),
            ),
            ("$cookie_beta", Some("{ cookie = { beta = \"~[^0]|..\" } }")),
            ("$arg_page = 2", Some("{ query = { page = \"~^2$\" } }")),
            ("-f $request_filename", Some("{ exists = \"file\" }")),
            ("!-d $request_filename", Some("{ exists = [\"file\", \"nothing\"] }")),
            (
                "-f $document_root/maintenance.html",
                Some("{ exists = \"file\", exists_at = \"/maintenance.html\" }"),
            ),
            (
                "-f $document_root/cache$uri.html",
                Some("{ exists = \"file\", exists_at = \"/cache{path}.html\" }"),
            ),
            ("$remote_addr ~ ^10\\.", Some("{ client = \"10.0.0.0/8\" }")),
            ("$host ~ ^(www|blog)\\.a", Some("{ host = \"~*^(www|blog)\\\\.a\" }")),
            ("$slow", None),
            ("$args ~ a=b", None),
            ("$request_uri ~ ^/admin/", Some("{ path = \"~^/admin/\" }")),
            ("$request_uri ~* (base64_decode|union.*select)", None),
            ("$request_uri ~* (?:\\?|&)author=", None),
            ("$request_uri ~ ^/a.*b", None),
            ("$request_uri ~ ^/a[^b]+c", None),
            ("$request_uri ~ ^/a.+c", None),
            ("$request_uri ~ ^/a\\Wc", None),
            ("$request_uri ~ ^/[0-z]", None),
            (
                "$request_uri ~ ^/[a-z0-9_-]+\\.php",
                Some("{ path = \"~^/[a-z0-9_-]+\\\\.php\" }"),
            ),
            ("$http_x ~ (?!a)", None),
        ] {
            let tree = super::super::read(&format!("if ({test}) {{ return 403; }}")).unwrap();
            let found = conditions(&tree[0]).map(|alternatives| {
                let [only] = &alternatives[..] else {
                    panic!("{alternatives:?}")
                };
                let keys = condition::keys(only).unwrap().into_iter();
                let mut out = String::new();
                Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).collect()).write(&mut out);
                out
            });
            assert_eq!(found.as_deref(), expected, "{test}");
        }
    }
}
