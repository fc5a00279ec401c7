//! The description of the API: every endpoint of a running server replies as its schema describes.

use std::collections::BTreeMap;

use rocknet_control::api::{ENDPOINTS, Method, OPEN_API};
use serde_json::Value;

use super::control::{exchange, home};

/// Checks a value against a schema, and returns a message if it is not valid. Panics at a keyword that this function
/// does not know. `document`: the whole description, which references point into. `place`: path of the value, for
/// messages.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let Some(schema) = schema.as_object() else {
        return if schema == &Value::Bool(true) {
            Ok(())
        } else {
            Err(format!("{place}: nothing is valid"))
        };
    };
    for (keyword, wanted) in schema {
        let wrong = |what: &str| Err(format!("{place}: {value} {what} {wanted}"));
        match keyword.as_str() {
            "title" | "description" | "default" | "format" | "examples" | "writeOnly" => {}
            "$ref" => {
                let name = wanted
                    .as_str()
                    .and_then(|name| name.strip_prefix('#'))
                    .expect("a local reference");
                let found = document.pointer(name).unwrap_or_else(|| panic!("{name} is missing"));
                check(document, found, value, place)?;
            }
            "type" => {
                let is = |name: &str| match name {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("unknown type {other}"),
                };
                let is_valid = match wanted {
                    Value::Array(all) => all.iter().filter_map(Value::as_str).any(is),
                    one => is(one.as_str().expect("a name")),
                };
                if !is_valid {
                    return wrong("has not the type");
                }
            }
            "enum" if !wanted.as_array().expect("a list").contains(value) => return wrong("is none of"),
            "const" if wanted != value => return wrong("is not"),
            "enum" | "const" => {}
            "minimum" if value.as_f64() < wanted.as_f64() => return wrong("is less than"),
            "maximum" if value.as_f64() > wanted.as_f64() => return wrong("is more than"),
            "minimum" | "maximum" => {}
            "required" => {
                for name in wanted.as_array().expect("a list").iter().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        return Err(format!("{place}: {name} is missing in {value}"));
                    }
                }
            }
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    // The server must not send what its description does not have.
                    let Some(schema) = wanted.get(name) else {
                        return Err(format!("{place}: {name} is not described"));
                    };
                    check(document, schema, member, &format!("{place}.{name}"))?;
                }
            }
            // Members of an object were checked by `properties`. The values of maps are not checked.
            "additionalProperties" => {}
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, wanted, item, &format!("{place}[{at}]"))?;
                }
            }
            // A value that is valid for two schemas of `oneOf` is not detected.
            "anyOf" | "oneOf" => {
                let all = wanted.as_array().expect("a list").iter();
                let mut tried = all.map(|schema| check(document, schema, value, place));
                if !tried.any(|tried| tried.is_ok()) {
                    return wrong("is valid for none of");
                }
            }
            other => panic!("unknown keyword {other} in {place}"),
        }
    }
    Ok(())
}

#[test]
fn wrong_replies_are_found() {
    let document: Value = serde_json::from_str(OPEN_API).unwrap();
    let schema =
        &document["paths"]["/api/log-level"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    for (reply, is_valid) in [
        (r#"{"level":"info"}"#, true),
        (r#"{"level":"loud"}"#, false),
        (r#"{"level":1}"#, false),
        ("{}", false),
        ("[]", false),
        (r#"{"level":"info","more":1}"#, false),
    ] {
        let value = serde_json::from_str(reply).unwrap();
        assert_eq!(check(&document, schema, &value, "reply").is_ok(), is_valid, "{reply}");
    }
}

#[test]
fn every_reply_is_as_described() {
    let dir = home();
    let server = dir.serve(&["run"]);
    server.get("/");
    let send = |method: &str, path: &str, body: &str| {
        let fields = match body {
            "" => String::new(),
            body => format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
        };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n{body}");
        let response = exchange(&dir, &request);
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse::<u16>().expect("a status"), body.to_owned())
    };
    let served = send("GET", "/api/openapi.json", "").1;
    assert_eq!(served, OPEN_API, "the committed description is served");
    let document: Value = serde_json::from_str(&served).unwrap();
    let config: Value = serde_json::from_str(&send("GET", "/api/config", "").1).unwrap();
    let replacement = serde_json::json!({ "text": config["text"], "revision": config["revision"] }).to_string();
    let edit = r#"{"edits":[{"op":"set","path":["server","events","wait"],"value":"\"50ms\""}]}"#;
    let bodies = BTreeMap::from([
        ("/api/config/check", r#"{"text":"[server]\nworker = 1"}"#),
        ("/api/config/edit", edit),
        ("/api/config/undo", "{}"),
        ("/api/bans/add", r#"{"address":"192.0.2.7","seconds":60,"reason":"a"}"#),
        ("/api/bans/lift", r#"{"address":"192.0.2.7"}"#),
        ("/api/responses/purge", r#"{"tag":"a"}"#),
        ("/api/upstreams/drain", r#"{"address":"http://127.0.0.1:9"}"#),
        ("/api/upstreams/enable", r#"{"address":"http://127.0.0.1:9"}"#),
        ("/api/php/restart", r#"{"name":"8.2"}"#),
        ("/api/php/stop", r#"{"name":"8.2"}"#),
        ("/api/php/start", r#"{"name":"8.2"}"#),
        ("/api/upgrade", r#"{"binary":"/missing/program"}"#),
    ]);
    // `stop` is last, because it ends the server. The other POST requests come first, so that the replies to GET
    // requests show their effects, such as the history of edits.
    let mut endpoints = ENDPOINTS.to_vec();
    endpoints.sort_by_key(|endpoint| (endpoint.path == "/api/stop", endpoint.method != Method::Post));
    let mut successes = 0;
    for endpoint in endpoints {
        let method = endpoint.method.name();
        let body = match (endpoint.method, endpoint.path) {
            (Method::Put, "/api/log-level") => r#"{"level":"info"}"#,
            (Method::Put, "/api/config") => &replacement,
            (Method::Post, path) => bodies.get(path).copied().unwrap_or_default(),
            _ => "",
        };
        let path = match endpoint.path {
            "/api/explain" => "/api/explain?url=%2Findex.html",
            "/api/site" => "/api/site?name=default",
            "/api/site/visit" => "/api/site/visit?name=default",
            "/api/config/site" => "/api/config/site?name=default",
            path => path,
        };
        let (status, reply) = send(method, path, body);
        let responses = &document["paths"][endpoint.path][method.to_ascii_lowercase()]["responses"];
        let described = match status {
            200 => &responses["200"],
            _ => &responses["default"],
        };
        let content = described["content"]
            .as_object()
            .unwrap_or_else(|| panic!("{method} {path} is not described"));
        let (media_type, media) = content.iter().next().expect("a media type");
        successes += usize::from(status == 200);
        let schema = &media["schema"];
        match media_type.as_str() {
            "application/json" => {
                let value: Value =
                    serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{path}: {error}: {reply}"));
                let checked = check(&document, schema, &value, path);
                assert_eq!(checked, Ok(()), "{method} {path}: {reply}");
            }
            "text/event-stream" => {
                for line in reply.lines().filter_map(|line| line.strip_prefix("data: ")) {
                    let event = serde_json::from_str(line).unwrap();
                    assert_eq!(check(&document, &schema["contentSchema"], &event, path), Ok(()));
                }
            }
            _ => assert_eq!(schema["type"], "string", "{path}"),
        }
    }
    // At most eight requests fail. Among them are those about an upstream, a pool and a program that do not exist, and
    // the replacement of an old revision.
    assert!(successes >= ENDPOINTS.len() - 8, "{successes} of {}", ENDPOINTS.len());
}
