//! Keys of `[log]` and of a site's own `log`.

use super::target::Target;
use super::{Key, Kind, Section, Word};
use crate::binding::{Rendered, bound, field, quoted};
use crate::choice::Choice;
use crate::model::{AccessFormat, Level, LogTarget, Site};

const DAY_MS: u64 = 86_400_000;

/// Where the access log goes.
const ACCESS: Kind = Kind::Either(&[
    Kind::Choice(LogTarget::ACCESS),
    Kind::Text("file name, with `/` or `.` in it"),
]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "level",
        &[Section::Log],
        Kind::Choice(Level::WORDS),
        "What the error log tells. The environment variable ROCKNET_LOG overrides it.",
    )
    .sets(&[Target::Log(field!(level))])
    .example("level = \"warn\"")
    .elsewhere(&["LogLevel", "log_level"]),
    Key::new(
        "errors",
        &[Section::Log],
        Kind::Either(&[
            Kind::Choice(LogTarget::WORDS),
            Kind::Text("file name, with `/` or `.` in it"),
        ]),
        "Where the error log goes. File names are relative to the file they are written in.",
    )
    .sets(&[Target::Log(bound!(render |log, _| log_target(&log.errors)))])
    .example("errors = \"/var/log/rocknet/error.log\"")
    .elsewhere(&["error_log", "ErrorLog", "error-log", "server.errorlog"]),
    Key::new(
        "access",
        &[Section::Log, Section::SiteLog],
        ACCESS,
        "Where the access log goes: one line for each request. It is off unless asked for, because it costs time. File \
         names are relative to the file they are written in.",
    )
    .sets(&[Target::AccessLog(bound!(render |log, _| log_target(&log.target)))])
    .example("access = \"/var/log/rocknet/access.log\"")
    .elsewhere(&["access_log", "CustomLog", "access-log", "accesslog.filename", "output"]),
    Key::new(
        "format",
        &[Section::Log, Section::SiteLog],
        Kind::Choice(AccessFormat::WORDS),
        "How a line of the access log looks. docs/logs.md describes the members of a line in JSON.",
    )
    .sets(&[Target::AccessLog(field!(format))])
    .example("format = \"json\"")
    .elsewhere(&["log_format", "LogFormat"]),
    Key::new(
        "rotate",
        &[Section::Log],
        Kind::Table(Section::Rotate),
        "When a log file is set aside (`access.log` becomes `access.log.1`, and so on), and how many old ones are kept.",
    )
    .example("rotate = { size = \"100MB\", age = \"1d\", keep = 10 }"),
    Key::new(
        "size",
        &[Section::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "whatever its size")]),
            Kind::Size { min: 64 * 1024, max: 1 << 50 },
        ]),
        "A log file is set aside when it reaches this size.",
    )
    .sets(&[Target::Rotate(field!(size))]),
    Key::new(
        "age",
        &[Section::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "whatever its age")]),
            Kind::Duration { min_ms: 60_000, max_ms: 3_650 * DAY_MS },
        ]),
        "A log file is set aside when it reaches this age.",
    )
    .sets(&[Target::Rotate(field!(age))]),
    Key::new(
        "keep",
        &[Section::Rotate],
        Kind::Integer { min: 0, max: 1_000 },
        "How many old files are kept; the oldest is removed.",
    )
    .sets(&[Target::Rotate(field!(keep))]),
];

/// Writes the destination of a log.
fn log_target(target: &LogTarget) -> Rendered {
    match target {
        LogTarget::File(path) => Rendered::text(&path.to_string_lossy()),
        word => Rendered::text(word.word()),
    }
}

/// Writes the access log of a site, with what it has from `[log]`.
pub(crate) fn access_log(site: &Site) -> Rendered {
    let target = log_target(&site.access.target).line().unwrap_or_default();
    let format = quoted(site.access.format.word());
    Rendered::Value(format!("{{ access = {target}, format = {format} }}"))
}
