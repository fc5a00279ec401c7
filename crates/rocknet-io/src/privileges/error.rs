//! Errors of looking users up and of changing privileges, worded for operators.

use std::error::Error;
use std::fmt;
use std::io;

/// Error of looking a user up, or of changing the privileges of the process. After a failed change, the process must
/// not continue, because it may have more privileges than intended.
#[derive(Debug)]
pub enum PrivilegeError {
    /// The name is neither in `/etc/passwd` nor a number. Users of directory services (LDAP, NIS) are not looked up.
    UnknownUser(String),
    /// The name is neither in `/etc/group` nor a number.
    UnknownGroup(String),
    /// The user ID is not in `/etc/passwd`, so its group is unknown.
    NoGroup(u32),
    /// The requested user or group is root.
    IsRoot,
    /// The process has this number of threads, more than one. Each thread has its own privileges, so the other
    /// threads would keep theirs.
    Threads(usize),
    /// The file with this path could not be read.
    File(&'static str, io::Error),
    /// The system call with this name failed.
    System(&'static str, io::Error),
    /// All calls succeeded, but the process could return to root, or a check found other IDs, groups or capabilities
    /// than requested.
    Incomplete,
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownUser(name) => write!(
                f,
                "there is no user `{name}` in /etc/passwd; create it with `useradd --system {name}`, or choose another user"
            ),
            Self::UnknownGroup(name) => {
                write!(
                    f,
                    "there is no group `{name}` in /etc/group; create it with `groupadd --system {name}`, or give its number"
                )
            }
            Self::NoGroup(uid) => write!(
                f,
                "user {uid} is not in /etc/passwd, so its group is unknown; create the user, or choose another one"
            ),
            Self::IsRoot => f.write_str(
                "the user or its group is `root`, so privileges would remain; choose another user, such as `www-data`",
            ),
            Self::Threads(count) => write!(
                f,
                "privileges must be dropped before threads start, but {count} are running"
            ),
            Self::File(path, error) => write!(f, "cannot read {path}: {error}"),
            Self::System(call, error) => write!(f, "cannot change the privileges of the process: {call}: {error}"),
            Self::Incomplete => {
                f.write_str("the privileges of root were dropped, but not completely or not permanently")
            }
        }
    }
}

impl Error for PrivilegeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File(_, error) | Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}
