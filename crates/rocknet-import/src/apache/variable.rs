//! Translates variables of `RewriteCond`: their comparison with a text or an expression.

use rocknet_config::model::RegexPattern;

use crate::condition::{self, Condition, Conditions, of_equal, of_value};
use crate::value::Value;

use super::accuracy::{Accuracy, Tests};
use super::pcre::{self, named_groups};

/// Messages about differences between conditions and their translations.
const OF_QUERY: &str =
    "RockNet compares each parameter separately, wherever it is in the query, and its name case-sensitively";
const OF_PORT: &str = "RockNet compares the scheme, not the port";
const OF_HOST: &str = "RockNet assumes that each request names a host";

/// Returns the name of the header field that a variable stands for: `User-Agent` for `%{HTTP_USER_AGENT}`.
fn field(subject: &str) -> Option<String> {
    let name = subject.strip_prefix("%{")?.strip_suffix('}')?;
    if let Some(field) = name.strip_prefix("HTTP:") {
        return Some(field.to_owned());
    }
    // `HTTP_HOST` has a condition of its own, and `HTTP_PROTOCOL` is no field.
    let rest = name
        .strip_prefix("HTTP_")
        .filter(|rest| !matches!(*rest, "HOST" | "" | "PROTOCOL"))?;
    let words = rest.split('_').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    Some(words.collect::<Vec<_>>().join("-"))
}

/// Translates the comparison of a variable with a text.
pub(super) fn equal(subject: &str, text: &str, ignores_case: bool, is_negated: bool) -> Option<Tests> {
    let single = |key, value| Some(Tests::of(Condition::new(key, value).negated_if(is_negated)));
    match subject {
        "%{HTTP_HOST}" | "%{SERVER_NAME}" if !text.is_empty() => single("host", Value::Text(text.to_ascii_lowercase())),
        "%{REQUEST_METHOD}" if ignores_case => single("method", Value::Text(text.to_ascii_uppercase())),
        "%{REQUEST_METHOD}" if text.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            single("method", Value::text(text))
        }
        "%{REMOTE_ADDR}" if text.parse::<std::net::IpAddr>().is_ok() => single("client", Value::text(text)),
        "%{REQUEST_URI}" if ignores_case => {
            let regex = RegexPattern::new(&format!("^{}$", condition::escaped(text)), true).ok()?;
            single("path", Value::Text(regex.to_string()))
        }
        "%{REQUEST_URI}" if text.starts_with('/') && !text.contains('*') => single("path", Value::text(text)),
        "%{HTTPS}" | "%{REQUEST_SCHEME}" | "%{SERVER_PORT}" => secure(subject, text, is_negated),
        // Rules of RockNet are applied once, so the status of an earlier pass is always empty.
        "%{ENV:REDIRECT_STATUS}" => constant(text.is_empty() != is_negated),
        subject if !ignores_case => Some(Tests::exact(of_equal("header", &field(subject)?, text, is_negated)?)),
        _ => None,
    }
}

/// Returns the condition for requests with or without TLS.
fn secure(subject: &str, text: &str, is_negated: bool) -> Option<Tests> {
    let is_secure = match (subject, text.to_ascii_lowercase().as_str()) {
        ("%{HTTPS}", "on") | ("%{REQUEST_SCHEME}", "https") | ("%{SERVER_PORT}", "443") => !is_negated,
        ("%{HTTPS}", "off") | ("%{REQUEST_SCHEME}", "http") | ("%{SERVER_PORT}", "80") => is_negated,
        _ => return None,
    };
    let scheme = if is_secure { "https" } else { "http" };
    let accuracy = match subject {
        "%{SERVER_PORT}" => Accuracy::MayAddAndMiss,
        _ => Accuracy::Exact,
    };
    Some(Tests::of(Condition::new("scheme", Value::text(scheme))).differing(accuracy, OF_PORT))
}

/// Returns a condition that is met by each request or by none.
fn constant(is_met: bool) -> Option<Tests> {
    Some(Tests::exact(if is_met { vec![Conditions::new()] } else { Vec::new() }))
}

/// Translates a variable that must match an expression. `names_groups`: true if the target of the rule refers to groups
/// of the expression, which then get names.
pub(super) fn matching(
    subject: &str,
    expression: &str,
    ignores_case: bool,
    is_negated: bool,
    names_groups: bool,
) -> Option<Tests> {
    let single = |key, value| Some(Tests::of(Condition::new(key, value).negated_if(is_negated)));
    let named = if names_groups {
        named_groups(expression)
    } else {
        expression.to_owned()
    };
    let regex = RegexPattern::new(&named, ignores_case).ok()?;
    let plain = expression.trim_start_matches('^').trim_end_matches('$');
    match subject {
        "%{REQUEST_METHOD}" => single("method", methods(expression, ignores_case)?),
        "%{REMOTE_ADDR}" => {
            let client = Condition::new("client", Value::Text(condition::network(expression)?));
            // `^10.` matches all addresses of the network 10.0.0.0/8, and also 100.1.1.1, which the condition misses.
            let accuracy = match condition::is_beyond_network(expression) {
                true => Accuracy::MayMiss,
                false => Accuracy::Exact,
            };
            let accuracy = accuracy.negated_if(is_negated);
            Some(Tests::of(client.negated_if(is_negated)).differing(accuracy, condition::OF_ADDRESS))
        }
        "%{HTTP_HOST}" | "%{SERVER_NAME}" => host(expression, &named, is_negated),
        "%{REQUEST_URI}" if matches!(expression, "." | ".*" | "^" | ".+") => constant(!is_negated),
        "%{REQUEST_URI}" => single("path", Value::Text(regex.to_string())),
        "%{HTTPS}" | "%{REQUEST_SCHEME}" | "%{SERVER_PORT}" => secure(subject, plain, is_negated),
        "%{ENV:REDIRECT_STATUS}" if matches!(expression, "^$" | "." | ".+" | "200" | "^200$") => {
            constant((expression == "^$") != is_negated)
        }
        "%{QUERY_STRING}" => query(expression, ignores_case, is_negated, names_groups),
        subject => Some(Tests::exact(of_value("header", &field(subject)?, &regex, is_negated))),
    }
}

/// Registered methods (IANA), which an expression without anchors may match besides those that it names.
const METHODS: &str = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE \
    MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PROPFIND PROPPATCH PUT REBIND \
    REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL";

/// Returns the methods of an expression such as `^(GET|HEAD)$`; `None` for other expressions. Without anchors, these
/// are all registered methods that it matches, such as UNLOCK for `LOCK`, and those that it names. Other methods have
/// no meaning for a server.
fn methods(expression: &str, ignores_case: bool) -> Option<Value> {
    let expression = match ignores_case {
        true => expression.to_ascii_uppercase(),
        false => expression.to_owned(),
    };
    let regex = RegexPattern::new(&expression, false).ok()?;
    let mut all = match condition::methods(&expression)? {
        Value::List(list) => list,
        single => vec![single],
    };
    for method in METHODS.split(' ').filter(|method| regex.matches(method.as_bytes())) {
        let method = Value::text(method);
        if !all.contains(&method) {
            all.push(method);
        }
    }
    Some(Value::one_or_list(all))
}

/// Returns the condition for the host, which is compared in lower case and without the port.
fn host(expression: &str, named: &str, is_negated: bool) -> Option<Tests> {
    // These expressions only distinguish requests with a host from those without one, which are rare.
    match expression {
        ".*" => return constant(!is_negated),
        "." | ".+" | "^$" => {
            let is_always = (expression != "^$") != is_negated;
            // If the condition always holds, it adds requests without a host. If it never holds, it misses them.
            let accuracy = if is_always { Accuracy::MayAdd } else { Accuracy::MayMiss };
            return constant(is_always).map(|found| found.differing(accuracy, OF_HOST));
        }
        _ => {}
    }
    let inner = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    let name = inner.map(|inner| inner.replace("\\.", ".").replace("\\-", "-").to_ascii_lowercase());
    let is_name =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    let value = match name.filter(is_name) {
        Some(name) => name,
        None => RegexPattern::new(named, true).ok()?.to_string(),
    };
    Some(Tests::of(
        Condition::new("host", Value::Text(value)).negated_if(is_negated),
    ))
}

/// Returns the condition for a parameter, if the expression for the query consists of one: `^id=([0-9]+)$`. RockNet
/// always compares names case-sensitively, and finds a parameter anywhere in the query. If the expression differs from
/// this, a note reports it.
fn query(expression: &str, ignores_case: bool, is_negated: bool, names_groups: bool) -> Option<Tests> {
    let starts = ["(?:^|&)", "(^|&)", "(&|^)", "(?:&|^)", "^"];
    let start = starts
        .iter()
        .find(|start| expression.starts_with(**start))
        .copied()
        .unwrap_or("");
    // A group before the name would have the number 1, by which the target refers to it.
    if names_groups && start.starts_with('(') && !start.starts_with("(?") {
        return None;
    }
    let rest = &expression[start.len()..];
    let ends = ["(?:&|$)", "(?:$|&)", "(&|$)", "($|&)", "$"];
    let end = ends.iter().find(|end| rest.ends_with(**end)).copied().unwrap_or("");
    let (name, value) = rest[..rest.len() - end.len()].split_once('=')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !is_name || value.contains('&') || value.starts_with(['?', '*', '+', '{']) || pcre::alternatives(value).len() > 1
    {
        return None;
    }
    // RockNet then misses names in another case, such as `ID` for `id`.
    let misses_other_case = ignores_case && name.bytes().any(|byte| byte.is_ascii_alphabetic());
    // A part such as `.` may also match the `&` before the next parameter. Classes of blanks such as `\s` do not match
    // `&`, but are included to be cautious.
    let is_spanning = pcre::parts(value).any(|(text, part)| match part {
        pcre::Part::Plain(c) => c == '.',
        pcre::Part::Escaped(c) => c.is_ascii_uppercase() || matches!(c, 'h' | 's' | 'v'),
        pcre::Part::Class => text.starts_with("[^") || text.contains('\\'),
    });
    // True if the condition holds for all queries that the expression matches. Without a start, as in `id=1`, the
    // expression also matches the end of a longer name: `uid=1`.
    let misses_none = !start.is_empty() && !misses_other_case && !is_spanning;
    // True if the condition holds for no other queries. A bare `^` admits only the first parameter, and a bare `$` only
    // the last one.
    let adds_none = start != "^" && end != "$";
    let accuracy = Accuracy::of(misses_none, adds_none).negated_if(is_negated);
    let value = if names_groups {
        named_groups(value)
    } else {
        value.to_owned()
    };
    let end = if end.is_empty() { "" } else { "$" };
    let regex = RegexPattern::new(&format!("^{value}{end}"), ignores_case).ok()?;
    let condition = Condition::entry("query", name, regex.to_string()).negated_if(is_negated);
    Some(Tests::of(condition).differing(accuracy, OF_QUERY))
}
