//! Kinds of values, and the sections of the configuration.

use crate::choice::Word;

/// Kind of the values that a key accepts.
#[derive(Debug)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// Whole number.
    Integer {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// Duration, such as `"10s"`.
    Duration {
        /// Minimum, in milliseconds.
        min_ms: u64,
        /// Maximum, in milliseconds.
        max_ms: u64,
    },
    /// Size, such as `"50KiB"`.
    Size {
        /// Minimum, in bytes.
        min: u64,
        /// Maximum, in bytes.
        max: u64,
    },
    /// Rate, such as `"500B/s"`.
    Rate {
        /// Minimum, in bytes per second.
        min: u64,
        /// Maximum, in bytes per second.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [Word]),
    /// String, described by this text, such as `path below the site`.
    Text(&'static str),
    /// List of values.
    List(&'static Kind),
    /// One value, or a list of such values.
    Several(&'static Kind),
    /// Table with names of the operator's choice, each with a value.
    Map {
        /// Description of the names.
        name: &'static str,
        /// Kind of the values.
        value: &'static Kind,
    },
    /// Table with the keys of a section.
    Table(Section),
    /// Tables under names of the operator's choice.
    Tables {
        /// Description of the names.
        name: &'static str,
        /// Section of each table.
        section: Section,
    },
    /// One of several kinds, such as a short form and a table.
    Either(&'static [Kind]),
}

/// Section of the configuration: a TOML table with keys of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Top of the file.
    Top,
    /// `[server]`.
    Server,
    /// `events` of `[server]`.
    Events,
    /// `spool` of `[server]`.
    Spool,
    /// `http3` of the server or of a site.
    Http3,
    /// `[limits]`.
    Limits,
    /// `[log]`.
    Log,
    /// `rotate` of `[log]`.
    Rotate,
    /// `[cache]`.
    Cache,
    /// `[admin]`.
    Admin,
    /// `[tracing]`.
    Tracing,
    /// `[ban]`.
    Ban,
    /// `[site."NAME"]`.
    Site,
    /// `limits` of a site or route.
    SiteLimits,
    /// `log` of a site.
    SiteLog,
    /// `[site."NAME".route."PATTERN"]`.
    Route,
    /// Table of a redirect in `redirects`.
    Redirect,
    /// `[[site."NAME".rule]]`.
    Rule,
    /// Table in `unless` of a rule.
    RuleException,
    /// `[tls]`.
    Tls,
    /// `tls` of a site.
    SiteTls,
    /// Table in `ca` of `[tls]`.
    Ca,
    /// `dns` of `[tls]`.
    TlsDns,
    /// `proxy` of a site or route.
    Proxy,
    /// Table in `to` of a proxy.
    Upstream,
    /// `health` of a proxy.
    Health,
    /// `mirror` of a proxy.
    Mirror,
    /// `fastcgi`, `scgi` or `uwsgi` of a site or route.
    Application,
    /// `cgi` of a site or route.
    Cgi,
    /// `php` of a site or route.
    Php,
    /// `auth` of a site or route.
    Auth,
    /// `certificate` of `auth`.
    Certificate,
    /// Table in `limit` of a site or route.
    Limit,
    /// `browse` of a site or route.
    Browse,
    /// `zip` of `browse`.
    Zip,
    /// `cors` of a site or route.
    Cors,
    /// `cache` of a site or route.
    ResponseCache,
}

impl Section {
    /// Every section, in the order of the enum.
    pub const ALL: &'static [Section] = &[
        Section::Top,
        Section::Server,
        Section::Events,
        Section::Spool,
        Section::Http3,
        Section::Limits,
        Section::Log,
        Section::Rotate,
        Section::Cache,
        Section::Admin,
        Section::Tracing,
        Section::Ban,
        Section::Site,
        Section::SiteLimits,
        Section::SiteLog,
        Section::Route,
        Section::Redirect,
        Section::Rule,
        Section::RuleException,
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
        Section::Php,
        Section::Auth,
        Section::Certificate,
        Section::Limit,
        Section::Browse,
        Section::Zip,
        Section::Cors,
        Section::ResponseCache,
    ];

    /// Returns the header of the section, as messages and the reference name it.
    pub fn header(self) -> &'static str {
        match self {
            Section::Top => "the top of the file",
            Section::Server => "[server]",
            Section::Events => "`events` of [server]",
            Section::Spool => "`spool` of [server]",
            Section::Http3 => "`http3` of the server or of a site",
            Section::Limits => "[limits]",
            Section::Log => "[log]",
            Section::Rotate => "`rotate` of [log]",
            Section::Cache => "[cache]",
            Section::Admin => "[admin]",
            Section::Tracing => "[tracing]",
            Section::Ban => "[ban]",
            Section::Site => "[site.\"example.com\"]",
            Section::SiteLimits => "`limits` of a site or route",
            Section::SiteLog => "`log` of a site",
            Section::Route => "[site.\"example.com\".route.\"/path/*\"]",
            Section::Redirect => "a redirect",
            Section::Rule => "[[site.\"example.com\".rule]]",
            Section::RuleException => "`unless` of a rule",
            Section::Tls => "[tls]",
            Section::SiteTls => "`tls` of a site",
            Section::Ca => "`ca` of [tls]",
            Section::TlsDns => "`dns` of [tls]",
            Section::Proxy => "`proxy` of a site or route",
            Section::Upstream => "a server of a proxy",
            Section::Health => "`health` of a proxy",
            Section::Mirror => "`mirror` of a proxy",
            Section::Application => "an application",
            Section::Cgi => "`cgi` of a site or route",
            Section::Php => "`php` of a site or route",
            Section::Auth => "`auth` of a site or route",
            Section::Certificate => "`certificate` of `auth`",
            Section::Limit => "`limit` of a site or route",
            Section::Browse => "`browse` of a site or route",
            Section::Zip => "`zip` of `browse`",
            Section::Cors => "`cors` of a site or route",
            Section::ResponseCache => "`cache` of a site or route",
        }
    }
}
