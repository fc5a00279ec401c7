//! Keys of CGI: where programs are, and what each may take.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::model::MAX_PROGRAMS;
use crate::value::settings;

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
        "A folder of programs that are run for requests, by CGI: `/cgi-bin` is the folder `cgi-bin` of the root. What is in \
         it is never sent. A program has to be executable; what follows it in the path of a request is its `PATH_INFO`. A \
         table says more, with the path in `folder`. `false` turns it off for a route.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::cgi,
        render |settings, _| Rendered::or_off(settings.cgi.as_ref().map(|cgi| Rendered::text(&cgi.folder))),
        nested |settings, rows| {
            if let Some(cgi) = &settings.cgi {
                rows.table(Section::Cgi, "cgi", cgi);
            }
        }
    ))])
    .example("cgi = \"/cgi-bin\"")
    .elsewhere(&["ScriptAlias", "cgi.assign", "ExecCGI"]),
    Key::new(
        "folder",
        &[Section::Cgi],
        Kind::Text("path below the site"),
        "The folder of the programs.",
    )
    .example("folder = \"/cgi-bin\""),
    Key::new(
        "programs",
        &[Section::Cgi],
        Kind::Integer {
            min: 1,
            max: MAX_PROGRAMS as i64,
        },
        "Programs of this folder that run at once; 64 run at once in the whole server. Requests beyond wait for `queue`.",
    )
    .sets(&[Target::Cgi(field!(programs))])
    .example("programs = 8")
    .elsewhere(&["RLimitNPROC", "max_cgi_instances"]),
    Key::new(
        "queue",
        &[Section::Cgi],
        Kind::Duration {
            min_ms: 0,
            max_ms: 3_600_000,
        },
        "Longest time for which a request waits until its program may run. Then 503.",
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
        "Longest time that a program may run, all in all. Then it is killed, and its answer cut. `limits.answer_timeout` holds \
         for each piece of its answer besides.",
    )
    .sets(&[Target::Cgi(field!(time))])
    .example("time = \"2m\"")
    .elsewhere(&["CGIDScriptTimeout", "CGIScriptTimeout", "cgi.limits", "RLimitCPU"]),
    Key::new(
        "output",
        &[Section::Cgi],
        Kind::Size { min: 1024, max: 1 << 50 },
        "Bytes of one answer, its fields included. Beyond, the program is killed, and the answer cut.",
    )
    .sets(&[Target::Cgi(field!(output))])
    .example("output = \"100MiB\""),
    Key::new(
        "params",
        &[Section::Cgi],
        Kind::Map {
            name: "variable",
            value: &Kind::Text("its value"),
        },
        "Variables of the environment of programs, in place of what they would be told; an empty value takes one away.",
    )
    .sets(&[Target::Cgi(bound!(render |cgi, _| Rendered::names(&cgi.params)))])
    .example("params = { LANG = \"C.UTF-8\", PYTHONPATH = \"/srv/lib\" }")
    .elsewhere(&["SetEnv", "PassEnv", "env", "environment"]),
];
