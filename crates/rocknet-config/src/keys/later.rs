//! Keys whose features come with later versions: known, so that nobody is told they do not exist, and refused.

use super::{Availability, Key, Kind, Scope};

const BOTH: &[Scope] = &[Scope::Site, Scope::Route];

const fn later(name: &'static str, scopes: &'static [Scope], doc: &'static str, feature: &'static str) -> Key {
    Key::new(name, scopes, Kind::Any, doc).available(Availability::Later(feature))
}

pub(super) const KEYS: &[Key] = &[
    later(
        "admin",
        &[Scope::Top],
        "Dashboard, interface for programs, metrics.",
        "the dashboard",
    ),
    later("auth", BOTH, "Users and their password hashes.", "passwords").elsewhere(&[
        "auth_basic",
        "basicauth",
        "basic_auth",
        "AuthType",
    ]),
    later("allow", BOTH, "Client addresses that may enter.", "address rules").elsewhere(&["Require"]),
    later("deny", BOTH, "Client addresses that may not enter.", "address rules"),
];
