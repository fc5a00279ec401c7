//! Keys of PHP.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section, Word};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::model::Php;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "php",
        BOTH,
        Kind::Either(&[
            Kind::Boolean,
            Kind::Text("\"auto\", \"8.2\", \"unix:/path\", \"/path\" or \"host:port\""),
            Kind::Table(Section::Php),
        ]),
        "Runs PHP scripts by FastCGI. `\"auto\"` or `true` is the newest installed PHP, `\"8.2\"` that version: RockNet \
         starts and supervises its php-fpm. A table accepts settings of that php-fpm, with the version in `version`. \
         `\"unix:/path\"`, `\"/path\"` and `\"host:port\"` are addresses of a php-fpm that you run yourself. In a route, \
         `false` turns PHP off. With PHP, files named `*.php` are run and never sent. `index.php` is first in `index`, \
         and requests without a matching file go to `/index.php` at the root, unless `fallback` is set. The path after \
         an existing script is its `PATH_INFO`. Nothing is run in folders named `uploads`, and files with other PHP \
         extensions, such as `*.phtml` and `*.phar`, are refused.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::php,
        render: |settings, _| Rendered::or_off(settings.php.as_ref().map(|php| Rendered::text(&php.to_string()))),
        nested: |settings, rows| {
            if let Some(Php::Managed { settings, .. }) = &settings.php {
                rows.table(Section::Php, "php", &**settings);
            }
        }
    ))])
    .example("php = \"auto\"")
    .foreign_names(&["php_fastcgi", "fastcgi_pass", "php-fpm", "ProxyPassMatch"]),
    Key::new(
        "version",
        &[Section::Php],
        Kind::Text("\"auto\", \"8\" or \"8.2\""),
        "Version of PHP. Without the key, the newest installed version.",
    )
    .example("version = \"8.2\""),
    Key::new(
        "ini",
        &[Section::Php],
        Kind::Map {
            name: "setting",
            value: &Kind::Either(&[
                Kind::Boolean,
                Kind::Integer {
                    min: -1,
                    max: 1_000_000_000_000,
                },
                Kind::Text("its value"),
            ]),
        },
        "Settings of `php.ini` for the scripts. Scripts and `.user.ini` cannot change them, except that a script can \
         switch OPcache off for the rest of its request. A name with a dot needs \
         quotes: `\"opcache.memory_consumption\" = 256`.",
    )
    .sets(&[Target::PhpSettings(bound!(render: |php, _| Rendered::names(&php.ini)))])
    .example("ini = { memory_limit = \"256M\", \"opcache.memory_consumption\" = 256 }")
    .foreign_names(&[
        "php_value",
        "php_admin_value",
        "php_flag",
        "php_admin_flag",
        "php_ini",
        "settings",
    ]),
    Key::new(
        "env",
        &[Section::Php],
        Kind::Map {
            name: "variable",
            value: &Kind::Text("its value"),
        },
        "Environment variables of the scripts, which `getenv` returns. Scripts get no other variables of the server.",
    )
    .sets(&[Target::PhpSettings(bound!(render: |php, _| Rendered::names(&php.env)))])
    .example("env = { APP_ENV = \"prod\", APP_DEBUG = \"0\" }")
    .foreign_names(&["fastcgi_param", "SetEnv", "environment"]),
    Key::new(
        "workers",
        &[Section::Php],
        Kind::Either(&[
            Kind::Choice(&[Word::new(
                "auto",
                "one for each 200 MB of memory, at least 4 and at most 64",
            )]),
            Kind::Integer { min: 1, max: 4_096 },
        ]),
        "Maximum number of PHP processes. Each runs one request at a time; further requests wait. Processes are started \
         on demand.",
    )
    .sets(&[Target::PhpSettings(field!(workers))])
    .example("workers = 8")
    .foreign_names(&["pm.max_children", "max_children", "max_processes", "FcgidMaxProcesses"]),
    Key::new(
        "idle",
        &[Section::Php],
        Kind::Duration {
            min_ms: 1_000,
            max_ms: 86_400_000,
        },
        "Time without a request after which a PHP process ends, in whole seconds.",
    )
    .sets(&[Target::PhpSettings(field!(idle))])
    .example("idle = \"60s\"")
    .foreign_names(&["pm.process_idle_timeout", "process_idle_timeout"]),
    Key::new(
        "slow",
        &[Section::Php],
        Kind::Either(&[
            Kind::Choice(&[Word::new("off", "slow requests are not logged")]),
            Kind::Duration {
                min_ms: 1_000,
                max_ms: 3_600_000,
            },
        ]),
        "Time, in whole seconds, after which a running request is written to the error log, with its script and, where \
         the sandbox permits tracing, the functions that were being run.",
    )
    .sets(&[Target::PhpSettings(field!(slow))])
    .example("slow = \"5s\"")
    .foreign_names(&["request_slowlog_timeout", "slowlog"]),
];
