//! Keys of controllers: functions in shared libraries that answer.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::choice::Choice;
use crate::model::RunOn;
use crate::value::settings;

const BOTH: &[Section] = &[Section::Site, Section::Route];

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "controller",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Text("\"library:name\"")]),
        "A controller that answers: the file of a shared library, relative to the file it is written in, a colon, and the \
         name that the library has for it. `false` takes back what the site says; a route with a `root` of its own has \
         its files again. A library is loaded when the server starts, and at a reload if its file has changed. It is \
         trusted code: it may do what the server may. How to write one stands in docs/controllers.md.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::controller,
        render |settings, _| Rendered::or_off(settings.controller.as_ref().map(|it| Rendered::text(&it.to_string())))
    ))])
    .example("controller = \"controllers/hello.so:hello\"")
    .elsewhere(&["handler", "module", "LoadModule", "load_module"]),
    Key::new(
        "run_on",
        BOTH,
        Kind::Choice(RunOn::WORDS),
        "Where a controller runs.",
    )
    .group(SettingGroup::Controller)
    .sets(&[Target::Settings(field!(run_on))])
    .example("run_on = \"network\""),
    Key::new(
        "isolate",
        BOTH,
        Kind::Boolean,
        "The library of a controller is loaded by a process of its own, which holds nothing of the server but what a request \
         says, and is started again when it dies: requests that it was answering get 502, all others go on. An answer costs \
         some tens of microseconds more. `run_on` says nothing then: the process has threads of its own.",
    )
    .group(SettingGroup::Controller)
    .sets(&[Target::Settings(field!(isolate))])
    .example("isolate = true"),
];
