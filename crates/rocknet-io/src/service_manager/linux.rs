//! System calls for the protocol of systemd.

use std::env;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

/// Returns the address of an abstract Unix socket; `None` if the name is too long.
pub(super) fn abstract_address(name: &[u8]) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(name).ok()
}

/// Removes variables of the environment if this is the only thread.
#[allow(unsafe_code)]
pub(super) fn remove_variables(names: &[&str]) {
    let is_single = fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if !is_single {
        return;
    }
    for name in names {
        // SAFETY: no other thread exists that could read the environment at the same time.
        unsafe { env::remove_var(name) };
    }
}

/// Takes over a descriptor if it is an open socket.
#[allow(unsafe_code)]
pub(super) fn open_socket(descriptor: RawFd) -> Option<OwnedFd> {
    let mut domain: libc::c_int = 0;
    let mut length = libc::socklen_t::try_from(size_of_val(&domain)).ok()?;
    // SAFETY: the kernel writes at most `length` bytes to `domain`. A descriptor that is closed or no socket is an
    // error.
    let result = unsafe {
        libc::getsockopt(
            descriptor,
            libc::SOL_SOCKET,
            libc::SO_DOMAIN,
            (&raw mut domain).cast(),
            &raw mut length,
        )
    };
    // SAFETY: the descriptor is open. The service manager passed it to this process, and nothing else owns it, because
    // its number was in use when the process began.
    (result == 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}
