//! Keys of a site's rules: what a request has to be like, and what is done with it.

use super::{Key, Kind, Section};
use crate::choice::{Choice, choice};
use crate::model::Redirect;

choice! {
    /// The way a request came.
    #[derive(Copy)]
    pub enum RequestScheme {
        Https = "https", "the request came under TLS";
        Http = "http", "it came in the clear";
    }
}

const RULE: &[Section] = &[Section::Rule];

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key::new(name, RULE, kind, doc)
}

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "rule",
        &[Section::Site],
        Kind::List(&Kind::Table(Section::Rule)),
        "Rules that requests meet before routes and redirects do, in the order they are written. Each says what a request \
         has to be like (`path`, `host`, `method`, `header`, `query`, `scheme`: all that are written have to hold) and what \
         is done then: `rewrite`, `redirect` or `respond`. After a rewrite the rules that follow see the new path; no rule \
         is met twice. A rule that says `last = true` ends them, and needs no action: what it holds for is spared the \
         others.",
    )
    .empty()
    .example(
        "[[site.\"example.com\".rule]]\npath = \"/blog/*\"\nheader = { \"Accept-Language\" = \"de*\" }\nrewrite = \
         \"/de/blog/{*}\"",
    )
    .elsewhere(&["rewrite", "RewriteRule", "RewriteCond", "if", "handle", "url.rewrite-once", "mod_rewrite"]),
    key(
        "path",
        Kind::Several(&Kind::Text("pattern, as in `redirects`")),
        "One of these is the path, after the rules before have had their way with it. Without it: any path.",
    )
    .example("path = [\"/old/*\", \"*.asp\"]"),
    key(
        "host",
        Kind::Several(&Kind::Text("host name, or `*.example.com`")),
        "One of these is the name asked for.",
    )
    .example("host = \"*.example.org\""),
    key(
        "method",
        Kind::Several(&Kind::Text("method")),
        "One of these is the method, in upper case.",
    )
    .example("method = [\"POST\", \"PUT\"]"),
    key(
        "header",
        Kind::Map { name: "field name", value: &Kind::Text("pattern of the value") },
        "Fields of the request: each has a value that the pattern holds, where `*` stands for anything and case is not told \
         apart; `\"*\"`: the field is there; `\"\"`: it is not there.",
    )
    .example("header = { \"User-Agent\" = \"*bot*\", Authorization = \"\" }")
    .elsewhere(&["headers"]),
    key(
        "query",
        Kind::Map { name: "parameter", value: &Kind::Text("pattern of the value") },
        "Parameters of the query, as they are sent: each has a value that the pattern holds, where `*` stands for anything; \
         `\"*\"`: it is there, with a value or without; `\"\"`: it is not there.",
    )
    .example("query = { page = \"*\" }"),
    key(
        "scheme",
        Kind::Choice(RequestScheme::WORDS),
        "How the request came.",
    )
    .example("scheme = \"http\""),
    key(
        "rewrite",
        Kind::Text("path"),
        "The path, and the query if one is written, that is looked up instead of the one asked for; the client does not \
         learn of it. `{*}` is what the first `*` of `path` stood for, and the whole path without its first slash where no \
         `path` is written. Applications still see the request as it was sent (`REQUEST_URI`).",
    )
    .example("rewrite = \"/index.php?page={*}\""),
    key(
        "redirect",
        Kind::Text("target"),
        "Where the client is sent: a path, or a URL with http:// or https://, with `{*}` as in `rewrite`. The query goes \
         along unless the target has one.",
    )
    .example("redirect = \"https://new.example.com/{*}\""),
    key(
        "respond",
        Kind::Integer { min: 200, max: 599 },
        "The status of an answer made here. Errors have the page that `errors` gives them, or one of RockNet's.",
    )
    .example("respond = 410")
    .elsewhere(&["return", "deny"]),
    key(
        "body",
        Kind::Text("text"),
        "What is sent with `respond`, as plain text.",
    )
    .example("body = \"Back at noon.\""),
    key(
        "status",
        Kind::Integer { min: 301, max: 308 },
        "The status of `redirect`, as in `redirects`.",
    )
    .default(|| Redirect::STATUS.to_string())
    .example("status = 302"),
    key(
        "last",
        Kind::Boolean,
        "Whether no further rule is met once this one holds. A redirect and an answer end them anyway.",
    )
    .default(|| false.to_string())
    .example("last = true"),
];
