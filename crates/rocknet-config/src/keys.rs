//! The table of keys: one entry per key feeds the check, the reference page, the JSON Schema and the forms of the GUI.

pub(crate) mod acme;
mod application;
pub(crate) mod binding;
mod cache;
mod cgi;
pub(crate) mod controller;
mod later;
mod limits;
pub(crate) mod log;
pub(crate) mod proxy;
pub(crate) mod rule;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod tls;
mod upstream;

pub use crate::choice::Word;
pub use crate::model::MAX_PROGRAMS;

use std::sync::LazyLock;

use crate::explain::Group;
use binding::Target;

/// One key: everything RockNet knows about it.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    /// The tables it may stand in.
    pub scopes: &'static [Scope],
    pub kind: Kind,
    /// Sentences for the reference: what it does, with units and bounds the kind does not tell.
    pub doc: &'static str,
    /// Writes the default where the bound value does not give it.
    default: Option<fn() -> String>,
    /// The values of the model that the key sets.
    pub(crate) targets: &'static [Target],
    /// The part of an explanation that shows the key.
    pub(crate) group: Option<Group>,
    /// Lines of TOML, as they would stand under the key's header.
    pub example: &'static str,
    pub availability: Availability,
    /// What other servers call it: a hint for those who come from there.
    pub elsewhere: &'static [&'static str],
}

/// A table keys may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Top,
    Server,
    Events,
    Spool,
    Limits,
    Log,
    Rotate,
    Cache,
    Site,
    SiteLimits,
    SiteLog,
    Route,
    Redirect,
    Rule,
    Tls,
    SiteTls,
    Ca,
    TlsDns,
    Proxy,
    Upstream,
    Health,
    Mirror,
    Application,
    Cgi,
}

/// What a value may be.
#[derive(Debug)]
pub enum Kind {
    /// Not looked at: the feature comes later.
    Any,
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    Size {
        min: u64,
        max: u64,
    },
    Rate {
        min: u64,
        max: u64,
    },
    /// One of a few words.
    Choice(&'static [Word]),
    /// A string, and what it means: "a path below the site".
    Text(&'static str),
    List(&'static Kind),
    /// One value, or a list of them.
    Several(&'static Kind),
    /// Names chosen by the writer, each with a value.
    Map {
        name: &'static str,
        value: &'static Kind,
    },
    Table(Scope),
    /// Tables under names chosen by the writer.
    Tables {
        name: &'static str,
        scope: Scope,
    },
    /// A short form and a long one, or words beside a measure.
    Either(&'static [Kind]),
}

/// Whether a key acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Now,
    /// Refused until this feature comes.
    Later(&'static str),
    /// Only `value` acts; any other waits for the feature.
    Only {
        value: Literal,
        feature: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    False,
    Text(&'static str),
}

/// Every key, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static Key> {
    [
        server::KEYS,
        limits::KEYS,
        log::KEYS,
        cache::KEYS,
        site::KEYS,
        rule::KEYS,
        tls::KEYS,
        acme::KEYS,
        proxy::KEYS,
        upstream::KEYS,
        application::KEYS,
        cgi::KEYS,
        controller::KEYS,
        later::KEYS,
    ]
    .into_iter()
    .flatten()
}

/// The key of this name in a table.
pub fn find(scope: Scope, name: &str) -> Option<&'static Key> {
    within(scope).find(|key| key.name == name)
}

/// All keys of a table, in the order of the reference.
pub fn within(scope: Scope) -> impl Iterator<Item = &'static Key> {
    BY_SCOPE[scope as usize].iter().copied()
}

/// The keys of each table: the check looks through those of sites for each of ten thousands of sites.
static BY_SCOPE: LazyLock<Vec<Vec<&'static Key>>> = LazyLock::new(|| {
    let of = |scope: &Scope| all().filter(|key| key.scopes.contains(scope)).collect();
    Scope::ALL.iter().map(of).collect()
});

impl Key {
    /// Returns the default as it would be written; empty when there is none.
    pub fn default_value(&self) -> String {
        let bound = || self.targets.iter().find_map(|target| target.default(&self.kind));
        self.default.map(|write| write()).or_else(bound).unwrap_or_default()
    }

    const fn new(name: &'static str, scopes: &'static [Scope], kind: Kind, doc: &'static str) -> Key {
        Key {
            name,
            scopes,
            kind,
            doc,
            default: None,
            targets: &[],
            group: None,
            example: "",
            availability: Availability::Now,
            elsewhere: &[],
        }
    }

    /// The default, for a key whose bound value does not give it.
    const fn default(mut self, write: fn() -> String) -> Key {
        self.default = Some(write);
        self
    }

    /// The default of a list or map without entries.
    const fn empty(self) -> Key {
        match self.kind {
            Kind::Map { .. } => self.default(|| "{}".to_owned()),
            _ => self.default(|| "[]".to_owned()),
        }
    }

    /// The values that the key sets, whose defaults are the default of the key.
    const fn sets(mut self, targets: &'static [Target]) -> Key {
        self.targets = targets;
        self
    }

    /// The part of an explanation that shows the key.
    const fn group(mut self, group: Group) -> Key {
        self.group = Some(group);
        self
    }

    const fn example(mut self, text: &'static str) -> Key {
        self.example = text;
        self
    }

    const fn available(mut self, availability: Availability) -> Key {
        self.availability = availability;
        self
    }

    const fn elsewhere(mut self, names: &'static [&'static str]) -> Key {
        self.elsewhere = names;
        self
    }
}

impl Scope {
    pub const ALL: &'static [Scope] = &[
        Scope::Top,
        Scope::Server,
        Scope::Events,
        Scope::Spool,
        Scope::Limits,
        Scope::Log,
        Scope::Rotate,
        Scope::Cache,
        Scope::Site,
        Scope::SiteLimits,
        Scope::SiteLog,
        Scope::Route,
        Scope::Redirect,
        Scope::Rule,
        Scope::Tls,
        Scope::SiteTls,
        Scope::Ca,
        Scope::TlsDns,
        Scope::Proxy,
        Scope::Upstream,
        Scope::Health,
        Scope::Mirror,
        Scope::Application,
        Scope::Cgi,
    ];

    /// How its header is written.
    pub fn header(self) -> &'static str {
        match self {
            Scope::Top => "the top of the file",
            Scope::Server => "[server]",
            Scope::Events => "[server] events",
            Scope::Spool => "[server] spool",
            Scope::Limits => "[limits]",
            Scope::Log => "[log]",
            Scope::Rotate => "[log] rotate",
            Scope::Cache => "[cache]",
            Scope::Site => "[site.\"example.com\"]",
            Scope::SiteLimits => "limits of a site or route",
            Scope::SiteLog => "a site's log",
            Scope::Route => "[site.\"example.com\".route.\"/path/*\"]",
            Scope::Redirect => "a redirect",
            Scope::Rule => "[[site.\"example.com\".rule]]",
            Scope::Tls => "[tls]",
            Scope::SiteTls => "a site's tls",
            Scope::Ca => "[tls] ca",
            Scope::TlsDns => "[tls] dns",
            Scope::Proxy => "a place's proxy",
            Scope::Upstream => "a server of a proxy",
            Scope::Health => "a proxy's health",
            Scope::Mirror => "a proxy's mirror",
            Scope::Application => "an application",
            Scope::Cgi => "a place's cgi",
        }
    }
}
