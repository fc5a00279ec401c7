//! Landlock: a set of rules that permit changes below folders, and deny them elsewhere.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::super::SandboxError;

/// Minimum version of Landlock: the version of Linux 5.19, which has the right to move files between folders. Version 1
/// always denies such moves.
const MIN_VERSION: libc::c_long = 2;
/// Version since which there is the right to truncate files, Linux 6.2.
const TRUNCATE_VERSION: libc::c_long = 3;

/// Flag of `landlock_create_ruleset`: return the version.
const VERSION_FLAG: u32 = 1;
/// Type of a rule for everything below a folder.
const PATH_BENEATH: libc::c_int = 1;

// Rights, from `linux/landlock.h`.
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

/// Rights below a permitted folder. Device files cannot be created anywhere.
const CHANGE: u64 =
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE;
/// Rights that are denied outside of the permitted folders.
const DENIED: u64 = CHANGE | MAKE_CHAR | MAKE_BLOCK;

/// Folder of device files such as `null`, which programs open for writing.
const DEVICES: &str = "/dev";

/// `struct landlock_ruleset_attr` as in version 1. The kernel treats fields of later versions as zeros.
#[repr(C)]
struct Ruleset {
    /// Rights that are denied unless a rule permits them.
    handled_access_fs: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    /// Rights that the rule permits.
    allowed_access: u64,
    /// Descriptor of the folder below which the rule applies.
    parent_fd: i32,
}

/// Returns whether the kernel has a recent enough version of Landlock.
pub(super) fn is_available() -> bool {
    version() >= MIN_VERSION
}

/// Returns the version of Landlock; -1 without it.
#[allow(unsafe_code)]
fn version() -> libc::c_long {
    // SAFETY: with this flag, the kernel reads no memory.
    unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Ruleset>(),
            0usize,
            VERSION_FLAG,
        )
    }
}

/// Prevents the calling thread, and the threads that it starts, from changing files outside of `folders`.
#[allow(unsafe_code)]
pub(super) fn limit_writes(folders: &[PathBuf]) -> Result<(), SandboxError> {
    let version = version();
    if version < MIN_VERSION {
        return Err(SandboxError::Unsupported("Landlock of Linux 5.19 or newer"));
    }
    // Rights that this version of Landlock knows.
    let known = if version >= TRUNCATE_VERSION { !0 } else { !TRUNCATE };
    let ruleset = create(DENIED & known)?;
    for folder in folders {
        permit(&ruleset, folder, CHANGE & known)?;
    }
    permit(&ruleset, Path::new(DEVICES), (WRITE_FILE | TRUNCATE) & known)?;
    // SAFETY: the call reads no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) };
    if result == 0 {
        Ok(())
    } else {
        Err(SandboxError::last("landlock_restrict_self"))
    }
}

/// Creates a ruleset that denies the rights `handled_access_fs` wherever no rule permits them.
#[allow(unsafe_code)]
fn create(handled_access_fs: u64) -> Result<OwnedFd, SandboxError> {
    let attributes = Ruleset { handled_access_fs };
    // SAFETY: the kernel reads the given number of bytes of `attributes`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size_of::<Ruleset>(),
            0u32,
        )
    };
    match i32::try_from(result) {
        // SAFETY: the kernel has just created the descriptor for this caller.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(SandboxError::last("landlock_create_ruleset")),
    }
}

/// Permits rights on everything below `folder`.
#[allow(unsafe_code)]
fn permit(ruleset: &OwnedFd, folder: &Path, allowed_access: u64) -> Result<(), SandboxError> {
    let cannot = |error: io::Error| SandboxError::Folder(folder.to_owned(), error);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY);
    let opened: File = options.open(folder).map_err(cannot)?;
    let rule = PathBeneath {
        allowed_access,
        parent_fd: opened.as_raw_fd(),
    };
    // SAFETY: the kernel reads one rule of this type, whose descriptor is open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0u32,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(cannot(io::Error::last_os_error()))
    }
}
