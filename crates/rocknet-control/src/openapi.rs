//! Description of the API in OpenAPI 3.1, generated from the types of requests and replies. `cargo xtask docs` writes
//! it to `docs/openapi.json`, which the server contains.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::api::{
    ApiError, Done, ENDPOINTS, EVENT_STREAM, Endpoint, GrantedPermission, JSON, LogLevel, LogLevelChange, Method,
    OPEN_METRICS, Permission,
};
use crate::ban::{BanList, BannedAddress, NewBan, OffenderSummary};
use crate::certificate::CertificateSummary;
use crate::config::{Candidate, Change, Checked, ConfigState, ConfigText, Edits, Replacement, Saved, Undo};
use crate::dashboard::DashboardLink;
use crate::doctor::DoctorCheck;
use crate::explanation::UrlExplanation;
use crate::logs::LogEvent;
use crate::php::{PhpPoolName, PhpPoolSummary};
use crate::response_purge::ResponsePurge;
use crate::route::{RouteTraffic, SiteDetail};
use crate::site::SiteSummary;
use crate::site_form::{ServerForm, SiteForm};
use crate::site_visit::SiteVisit;
use crate::status::Status;
use crate::upgrade::UpgradeOrder;
use crate::upstream::{UpstreamAddress, UpstreamSummary};

/// Reply of an endpoint: its media type and schema.
type ReplySchema = (&'static str, Schema);

/// Query parameter: name, description and schema.
type Parameter = (&'static str, &'static str, Value);

/// Returns the description as JSON text with a newline at the end.
pub fn document() -> String {
    // Replies contain all fields. Requests may leave out fields that have a default.
    let mut replies = generator(SchemaSettings::draft2020_12().for_serialize());
    let mut requests = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut paths: Map<String, Value> = Map::new();
    let error = replies.subschema_for::<ApiError>();
    for endpoint in ENDPOINTS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.name().to_ascii_lowercase()] = operation(endpoint, &mut requests, &mut replies, &error);
    }
    // `true`: the transforms of the settings are applied.
    let mut schemas = requests.take_definitions(true);
    // A type that occurs in requests and in replies has the schema of the reply, which lists the same fields.
    schemas.extend(replies.take_definitions(true));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "RockNet control API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "State and control of a running RockNet server. Fields may be added to replies; ignore those \
                            you do not know.",
        },
        "servers": [{ "url": "http://127.0.0.1:7625" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Contents of `admin/token` or `admin/read-token` in the state folder. The Unix socket \
                                    needs no token.",
                },
            },
        },
    });
    // With the feature `preserve_order`, `serde_json` keeps the insertion order of objects. The document must not
    // depend on whether another crate enables this feature.
    document.sort_all_objects();
    format!("{document:#}\n")
}

/// Returns a generator whose schemas refer to each other as components of the document.
fn generator(mut settings: SchemaSettings) -> SchemaGenerator {
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

/// Returns the description of an endpoint. `error`: schema of the reply to a failed request.
fn operation(
    endpoint: &Endpoint,
    requests: &mut SchemaGenerator,
    replies: &mut SchemaGenerator,
    error: &Schema,
) -> Value {
    let (media_type, schema) = reply(endpoint, replies);
    let permission = match endpoint.permission {
        Permission::Read => "The read token is sufficient.",
        Permission::Full => "Needs the full token.",
    };
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.summary,
        "description": permission,
        "responses": {
            "200": { "description": "The request succeeded.", "content": { media_type: { "schema": schema } } },
            "default": { "description": "The request failed.", "content": { JSON: { "schema": error } } },
        },
    });
    if let Some(body) = body(endpoint, requests) {
        operation["requestBody"] = json!({ "required": true, "content": { JSON: { "schema": body } } });
    }
    let parameters: Vec<Value> = parameters(endpoint)
        .into_iter()
        .map(|(name, description, schema)| {
            let is_required = matches!(name, "url" | "name");
            json!({
                "name": name, "in": "query", "required": is_required, "description": description, "schema": schema,
            })
        })
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

/// Returns a name such as `get_api_log_level`.
fn operation_id(endpoint: &Endpoint) -> String {
    let path = endpoint.path.replace(['/', '-', '.'], "_");
    format!("{}{path}", endpoint.method.name().to_ascii_lowercase())
}

/// Returns the reply of an endpoint.
fn reply(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> ReplySchema {
    let schema = match (endpoint.method, endpoint.path) {
        (Method::Get, "/api/status") => schemas.subschema_for::<Status>(),
        (Method::Get, "/api/sites") => schemas.subschema_for::<Vec<SiteSummary>>(),
        (Method::Get, "/api/site") => schemas.subschema_for::<SiteDetail>(),
        (Method::Get, "/api/routes") => schemas.subschema_for::<Vec<RouteTraffic>>(),
        (Method::Get | Method::Put, "/api/log-level") => schemas.subschema_for::<LogLevel>(),
        (Method::Get, "/api/config") => schemas.subschema_for::<ConfigText>(),
        (Method::Get, "/api/config/server") => schemas.subschema_for::<ServerForm>(),
        (Method::Get, "/api/config/state") => schemas.subschema_for::<ConfigState>(),
        (Method::Get, "/api/permission") => schemas.subschema_for::<GrantedPermission>(),
        (Method::Get, "/api/config/site") => schemas.subschema_for::<SiteForm>(),
        (Method::Post, "/api/config/check" | "/api/config/check-edits") => schemas.subschema_for::<Checked>(),
        (Method::Post, "/api/dashboard/link") => schemas.subschema_for::<DashboardLink>(),
        (Method::Put, "/api/config") | (Method::Post, "/api/config/edit" | "/api/config/undo") => {
            schemas.subschema_for::<Saved>()
        }
        (Method::Get, "/api/config/history") => schemas.subschema_for::<Vec<Change>>(),
        (Method::Get, "/api/certificates") => schemas.subschema_for::<Vec<CertificateSummary>>(),
        (Method::Get, "/api/upstreams") => schemas.subschema_for::<Vec<UpstreamSummary>>(),
        (Method::Get, "/api/bans") => schemas.subschema_for::<BanList>(),
        (Method::Get, "/api/offenders") => schemas.subschema_for::<Vec<OffenderSummary>>(),
        (Method::Get, "/api/php") => schemas.subschema_for::<Vec<PhpPoolSummary>>(),
        (Method::Get, "/api/doctor") => schemas.subschema_for::<Vec<DoctorCheck>>(),
        (Method::Get, "/api/site/visit") => schemas.subschema_for::<SiteVisit>(),
        (Method::Get, "/api/explain") => schemas.subschema_for::<UrlExplanation>(),
        (Method::Get, "/api/openapi.json") => schemas.subschema_for::<Map<String, Value>>(),
        (Method::Get, "/api/logs") => return (EVENT_STREAM, events(schemas)),
        (Method::Get, "/metrics") => return (OPEN_METRICS, schemas.subschema_for::<String>()),
        (Method::Post, _) => schemas.subschema_for::<Done>(),
        (method, path) => unreachable!("the reply of {} {path} has no schema", method.name()),
    };
    (JSON, schema)
}

/// Returns the schema of an event stream: text, whose `contentSchema` describes the data of one event.
fn events(schemas: &mut SchemaGenerator) -> Schema {
    let event = schemas.subschema_for::<LogEvent>();
    let text = json!({
        "type": "string",
        "description": "Server-sent events, each with data in JSON.",
        "contentMediaType": JSON,
        "contentSchema": event,
    });
    text.try_into().unwrap_or_default()
}

/// Returns the schema of the body of a request; `None` if the request has no body.
fn body(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Option<Schema> {
    fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Option<Schema> {
        Some(schemas.subschema_for::<T>())
    }
    match (endpoint.method, endpoint.path) {
        (Method::Put, "/api/log-level") => of::<LogLevelChange>(schemas),
        (Method::Put, "/api/config") => of::<Replacement>(schemas),
        (Method::Post, "/api/config/check") => of::<Candidate>(schemas),
        (Method::Post, "/api/config/edit" | "/api/config/check-edits") => of::<Edits>(schemas),
        (Method::Post, "/api/config/undo") => of::<Undo>(schemas),
        (Method::Post, "/api/upstreams/drain" | "/api/upstreams/enable") => of::<UpstreamAddress>(schemas),
        (Method::Post, "/api/upgrade") => of::<UpgradeOrder>(schemas),
        (Method::Post, "/api/php/restart" | "/api/php/start" | "/api/php/stop") => of::<PhpPoolName>(schemas),
        (Method::Post, "/api/bans/add") => of::<NewBan>(schemas),
        (Method::Post, "/api/bans/lift") => of::<BannedAddress>(schemas),
        (Method::Post, "/api/responses/purge") => of::<ResponsePurge>(schemas),
        _ => None,
    }
}

/// Returns the parameters of the query of a request.
fn parameters(endpoint: &Endpoint) -> Vec<Parameter> {
    match endpoint.path {
        "/api/config" if endpoint.method == Method::Get => vec![(
            "file",
            "Path of an included file, relative to the folder of the main file; without it, the main file.",
            json!({ "type": "string" }),
        )],
        "/api/config/site" => vec![("name", "Name of the site.", json!({ "type": "string" }))],
        "/api/logs" => vec![
            (
                "follow",
                "If true, the stream continues with new lines of all logs after the recent lines of the error log. \
                 Otherwise it ends after the recent lines. The other parameters select lines of both.",
                json!({ "type": "boolean" }),
            ),
            (
                "kind",
                "Only lines of this log: the error log, or the access logs of all sites.",
                json!({ "type": "string", "enum": ["error", "access"] }),
            ),
            (
                "level",
                "Minimum severity of lines of the error log.",
                json!({ "type": "string", "enum": ["error", "warn", "info", "debug", "trace"] }),
            ),
            (
                "site",
                "Only requests to the site with this name, and messages that name it.",
                json!({ "type": "string" }),
            ),
            ("contains", "Only lines with this text.", json!({ "type": "string" })),
        ],
        "/api/explain" => vec![(
            "url",
            "URL such as `http://example.com/path`, or a path for the catch-all site.",
            json!({ "type": "string" }),
        )],
        "/api/site" | "/api/site/visit" => vec![(
            "name",
            "Name of the site as in the configuration.",
            json!({ "type": "string" }),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_described_and_every_reference_exists() {
        let text = document();
        let document: Value = serde_json::from_str(&text).unwrap();
        for endpoint in ENDPOINTS {
            let operation = &document["paths"][endpoint.path][endpoint.method.name().to_ascii_lowercase()];
            assert_eq!(operation["summary"], endpoint.summary);
            let content = operation["responses"]["200"]["content"].as_object().unwrap();
            assert!(content.values().all(|media| media["schema"].is_object()), "{operation}");
            assert_eq!(
                operation["requestBody"].is_object(),
                body(endpoint, &mut requests()).is_some()
            );
        }
        let start = "\"$ref\": \"#/components/schemas/";
        let mut seen = 0;
        for rest in text.split(start).skip(1) {
            let name = rest.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
            seen += 1;
        }
        // Fails if the document has no references that the loop recognizes.
        assert!(seen > 20, "{seen}");
    }

    /// Returns a generator for the bodies of requests.
    fn requests() -> SchemaGenerator {
        generator(SchemaSettings::draft2020_12().for_deserialize())
    }
}
