//! Keys of controllers, which are functions in shared libraries.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::choice::Choice;
use crate::model::RunOn;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "controller",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Text("\"library:name\"")]),
        "Function in a shared library that handles requests: the file of the library, relative to the configuration \
         file, a colon, and the name of the function. In a route, `false` turns off the controller of the site, and \
         so does a `root`. Libraries are loaded at start, and at a reload if their file has changed. They are trusted \
         code with all rights of the server. docs/controllers.md describes how to write one.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::controller,
        render: |settings, _| Rendered::or_off(settings.controller.as_ref().map(|it| Rendered::text(&it.to_string())))
    ))])
    .example("controller = \"controllers/hello.so:hello\"")
    .foreign_names(&["handler", "module", "LoadModule", "load_module"]),
    Key::new(
        "run_on",
        BOTH,
        Kind::Choice(RunOn::WORDS),
        "Threads that run the controller.",
    )
    .group(SettingGroup::Controller)
    .sets(&[Target::Settings(field!(run_on))])
    .example("run_on = \"network\""),
    Key::new(
        "isolate",
        BOTH,
        Kind::Boolean,
        "Runs the controller in a process of its own, which has access to the requests and to nothing else of the \
         server. If the process dies, it is restarted: its requests in flight get 502, all others are unaffected. A \
         response takes tens of microseconds longer. `run_on` has no effect with `isolate`, because the process has \
         threads of its own.",
    )
    .group(SettingGroup::Controller)
    .sets(&[Target::Settings(field!(isolate))])
    .example("isolate = true"),
];
