//! Keys of CORS: requests of pages from other origins.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::model::Origins;
use crate::value::{cors, settings};

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

const ORIGIN: Kind = Kind::Text("origin, such as \"https://app.example.com\", or \"*\"");

const FIELDS: Kind = Kind::Several(&Kind::Text("field name"));

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "cors",
        BOTH,
        Kind::Either(&[Kind::Boolean, ORIGIN, Kind::List(&ORIGIN), Kind::Table(Section::Cors)]),
        "Permits pages of other origins to read responses (CORS): `true` for pages of every origin, a list of origins, \
         or a table with more settings. The server answers preflight requests itself with 204, before passwords and \
         applications. Responses to permitted origins get `Access-Control-Allow-Origin` and the other fields; an \
         application that sends this field itself keeps its own. In a route, `false` turns it off. docs/cors.md has \
         examples.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read: settings::cors,
        render: |settings, _| Rendered::Value(settings.cors.is_some().to_string()),
        nested: |settings, rows| {
            if let Some(cors) = &settings.cors {
                rows.table(Section::Cors, "cors", cors);
            }
        }
    ))])
    .example("cors = [\"https://app.example.com\", \"https://*.example.org\"]")
    .foreign_names(&["access_control", "mod_headers.cors"]),
    Key::new(
        "origins",
        &[Section::Cors],
        Kind::Several(&ORIGIN),
        "Origins that are permitted: scheme, host and port as in the address bar, without a path. `https://*.example.com` \
         stands for all subdomains, and `\"*\"` for every origin.",
    )
    .sets(&[Target::Cors(bound!(
        read: cors::origins,
        render: |cors, _| match &cors.origins {
            Origins::All => Rendered::text("*"),
            Origins::Listed(listed) => Rendered::texts(listed.iter().map(|origin| origin.as_str())),
        }
    ))])
    .example("origins = [\"https://app.example.com\"]"),
    Key::new(
        "credentials",
        &[Section::Cors],
        Kind::Boolean,
        "Permits requests with cookies, client certificates and passwords. It requires a list of origins: otherwise any \
         page that a visitor opens could read what the site shows to this visitor.",
    )
    .sets(&[Target::Cors(field!(credentials))])
    .example("origins = [\"https://app.example.com\"]\ncredentials = true")
    .foreign_names(&["allow_credentials", "supports_credentials"]),
    Key::new(
        "methods",
        &[Section::Cors],
        Kind::Several(&Kind::Text("method")),
        "Methods that pages may use. Without this setting, each method that a page asks for is permitted. `GET`, `HEAD` \
         and `POST` need no permission.",
    )
    .empty_by_default()
    .sets(&[Target::Cors(bound!(read: cors::methods, render: |cors, _| Rendered::texts(&cors.methods)))])
    .example("methods = [\"PUT\", \"DELETE\"]")
    .foreign_names(&["allow_methods", "allowed_methods"]),
    Key::new(
        "headers",
        &[Section::Cors],
        FIELDS,
        "Header fields that requests of pages may have. Without this setting, each field that a page asks for is \
         permitted.",
    )
    .empty_by_default()
    .sets(&[Target::Cors(bound!(read: cors::headers, render: |cors, _| Rendered::texts(&cors.headers)))])
    .example("headers = [\"Authorization\", \"Content-Type\"]")
    .foreign_names(&["allow_headers", "allowed_headers"]),
    Key::new(
        "expose",
        &[Section::Cors],
        FIELDS,
        "Header fields of responses that scripts of the page can read, besides those that are always readable, such as \
         `Content-Type` and `Cache-Control`.",
    )
    .sets(&[Target::Cors(bound!(read: cors::expose, render: |cors, _| Rendered::texts(&cors.expose)))])
    .example("expose = [\"X-Total-Count\"]")
    .foreign_names(&["expose_headers", "exposed_headers"]),
    Key::new(
        "max_age",
        &[Section::Cors],
        // Chromium remembers it for at most two hours, Firefox for a day.
        Kind::Duration { min_ms: 0, max_ms: 86_400_000 },
        "Time for which browsers remember the response to a preflight request.",
    )
    .sets(&[Target::Cors(field!(max_age))])
    .example("max_age = \"1h\""),
];
