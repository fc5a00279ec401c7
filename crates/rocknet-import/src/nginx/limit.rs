//! Translates `limit_req`, `limit_conn` and `limit_rate`.
//!
//! The key and the rate of a limit are arguments of its zone, such as `limit_req_zone`. First, they become arguments of
//! the directives that name the zone.

use std::collections::HashMap;

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

/// Beginnings of the arguments that [`resolve`] adds, such as `rate=1r/s` and `key=$remote_addr`. The zone has the same
/// `rate=1r/s`, but only `$remote_addr` as its key: `limit_req_zone $remote_addr zone=a:1m rate=1r/s`.
const RATE: &str = "rate=";
const KEY: &str = "key=";

/// Arguments of the zones by name.
type Zones = HashMap<String, Vec<String>>;

/// Returns the tree with the keys and rates of zones in each directive that names them: `limit_req zone=a` becomes
/// `limit_req zone=a rate=1r/s key=$remote_addr`.
pub(super) fn resolve(mut tree: Vec<Directive>) -> Vec<Directive> {
    let http = tree.iter().filter(|directive| directive.is("http"));
    let all = tree.iter().chain(http.flat_map(Directive::children));
    let zones: Zones = all
        .filter(|directive| directive.is("limit_req_zone") || directive.is("limit_conn_zone"))
        .filter_map(zone)
        .collect();
    if !zones.is_empty() {
        add_arguments(&mut tree, &zones);
    }
    tree
}

/// Returns the name of a zone, and the arguments that it adds.
fn zone(directive: &Directive) -> Option<(String, Vec<String>)> {
    let (key, rest) = directive.arguments.split_first()?;
    let name = rest.iter().find_map(|word| word.strip_prefix("zone="))?;
    let rate = rest.iter().filter(|word| word.starts_with(RATE)).cloned();
    let name = name.split(':').next().unwrap_or(name);
    Some((name.to_owned(), rate.chain([format!("{KEY}{key}")]).collect()))
}

fn add_arguments(directives: &mut [Directive], zones: &Zones) {
    for directive in directives {
        let name = match directive.name.as_str() {
            "limit_req" => directive.arguments.iter().find_map(|word| word.strip_prefix("zone=")),
            "limit_conn" => directive.arguments.first().map(String::as_str),
            _ => None,
        };
        if let Some(arguments) = name.and_then(|name| zones.get(name)) {
            directive.arguments.extend(arguments.iter().cloned());
        }
        add_arguments(directive.block.as_deref_mut().unwrap_or_default(), zones);
    }
}

/// Adds a `limit_req` or `limit_conn` to the settings of its level: `http`, `server` or `location`.
pub(super) fn read(directive: &Directive, settings: &mut Settings, notes: &mut Vec<Note>) {
    let Some((limit, is_of_client)) = limit(directive) else {
        return notes.skip_unknown(directive);
    };
    if !is_of_client {
        let message = "requests for which the key is empty count by client; nginx does not limit them";
        notes.differs(directive, message);
    }
    add(limit, settings, directive.line);
}

fn add(limit: Value, settings: &mut Settings, line: usize) {
    let mut limits = list(settings.remove("limit").map(|setting| setting.value));
    limits.push(limit);
    settings.set("limit", Value::one_or_list(limits), line);
}

/// Returns the limits of the key `limit`; none for `limit = false`.
fn list(limits: Option<Value>) -> Vec<Value> {
    match limits {
        None | Some(Value::Flag(_)) => Vec::new(),
        Some(Value::List(limits)) => limits,
        Some(limit) => vec![limit],
    }
}

/// Returns the first key of a limit, which states what the limit counts: `rate`, `connections` or `bandwidth`.
fn kind(limit: &Value) -> Option<&str> {
    match limit {
        Value::Table(entries) => entries.first().map(|(key, _)| key.as_str()),
        _ => None,
    }
}

/// Applies other directives of a level, once its limits are read: `limit_rate` adds a limit, and the directives
/// `limit_…_dry_run` change the limits.
pub(super) fn finish(directives: &[&Directive], settings: &mut Settings, notes: &mut Vec<Note>) {
    let last = |name: &str| directives.iter().rev().find(|directive| directive.is(name));
    for (name, counted) in [("limit_req_dry_run", "rate"), ("limit_conn_dry_run", "connections")] {
        let Some(directive) = last(name).filter(|directive| directive.argument(0) == "on") else {
            continue;
        };
        let mut limits = list(settings.get("limit").cloned());
        let mut is_used = false;
        for limit in &mut limits {
            let is_counted = kind(limit) == Some(counted);
            if let (Value::Table(entries), true) = (limit, is_counted) {
                entries.push(("dry_run".to_owned(), Value::Flag(true)));
                is_used = true;
            }
        }
        if is_used {
            settings.set("limit", Value::one_or_list(limits), directive.line);
        } else {
            let limited = name.trim_end_matches("_dry_run");
            let message = format!("this block has no translated `{limited}`: write `dry_run = true` in the limit");
            notes.skip(directive, &message);
        }
    }
    let rate = last("limit_rate").filter(|directive| !is_off(directive));
    let after = last("limit_rate_after").map(|directive| (directive, units::size(directive.argument(0))));
    let Some(directive) = rate else {
        if let (Some((after, _)), None) = (after, last("limit_rate")) {
            notes.skip(after, "there is no `limit_rate` beside it: write `after` in the limit");
        }
        return;
    };
    let Some(size) = units::size(directive.argument(0)) else {
        return notes.skip(directive, "write `limit` with a constant `bandwidth`");
    };
    let mut limit = vec![("bandwidth".to_owned(), Value::Text(format!("{size}/s")))];
    match after {
        Some((_, Some(size))) => limit.push(("after".to_owned(), Value::Text(size))),
        Some((after, None)) => notes.skip(after, "write a constant `after` in the limit"),
        None => {}
    }
    add(Value::Table(limit), settings, directive.line);
}

/// Returns true for a `limit_rate` of 0, which means no limit in nginx.
fn is_off(directive: &Directive) -> bool {
    directive.is("limit_rate") && matches!(directive.argument(0).trim_end_matches(['k', 'K', 'm', 'M']), "0")
}

/// Adds the limits of an outer level that a server or location inherits in nginx: those of another kind than its own.
/// `directives`: directives of the server or location itself. `limit_rate 0` among them ends the inheritance of
/// `bandwidth`.
pub(super) fn inherit(directives: &[&Directive], settings: &mut Settings, outer: &Settings, line: usize) {
    let own = list(settings.get("limit").cloned());
    let mut kinds: Vec<&str> = own.iter().filter_map(kind).collect();
    if directives.iter().any(|directive| is_off(directive)) {
        kinds.push("bandwidth");
    }
    let outer = list(outer.get("limit").cloned());
    let is_inherited = |limit: &&Value| !kind(limit).is_some_and(|kind| kinds.contains(&kind));
    let all: Vec<Value> = own.iter().chain(outer.iter().filter(is_inherited)).cloned().collect();
    if own.is_empty() && all == outer || outer.is_empty() {
        // RockNet applies all limits of the outer level to a route without limits of its own.
        return;
    }
    let value = match all.is_empty() {
        true => Value::Flag(false),
        false => Value::one_or_list(all),
    };
    settings.set("limit", value, line);
}

/// Returns the limit, and true if it counts by client; `None` if the zone is unknown, or its key has no counterpart.
fn limit(directive: &Directive) -> Option<(Value, bool)> {
    let argument = |name: &str| directive.arguments.iter().find_map(|word| word.strip_prefix(name));
    let mut limit = match directive.is("limit_conn") {
        true => vec![(
            "connections".to_owned(),
            Value::Number(directive.argument(1).parse().ok()?),
        )],
        false => rate(directive)?,
    };
    let key = match argument(KEY)? {
        "$binary_remote_addr" | "$remote_addr" => None,
        key => Some(placeholder::from_nginx(key, Scope::Request)?),
    };
    let is_of_client = key.is_none();
    if let Some(key) = key {
        limit.push(("key".to_owned(), Value::Text(key)));
    }
    Some((Value::Table(limit), is_of_client))
}

/// Returns the keys of a rate for a `limit_req`.
fn rate(directive: &Directive) -> Option<Vec<(String, Value)>> {
    let argument = |name: &str| directive.arguments.iter().find_map(|word| word.strip_prefix(name));
    let rate = argument(RATE)?;
    let (requests, unit) = rate.split_once("r/")?;
    requests.parse::<u32>().ok().filter(|_| ["s", "m"].contains(&unit))?;
    // nginx admits one request besides those of `burst`, which RockNet includes in `burst`. The same is true of
    // `delay`.
    let above = argument("burst=").map_or(Some(0), |burst| burst.parse::<u32>().ok().map(u64::from))?;
    let mut limit = vec![
        ("rate".to_owned(), Value::Text(format!("{requests}/{unit}"))),
        ("burst".to_owned(), Value::Number(above + 1)),
    ];
    let is_immediate = directive.arguments.iter().any(|word| word == "nodelay");
    match argument("delay=") {
        Some(delay) => {
            let delay = u64::from(delay.parse::<u32>().ok()?);
            limit.push(("delay".to_owned(), Value::Number(delay + 1)));
        }
        None if above > 0 && !is_immediate => limit.push(("delay".to_owned(), Value::Flag(true))),
        None => {}
    }
    Some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_other_kinds_are_inherited() {
        let text = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; server { listen 80; server_name a.test; root /s; \
                    limit_req zone=a; location /a/ { limit_rate 10k; limit_rate_after 1m; } location /b/ { limit_rate 0; } \
                    location /c/ { limit_req zone=a burst=2 nodelay; limit_req_dry_run on; } }";
        let import = crate::import(crate::Language::Nginx, "a.conf", text).unwrap();
        for expected in [
            "limit = { rate = \"1/s\", burst = 1 }",
            "limit = [{ bandwidth = \"10KiB/s\", after = \"1MiB\" }, { rate = \"1/s\", burst = 1 }]",
            "limit = { rate = \"1/s\", burst = 3, dry_run = true }",
        ] {
            assert!(import.toml.contains(expected), "{expected}: {}", import.toml);
        }
        assert!(!import.toml.contains("/b/*"), "{}", import.toml);
    }

    #[test]
    fn a_dry_run_without_its_limit_is_reported() {
        let zones =
            "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_conn_zone $binary_remote_addr zone=b:1m;";
        for (directives, expected) in [
            ("limit_req zone=a; limit_req_dry_run on;", false),
            ("limit_req_dry_run on;", true),
            // A limit of another kind is not changed.
            ("limit_conn b 10; limit_req_dry_run on;", true),
        ] {
            let text = format!("{zones} server {{ listen 80; server_name a.test; root /s; {directives} }}");
            let import = crate::import(crate::Language::Nginx, "a.conf", &text).unwrap();
            let is_reported = import.toml.contains("no translated `limit_req`");
            assert_eq!(is_reported, expected, "{directives}: {}", import.toml);
            assert_eq!(import.toml.contains("dry_run = true }"), !expected, "{}", import.toml);
        }
    }

    #[test]
    fn a_rate_of_zero_ends_the_inheritance() {
        let http = |outer: &str, server: &str| {
            let text = format!(
                "http {{ limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; {outer} server {{ listen 80; \
                 server_name a.test; root /s; {server} }} }}"
            );
            let import = crate::import(crate::Language::Nginx, "a.conf", &text).unwrap();
            let lines = import.toml.lines().filter(|line| line.starts_with("limit = "));
            lines
                .map(|line| line["limit = ".len()..].to_owned())
                .collect::<Vec<_>>()
        };
        let (bandwidth, rate) = ("{ bandwidth = \"10KiB/s\" }", "{ rate = \"1/s\", burst = 1 }");
        for (outer, server, expected) in [
            (
                "",
                "limit_rate 10k; location /a/ { limit_rate 0; }",
                &[bandwidth, "false"][..],
            ),
            (
                "",
                "limit_rate 10k; limit_req zone=a; location /a/ { limit_rate 0k; }",
                &[&format!("[{rate}, {bandwidth}]"), rate],
            ),
            (
                "",
                "location / { limit_rate 10k; } location /a/ { limit_rate 0; }",
                &[bandwidth, "false"],
            ),
            ("limit_rate 10k;", "limit_rate 0;", &[]),
            ("limit_rate 10k;", "", &[bandwidth]),
            // Limits of another kind are inherited from `http`, too.
            (
                "limit_rate 10k;",
                "limit_req zone=a;",
                &[&format!("[{rate}, {bandwidth}]")],
            ),
            ("", "limit_rate 0;", &[]),
        ] {
            assert_eq!(http(outer, server), expected, "{outer} {server}");
        }
    }

    #[test]
    fn connections_have_zones_too() {
        for (limit, expected) in [("a 10", Some("{ connections = 10 }")), ("b 10", None), ("a x", None)] {
            let text = format!("limit_conn_zone $binary_remote_addr zone=a:1m; limit_conn {limit};");
            let tree = resolve(super::super::read(&text).unwrap());
            assert_eq!(written(&tree[1]).as_deref(), expected, "{limit}");
        }
    }

    /// Returns the limit of a directive in TOML.
    fn written(directive: &Directive) -> Option<String> {
        let (limit, _) = super::limit(directive)?;
        let mut out = String::new();
        limit.write(&mut out);
        Some(out)
    }

    #[test]
    fn zones_and_their_limits_are_joined() {
        for (zone, limit, expected) in [
            (
                "$binary_remote_addr zone=a:10m rate=10r/s",
                "zone=a",
                Some("{ rate = \"10/s\", burst = 1 }"),
            ),
            (
                "$remote_addr zone=a:10m rate=30r/m",
                "zone=a burst=5",
                Some("{ rate = \"30/m\", burst = 6, delay = true }"),
            ),
            (
                "$binary_remote_addr zone=a:10m rate=10r/s",
                "zone=a burst=20 nodelay",
                Some("{ rate = \"10/s\", burst = 21 }"),
            ),
            (
                "$binary_remote_addr zone=a:10m rate=10r/s",
                "zone=a burst=20 delay=8",
                Some("{ rate = \"10/s\", burst = 21, delay = 9 }"),
            ),
            (
                "$http_x_api_key zone=a:10m rate=1r/s",
                "zone=a",
                Some("{ rate = \"1/s\", burst = 1, key = \"{request.header.X-Api-Key}\" }"),
            ),
            (
                "$remote_addr zone=a:10m rate=1r/s",
                "zone=a burst=18446744073709551615",
                None,
            ),
            (
                "$remote_addr zone=a:10m rate=1r/s",
                "zone=a burst=1 delay=18446744073709551615",
                None,
            ),
            ("$limit_key zone=a:10m rate=1r/s", "zone=a", None),
            ("$binary_remote_addr zone=a:10m rate=1r/s", "zone=b", None),
            ("$binary_remote_addr zone=a:10m rate=1", "zone=a", None),
        ] {
            let text = format!("http {{ limit_req_zone {zone}; server {{ limit_req {limit}; }} }}");
            let tree = resolve(super::super::read(&text).unwrap());
            let server = tree[0]
                .children()
                .iter()
                .find(|directive| directive.is("server"))
                .unwrap();
            assert_eq!(written(&server.children()[0]).as_deref(), expected, "{zone}; {limit}");
        }
    }
}
