//! Keys of rules: the conditions that a request must meet, and the action.

use super::{Key, Kind, Section};
use crate::choice::Choice;
use crate::model::{Existence, Redirect, RequestScheme};

const RULE: &[Section] = &[Section::Rule];
const CONDITIONS: &[Section] = &[Section::Rule, Section::RuleException];

/// Returns a key of the section of rules.
const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key::new(name, RULE, kind, doc)
}

/// Returns the key of a condition, which a rule and its exceptions have.
const fn condition(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key::new(name, CONDITIONS, kind, doc)
}

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "rule",
        &[Section::Site],
        Kind::List(&Kind::Table(Section::Rule)),
        "Rules that are applied to requests before routes and redirects, in the order of the configuration. Each has \
         conditions (`path`, `host`, `method`, `header`, `cookie`, `query`, `scheme`, `client`, `exists`), which must \
         all hold, exceptions (`unless`), and one action: `rewrite`, `redirect` or `respond`. After a rewrite, the following rules are matched against the new path; \
         no rule is applied twice to a request. If a rule with `last = true` matches, the following rules are \
         skipped. Such a rule needs no action.",
    )
    .empty_by_default()
    .example(
        "[[site.\"example.com\".rule]]\npath = \"/blog/*\"\nheader = { \"Accept-Language\" = \"de*\" }\nrewrite = \
         \"/de/blog/{*}\"",
    )
    .foreign_names(&[
        "rewrite",
        "RewriteRule",
        "RewriteCond",
        "if",
        "handle",
        "url.rewrite-once",
        "mod_rewrite",
    ]),
    condition(
        "path",
        Kind::Several(&Kind::Text("pattern, as in `redirects`")),
        "Patterns, one of which must match the path, after rewrites by earlier rules. A pattern that begins with `~` \
         is a regular expression, with `~*` one that ignores case. Without the key every path matches.",
    )
    .example("path = [\"/old/*\", \"*.asp\", '~^/\\d{4}/']"),
    condition(
        "host",
        Kind::Several(&Kind::Text("host name, `*.example.com`, or regular expression after `~`")),
        "Names, one of which must be the host of the request. A regular expression is compared with the host in lower \
         case, without port.",
    )
    .example("host = \"*.example.org\""),
    condition(
        "method",
        Kind::Several(&Kind::Text("method")),
        "Methods in upper case, one of which must be that of the request.",
    )
    .example("method = [\"POST\", \"PUT\"]"),
    condition(
        "header",
        Kind::Map {
            name: "field name",
            value: &Kind::Text("pattern of the value"),
        },
        "Header fields of the request, each with a pattern that its value must match. `*` stands for any characters, \
         and case is ignored. `\"*\"`: the field is present; `\"\"`: it is absent. `~` begins a regular expression, \
         `~*` one that ignores case.",
    )
    .example("header = { \"User-Agent\" = \"*bot*\", Authorization = \"\" }")
    .foreign_names(&["headers"]),
    condition(
        "cookie",
        Kind::Map {
            name: "cookie",
            value: &Kind::Text("pattern of the value"),
        },
        "Cookies of the request, each with a pattern that its value must match, as it was sent. `*` stands for any \
         characters. `\"*\"`: the cookie is present; `\"\"`: it is absent. `~` begins a regular expression.",
    )
    .example("cookie = { beta = \"on\", \"wordpress_logged_in\" = \"\" }")
    .foreign_names(&["cookies"]),
    condition(
        "query",
        Kind::Map {
            name: "parameter",
            value: &Kind::Text("pattern of the value"),
        },
        "Parameters of the query, as they were sent, each with a pattern that its value must match. `*` stands for \
         any characters. `\"*\"`: the parameter is present, with or without a value; `\"\"`: it is absent. `~` begins a \
         regular expression. The name `\"*\"` stands for the whole query: `{ \"*\" = \"\" }` for a request without one.",
    )
    .example("query = { page = \"*\" }")
    .foreign_names(&["query_string", "args", "QUERY_STRING"]),
    condition("scheme", Kind::Choice(RequestScheme::WORDS), "Scheme of the request.").example("scheme = \"http\""),
    condition(
        "client",
        Kind::Several(&Kind::Text("address or network, as in `allow`")),
        "Addresses and networks, one of which must contain the address of the client, as in `allow`. Clients behind \
         `trusted_proxies` have the address that the proxy reports.",
    )
    .example("client = [\"192.0.2.0/24\", \"private\"]")
    .foreign_names(&["remote_addr", "remote_ip", "REMOTE_ADDR", "geo"]),
    condition(
        "exists",
        Kind::Several(&Kind::Choice(Existence::WORDS)),
        "What the path must lead to in the root of its route, after rewrites by earlier rules; of several, one must \
         hold. Names with a leading dot do not exist for rules.",
    )
    .example("exists = [\"folder\", \"nothing\"]")
    .foreign_names(&["REQUEST_FILENAME", "file"]),
    condition(
        "exists_at",
        Kind::Text("path below the site, with `{path}`"),
        "Path that `exists` examines; without it, the path of the request. `{path}` stands for the path of the request, \
         without its trailing slash if more text surrounds it.",
    )
    .example("exists_at = \"/maintenance.html\""),
    key(
        "unless",
        Kind::Several(&Kind::Table(Section::RuleException)),
        "Exceptions, each a table of conditions: the rule does not apply to a request that meets all conditions of one \
         of them.",
    )
    .example("unless = [{ path = \"/static/*\" }, { client = \"private\" }]")
    .foreign_names(&["not"]),
    key(
        "rewrite",
        Kind::Text("path"),
        "Path that replaces the path of the request. The query of the request is kept, after a query of the new path; \
         `?` at the end drops it. The client is not redirected. `{*}` stands for the part that the first `*` of \
         `path` matched. Without `path`, it stands for the whole path after its first slash. `{1}` stands for the \
         first group of a regular expression in `path`, `{name}` for a group `(?<name>…)` of any condition. \
         Placeholders such as `{request.cookie.lang}` stand for values of the request (docs/placeholders.md). \
         Applications still receive the original request target \
         (`REQUEST_URI`).",
    )
    .example("rewrite = \"/index.php?page={*}\""),
    key(
        "redirect",
        Kind::Text("target"),
        "Target of a redirect: a path, or a URL with http:// or https://, with `{*}`, `{1}`, `{name}` and placeholders \
         as in `rewrite`. The query of \
         the request is kept unless the target has one.",
    )
    .example("redirect = \"https://new.example.com/{*}\""),
    key(
        "respond",
        Kind::Integer { min: 200, max: 599 },
        "Status of a response from the rule itself. Without `body`, an error status has its page of `errors`, or the \
         built-in error page. With 444 the client gets no response: the connection is closed, or the stream of HTTP/2 \
         or HTTP/3 is reset. The access log has the status.",
    )
    .example("respond = 410")
    .foreign_names(&["return", "deny"]),
    key("body", Kind::Text("text"), "Response body of `respond`, with placeholders. It is plain text, unless `headers` sets `Content-Type`.").example("body = \"Back at noon.\""),
    key(
        "resolved",
        Kind::Boolean,
        "Applies `respond` also to the path of the file that a request leads to: the index file of a folder, a file of \
         `try` or `fallback`, or a script. The conditions on the path are then compared with that path.",
    )
    .default(|| false.to_string())
    .example("resolved = true"),
    key(
        "status",
        // `check::rule` refuses 304 to 306.
        Kind::Integer { min: 301, max: 308 },
        "Status of `redirect`, as in `redirects`.",
    )
    .default(|| Redirect::STATUS.to_string())
    .example("status = 302"),
    key(
        "last",
        Kind::Boolean,
        "Skips the following rules when this rule matches. A redirect or a response always skips them.",
    )
    .default(|| false.to_string())
    .example("last = true"),
];
