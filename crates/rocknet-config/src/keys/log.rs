//! Keys of `[log]` and of a site's own `log`.

use super::{Key, Kind, Scope, Word};

const DAY_MS: u64 = 86_400_000;

/// Where the access log goes.
const ACCESS: Kind = Kind::Either(&[
    Kind::Choice(&[Word::new("off", "none"), Word::new("stdout", "standard output")]),
    Kind::Text("file name, with `/` or `.` in it"),
]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "level",
        &[Scope::Log],
        Kind::Choice(&[
            Word::new("error", "what failed"),
            Word::new("warn", "and what may fail soon"),
            Word::new("info", "and what the server does: start, reload, stop"),
            Word::new("debug", "and why it answers as it does"),
            Word::new("trace", "and every step; slow"),
        ]),
        "What the error log tells. The environment variable ROCKNET_LOG overrides it.",
    )
    .default("\"info\"")
    .example("level = \"warn\"")
    .elsewhere(&["LogLevel", "log_level"]),
    Key::new(
        "errors",
        &[Scope::Log],
        Kind::Either(&[
            Kind::Choice(&[
                Word::new("stderr", "standard error"),
                Word::new("stdout", "standard output"),
                Word::new("off", "none"),
            ]),
            Kind::Text("file name, with `/` or `.` in it"),
        ]),
        "Where the error log goes. File names are relative to the file they are written in.",
    )
    .default("\"stderr\"")
    .example("errors = \"/var/log/rocknet/error.log\"")
    .elsewhere(&["error_log", "ErrorLog", "error-log", "server.errorlog"]),
    Key::new(
        "access",
        &[Scope::Log, Scope::SiteLog],
        ACCESS,
        "Where the access log goes: one line for each request. It is off unless asked for, because it costs time. File \
         names are relative to the file they are written in.",
    )
    .default("\"off\"")
    .example("access = \"/var/log/rocknet/access.log\"")
    .elsewhere(&["access_log", "CustomLog", "access-log", "accesslog.filename", "output"]),
    Key::new(
        "format",
        &[Scope::Log, Scope::SiteLog],
        Kind::Choice(&[
            Word::new("common", "the Common Log Format"),
            Word::new("combined", "and Referer and User-Agent"),
            Word::new("json", "one object a line"),
        ]),
        "How a line of the access log looks.",
    )
    .default("\"combined\"")
    .example("format = \"json\"")
    .elsewhere(&["log_format", "LogFormat"]),
    Key::new(
        "rotate",
        &[Scope::Log],
        Kind::Table(Scope::Rotate),
        "When a log file is set aside (`access.log` becomes `access.log.1`, and so on), and how many old ones are kept.",
    )
    .example("rotate = { size = \"100MB\", age = \"1d\", keep = 10 }"),
    Key::new(
        "size",
        &[Scope::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "whatever its size")]),
            Kind::Size { min: 64 * 1024, max: 1 << 50 },
        ]),
        "A log file is set aside when it reaches this size.",
    )
    .default("\"100MB\""),
    Key::new(
        "age",
        &[Scope::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "whatever its age")]),
            Kind::Duration { min_ms: 60_000, max_ms: 3_650 * DAY_MS },
        ]),
        "A log file is set aside when it reaches this age.",
    )
    .default("\"off\""),
    Key::new(
        "keep",
        &[Scope::Rotate],
        Kind::Integer { min: 0, max: 1_000 },
        "How many old files are kept; the oldest is removed.",
    )
    .default("10"),
];
