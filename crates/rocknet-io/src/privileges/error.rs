//! Why rights could not be given up, in words for the operator.

use std::error::Error;
use std::fmt;
use std::io;

/// Why rights could not be given up. A server that was told to must not go on with them.
#[derive(Debug)]
pub enum PrivilegeError {
    /// Neither `/etc/passwd` has the name, nor is it a number. Users of a directory service (LDAP, NIS) are not seen.
    UnknownUser(String),
    UnknownGroup(String),
    /// A number that is in no table says nothing of its group.
    NoGroup(u32),
    /// `root` itself was named.
    IsRoot,
    /// Rights belong to threads; what is given up by one, the others would keep.
    Threads(usize),
    /// The call named by the first field failed.
    System(&'static str, io::Error),
    /// After all calls succeeded, the way back to root was still open.
    Reversible,
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownUser(name) => write!(
                f,
                "there is no user `{name}` in /etc/passwd; make one with `useradd --system {name}`, or name it by numbers as `uid:gid`"
            ),
            Self::UnknownGroup(name) => {
                write!(
                    f,
                    "there is no group `{name}` in /etc/group; make one with `groupadd --system {name}`, or name it by number"
                )
            }
            Self::NoGroup(uid) => write!(
                f,
                "user {uid} is not in /etc/passwd, so its group is not known; write `{uid}:gid`"
            ),
            Self::IsRoot => f.write_str("`root` keeps all rights; name a user without them, such as `www-data`"),
            Self::Threads(count) => write!(
                f,
                "rights must be given up before threads start, and {count} are running"
            ),
            Self::System(call, error) => write!(f, "the rights could not be given up: {call}: {error}"),
            Self::Reversible => f.write_str("the rights were given up, but the system would give them back"),
        }
    }
}

impl Error for PrivilegeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}
