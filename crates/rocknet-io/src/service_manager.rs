//! The protocol of a service manager such as systemd: notifications of the state of the service, the interval of the
//! watchdog, and sockets that were opened before the start (`sd_notify(3)`, `sd_listen_fds(3)`).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::Duration;

use crate::inherited_sockets::InheritedSockets;

#[cfg(target_os = "linux")]
#[path = "service_manager/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "service_manager/portable.rs"]
mod system;

/// Settings and sockets that the service manager has passed to this process.
#[derive(Debug, Default)]
pub struct ServiceEnvironment {
    /// Socket for notifications; `None` without a service manager that expects them.
    pub notify: Option<NotifySocket>,
    /// Maximum time between two signs of life (notifications `WATCHDOG=1`); `None` if none are expected.
    pub watchdog: Option<Duration>,
    /// Sockets that the service manager has opened.
    pub sockets: InheritedSockets,
}

impl ServiceEnvironment {
    /// Reads the environment variables of the service manager and removes them, so that started programs do not
    /// inherit them. Takes over the passed sockets. To be called first in `main`: before a thread starts, and before a
    /// descriptor is opened. If other threads run already, the variables stay, because a thread could be reading them.
    ///
    /// Systems other than Linux have no such service manager, and the result is empty.
    #[must_use]
    pub fn take() -> ServiceEnvironment {
        if cfg!(not(target_os = "linux")) {
            return ServiceEnvironment::default();
        }
        let variables = Variables::read(|name| env::var_os(name));
        if NAMES.iter().any(|name| env::var_os(name).is_some()) {
            system::remove_variables(&NAMES);
        }
        let own_pid = process::id();
        let mut sockets = InheritedSockets::default();
        for (descriptor, name) in (FIRST_DESCRIPTOR..).zip(variables.socket_names(own_pid)) {
            match system::open_socket(descriptor) {
                Some(socket) => sockets.add(socket, &name),
                None => sockets.reject(format!("{name}: descriptor {descriptor} is not a socket")),
            }
        }
        ServiceEnvironment {
            notify: variables.notify.as_deref().and_then(NotifySocket::parse),
            watchdog: variables.watchdog(own_pid),
            sockets,
        }
    }
}

/// Number of the first passed descriptor.
const FIRST_DESCRIPTOR: RawFd = 3;

/// Socket that receives notifications, one datagram each.
#[derive(Debug, Clone)]
pub struct NotifySocket {
    address: SocketAddr,
    /// Value of the variable that names the socket.
    value: OsString,
}

impl NotifySocket {
    /// Parses the value of `NOTIFY_SOCKET`: an absolute path, or the name of an abstract socket after `@`. Returns
    /// `None` for other kinds of addresses.
    #[must_use]
    pub fn parse(value: &OsStr) -> Option<NotifySocket> {
        let address = match value.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(value).ok()?,
            [b'@', name @ ..] if !name.is_empty() => system::abstract_address(name)?,
            _ => return None,
        };
        Some(NotifySocket {
            address,
            value: value.to_owned(),
        })
    }

    /// Returns the environment variables by which a process that takes the place of this one gets the same socket and
    /// the same time between two signs of life.
    #[must_use]
    pub fn variables(&self, watchdog: Option<Duration>) -> Vec<(&'static str, OsString)> {
        let watchdog = watchdog.map(|time| (WATCHDOG, time.as_micros().to_string().into()));
        [(NOTIFY, self.value.clone())].into_iter().chain(watchdog).collect()
    }

    /// Sends assignments, such as `READY=1`, one on each line.
    ///
    /// # Errors
    ///
    /// Fails if the socket does not exist, or if its receiver takes no datagram for a second.
    pub fn send(&self, assignments: &str) -> io::Result<()> {
        // A new socket for each notification: they are rare, and the manager may have replaced its own.
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        let sent = socket.send_to_addr(assignments.as_bytes(), &self.address)?;
        debug_assert_eq!(sent, assignments.len(), "datagrams are sent whole");
        Ok(())
    }
}

/// Maximum time to wait until the receiver has room for a notification.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Monotonic time in microseconds, which a notification about a reload contains (`MONOTONIC_USEC`).
#[derive(Debug, Clone, Copy)]
pub struct MonotonicMicroseconds(u64);

impl MonotonicMicroseconds {
    /// Reads the clock.
    #[must_use]
    pub fn now() -> MonotonicMicroseconds {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
        MonotonicMicroseconds(seconds * 1_000_000 + nanoseconds / 1000)
    }
}

impl fmt::Display for MonotonicMicroseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Values of the environment variables that the service manager sets.
struct Variables {
    /// Path or name of the socket for notifications.
    notify: Option<OsString>,
    /// Maximum time between two signs of life, in microseconds.
    watchdog: Option<OsString>,
    /// ID of the process to which the watchdog applies.
    watchdog_process: Option<OsString>,
    /// Number of passed sockets.
    sockets: Option<OsString>,
    /// ID of the process to which the sockets are passed.
    sockets_process: Option<OsString>,
    /// Names of the passed sockets, separated by colons.
    socket_names: Option<OsString>,
}

/// Variable with the path or name of the socket for notifications.
const NOTIFY: &str = "NOTIFY_SOCKET";
/// Variable with the maximum time between two signs of life, in microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";

/// Names of the variables, in the order of [`Variables`].
const NAMES: [&str; 6] = [
    NOTIFY,
    WATCHDOG,
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

impl Variables {
    /// Reads the variables with `read`, which returns the value of the variable with the given name.
    fn read(read: impl FnMut(&str) -> Option<OsString>) -> Variables {
        let [
            notify,
            watchdog,
            watchdog_process,
            sockets,
            sockets_process,
            socket_names,
        ] = NAMES.map(read);
        Variables {
            notify,
            watchdog,
            watchdog_process,
            sockets,
            sockets_process,
            socket_names,
        }
    }

    /// Returns the maximum time between two signs of life; `None` without a watchdog, or if the watchdog is meant for
    /// another process than `own_pid`.
    fn watchdog(&self, own_pid: u32) -> Option<Duration> {
        if self.watchdog_process.is_some() && number(self.watchdog_process.as_ref()) != Some(u64::from(own_pid)) {
            return None;
        }
        number(self.watchdog.as_ref())
            .filter(|&microseconds| microseconds > 0)
            .map(Duration::from_micros)
    }

    /// Returns the names of the sockets that are passed to the process `own_pid`, in the order of their descriptors.
    fn socket_names(&self, own_pid: u32) -> Vec<String> {
        if number(self.sockets_process.as_ref()) != Some(u64::from(own_pid)) {
            return Vec::new();
        }
        let count = number(self.sockets.as_ref()).unwrap_or_default().min(MAX_SOCKETS);
        let names = self.socket_names.as_ref().map(|names| names.to_string_lossy());
        let mut names = names.as_deref().unwrap_or_default().split(':');
        (0..count)
            .map(|_| {
                names
                    .next()
                    .filter(|name| !name.is_empty())
                    .unwrap_or("unnamed")
                    .to_owned()
            })
            .collect()
    }
}

/// Maximum number of sockets that are taken over, so that a wrong number does not take long.
const MAX_SOCKETS: u64 = 4096;

/// Parses a number; `None` if the variable is not set, or is not a number.
fn number(value: Option<&OsString>) -> Option<u64> {
    value?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the variables from an environment that contains only `set`.
    fn variables(set: &[(&str, &str)]) -> Variables {
        Variables::read(|name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn wrong_variables_and_those_for_another_process_are_ignored() {
        // Variables for the process 7.
        let addressed = variables(&[
            ("WATCHDOG_USEC", "2500000"),
            ("WATCHDOG_PID", "7"),
            ("LISTEN_FDS", "3"),
            ("LISTEN_PID", "7"),
            ("LISTEN_FDNAMES", "web::"),
        ]);
        assert_eq!(addressed.watchdog(7), Some(Duration::from_millis(2500)));
        assert_eq!(addressed.socket_names(7), ["web", "unnamed", "unnamed"]);
        assert_eq!((addressed.watchdog(8), addressed.socket_names(8)), (None, Vec::new()));
        // Without a process ID, the watchdog is meant for any process, but no sockets are taken over.
        let without_process = variables(&[("WATCHDOG_USEC", "1"), ("LISTEN_FDS", "1")]);
        assert_eq!(without_process.watchdog(7), Some(Duration::from_micros(1)));
        assert!(without_process.socket_names(7).is_empty());
        // Values that are not positive numbers of at most 64 bits count as absent.
        for wrong in ["", "0", "-1", "x", "99999999999999999999"] {
            let set = variables(&[("WATCHDOG_USEC", wrong), ("LISTEN_FDS", wrong), ("LISTEN_PID", "7")]);
            assert_eq!((set.watchdog(7), set.socket_names(7)), (None, Vec::new()), "{wrong:?}");
        }
    }

    #[test]
    fn notifications_are_datagrams_to_a_socket_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let socket = NotifySocket::parse(path.as_os_str()).unwrap();
        socket.send("READY=1\nSTATUS=x").unwrap();
        let mut buffer = [0; 64];
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1\nSTATUS=x");
        let variables = socket.variables(Some(Duration::from_millis(2)));
        let path = path.as_os_str().to_owned();
        assert_eq!(
            variables,
            [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", OsString::from("2000"))]
        );
        assert_eq!(socket.variables(None).len(), 1);
        drop(receiver);
        assert!(socket.send("READY=1").is_err());
        for other in ["", "@", "vsock:2:1234", "relative"] {
            assert!(NotifySocket::parse(OsStr::new(other)).is_none(), "{other}");
        }
    }
}
