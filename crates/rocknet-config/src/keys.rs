//! Table of keys: one entry per key is the source of the check, of `rocknet explain`, of the reference and of the JSON
//! Schema.

mod access;
pub(crate) mod acme;
mod admin;
mod application;
mod ban;
mod browse;
mod cache;
mod certificate_rule;
mod cgi;
mod controller;
mod cors;
mod forwarding;
mod http3;
mod key;
mod limit;
mod limits;
mod log;
mod oidc;
mod php;
mod proxy;
mod response_cache;
mod rewriting;
pub(crate) mod rule;
mod server;
mod signed_urls;
mod site;
mod target;
pub(crate) mod tls;
mod tracing;
mod upstream;
mod upstream_connection;

pub use crate::binding::{Kind, Section};
pub use crate::choice::Word;
pub use crate::model::MAX_PROGRAMS;
pub use key::Key;

use std::sync::LazyLock;

use crate::binding::{BoundKey, HasKeys};
use target::Model;

/// Returns every key, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static Key> {
    [
        server::KEYS,
        limits::KEYS,
        log::KEYS,
        cache::KEYS,
        site::KEYS,
        php::KEYS,
        browse::KEYS,
        cors::KEYS,
        response_cache::KEYS,
        rule::KEYS,
        tls::KEYS,
        http3::KEYS,
        acme::KEYS,
        proxy::KEYS,
        forwarding::KEYS,
        rewriting::KEYS,
        upstream_connection::KEYS,
        upstream::KEYS,
        application::KEYS,
        cgi::KEYS,
        controller::KEYS,
        access::KEYS,
        certificate_rule::KEYS,
        signed_urls::KEYS,
        oidc::KEYS,
        limit::KEYS,
        admin::KEYS,
        tracing::KEYS,
        ban::KEYS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the key with this name in a section.
pub fn find(section: Section, name: &str) -> Option<&'static Key> {
    within(section).find(|key| key.name == name)
}

/// Returns the keys of a section, in the order of the reference.
pub fn within(section: Section) -> impl Iterator<Item = &'static Key> {
    BY_SECTION[section as usize].iter().copied()
}

/// Keys by section: the list of a section is at its number, because [`Section::ALL`] has the order of the enum. The
/// index exists because the check reads the keys of a site section for each of tens of thousands of sites.
static BY_SECTION: LazyLock<Vec<Vec<&'static Key>>> = LazyLock::new(|| {
    let of = |section: &Section| all().filter(|key| key.sections.contains(section)).collect();
    Section::ALL.iter().map(of).collect()
});

impl<T: Model> HasKeys for T {
    fn keys(section: Section) -> impl Iterator<Item = BoundKey<T>> {
        within(section).filter_map(Key::bound)
    }

    fn defaults() -> Option<T> {
        <T as Model>::defaults()
    }
}
