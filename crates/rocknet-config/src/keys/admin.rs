//! Keys of `[admin]`.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, bound};
use crate::choice::Choice;
use crate::model::ControlSocket;

/// Kind of the keys that name certificate files and key files.
const FILE: Kind = Kind::Text("PEM file");

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
         only access control. The environment variable ROCKNET_SOCKET overrides the key. `rocknet status` and similar \
         commands read the same variable and key. A change takes effect after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| match &admin.socket {
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
            Kind::Text("address with a port, such as `127.0.0.1:PORT`"),
        ]),
        "Address on which the control API is also served, for programs that cannot use a Unix socket, such as Prometheus, \
         and for browsers. A port without an address is a port of 127.0.0.1. Requests need the token in the file \
         `admin/token` of the state folder, or the password whose hash is set by the key `password`. The token in \
         `admin/read-token` suffices for requests that change nothing. An address that other machines can reach \
         requires the keys `password` and `cert`. A change takes effect after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| match &admin.listen {
            Some(address) => Rendered::text(&address.to_string()),
            None => Rendered::Unset,
        }
    ))])
    .example("listen = \"127.0.0.1:7625\""),
    Key::new(
        "password",
        &[Section::Admin],
        Kind::Text("hash of the password"),
        "Hash of a password that admits every request at `listen`. The command `rocknet hash-password` prints the \
         hash. Programs send the password with the user name `admin` by HTTP Basic authentication. A change takes \
         effect after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| match &admin.password {
            Some(_) => Rendered::Value("…".to_owned()),
            None => Rendered::Unset,
        }
    ))])
    .example(
        "listen = \"127.0.0.1:7625\"\npassword = \"$2y$10$Vm9xkTqW3uL5pYc8nZr1deJ0aHsG7bKfXoQiRwEtCvBnMzLyPuSdK\"",
    ),
    Key::new(
        "cert",
        &[Section::Admin],
        Kind::Several(&FILE),
        "Certificate with its chain for TLS at `listen`; a list has one file for each type of key. A changed file is \
         reloaded within seconds.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| Rendered::some_paths(admin.certificates.iter().map(|files| &files.cert))
    ))])
    .example("cert = \"admin.pem\""),
    Key::new(
        "key",
        &[Section::Admin],
        Kind::Several(&FILE),
        "Private key of `cert`; a list in the order of `cert`. Without this setting, the private key is read from the file \
         of the certificate.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| Rendered::some_paths(admin.certificates.iter().map(|files| &files.key))
    ))])
    .example("cert = \"admin.pem\"\nkey = \"admin.key\""),
    Key::new(
        "hosts",
        &[Section::Admin],
        Kind::Several(&Kind::Text("host name")),
        "Names by which clients address the server at `listen`, beside `localhost` and IP addresses. Requests with \
         another name in `Host` get 403, because a web page could have made a browser send them. A change takes effect \
         after a restart.",
    )
    .sets(&[Target::Admin(bound!(
        render: |admin, _| match &admin.hosts[..] {
            [] => Rendered::Unset,
            hosts => Rendered::texts(hosts),
        }
    ))])
    .example("hosts = [\"admin.example.com\"]"),
];
