//! Keys of access control: client addresses, users and passwords.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field, quoted};
use crate::choice::Choice;
use crate::model::{Auth, ClientRange, DEFAULT_REALM, Satisfy};
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

const ADDRESSES: Kind = Kind::Several(&Kind::Text("address, network, \"private\", \"unix\" or \"all\""));

const USERS: Kind = Kind::Map {
    name: "user",
    value: &Kind::Text("hash of the password"),
};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "allow",
        BOTH,
        ADDRESSES,
        "Client addresses that are allowed; all others get 403. Each is an address, a network such as `10.0.0.0/8`, \
         `\"private\"` (loopback, private and link-local networks: `127.0.0.0/8`, `10.0.0.0/8`, `172.16.0.0/12`, \
         `192.168.0.0/16`, `169.254.0.0/16`, `::1`, `fc00::/7`, `fe80::/10`), `\"unix\"` (clients of a Unix socket) \
         or `\"all\"`. Behind a proxy of `server.trusted_proxies`, the address that the proxy names counts. An \
         address that is also in `deny` is denied. The list of a route replaces that of its site, so `allow = \
         \"all\"` lifts the restriction.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(
        read: settings::allow,
        render: |settings, _| match &settings.access.allow[..] {
            [] => Rendered::text("all"),
            allow => ranges(allow),
        }
    ))])
    .example("allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]")
    .foreign_names(&["Require", "ip_allow", "ip_whitelist", "remote_ip"]),
    Key::new(
        "deny",
        BOTH,
        ADDRESSES,
        "Client addresses that get 403, written as in `allow`. Without `allow`, all others are allowed. The list of a \
         route replaces that of its site, so `deny = []` lifts the restriction.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(read: settings::deny, render: |settings, _| ranges(&settings.access.deny)))])
    .example("deny = \"203.0.113.0/24\"")
    .foreign_names(&["ip_deny"]),
    Key::new(
        "auth",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Auth), USERS]),
        "Users and their password hashes, for HTTP Basic authentication: a request without a valid user and password \
         gets 401. `rocknet hash-password` creates a hash; argon2, bcrypt, SHA-crypt and apr1 are accepted. A table \
         with one of the keys `realm`, `users` or `file` is the long form; in any other table each key is a user. The \
         users of a route replace those of its site, so a route can admit fewer users. In a route, `auth = false` \
         turns authentication off. After 10 different wrong passwords within a minute, the client's address gets 429 \
         for the rest of that minute.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(
        read: settings::auth,
        render: |settings, _| Rendered::or_off(settings.auth.as_ref().map(auth))
    ))])
    .example("auth = { bob = \"$argon2id$v=19$m=19456,t=2,p=1$q5Kkn0Zr7l1sYkR0b2VQxg$Zk1cJ4m0o5eT8uN2xq7sWQvB3yH6dLrPfGaEiCjXtUo\" }")
    .foreign_names(&["auth_basic", "basicauth", "basic_auth", "AuthType"]),
    Key::new(
        "satisfy",
        BOTH,
        Kind::Choice(Satisfy::WORDS),
        "Restrictions that a client has to meet if `allow` is set together with `auth`: all of them, or any. With \
         `\"any\"`, a client in `allow` needs no password, and all others need one, also those in `deny`. Without \
         `allow`, or with `allow = \"all\"`, it has no effect: each client needs a password.",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(field!(satisfy))])
    .example("satisfy = \"any\"")
    .foreign_names(&["Satisfy"]),
    Key::new(
        "realm",
        &[Section::Auth],
        Kind::Text("text that browsers may show"),
        "Realm of the protected resources. Browsers send the same password to every page of a site with the same \
         realm.",
    )
    .default(|| quoted(DEFAULT_REALM))
    .example("realm = \"staff only\"")
    .foreign_names(&["AuthName"]),
    Key::new(
        "users",
        &[Section::Auth],
        USERS,
        "Users and their password hashes.",
    )
    .example("users = { ann = \"$2y$10$Vm9xkTqW3uL5pYc8nZr1deJ0aHsG7bKfXoQiRwEtCvBnMzLyPuSdK\" }"),
    Key::new(
        "file",
        &[Section::Auth],
        Kind::Text("file"),
        "File with `user:hash` on each line, as Apache's `htpasswd` and `rocknet hash-password --user` write it. A \
         changed file is read again without a reload. A user in `users` takes precedence over the same user in the \
         file.",
    )
    .example("file = \"/etc/rocknet/htpasswd\"")
    .foreign_names(&["auth_basic_user_file", "AuthUserFile", "htpasswd"]),
];

/// Renders client addresses as they are written in `allow` and `deny`.
fn ranges(ranges: &[ClientRange]) -> Rendered {
    Rendered::texts(ranges.iter().map(ToString::to_string))
}

/// Renders users without their hashes.
fn auth(auth: &Auth) -> Rendered {
    let mut words = vec![format!("realm = {}", quoted(&auth.realm))];
    if !auth.users.is_empty() {
        let names: Vec<_> = auth.users.keys().map(|name| format!("{} = …", quoted(name))).collect();
        words.push(format!("users = {{ {} }}", names.join(", ")));
    }
    if let Some(file) = &auth.file {
        words.push(format!("file = {}", quoted(&file.to_string_lossy())));
    }
    Rendered::Value(format!("{{ {} }}", words.join(", ")))
}
