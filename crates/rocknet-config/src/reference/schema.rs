//! Generator of `docs/rocknet.schema.json`, which editors use to complete and check a configuration.

use serde_json::{Map, Value, json};

use crate::keys::{self, Key, Kind, Section, Word};

/// Returns the content of `docs/rocknet.schema.json`. It uses draft 7 of JSON Schema, which editors for TOML support
/// best.
pub fn schema() -> String {
    let mut definitions = Map::new();
    for section in Section::ALL.iter().filter(|section| **section != Section::Top) {
        definitions.insert(name(*section).to_owned(), table(*section));
    }
    // An editor does not know the values of variables. Where the text of a string is restricted, a string with a
    // variable is therefore valid too. Booleans and integers are not strings, so they cannot contain variables.
    definitions.insert("variable".to_owned(), json!({ "type": "string", "pattern": "\\$\\{" }));
    let mut root = table(Section::Top);
    if let Value::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        root.insert("title".to_owned(), json!("RockNet configuration"));
        root.insert("definitions".to_owned(), Value::Object(definitions));
    }
    // Serialization of a `json!` value cannot fail. If it did, the test that compares the generated files in `docs`
    // would report the empty text.
    let mut text = serde_json::to_string_pretty(&sorted(root)).unwrap_or_default();
    text.push('\n');
    text
}

/// Sorts the keys of all objects, because the order depends on features that other crates enable in `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(String, Value)> =
                object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Returns the schema of the table of a section.
fn table(section: Section) -> Value {
    let mut properties = Map::new();
    for key in keys::within(section) {
        properties.insert(key.name.to_owned(), property(key));
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Returns the schema of the value of a key, with its documentation and default.
fn property(key: &Key) -> Value {
    let mut value = shape(&key.kind);
    if let Value::Object(value) = &mut value {
        value.insert("description".to_owned(), json!(key.doc));
        // A TOML default is also JSON if it is a number, a string, true, false, a list of these or an empty table.
        if let Ok(default) = serde_json::from_str::<Value>(&key.default_value()) {
            value.insert("default".to_owned(), default);
        }
    }
    value
}

/// Returns the schema of the values of a kind.
fn shape(kind: &Kind) -> Value {
    let variable = json!({ "$ref": "#/definitions/variable" });
    match kind {
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Duration { .. } => text_or(&variable, "^([0-9]+(ms|[smhdw]))+$", None),
        Kind::Size { .. } => text_or(&variable, "^[0-9]+([KMGT]?B|[KMGT]iB)?$", Some("integer")),
        Kind::Rate { .. } => text_or(&variable, "^[0-9]+([KMGT]?B|[KMGT]iB)/s$", Some("integer")),
        Kind::Choice(words) => {
            // Words that only a later version supports are left out.
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
        Kind::Table(section) => json!({ "$ref": reference(*section) }),
        Kind::Tables { section, .. } => {
            json!({ "type": "object", "additionalProperties": { "$ref": reference(*section) } })
        }
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(shape).collect::<Vec<_>>() }),
    }
}

/// Returns a schema that accepts a string with this pattern, or a string with a variable. If `also` names a type of
/// numbers, numbers of this type that are not negative are accepted too.
fn text_or(variable: &Value, pattern: &str, also: Option<&str>) -> Value {
    let mut options = vec![json!({ "type": "string", "pattern": pattern }), variable.clone()];
    if let Some(also) = also {
        options.push(json!({ "type": also, "minimum": 0 }));
    }
    json!({ "anyOf": options })
}

/// Returns the `$ref` to the definition of a section.
fn reference(section: Section) -> String {
    format!("#/definitions/{}", name(section))
}

/// Returns the name of the definition of a section.
fn name(section: Section) -> &'static str {
    match section {
        Section::Top => "top",
        Section::Server => "server",
        Section::Events => "events",
        Section::Spool => "spool",
        Section::Http3 => "http3",
        Section::Limits => "limits",
        Section::Log => "log",
        Section::Rotate => "rotate",
        Section::Cache => "cache",
        Section::Admin => "admin",
        Section::Tracing => "tracing",
        Section::Ban => "ban",
        Section::Site => "site",
        Section::SiteLimits => "site_limits",
        Section::SiteLog => "site_log",
        Section::Route => "route",
        Section::Redirect => "redirect",
        Section::Rule => "rule",
        Section::RuleException => "rule_exception",
        Section::Tls => "tls",
        Section::SiteTls => "site_tls",
        Section::Proxy => "proxy",
        Section::Upstream => "upstream",
        Section::Health => "health",
        Section::Mirror => "mirror",
        Section::Application => "application",
        Section::Cgi => "cgi",
        Section::Php => "php",
        Section::Auth => "auth",
        Section::Certificate => "certificate",
        Section::Limit => "limit",
        Section::Browse => "browse",
        Section::Zip => "zip",
        Section::Cors => "cors",
        Section::ResponseCache => "response_cache",
        Section::Ca => "ca",
        Section::TlsDns => "tls_dns",
    }
}
