//! Keys of `[admin]`.

use super::target::Target;
use super::{Availability, Key, Kind, Section};
use crate::binding::{Rendered, bound};
use crate::choice::Choice;
use crate::model::ControlSocket;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "admin",
        &[Section::Top],
        Kind::Table(Section::Admin),
        "Control of the running server by programs and by commands such as `rocknet status`.",
    )
    .foreign_names(&["stats", "api"]),
    Key::new(
        "socket",
        &[Section::Admin],
        Kind::Either(&[
            Kind::Choice(ControlSocket::WORDS),
            Kind::Text("file name, with `/` or `.` in it"),
        ]),
        "Unix socket of the control API. The user of the server and the members of its group may connect; this is the \
         only access control. The environment variable ROCKNET_SOCKET overrides it, and `rocknet status` and similar \
         commands read the same variable and key. A change takes effect after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render | admin,
        _ | match &admin.socket {
            ControlSocket::File(path) => Rendered::text(&path.to_string_lossy()),
            word => Rendered::text(word.word()),
        }
    ))])
    .example("socket = \"/run/rocknet/control.sock\"")
    .foreign_names(&["stats socket"]),
    Key::new(
        "listen",
        &[Section::Admin],
        Kind::Either(&[
            Kind::Integer { min: 1, max: 65_535 },
            Kind::Text("address of this machine with a port, `127.0.0.1:PORT` or `[::1]:PORT`"),
        ]),
        "Address of the dashboard, and of the control API for programs that cannot use a Unix socket, such as Prometheus. \
         Requests need a token from the folder `admin` of the state folder: `token`, or `read-token` for requests that \
         change nothing. A change takes effect after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render | admin,
        _ | match &admin.listen {
            Some(address) => Rendered::text(&address.to_string()),
            None => Rendered::Unset,
        }
    ))])
    .example("listen = \"127.0.0.1:7625\""),
    Key::new(
        "password",
        &[Section::Admin],
        Kind::Any,
        "Password for control from other machines.",
    )
    .available(Availability::Later("control from other machines")),
];
