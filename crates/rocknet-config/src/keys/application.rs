//! Keys of applications that answer by FastCGI, SCGI or uwsgi: where they are, and what they are told.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, SettingRows, bound, field};
use crate::model::{Balance, Protocol, Settings};

const BOTH: &[Section] = &[Section::Site, Section::Route];

const ADDRESS: Kind = Kind::Text("\"unix:/path\" or \"host:port\"");

const WHERE: Kind = Kind::Either(&[
    Kind::Boolean,
    ADDRESS,
    Kind::List(&ADDRESS),
    Kind::Table(Section::Application),
]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "fastcgi",
        BOTH,
        WHERE,
        "Has an application answer by FastCGI, or one of several: `unix:` and the path of its socket, or `host:port`. A table \
         says more, with the addresses in `to`. The application is asked for everything here; the path of the route is its \
         `SCRIPT_NAME`, what follows it `PATH_INFO`. For PHP there is `php`, which looks for scripts. `false` turns it off \
         for a route, and so does a `root` there.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render |settings, _| rendered(settings, Protocol::FastCgi),
        nested |settings, rows| nested_keys(settings, Protocol::FastCgi, rows)
    ))])
    .example("fastcgi = \"unix:/run/app.sock\"")
    .elsewhere(&["fastcgi.server", "FastCgiExternalServer", "fcgi"]),
    Key::new(
        "scgi",
        BOTH,
        WHERE,
        "As `fastcgi`, by SCGI.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render |settings, _| rendered(settings, Protocol::Scgi),
        nested |settings, rows| nested_keys(settings, Protocol::Scgi, rows)
    ))])
    .example("scgi = \"127.0.0.1:4000\"")
    .elsewhere(&["scgi_pass", "scgi.server", "SCGIMount"]),
    Key::new(
        "uwsgi",
        BOTH,
        WHERE,
        "As `fastcgi`, by the protocol of uWSGI: what its `socket` speaks, not its `http-socket`.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        render |settings, _| rendered(settings, Protocol::Uwsgi),
        nested |settings, rows| nested_keys(settings, Protocol::Uwsgi, rows)
    ))])
    .example("uwsgi = \"unix:/run/app.sock\"")
    .elsewhere(&["uwsgi_pass"]),
    Key::new(
        "to",
        &[Section::Application],
        Kind::Several(&ADDRESS),
        "Where the application listens; several share the requests.",
    )
    .example("to = [\"10.0.0.2:9000\", \"10.0.0.3:9000\"]"),
    Key::new(
        "mount",
        &[Section::Application],
        Kind::Text("path below the site"),
        "The part of paths that is `SCRIPT_NAME`; what follows it is `PATH_INFO`. Without it, what the pattern of the route \
         begins with. `\"/\"`: nothing is, and `PATH_INFO` is the whole path.",
    )
    .sets(&[Target::Application(bound!(render |it, _| match &*it.mount {
        "" => Rendered::Unset,
        mount => Rendered::text(mount),
    }))])
    .example("mount = \"/app\"")
    .elsewhere(&["fastcgi_split_path_info", "SCRIPT_NAME"]),
    Key::new(
        "params",
        &[Section::Application],
        Kind::Map {
            name: "variable",
            value: &Kind::Text("its value"),
        },
        "Variables that the application is told, in place of what it would be told; an empty value takes one away.",
    )
    .sets(&[Target::Application(bound!(render |it, _| Rendered::names(&it.params)))])
    .example("params = { SCRIPT_FILENAME = \"/usr/lib/cgit/cgit.cgi\", HTTP_COOKIE = \"\" }")
    .elsewhere(&["fastcgi_param", "scgi_param", "uwsgi_param", "ProxyFCGISetEnvIf", "env"]),
    Key::new(
        "connect",
        &[Section::Application],
        Kind::Duration {
            min_ms: 100,
            max_ms: 60_000,
        },
        "Longest time until the application has taken a connection. Then 504, or 503 where it is full.",
    )
    .sets(&[Target::Application(field!(connect))])
    .example("connect = \"1s\"")
    .elsewhere(&["fastcgi_connect_timeout", "uwsgi_connect_timeout", "scgi_connect_timeout"]),
    Key::new(
        "keep",
        &[Section::Application],
        Kind::Integer { min: 0, max: 1024 },
        "Connections by FastCGI that are kept open between requests, for a second, by all workers together. Each holds a \
         process of most applications: less than it has of them.",
    )
    .sets(&[Target::Application(field!(keep))])
    .example("keep = 8")
    .elsewhere(&["fastcgi_keep_conn", "keepalive"]),
    Key::new(
        "balance",
        &[Section::Application],
        Kind::Choice(Balance::KEYLESS),
        "Which of several a request goes to.",
    )
    .sets(&[Target::Application(field!(balance))])
    .example("balance = \"least_conn\""),
    Key::new(
        "fails",
        &[Section::Application],
        Kind::Integer { min: 0, max: 1000 },
        "Failures (no connection, no answer, one that cannot be read) within `fail_time` after which one among several is left \
         alone for `fail_time`. Then one request tries it. `0`: never.",
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
        "In which `fails` are counted, and for which an application is left alone.",
    )
    .sets(&[Target::Application(field!(fail_time))])
    .example("fail_time = \"30s\""),
];

/// Writes where the application of a protocol listens.
fn rendered(settings: &Settings, protocol: Protocol) -> Rendered {
    let application = settings.application.as_ref().filter(|it| it.protocol == protocol);
    Rendered::or_off(application.map(|it| Rendered::texts(it.to.iter().map(ToString::to_string))))
}

fn nested_keys(settings: &Settings, protocol: Protocol, rows: &mut SettingRows<'_>) {
    if let Some(application) = settings.application.as_ref().filter(|it| it.protocol == protocol) {
        rows.table(Section::Application, protocol.key(), application);
    }
}
