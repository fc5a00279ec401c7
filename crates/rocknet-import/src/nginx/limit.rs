//! Translates `limit_req` and `limit_conn`: the key and the rate of their zone, which another directive names, become
//! arguments of them.

use std::collections::HashMap;

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::settings::Settings;
use crate::value::Value;

/// Beginnings of the arguments that [`resolve`] adds.
const RATE: &str = "rate=";
const KEY: &str = "key=";

/// Arguments of the zones by name.
type Zones = HashMap<String, Vec<String>>;

/// Returns the tree with the keys and rates of zones in each directive that names them.
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

/// Adds a limit to the settings of its place.
pub(super) fn read(directive: &Directive, settings: &mut Settings, notes: &mut Vec<Note>) {
    let Some((limit, is_of_client)) = limit(directive) else {
        return notes.skip_unknown(directive);
    };
    if !is_of_client {
        let message = "requests for which the key is empty count by client; nginx does not limit them";
        notes.differs(directive, message);
    }
    let limits = match settings.remove("limit").map(|setting| setting.value) {
        None => limit,
        Some(Value::List(mut limits)) => {
            limits.push(limit);
            Value::List(limits)
        }
        Some(first) => Value::List(vec![first, limit]),
    };
    settings.set("limit", limits, directive.line);
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
    // nginx admits one request besides those of `burst`.
    let above: u64 = argument("burst=").map_or(Some(0), |burst| burst.parse().ok())?;
    let mut limit = vec![
        ("rate".to_owned(), Value::Text(format!("{requests}/{unit}"))),
        ("burst".to_owned(), Value::Number(above + 1)),
    ];
    let is_immediate = directive.arguments.iter().any(|word| word == "nodelay");
    match argument("delay=") {
        Some(delay) => limit.push(("delay".to_owned(), Value::Number(delay.parse::<u64>().ok()? + 1))),
        None if above > 0 && !is_immediate => limit.push(("delay".to_owned(), Value::Flag(true))),
        None => {}
    }
    Some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

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
