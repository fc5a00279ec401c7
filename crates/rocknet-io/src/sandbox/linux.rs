//! Seccomp filters and Landlock rules of Linux.

#[path = "denied.rs"]
mod denied;
#[path = "landlock.rs"]
mod landlock;

use std::path::PathBuf;

use rustix::thread;

use super::SandboxError;

pub(super) fn renounce_privileges() -> Result<(), SandboxError> {
    thread::set_no_new_privs(true).map_err(|errno| SandboxError::System("prctl(PR_SET_NO_NEW_PRIVS)", errno.into()))
}

pub(super) fn limit_writes(folders: &[PathBuf]) -> Result<(), SandboxError> {
    landlock::limit_writes(folders)
}

pub(super) fn can_limit_writes() -> bool {
    landlock::is_available()
}

#[allow(unsafe_code)]
pub(super) fn can_deny_system_calls() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads the four bytes of `action` and writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    denied::ARCHITECTURE.is_some() && result == 0
}

#[allow(unsafe_code)]
pub(super) fn deny_system_calls(has_io_uring: bool) -> Result<(), SandboxError> {
    let Some(architecture) = denied::ARCHITECTURE.filter(|_| can_deny_system_calls()) else {
        return Err(SandboxError::Unsupported("seccomp"));
    };
    let mut filter = denied::filter(architecture, has_io_uring);
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program points to `filter`, which has that many instructions. The kernel checks and copies them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if result == 0 {
        Ok(())
    } else {
        Err(SandboxError::last("seccomp"))
    }
}
