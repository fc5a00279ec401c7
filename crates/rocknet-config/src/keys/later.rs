//! Keys of later versions, which the check refuses as not available yet rather than unknown.

use super::{Availability, Key, Kind, Section};

const fn later(name: &'static str, sections: &'static [Section], doc: &'static str, feature: &'static str) -> Key {
    Key::new(name, sections, Kind::Any, doc).available(Availability::Later(feature))
}

pub(super) const KEYS: &[Key] = &[later(
    "admin",
    &[Section::Top],
    "Dashboard, interface for programs, metrics.",
    "the dashboard, the API and metrics",
)];
