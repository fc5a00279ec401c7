//! Replaces the privileges of root by those of another user, on Linux only. The process keeps the capability to bind
//! ports below 1024.

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

/// Returns whether the process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the effective user ID of the process.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Changes the whole process to `user` permanently: sets the supplementary groups, the group and the user, and checks
/// that returning to root fails. Programs that the process starts cannot gain privileges by set-user-ID files.
///
/// The capability to bind ports below 1024 is kept if the process has it, so that a reload can add such a port; started
/// programs do not inherit it. Call this function after binding ports and opening logs, and before any thread starts.
///
/// # Errors
///
/// After an error the process must not continue, because it may have dropped only some of its privileges. Systems other
/// than Linux always return an error.
pub fn drop_to(user: &User) -> Result<(), PrivilegeError> {
    if user.uid == 0 || user.gid == 0 {
        return Err(PrivilegeError::IsRoot);
    }
    system::drop_to(user)
}

/// Runs `work` with the rights of `user`, on a thread of its own that ends afterwards. The rest of the process keeps
/// its rights. Meant for commands that determine as root which files an account can access. The thread takes the groups
/// and IDs of the account, so the kernel decides by modes, access control lists and security modules.
///
/// # Errors
///
/// Fails if the process is not root, or if a system call or the start of the thread fails. Systems other than Linux
/// always return an error.
///
/// # Panics
///
/// Panics if `work` does.
pub fn with_rights_of<T: Send>(user: &User, work: impl FnOnce() -> T + Send) -> Result<T, PrivilegeError> {
    system::with_rights_of(user, work)
}

/// Drops all capabilities except those for starting programs under other accounts and for killing these programs.
/// Blocks signals such as SIGTERM, with which a service manager or a terminal ends programs. Meant for the account
/// helper, the process that starts programs under other accounts. It ends when its channel to the server closes. Call
/// this function before any thread starts.
///
/// # Errors
///
/// After an error the process must not continue. Systems other than Linux always return an error.
pub fn prepare_account_helper() -> Result<(), PrivilegeError> {
    system::prepare_account_helper()
}

/// Removes all capabilities from the ambient and inheritable sets, so that programs started by this process do not
/// inherit them. The process itself keeps its capabilities, such as the one to bind ports below 1024. Call this
/// function before any thread starts, because each thread has its own sets. Systems other than Linux have no such sets.
///
/// # Errors
///
/// Fails if a system call fails. If only the change of the inheritable set is denied (EPERM), the error is ignored.
pub fn stop_inheritance() -> Result<(), PrivilegeError> {
    system::stop_inheritance()
}

/// Returns the names of the effective capabilities of the calling thread, such as `CAP_NET_BIND_SERVICE`, separated by
/// spaces. The text is `none` without capabilities, and `all` if the thread has every capability that the kernel knows.
/// Returns `None` on systems other than Linux, or if the system call fails.
pub fn capabilities() -> Option<String> {
    system::capabilities()
}

/// Lets the program that the calling thread executes next have the capability to bind ports below 1024, if this process
/// has it. To be called between fork and exec. An error is ignored: the program then cannot bind such ports.
#[cfg(target_os = "linux")]
pub(crate) fn pass_on_low_ports() {
    system::pass_on_low_ports();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_with_the_rights_of_another_account_leaves_those_of_the_process() {
        use std::os::unix::fs::PermissionsExt;

        let user = User {
            name: "x".into(),
            uid: 4242,
            gid: 4242,
            groups: vec![4242],
            home: None,
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "x").unwrap();
        let set_mode = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode(folder.path(), 0o755);
        set_mode(&file, 0o600);
        let read = || std::fs::read(&file).map_err(|error| error.kind());
        if !is_root() {
            assert!(with_rights_of(&user, read).is_err());
            return;
        }
        assert_eq!(
            with_rights_of(&user, read).unwrap(),
            Err(std::io::ErrorKind::PermissionDenied)
        );
        assert_eq!(with_rights_of(&user, effective_uid).unwrap(), 4242);
        assert_eq!((effective_uid(), read()), (0, Ok(b"x".to_vec())));
        set_mode(&file, 0o644);
        assert_eq!(with_rights_of(&user, read).unwrap(), Ok(b"x".to_vec()));
    }

    #[test]
    fn refuses_root_and_a_process_with_several_threads() {
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
