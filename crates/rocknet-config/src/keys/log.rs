//! Keys of `[log]`, and of `log` of a site.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section, Word};
use crate::binding::{Rendered, bound, field};
use crate::choice::Choice;
use crate::model::{AccessFormat, Level, LogTarget, Site};

const DAY_MS: u64 = 86_400_000;

/// Destination of an access log.
const ACCESS: Kind = Kind::Either(&[
    Kind::Choice(LogTarget::ACCESS),
    Kind::Text("file name, with `/` or `.` in it"),
]);

/// Format of the lines of an access log.
const FORMAT: Kind = Kind::Either(&[Kind::Choice(AccessFormat::WORDS), Kind::Text("text with placeholders")]);

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "level",
        &[Section::Log],
        Kind::Choice(Level::WORDS),
        "Minimum severity of messages in the error log. The environment variable ROCKNET_LOG overrides it.",
    )
    .sets(&[Target::Log(field!(level))])
    .example("level = \"warn\"")
    .foreign_names(&["LogLevel", "log_level"]),
    Key::new(
        "errors",
        &[Section::Log],
        Kind::Either(&[
            Kind::Choice(LogTarget::WORDS),
            Kind::Text("file name, with `/` or `.` in it"),
        ]),
        "Destination of the error log. File names are relative to the configuration file.",
    )
    .sets(&[Target::Log(bound!(render: |log, _| log_target(&log.errors)))])
    .example("errors = \"/var/log/rocknet/error.log\"")
    .foreign_names(&["error_log", "ErrorLog", "error-log", "server.errorlog"]),
    Key::new(
        "access",
        &[Section::Log, Section::SiteLog],
        ACCESS,
        "Destination of the access log, which has one line per request. It is off by default because it costs time. \
         In `dev` mode the default is `\"stdout\"` with the format `\"dev\"`. File names are relative to the \
         configuration file.",
    )
    .sets(&[Target::AccessLog(bound!(render: |log, _| log_target(&log.target)))])
    .example("access = \"/var/log/rocknet/access.log\"")
    .foreign_names(&["access_log", "CustomLog", "access-log", "accesslog.filename", "output"]),
    Key::new(
        "format",
        &[Section::Log, Section::SiteLog],
        FORMAT,
        "Format of a line of the access log. docs/logs.md describes the members of a line in JSON. Any other text is a \
         line of your own with placeholders, such as `{client.ip}`, which docs/placeholders.md lists. Values are \
         escaped: in quotes as text, in a line that begins with `{\"` as JSON, elsewhere as one word. An empty value is \
         `-`. In JSON, a placeholder without quotes becomes a number, a string with quotes, or `null` for an empty \
         value.",
    )
    .sets(&[Target::AccessLog(bound!(render: |log, _| format(&log.format)))])
    .example("format = \"json\"")
    .foreign_names(&["log_format", "LogFormat"]),
    Key::new(
        "rotate",
        &[Section::Log],
        Kind::Table(Section::Rotate),
        "Rotation of log files (`access.log` becomes `access.log.1`, and so on): the size and age at which a file is \
         rotated, and the number of rotated files that are kept.",
    )
    .example("rotate = { size = \"100MB\", age = \"1d\", keep = 10 }"),
    Key::new(
        "size",
        &[Section::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "files are not rotated by size")]),
            Kind::Size {
                min: 64 * 1024,
                max: 1 << 50,
            },
        ]),
        "Size at which a log file is rotated.",
    )
    .sets(&[Target::Rotate(field!(size))]),
    Key::new(
        "age",
        &[Section::Rotate],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "files are not rotated by age")]),
            Kind::Duration {
                min_ms: 60_000,
                max_ms: 3_650 * DAY_MS,
            },
        ]),
        "Age at which a log file is rotated.",
    )
    .sets(&[Target::Rotate(field!(age))]),
    Key::new(
        "keep",
        &[Section::Rotate],
        Kind::Integer { min: 0, max: 1_000 },
        "Maximum number of rotated files; the oldest is removed.",
    )
    .sets(&[Target::Rotate(field!(keep))]),
];

/// Renders the destination of a log.
fn log_target(target: &LogTarget) -> Rendered {
    match target {
        LogTarget::File(path) => Rendered::text(&path.to_string_lossy()),
        word => Rendered::text(word.word()),
    }
}

/// Renders the format of the lines of an access log.
fn format(format: &AccessFormat) -> Rendered {
    match format {
        AccessFormat::Custom(text) => Rendered::text(text),
        word => Rendered::text(word.word()),
    }
}

/// Renders the access log of a site, with the values that it inherits from `[log]`.
pub(crate) fn access_log(site: &Site) -> Rendered {
    let target = log_target(&site.access.target).line().unwrap_or_default();
    let format = format(&site.access.format).line().unwrap_or_default();
    Rendered::Value(format!("{{ access = {target}, format = {format} }}"))
}
