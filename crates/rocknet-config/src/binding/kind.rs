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
    Table(Section),
    /// Tables under names chosen by the writer.
    Tables {
        name: &'static str,
        section: Section,
    },
    /// A short form and a long one, or words beside a measure.
    Either(&'static [Kind]),
}

/// A table that keys may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
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

impl Section {
    pub const ALL: &'static [Section] = &[
        Section::Top,
        Section::Server,
        Section::Events,
        Section::Spool,
        Section::Limits,
        Section::Log,
        Section::Rotate,
        Section::Cache,
        Section::Site,
        Section::SiteLimits,
        Section::SiteLog,
        Section::Route,
        Section::Redirect,
        Section::Rule,
        Section::Tls,
        Section::SiteTls,
        Section::Ca,
        Section::TlsDns,
        Section::Proxy,
        Section::Upstream,
        Section::Health,
        Section::Mirror,
        Section::Application,
        Section::Cgi,
        Section::Auth,
    ];

    /// Returns the header as it is written.
    pub fn header(self) -> &'static str {
        match self {
            Section::Top => "the top of the file",
            Section::Server => "[server]",
            Section::Events => "[server] events",
            Section::Spool => "[server] spool",
            Section::Limits => "[limits]",
            Section::Log => "[log]",
            Section::Rotate => "[log] rotate",
            Section::Cache => "[cache]",
            Section::Site => "[site.\"example.com\"]",
            Section::SiteLimits => "limits of a site or route",
            Section::SiteLog => "a site's log",
            Section::Route => "[site.\"example.com\".route.\"/path/*\"]",
            Section::Redirect => "a redirect",
            Section::Rule => "[[site.\"example.com\".rule]]",
            Section::Tls => "[tls]",
            Section::SiteTls => "a site's tls",
            Section::Ca => "[tls] ca",
            Section::TlsDns => "[tls] dns",
            Section::Proxy => "a place's proxy",
            Section::Upstream => "a server of a proxy",
            Section::Health => "a proxy's health",
            Section::Mirror => "a proxy's mirror",
            Section::Application => "an application",
            Section::Cgi => "a place's cgi",
            Section::Auth => "auth of a site or route",
        }
    }
}
