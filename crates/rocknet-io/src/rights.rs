//! Giving up root: from its start-up rights down to one user and, on Linux, the one capability to bind low ports.

use std::error::Error;
use std::fmt;
use std::io;

mod user;

#[cfg(target_os = "linux")]
#[path = "rights/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "rights/portable.rs"]
mod system;

pub use user::User;

/// Why rights could not be given up. A server that was told to must not go on with them.
#[derive(Debug)]
pub enum RightsError {
    /// Neither `/etc/passwd` has the name, nor is it a number. Users of a directory service (LDAP, NIS) are not seen.
    UnknownUser(String),
    UnknownGroup(String),
    /// A number that is in no table says nothing of its group.
    NoGroup(u32),
    /// `root` itself was named.
    StaysRoot,
    /// Rights belong to threads; what is given up by one, the others would keep.
    Threads(usize),
    /// The call named by the first field failed.
    System(&'static str, io::Error),
    /// After all calls succeeded, the way back to root was still open.
    WayBack,
}

impl fmt::Display for RightsError {
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
            Self::StaysRoot => f.write_str("`root` keeps all rights; name a user without them, such as `www-data`"),
            Self::Threads(count) => write!(
                f,
                "rights must be given up before threads start, and {count} are running"
            ),
            Self::System(call, error) => write!(f, "the rights could not be given up: {call}: {error}"),
            Self::WayBack => f.write_str("the rights were given up, but the system would give them back"),
        }
    }
}

impl Error for RightsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Whether the process has root's rights to give up.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whose rights the process has.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the whole process the user's, for good: its groups, group and user are set, programs it starts cannot gain
/// rights by their file, and going back to root is tried and must fail.
///
/// On Linux the capability to bind ports below 1024 is kept, if there was one, so that a reload can add such a port;
/// programs that are started do not get it. To be called after binding and opening logs, before any thread starts.
pub fn drop_to(user: &User) -> Result<(), RightsError> {
    if user.uid == 0 || user.gid == 0 {
        return Err(RightsError::StaysRoot);
    }
    system::drop_to(user)
}

/// Gives up all of root's capabilities but those to start programs as other accounts and to end them, and has signals that end
/// programs wait: whoever asks for them to be started ends this process by going away. To be called before any thread starts.
pub fn keep_starting_programs() -> Result<(), RightsError> {
    system::keep_starting_programs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_stay_root_and_to_part_threads() {
        for (uid, gid) in [(0, 0), (0, 33), (33, 0)] {
            let user = User {
                name: "x".into(),
                uid,
                gid,
                groups: Vec::new(),
                home: None,
            };
            assert!(matches!(drop_to(&user), Err(RightsError::StaysRoot)), "{uid}:{gid}");
        }
        // The test harness itself has more than one thread.
        let user = User {
            name: "nobody".into(),
            uid: 65_534,
            gid: 65_534,
            groups: Vec::new(),
            home: None,
        };
        #[cfg(target_os = "linux")]
        assert!(matches!(drop_to(&user), Err(RightsError::Threads(count)) if count > 1));
        #[cfg(not(target_os = "linux"))]
        assert!(matches!(drop_to(&user), Err(RightsError::System(..))));
    }
}
