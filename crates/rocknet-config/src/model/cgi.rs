//! Settings of CGI programs (RFC 3875).

use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of CGI programs that run at the same time, for all sites together. Each is a process that can occupy
/// a core and tens of megabytes.
pub const MAX_PROGRAMS: usize = 64;

/// CGI programs of a site or route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgi {
    /// Path of the folder whose programs are run, below the root of the site: begins with a slash and does not end in
    /// one, such as `/cgi-bin`.
    pub folder: String,
    /// Maximum number of programs that run at the same time, at most [`MAX_PROGRAMS`].
    pub programs: usize,
    /// Timeout of a request in the queue for a permit to start its program.
    pub queue: Duration,
    /// Maximum run time of one program.
    pub time: Duration,
    /// Maximum size of one response, in bytes.
    pub output: u64,
    /// True if programs get the header field `Authorization`, unless `auth` has verified its password.
    pub authorization: bool,
    /// Variables that are set in the environment of programs; an empty value removes a variable.
    pub params: BTreeMap<String, String>,
}

impl Cgi {
    /// Returns the programs of this folder, with defaults for everything else.
    pub fn at(folder: String) -> Cgi {
        Cgi {
            folder,
            programs: MAX_PROGRAMS,
            queue: Duration::from_secs(10),
            // A program that needs longer should respond first and do its work in another process.
            time: Duration::from_secs(15 * 60),
            output: 1 << 30,
            authorization: false,
            params: BTreeMap::new(),
        }
    }
}
