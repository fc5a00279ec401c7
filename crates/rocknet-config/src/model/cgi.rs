//! Programs that are run by CGI, as meant.

use std::collections::BTreeMap;
use std::time::Duration;

/// Most programs that run at once, of all sites: each is a process that may take a core and tens of megabytes.
pub const MAX_PROGRAMS: usize = 64;

/// CGI programs of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgi {
    /// The path whose programs are run, without a slash at its end.
    pub folder: String,
    /// Programs that run at once, [`MAX_PROGRAMS`] at most.
    pub programs: usize,
    /// Longest wait of a request for its program to be let run.
    pub queue: Duration,
    /// Of one program, all in all.
    pub time: Duration,
    /// Bytes of one answer.
    pub output: u64,
    /// Variables of its environment; an empty value takes one away.
    pub params: BTreeMap<String, String>,
}

impl Cgi {
    /// Programs of this folder, with the defaults of everything else.
    pub fn at(folder: String) -> Cgi {
        Cgi {
            folder,
            programs: MAX_PROGRAMS,
            queue: Duration::from_secs(10),
            // Who needs longer answers first, and works elsewhere.
            time: Duration::from_secs(15 * 60),
            output: 1 << 30,
            params: BTreeMap::new(),
        }
    }
}
