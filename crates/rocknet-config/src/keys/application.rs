//! Keys of applications that are reached by FastCGI, SCGI or uwsgi.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, SettingRows, bound, field};
use crate::model::{Balance, Protocol, Settings};

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

const ADDRESS: Kind = Kind::Text("\"unix:/path\" or \"host:port\"");

const APPLICATION: Kind = Kind::Either(&[
    Kind::Boolean,
    ADDRESS,
    Kind::List(&ADDRESS),
    Kind::Table(Section::Application),
]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "fastcgi",
        BOTH,
        APPLICATION,
        "Passes requests to an application by FastCGI. The address is `unix:` and the path of a socket, or \
         `host:port`; the addresses of a list share the requests. A table accepts more settings, with the addresses \
         in `to`. The application receives every request of the site or route. The path of the route becomes \
         `SCRIPT_NAME`, the rest of the request's path `PATH_INFO`. For PHP use `php`, which looks up scripts. In a \
         route, `false` or a `root` turns the application off.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render: |settings, _| rendered(settings, Protocol::FastCgi),
        nested: |settings, rows| nested_keys(settings, Protocol::FastCgi, rows)
    ))])
    .example("fastcgi = \"unix:/run/app.sock\"")
    .foreign_names(&["fastcgi.server", "FastCgiExternalServer", "fcgi"]),
    Key::new(
        "scgi",
        BOTH,
        APPLICATION,
        "Passes requests to an application by SCGI. Values and settings are those of `fastcgi`.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render: |settings, _| rendered(settings, Protocol::Scgi),
        nested: |settings, rows| nested_keys(settings, Protocol::Scgi, rows)
    ))])
    .example("scgi = \"127.0.0.1:4000\"")
    .foreign_names(&["scgi_pass", "scgi.server", "SCGIMount"]),
    Key::new(
        "uwsgi",
        BOTH,
        APPLICATION,
        "Passes requests to an application by the uwsgi protocol. Values and settings are those of `fastcgi`. In \
         uWSGI, the option `socket` selects this protocol; `http-socket` does not.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render: |settings, _| rendered(settings, Protocol::Uwsgi),
        nested: |settings, rows| nested_keys(settings, Protocol::Uwsgi, rows)
    ))])
    .example("uwsgi = \"unix:/run/app.sock\"")
    .foreign_names(&["uwsgi_pass"]),
    Key::new(
        "to",
        &[Section::Application],
        Kind::Several(&ADDRESS),
        "Addresses of the application; several share the requests.",
    )
    .example("to = [\"10.0.0.2:9000\", \"10.0.0.3:9000\"]"),
    Key::new(
        "mount",
        &[Section::Application],
        Kind::Text("path below the site"),
        "Prefix of paths that becomes `SCRIPT_NAME`; the rest of the path becomes `PATH_INFO`. Without the key, the \
         prefix is the path at the beginning of the route's pattern. With `\"/\"`, `SCRIPT_NAME` is empty and \
         `PATH_INFO` is the whole path.",
    )
    .sets(&[Target::Application(bound!(
        render: |application, _| match &*application.mount {
            "" => Rendered::Unset,
            mount => Rendered::text(mount),
        }
    ))])
    .example("mount = \"/app\"")
    .foreign_names(&["fastcgi_split_path_info", "SCRIPT_NAME"]),
    Key::new(
        "params",
        &[Section::Application],
        Kind::Map {
            name: "variable",
            value: &Kind::Text("its value"),
        },
        "Variables that are set in requests to the application, in place of the usual values. An empty value removes \
         a variable.",
    )
    .sets(&[Target::Application(bound!(
        render: |application, _| Rendered::names(&application.params)
    ))])
    .example("params = { SCRIPT_FILENAME = \"/usr/lib/cgit/cgit.cgi\", HTTP_COOKIE = \"\" }")
    .foreign_names(&["fastcgi_param", "scgi_param", "uwsgi_param", "ProxyFCGISetEnvIf", "env"]),
    Key::new(
        "connect",
        &[Section::Application],
        Kind::Duration {
            min_ms: 100,
            max_ms: 60_000,
        },
        "Timeout for the application to accept a connection. After it, the client gets 504, or 503 if the backlog of \
         the application is full.",
    )
    .sets(&[Target::Application(field!(connect))])
    .example("connect = \"1s\"")
    .foreign_names(&[
        "fastcgi_connect_timeout",
        "uwsgi_connect_timeout",
        "scgi_connect_timeout",
    ]),
    Key::new(
        "keep",
        &[Section::Application],
        Kind::Integer { min: 0, max: 1024 },
        "Maximum number of idle FastCGI connections, of all workers together, that are kept open for a second. With \
         most applications an idle connection occupies a process, so set it below the number of processes.",
    )
    .sets(&[Target::Application(field!(keep))])
    .example("keep = 8")
    .foreign_names(&["fastcgi_keep_conn", "keepalive"]),
    Key::new(
        "balance",
        &[Section::Application],
        Kind::Choice(Balance::KEYLESS),
        "Policy that selects one of several addresses for a request.",
    )
    .sets(&[Target::Application(field!(balance))])
    .example("balance = \"least_conn\""),
    Key::new(
        "fails",
        &[Section::Application],
        Kind::Integer { min: 0, max: 1000 },
        "Number of failures within `fail_time` after which one of several addresses is taken out of rotation for \
         `fail_time`. A failure is a failed connection, a missing response or one that cannot be parsed. After that \
         time, one request tries the address again. With `0`, an address always stays in rotation.",
    )
    .sets(&[Target::Application(field!(fails))])
    .example("fails = 1"),
    Key::new(
        "fail_time",
        &[Section::Application],
        Kind::Duration {
            min_ms: 100,
            max_ms: 86_400_000,
        },
        "Time in which `fails` are counted, and for which an address is out of rotation.",
    )
    .sets(&[Target::Application(field!(fail_time))])
    .example("fail_time = \"30s\""),
];

/// Renders the addresses of the application if it uses this protocol.
fn rendered(settings: &Settings, protocol: Protocol) -> Rendered {
    let application = settings.application.as_ref().filter(|it| it.protocol == protocol);
    Rendered::or_off(application.map(|it| Rendered::texts(it.to.iter().map(ToString::to_string))))
}

/// Adds the keys of the application's table if the application uses this protocol.
fn nested_keys(settings: &Settings, protocol: Protocol, rows: &mut SettingRows<'_>) {
    if let Some(application) = settings.application.as_ref().filter(|it| it.protocol == protocol) {
        rows.table(Section::Application, protocol.key(), application);
    }
}
