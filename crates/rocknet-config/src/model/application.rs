//! Settings of applications that are reached by FastCGI, SCGI or uwsgi.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::proxy::Balance;
use super::upstream::Host;

/// Application of a site or route: `fastcgi`, `scgi` or `uwsgi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Protocol that the application speaks.
    pub protocol: Protocol,
    /// Addresses of the application, at least one.
    pub to: Vec<Host>,
    /// Load-balancing policy: `random_two`, `round_robin` or `least_conn`, which do not depend on the request.
    pub balance: Balance,
    /// Prefix of paths that becomes `SCRIPT_NAME`; the rest of the path becomes `PATH_INFO`. The prefix has no slash at
    /// its end, so it is empty for the whole site.
    pub mount: String,
    /// Variables that are set in requests to the application; an empty value removes a variable.
    pub params: BTreeMap<String, String>,
    /// Timeout for the application to accept a connection.
    pub connect: Duration,
    /// Maximum number of idle connections that are kept open for reuse, of all workers together; FastCGI only.
    pub keep: usize,
    /// Number of failures within `fail_time` after which one of several addresses is out of rotation for `fail_time`;
    /// 0: never.
    pub fails: u32,
    /// Time in which `fails` are counted, and for which an address is out of rotation.
    pub fail_time: Duration,
}

/// Protocol of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// FastCGI 1.0.
    FastCgi,
    /// Simple Common Gateway Interface.
    Scgi,
    /// The binary protocol of uWSGI.
    Uwsgi,
}

impl Application {
    /// Returns an application at these addresses, with defaults for everything else.
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
    /// Every protocol.
    pub const ALL: [Protocol; 3] = [Protocol::FastCgi, Protocol::Scgi, Protocol::Uwsgi];

    /// Returns the configuration key for applications of this protocol.
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
