//! Options of sockets.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use libc::c_int;
use socket2::Socket;

/// Sets an option whose value is an int.
#[allow(unsafe_code)]
pub(super) fn set(socket: &Socket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the value is a live int of the size passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
