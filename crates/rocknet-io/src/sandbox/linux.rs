//! Seccomp filters and Landlock rules of Linux.

#[path = "denied.rs"]
mod denied;
#[path = "landlock.rs"]
mod landlock;

use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::thread::{self, CapabilitySet};

use super::SandboxError;

/// Sets `no_new_privs`, so that set-user-ID files give no privileges to this process and its programs.
pub(super) fn renounce_privileges() -> Result<(), SandboxError> {
    thread::set_no_new_privs(true).map_err(|errno| SandboxError::System("prctl(PR_SET_NO_NEW_PRIVS)", errno.into()))
}

/// Permits changes to files only below `folders`.
pub(super) fn limit_writes(folders: &[PathBuf]) -> Result<(), SandboxError> {
    landlock::limit_writes(folders)
}

/// Returns true if the kernel can permit changes to files only below given folders.
pub(super) fn can_limit_writes() -> bool {
    landlock::is_available()
}

/// Returns true if the kernel can make denied system calls fail, and the filter supports this architecture.
#[allow(unsafe_code)]
pub(super) fn can_deny_system_calls() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads the four bytes of `action` and writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    denied::ARCHITECTURE.is_some() && result == 0
}

/// Denies system calls to this process. If `has_io_uring` is false, io_uring is denied, too.
pub(super) fn deny_system_calls(has_io_uring: bool) -> Result<(), SandboxError> {
    install(&filter(has_io_uring)?).map_err(|()| SandboxError::last("seccomp"))
}

/// Filter of the programs that this process starts.
static PROGRAM_FILTER: OnceLock<Vec<libc::sock_filter>> = OnceLock::new();

/// Stores the filter for the programs that this process starts from now on. Fails if this process is not privileged
/// and may gain privileges through set-user-ID files, because the kernel would refuse the filter.
pub(super) fn limit_programs() -> Result<(), SandboxError> {
    // Programs get no io_uring, because it bypasses the filter.
    let has_io_uring = false;
    let filter = filter(has_io_uring)?;
    let is_privileged = thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    if !is_privileged && !thread::no_new_privs().unwrap_or(false) {
        return Err(SandboxError::MayGainPrivileges);
    }
    // Fails after an earlier call, which has set the same filter.
    let _ = PROGRAM_FILTER.set(filter);
    Ok(())
}

/// Installs the stored filter, if any. To be called between fork and exec. An error is ignored: the program then has
/// the rights of its account.
pub(super) fn apply_to_program() {
    if let Some(filter) = PROGRAM_FILTER.get() {
        let _ = install(filter);
    }
}

/// Returns the filter for this architecture. If `has_io_uring` is false, the filter denies io_uring, too.
fn filter(has_io_uring: bool) -> Result<Vec<libc::sock_filter>, SandboxError> {
    match denied::ARCHITECTURE.filter(|_| can_deny_system_calls()) {
        Some(architecture) => Ok(denied::filter(architecture, has_io_uring)),
        None => Err(SandboxError::Unsupported("seccomp")),
    }
}

/// Installs a filter for the calling thread and those that it starts. The error is in `errno`. Makes a system call and
/// nothing else, because it is called between fork and exec.
#[allow(unsafe_code)]
fn install(filter: &[libc::sock_filter]) -> Result<(), ()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
        filter: filter.as_ptr().cast_mut(),
    };
    // The flag keeps kernels before 5.16 from switching off speculation, which would cost far more than the filter.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program points to `filter`, which has that many instructions. The kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if result == 0 { Ok(()) } else { Err(()) }
}
