//! Applications that answer by FastCGI, SCGI or uwsgi, as meant.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::proxy::Balance;
use super::upstream::Host;

/// The application of `fastcgi`, `scgi` or `uwsgi` at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub protocol: Protocol,
    /// One at least.
    pub to: Vec<Host>,
    /// One that goes by no key.
    pub balance: Balance,
    /// The part of paths that is its name; what follows it is `PATH_INFO`. Without a slash at its end: empty for the whole
    /// site.
    pub mount: String,
    /// Variables of its requests; an empty value takes one away.
    pub params: BTreeMap<String, String>,
    /// Until a connection is taken.
    pub connect: Duration,
    /// Connections that are kept open between requests. Only FastCGI has such.
    pub keep: usize,
    /// Failures within `fail_time` after which one of several is left alone for as long; 0: never.
    pub fails: u32,
    pub fail_time: Duration,
}

/// The protocol of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    FastCgi,
    Scgi,
    Uwsgi,
}

impl Application {
    /// At these addresses, with the defaults of everything else.
    pub fn at(protocol: Protocol, to: Vec<Host>) -> Application {
        Application {
            protocol,
            to,
            balance: Balance::default(),
            mount: String::new(),
            params: BTreeMap::new(),
            connect: Duration::from_secs(3),
            keep: 0,
            fails: 3,
            fail_time: Duration::from_secs(10),
        }
    }
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::FastCgi, Protocol::Scgi, Protocol::Uwsgi];

    /// The key that names applications of this kind.
    pub fn key(self) -> &'static str {
        match self {
            Protocol::FastCgi => "fastcgi",
            Protocol::Scgi => "scgi",
            Protocol::Uwsgi => "uwsgi",
        }
    }
}

/// Formats the protocol by its usual name.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::FastCgi => "FastCGI",
            Protocol::Scgi => "SCGI",
            Protocol::Uwsgi => "uwsgi",
        })
    }
}
