//! Keys of CGI programs.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::model::MAX_PROGRAMS;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "cgi",
        BOTH,
        Kind::Either(&[
            Kind::Boolean,
            Kind::Text("path below the site"),
            Kind::Table(Section::Cgi),
        ]),
        "Folder of CGI programs that are run for requests: `/cgi-bin` is the folder `cgi-bin` below the root. The \
         files in it are never sent. A program must be executable; the path after its name is its `PATH_INFO`. A \
         table accepts more settings, with the path in `folder`. In a route, `false` turns CGI off.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::cgi,
        render: |settings, _| Rendered::or_off(settings.cgi.as_ref().map(|cgi| Rendered::text(&cgi.folder))),
        nested: |settings, rows| {
            if let Some(cgi) = &settings.cgi {
                rows.table(Section::Cgi, "cgi", cgi);
            }
        }
    ))])
    .example("cgi = \"/cgi-bin\"")
    .foreign_names(&["ScriptAlias", "cgi.assign", "ExecCGI"]),
    Key::new(
        "folder",
        &[Section::Cgi],
        Kind::Text("path below the site"),
        "Folder of the programs.",
    )
    .example("folder = \"/cgi-bin\""),
    Key::new(
        "programs",
        &[Section::Cgi],
        Kind::Integer {
            min: 1,
            max: MAX_PROGRAMS as i64,
        },
        "Maximum number of programs of this folder that run at the same time. The whole server runs at most 64. \
         Further requests wait for at most `queue`.",
    )
    .sets(&[Target::Cgi(field!(programs))])
    .example("programs = 8")
    .foreign_names(&["RLimitNPROC", "max_cgi_instances"]),
    Key::new(
        "queue",
        &[Section::Cgi],
        Kind::Duration {
            min_ms: 0,
            max_ms: 3_600_000,
        },
        "Timeout of a request that waits for its program to start. After it, the client gets 503.",
    )
    .sets(&[Target::Cgi(field!(queue))])
    .example("queue = \"2s\""),
    Key::new(
        "time",
        &[Section::Cgi],
        Kind::Duration {
            min_ms: 1_000,
            max_ms: 86_400_000,
        },
        "Maximum run time of a program. After it, the program is killed and its response is cut off. \
         `limits.answer_timeout` also applies, to each part of the response.",
    )
    .sets(&[Target::Cgi(field!(time))])
    .example("time = \"2m\"")
    .foreign_names(&["CGIDScriptTimeout", "CGIScriptTimeout", "cgi.limits", "RLimitCPU"]),
    Key::new(
        "output",
        &[Section::Cgi],
        Kind::Size {
            min: 1024,
            max: 1 << 50,
        },
        "Maximum size of a response, header fields included. A program that exceeds it is killed, and the response is \
         cut off.",
    )
    .sets(&[Target::Cgi(field!(output))])
    .example("output = \"100MiB\""),
    Key::new(
        "authorization",
        &[Section::Cgi],
        Kind::Boolean,
        "Passes the header field `Authorization` to programs, as the variable `HTTP_AUTHORIZATION`, so that programs \
         can check passwords and tokens. Other processes of the same account can read the variable. If `auth` has \
         verified the password, the field is not passed: the program gets `REMOTE_USER`.",
    )
    .sets(&[Target::Cgi(field!(authorization))])
    .example("authorization = true")
    .foreign_names(&["CGIPassAuth"]),
    Key::new(
        "params",
        &[Section::Cgi],
        Kind::Map {
            name: "variable",
            value: &Kind::Text("its value"),
        },
        "Variables that are set in the environment of programs, in place of the usual values. An empty value removes \
         a variable.",
    )
    .sets(&[Target::Cgi(bound!(render: |cgi, _| Rendered::names(&cgi.params)))])
    .example("params = { LANG = \"C.UTF-8\", PYTHONPATH = \"/srv/lib\" }")
    .foreign_names(&["SetEnv", "PassEnv", "env", "environment"]),
];
