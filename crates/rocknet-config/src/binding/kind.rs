//! Kinds of values, and the tables that keys stand in.

use crate::choice::Word;

/// The values that a key takes.
#[derive(Debug)]
pub enum Kind {
    /// Any value: the feature comes later.
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

/// A table that keys may stand in.
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
    Auth,
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
        Scope::Auth,
    ];

    /// Returns the header as it is written.
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
            Scope::Auth => "auth of a site or route",
        }
    }
}
