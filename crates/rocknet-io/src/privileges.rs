//! Giving up root: from its start-up rights down to one user and, on Linux, the one capability to bind low ports.

mod error;
mod user;

#[cfg(target_os = "linux")]
#[path = "privileges/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "privileges/portable.rs"]
mod system;

pub use error::PrivilegeError;
pub use user::User;

/// Whether the process has root's rights to give up.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whose rights the process has.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the whole process the user's, for good: its groups, group and user are set, programs it starts cannot gain
/// rights by their file, and going back to root is tried and must fail.
///
/// On Linux the capability to bind ports below 1024 is kept, if there was one, so that a reload can add such a port;
/// programs that are started do not get it. To be called after binding and opening logs, before any thread starts.
pub fn drop_to(user: &User) -> Result<(), PrivilegeError> {
    if user.uid == 0 || user.gid == 0 {
        return Err(PrivilegeError::IsRoot);
    }
    system::drop_to(user)
}

/// Gives up all of root's capabilities but those to start programs as other accounts and to end them, and has signals that end
/// programs wait: whoever asks for them to be started ends this process by going away. To be called before any thread starts.
pub fn keep_process_capabilities() -> Result<(), PrivilegeError> {
    system::keep_process_capabilities()
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
            assert!(matches!(drop_to(&user), Err(PrivilegeError::IsRoot)), "{uid}:{gid}");
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
        assert!(matches!(drop_to(&user), Err(PrivilegeError::Threads(count)) if count > 1));
        #[cfg(not(target_os = "linux"))]
        assert!(matches!(drop_to(&user), Err(PrivilegeError::System(..))));
    }
}
