//! Translates variables of nginx and placeholders of Caddy to placeholders of RockNet.

use rocknet_config::template::{Scope, Template, of_caddy, of_nginx};

/// Placeholders of Caddy that have the same name in RockNet.
const SAME: [&str; 5] = ["host", "method", "path", "query", "scheme"];

/// Translates a text with variables of nginx; `None` if a variable has no placeholder in this scope.
pub(crate) fn from_nginx(text: &str, scope: Scope) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        push_literal(&mut out, before);
        let (is_braced, after) = match after.strip_prefix('{') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        // Without a query, `$is_args` is empty in nginx. Here a `?` stays, which does no harm before an empty query.
        let placeholder = match name {
            "is_args" => "?".to_owned(),
            name => format!("{{{}}}", of_nginx(name)?),
        };
        out.push_str(&placeholder);
        rest = match is_braced {
            true => after.strip_prefix('}')?,
            false => after,
        };
    }
    push_literal(&mut out, rest);
    Template::parse(&out, scope).is_ok().then_some(out)
}

/// Translates a text with placeholders of Caddy; `None` if one of them has no counterpart in this scope.
pub(crate) fn from_caddy(text: &str, scope: Scope) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
        match end.map(|end| after.split_at(end)) {
            Some((name, after)) if !name.is_empty() && after.starts_with('}') => {
                let is_same = SAME.contains(&name);
                let placeholder = of_caddy(name).or_else(|| is_same.then(|| name.to_owned()))?;
                out.push_str(&format!("{{{placeholder}}}"));
                rest = &after[1..];
            }
            _ => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Template::parse(&out, scope).is_ok().then_some(out)
}

/// Appends a literal text. Braces around the name of a placeholder are doubled, so that they remain braces.
fn push_literal(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let end = after.find('}').unwrap_or(after.len());
        let candidate = format!("{{{}}}", &after[..end]);
        // The scope of logs has all placeholders. `parse` fails for other names in braces, which are doubled too.
        let is_name = Template::parse(&candidate, Scope::Log).map_or(true, |found| found.as_constant().is_none());
        if is_name && end < after.len() {
            out.push_str(&format!("{{{candidate}}}"));
            rest = &after[end + 1..];
        } else {
            out.push('{');
            rest = after;
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_nginx_become_placeholders() {
        for (text, expected) in [
            ("$remote_addr", Some("{client.ip}")),
            (
                "a${host}b $http_user_agent",
                Some("a{host}b {request.header.User-Agent}"),
            ),
            ("id=$cookie_id", Some("id={request.cookie.id}")),
            ("plain {text} {}", Some("plain {{text}} {}")),
            ("{\"group\":\"a\"}", Some("{\"group\":\"a\"}")),
            ("$gzip_ratio", None),
            ("$status", None),
            ("costs $5", None),
        ] {
            assert_eq!(from_nginx(text, Scope::Request).as_deref(), expected, "{text}");
        }
        let line = "$remote_addr $time_local \"$request_method $request_uri\" $status $body_bytes_sent";
        assert_eq!(
            from_nginx(line, Scope::Log).as_deref(),
            Some("{client.ip} {time.clf} \"{method} {target}\" {status} {bytes.sent}")
        );
    }

    #[test]
    fn placeholders_of_caddy_become_placeholders() {
        for (text, expected) in [
            ("{remote_host}", Some("{client.ip}")),
            (
                "{http.request.header.X-Id}/{host}",
                Some("{request.header.X-Id}/{host}"),
            ),
            ("{\"a\":{}}", Some("{\"a\":{}}")),
            ("{http.error.message}", None),
            ("{env.HOME}", None),
        ] {
            assert_eq!(from_caddy(text, Scope::Request).as_deref(), expected, "{text}");
        }
    }
}
