//! Finds the process that listens on a port or socket file, so that "address in use" can name the process.

use std::net::IpAddr;
use std::path::Path;

mod owner;
#[cfg(target_os = "linux")]
#[path = "port_owner/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "port_owner/portable.rs"]
mod system;

pub use owner::PortOwner;

/// Returns a process that listens on TCP `port` at an address that conflicts with `ip`, or at any address for `None`.
///
/// Only root can find processes of other users. The search normally takes milliseconds, but can take about a second, so
/// call this function only at startup and reload.
pub fn of_port(ip: Option<IpAddr>, port: u16) -> Option<PortOwner> {
    system::of_port(ip, port)
}

/// Returns a process that has bound UDP `port` at an address that conflicts with `ip`, or at any address for `None`.
/// Has the same limits as [`of_port`].
pub fn of_udp_port(ip: Option<IpAddr>, port: u16) -> Option<PortOwner> {
    system::of_udp_port(ip, port)
}

/// Returns a process that listens on a socket file. `path` has to be the path to which the socket was bound.
pub fn of_socket_file(path: &Path) -> Option<PortOwner> {
    system::of_socket_file(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn finds_this_process() {
        // Address of a listener of this process, address in the query, and whether this process is found.
        for (bound, requested, found) in [
            ("127.0.0.1", None, true),
            ("127.0.0.1", Some("127.0.0.1"), true),
            ("127.0.0.1", Some("0.0.0.0"), true),
            ("127.0.0.1", Some("::"), true),
            ("127.0.0.1", Some("127.0.0.2"), false),
            ("0.0.0.0", Some("127.0.0.1"), true),
            ("::1", Some("::1"), true),
            ("::1", Some("127.0.0.1"), false),
            ("::", None, true),
        ] {
            let Ok(listener) = TcpListener::bind((bound, 0)) else {
                // The machine may lack IPv6.
                assert!(bound.contains(':'), "{bound} cannot be bound");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let owner = of_port(requested.map(|ip| ip.parse().unwrap()), port);
            assert_eq!(
                owner.as_ref().is_some_and(PortOwner::is_this_process),
                found,
                "{requested:?} for {bound}: {owner:?}"
            );
            drop(listener);
        }
    }

    #[test]
    fn finds_the_owner_of_a_udp_port() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let ip = |ip: &str| Some(ip.parse().unwrap());
        assert!(of_udp_port(ip("127.0.0.1"), port).is_some_and(|owner| owner.is_this_process()));
        assert!(of_udp_port(None, port).is_some_and(|owner| owner.is_this_process()));
        let other = of_udp_port(ip("127.0.0.2"), port);
        assert!(!other.is_some_and(|owner| owner.is_this_process()));
    }

    #[test]
    fn finds_the_owner_of_a_socket_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("name with space.sock");
        assert_eq!(of_socket_file(&path), None);
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(of_socket_file(&path).is_some_and(|owner| owner.is_this_process() && !owner.name.is_empty()));
    }

    #[test]
    fn shows_name_and_pid() {
        assert_eq!(
            PortOwner {
                pid: 812,
                name: "nginx".into()
            }
            .to_string(),
            "nginx (pid 812)"
        );
    }
}
