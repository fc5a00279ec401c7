//! `docs/rocknet.schema.json`, from the table of keys: editors complete and check a configuration with it.

use serde_json::{Map, Value, json};

use crate::keys::{self, Availability, Key, Kind, Literal, Scope, Word};

/// The schema as it stands in `docs/rocknet.schema.json`: draft 7, which editors for TOML know best.
pub fn schema() -> String {
    let mut definitions = Map::new();
    for scope in Scope::ALL.iter().filter(|scope| **scope != Scope::Top) {
        definitions.insert(name(*scope).to_owned(), table(*scope));
    }
    // Strings with variables are known only once these are filled in.
    definitions.insert("variable".to_owned(), json!({ "type": "string", "pattern": "\\$\\{" }));
    let mut root = table(Scope::Top);
    if let Value::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        root.insert("title".to_owned(), json!("RockNet configuration"));
        root.insert("definitions".to_owned(), Value::Object(definitions));
    }
    // A value of `json!` always prints; the empty text would only make the freshness test fail.
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

fn table(scope: Scope) -> Value {
    let mut properties = Map::new();
    // What comes later is left out: an editor then marks it, as the check does.
    for key in keys::within(scope).filter(|key| !matches!(key.availability, Availability::Later(_))) {
        properties.insert(key.name.to_owned(), property(key));
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn property(key: &Key) -> Value {
    let mut value = match key.availability {
        Availability::Only {
            value: Literal::False, ..
        } => json!({ "const": false }),
        Availability::Only {
            value: Literal::Text(word),
            ..
        } => json!({ "const": word }),
        Availability::Now | Availability::Later(_) => shape(&key.kind),
    };
    if let Value::Object(value) = &mut value {
        value.insert("description".to_owned(), json!(key.doc));
        // A default written as TOML is JSON too where it is a number, a string, true, false or a list of them.
        if let Ok(default) = serde_json::from_str::<Value>(&key.default_value()) {
            value.insert("default".to_owned(), default);
        }
    }
    value
}

fn shape(kind: &Kind) -> Value {
    let variable = json!({ "$ref": "#/definitions/variable" });
    match kind {
        Kind::Any => json!({}),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Duration { .. } => text_or(&variable, "^([0-9]+(ms|[smhdw]))+$", None),
        Kind::Size { .. } => text_or(&variable, "^[0-9]+([KMGT]?B|[KMGT]iB)?$", Some("integer")),
        Kind::Rate { .. } => text_or(&variable, "^[0-9]+([KMGT]?B|[KMGT]iB)/s$", Some("integer")),
        Kind::Choice(words) => {
            let mut options: Vec<_> = (words.iter().filter(|word| word.later.is_none()))
                .map(|Word { text, doc, .. }| json!({ "const": text, "description": doc }))
                .collect();
            options.push(variable);
            json!({ "anyOf": options })
        }
        Kind::Text(what) => json!({ "type": "string", "title": what }),
        Kind::List(inner) => json!({ "type": "array", "items": shape(inner) }),
        Kind::Several(inner) => {
            json!({ "anyOf": [shape(inner), { "type": "array", "items": shape(inner) }] })
        }
        Kind::Map { value, .. } => json!({ "type": "object", "additionalProperties": shape(value) }),
        Kind::Table(scope) => json!({ "$ref": reference(*scope) }),
        Kind::Tables { scope, .. } => {
            json!({ "type": "object", "additionalProperties": { "$ref": reference(*scope) } })
        }
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(shape).collect::<Vec<_>>() }),
    }
}

/// A string of a form, and what else may stand in its place.
fn text_or(variable: &Value, pattern: &str, also: Option<&str>) -> Value {
    let mut options = vec![json!({ "type": "string", "pattern": pattern }), variable.clone()];
    if let Some(also) = also {
        options.push(json!({ "type": also, "minimum": 0 }));
    }
    json!({ "anyOf": options })
}

fn reference(scope: Scope) -> String {
    format!("#/definitions/{}", name(scope))
}

fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Top => "top",
        Scope::Server => "server",
        Scope::Events => "events",
        Scope::Spool => "spool",
        Scope::Limits => "limits",
        Scope::Log => "log",
        Scope::Rotate => "rotate",
        Scope::Cache => "cache",
        Scope::Site => "site",
        Scope::SiteLimits => "site_limits",
        Scope::SiteLog => "site_log",
        Scope::Route => "route",
        Scope::Redirect => "redirect",
        Scope::Rule => "rule",
        Scope::Tls => "tls",
        Scope::SiteTls => "site_tls",
        Scope::Proxy => "proxy",
        Scope::Upstream => "upstream",
        Scope::Health => "health",
        Scope::Mirror => "mirror",
        Scope::Application => "application",
        Scope::Cgi => "cgi",
        Scope::Auth => "auth",
        Scope::Ca => "ca",
        Scope::TlsDns => "tls_dns",
    }
}
