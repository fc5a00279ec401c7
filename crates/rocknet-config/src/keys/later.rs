//! Keys whose features come with later versions: known, so that nobody is told they do not exist, and refused.

use super::{Availability, Key, Kind, Scope};

const fn later(name: &'static str, scopes: &'static [Scope], doc: &'static str, feature: &'static str) -> Key {
    Key::new(name, scopes, Kind::Any, doc).available(Availability::Later(feature))
}

pub(super) const KEYS: &[Key] = &[later(
    "admin",
    &[Scope::Top],
    "Dashboard, interface for programs, metrics.",
    "the dashboard",
)];
