//! Limits what this process and the programs that it starts can do, permanently: system calls (seccomp) and files that
//! can be changed (Landlock). On Linux only.

mod error;

use std::path::PathBuf;

pub use error::SandboxError;

#[cfg(target_os = "linux")]
#[path = "sandbox/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/portable.rs"]
mod system;

/// Limits the programs that this process starts from now on (module `child`). System calls that usual scripts do not
/// need fail with `EPERM`, as [`deny_system_calls`] describes. So do the calls of io_uring. The calls of this process
/// itself are not filtered, because a filter costs a web server a few percent of its speed.
///
/// # Errors
///
/// Fails as [`SandboxError`] describes: with `MayGainPrivileges` unless this process is privileged (`CAP_SYS_ADMIN`)
/// or cannot gain privileges.
pub fn limit_programs() -> Result<(), SandboxError> {
    system::limit_programs()
}

/// Limits the calling process if [`limit_programs`] was called before the fork. To be called between fork and exec. An
/// error is ignored: the program then has the rights of its account, as without a sandbox.
#[cfg(target_os = "linux")]
pub(crate) fn apply_to_program() {
    system::apply_to_program();
}

/// Denies system calls that neither a web server nor usual scripts need, with `EPERM`: among others for mounting,
/// namespaces, tracing and reading other processes, kernel modules, BPF, performance events, keys, clocks and swap.
/// `clone3` fails with `ENOSYS` instead, so that the C library uses `clone`, whose flags the filter can read. Binaries
/// of another architecture, such as 32-bit programs on a 64-bit system, can make no system call at all.
///
/// To be called before any thread starts, because threads inherit the limits from the thread that starts them. If
/// `has_io_uring` is false, io_uring is denied, too.
///
/// # Errors
///
/// As [`SandboxError`].
pub fn deny_system_calls(has_io_uring: bool) -> Result<(), SandboxError> {
    system::deny_system_calls(has_io_uring)
}

/// Permits creating, writing, moving and removing files only below `folders`. Mode, owner, times and extended
/// attributes are not covered, nor is truncation before Linux 6.2. Reading and running stay unlimited, and so do files
/// that are open. Device files such as `/dev/null` can still be written. To be called before any thread starts.
///
/// # Errors
///
/// As [`SandboxError`]; a folder that does not exist is an error.
pub fn limit_writes(folders: &[PathBuf]) -> Result<(), SandboxError> {
    system::limit_writes(folders)
}

/// Permanently keeps this process and the programs that it starts from gaining privileges by set-user-ID files
/// (`no_new_privs`).
///
/// # Errors
///
/// Fails on kernels before Linux 3.5 and on other systems.
pub fn renounce_privileges() -> Result<(), SandboxError> {
    system::renounce_privileges()
}

/// Returns true if the kernel can limit system calls of this process.
#[must_use]
pub fn can_deny_system_calls() -> bool {
    system::can_deny_system_calls()
}

/// Returns true if the kernel can keep this process from changing files outside of given folders, and still lets it
/// move files between these folders (Landlock of Linux 5.19 or newer).
#[must_use]
pub fn can_limit_writes() -> bool {
    system::can_limit_writes()
}
