//! Tests of listening sockets: binding to addresses in use, replacing stale socket files, accepting connections, and
//! classifying errors.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::SockRef;

use super::*;

/// Options that permit siblings.
const SHARED: ListenOptions = ListenOptions {
    backlog: BACKLOG,
    reuse_port: true,
};

/// Returns a TCP address; `None` stands for all addresses of the machine.
fn tcp(ip: Option<&str>, port: u16) -> Address {
    Address::Tcp {
        ip: ip.map(|ip| ip.parse().unwrap()),
        port,
    }
}

/// Waits until one of the listeners has a connection, and accepts it.
fn next(listeners: &[&Listener]) -> (OwnedFd, PeerAddress) {
    let mut waiting: Vec<_> = listeners
        .iter()
        .map(|listener| PollFd::new(listener, PollFlags::IN))
        .collect();
    poll(&mut waiting, None).unwrap();
    let ready = waiting
        .iter()
        .position(|one| one.revents().contains(PollFlags::IN))
        .unwrap();
    accept(listeners[ready]).unwrap()
}

/// Returns whether `::1` can be bound on this machine.
fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

/// Reports that a test is skipped because the machine has no IPv6.
fn skip_ipv6() {
    rocknet_testing::skip(rocknet_testing::Need::Ipv6, "::1 cannot be bound");
}

#[test]
fn accepts_only_at_the_listening_address() {
    // Address of the listener, address that the client connects to, address of the client (`None` if the connection is
    // refused), and whether IPv6 is required.
    for (listen, connect, peer, ipv6) in [
        (Some("127.0.0.1"), "127.0.0.1", Some("127.0.0.1"), false),
        (Some("0.0.0.0"), "127.0.0.1", Some("127.0.0.1"), false),
        (None, "127.0.0.1", Some("127.0.0.1"), false),
        (None, "::1", Some("::1"), true),
        (Some("::1"), "::1", Some("::1"), true),
        (Some("::"), "::1", Some("::1"), true),
        (Some("::"), "127.0.0.1", None, true),
    ] {
        if ipv6 && !has_ipv6() {
            skip_ipv6();
            continue;
        }
        let listener = Listener::bind(&tcp(listen, 0), ListenOptions::default()).unwrap();
        let port = listener.local_port().unwrap();
        assert_ne!(port, 0);
        // Without IPv6, a listener for all addresses is bound to 0.0.0.0 and reports that address.
        if has_ipv6() {
            assert_eq!(listener.address(), &tcp(listen, port));
        }
        assert_eq!(
            accept_error_kind(&accept(&listener).unwrap_err()),
            AcceptErrorKind::WouldBlock
        );
        let to = SocketAddr::new(connect.parse().unwrap(), port);
        let client = TcpStream::connect(to);
        let Some(peer) = peer else {
            assert!(client.is_err(), "{listen:?} accepted a connection to {connect}");
            continue;
        };
        let (connection, from) = next(&[&listener]);
        assert_eq!(from, PeerAddress::Ip(client.unwrap().local_addr().unwrap()));
        assert_eq!(from.ip(), Some(peer.parse().unwrap()));
        assert_eq!(local_address(&connection).unwrap(), Some(to));
        let connection_options = SockRef::from(&connection);
        assert!(connection_options.tcp_nodelay().unwrap() && connection_options.nonblocking().unwrap());
        assert!(
            rustix::io::fcntl_getfd(&connection)
                .unwrap()
                .contains(rustix::io::FdFlags::CLOEXEC)
        );
    }
}

#[test]
fn the_ipv6_and_ipv4_wildcards_coexist() {
    if !has_ipv6() {
        return skip_ipv6();
    }
    let six = Listener::bind(&tcp(Some("::"), 0), ListenOptions::default()).unwrap();
    // Another program may have bound the port on IPv4, but no socket of this process has.
    match Listener::bind(
        &tcp(Some("0.0.0.0"), six.local_port().unwrap()),
        ListenOptions::default(),
    ) {
        Ok(_) => {}
        Err(BindError {
            kind: BindErrorKind::InUse(owner),
            ..
        }) => assert!(!owner.is_some_and(|owner| owner.is_this_process())),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_port_in_use_is_refused_and_its_owner_named() {
    let loopback = Some("127.0.0.1");
    // Options of a listener, and of a second one that conflicts with it.
    for (first, second) in [
        (ListenOptions::default(), ListenOptions::default()),
        (ListenOptions::default(), SHARED),
        (SHARED, ListenOptions::default()),
        // `bind` sets SO_REUSEPORT only after binding. If it were set before, the second socket would be admitted.
        (SHARED, SHARED),
    ] {
        for (bound, requested) in [(loopback, loopback), (None, None), (None, loopback), (loopback, None)] {
            let listener = Listener::bind(&tcp(bound, 0), first).unwrap();
            let address = tcp(requested, listener.local_port().unwrap());
            let error = Listener::bind(&address, second).unwrap_err();
            assert_eq!(error.address, address);
            let BindErrorKind::InUse(Some(owner)) = &error.kind else {
                panic!("{error:?}")
            };
            assert!(
                owner.is_this_process() && error.to_string().contains("by this server itself"),
                "{error}"
            );
        }
    }
}

#[test]
fn siblings_share_the_connections_of_an_address() {
    const CLIENTS: usize = 64;
    // Address and options of the first listener, and number of accept queues of that listener and its sibling.
    for (ip, options, queues) in [
        (Some("127.0.0.1"), SHARED, 2),
        (None, SHARED, 2),
        (Some("127.0.0.1"), ListenOptions::default(), 1),
        (None, ListenOptions::default(), 1),
    ] {
        let first = Listener::bind(&tcp(ip, 0), options).unwrap();
        let second = first.sibling().unwrap();
        let third = second.sibling().unwrap();
        assert_eq!((first.address(), first.address()), (second.address(), third.address()));
        // Closed before any client connects, because the kernel would also queue connections at this sibling.
        drop(third);
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), first.local_port().unwrap());
        let clients: Vec<_> = (0..CLIENTS).map(|_| TcpStream::connect(to).unwrap()).collect();
        let mut ports: Vec<_> = clients
            .iter()
            .map(|client| client.local_addr().unwrap().port())
            .collect();
        let accept_all = |listener: &Listener| -> Vec<u16> {
            let ends = std::iter::from_fn(|| accept(listener).ok());
            ends.map(|(_, peer)| {
                if let PeerAddress::Ip(address) = peer {
                    address.port()
                } else {
                    0
                }
            })
            .collect()
        };
        let mut accepted = accept_all(&first);
        let at_first = accepted.len();
        accepted.extend(accept_all(&second));
        // `accept` returned all connections, because each was queued before its `connect` returned.
        accepted.sort_unstable();
        ports.sort_unstable();
        assert_eq!(accepted, ports);
        // A clone has no queue of its own, so no connection is lost when it accepts nothing.
        let (clone, _waiting) = (first.try_clone().unwrap(), TcpStream::connect(to).unwrap());
        assert_eq!(clone.address(), first.address());
        assert_eq!(accept_all(&first).len() + accept_all(&second).len(), 1);
        assert_eq!(accept_all(&clone).len(), 0);
        // With a shared queue, the first listener that accepts gets all connections. With two queues, the kernel
        // chooses by a hash of the ports, and 64 ports do not all hash to the same queue.
        assert_eq!(
            at_first == CLIENTS,
            queues == 1,
            "{at_first} of {CLIENTS} at the first of {queues}"
        );
    }
}

#[test]
fn binds_the_next_free_port() {
    let occupied = Listener::bind(&tcp(Some("127.0.0.1"), 0), ListenOptions::default()).unwrap();
    let port = occupied.local_port().unwrap();
    let ip = Some(IpAddr::from(Ipv4Addr::LOCALHOST));
    for tries in [0, 1] {
        let error = bind_next_free(ip, port, tries, ListenOptions::default()).unwrap_err();
        assert!(matches!(error.kind, BindErrorKind::InUse(_)) && error.address.port() == Some(port));
    }
    match bind_next_free(ip, port, u16::MAX, ListenOptions::default()) {
        Ok(next) => assert!(next.local_port().unwrap() > port),
        // All higher ports are in use.
        Err(error) => assert_eq!(error.address.port(), Some(u16::MAX)),
    }
    // Any other error ends the search at the first port.
    let error = bind_next_free(Some("192.0.2.1".parse().unwrap()), 8080, 10, ListenOptions::default()).unwrap_err();
    assert!(
        matches!(error.kind, BindErrorKind::Unavailable) && error.address.port() == Some(8080),
        "{error}"
    );
}

#[test]
fn takes_over_inherited_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let tcp_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bound = tcp_listener.local_addr().unwrap();
    for (handed, address) in [
        (OwnedFd::from(tcp_listener), Address::from(bound)),
        (UnixListener::bind(&path).unwrap().into(), Address::Unix(path.clone())),
    ] {
        let listener = Listener::from_descriptor(handed).unwrap();
        assert_eq!(listener.address(), &address);
        assert_eq!(
            accept_error_kind(&accept(&listener).unwrap_err()),
            AcceptErrorKind::WouldBlock
        );
        assert_eq!(listener.sibling().unwrap().address(), &address);
    }
    assert!(path.exists(), "the file of another process was removed");
    // Neither a connected socket nor a directory is a listening socket.
    let (client, _) = UnixStream::pair().unwrap();
    for unfit in [OwnedFd::from(client), fs::File::open(".").unwrap().into()] {
        assert!(Listener::from_descriptor(unfit).is_err());
    }
}

#[test]
fn a_socket_file_is_removed_with_its_last_listener() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let address = Address::Unix(path.clone());
    let listener = Listener::bind(&address, SHARED).unwrap();
    assert_eq!((listener.address(), listener.local_port()), (&address, None));
    assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let sibling = listener.sibling().unwrap();
    drop(listener);
    let mut client = UnixStream::connect(&path).unwrap();
    let (connection, peer) = next(&[&sibling]);
    assert_eq!(
        (peer, peer.ip(), local_address(&connection).unwrap()),
        (PeerAddress::Unix, None, None)
    );
    client.write_all(b"x").unwrap();
    drop(sibling);
    assert!(!path.exists());

    // A listener does not remove a file that it has to keep, nor another file that has replaced its own.
    let kept = Listener::bind(&address, ListenOptions::default()).unwrap();
    kept.keep_socket_file();
    drop(kept);
    assert!(path.exists());
    let replaced = Listener::bind(&address, ListenOptions::default()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "another's").unwrap();
    drop(replaced);
    assert_eq!(fs::read(&path).unwrap(), b"another's");
}

#[test]
fn only_a_stale_socket_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let bind = |path: &Path| Listener::bind(&Address::Unix(path.to_path_buf()), ListenOptions::default());
    drop(UnixListener::bind(at("dead")).unwrap());
    let _living = UnixListener::bind(at("living")).unwrap();
    fs::write(at("file"), "precious").unwrap();
    std::os::unix::fs::symlink(at("dead"), at("link")).unwrap();
    let error = |path: PathBuf| bind(&path).unwrap_err().kind;
    assert!(matches!(error(at("living")), BindErrorKind::InUse(Some(owner)) if owner.is_this_process()));
    assert!(matches!(error(at("file")), BindErrorKind::Other(_)));
    assert!(matches!(error(at("link")), BindErrorKind::Other(_)));
    assert!(matches!(error(at("none/socket")), BindErrorKind::Unavailable));
    // The path is longer than the address of a Unix socket permits.
    assert!(matches!(error(at(&"x".repeat(200))), BindErrorKind::Other(_)));
    assert_eq!(fs::read(at("file")).unwrap(), b"precious");
    bind(&at("dead")).unwrap();
}

#[test]
fn one_of_two_concurrent_servers_replaces_a_stale_file() {
    for _ in 0..50 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let start = std::sync::Barrier::new(2);
        let results: Vec<_> = std::thread::scope(|scope| {
            let bind = || {
                start.wait();
                Listener::bind(&Address::Unix(path.clone()), ListenOptions::default())
            };
            let threads = [scope.spawn(bind), scope.spawn(bind)];
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        assert!(
            results
                .iter()
                .flat_map(|result| result.as_ref().err())
                .all(|error| matches!(error.kind, BindErrorKind::InUse(_)))
        );
        UnixStream::connect(&path).unwrap();
    }
}

#[test]
fn connections_inherit_the_options() {
    let listener = Listener::bind(&tcp(Some("127.0.0.1"), 0), ListenOptions::default()).unwrap();
    let probing = Keepalive {
        idle: Duration::from_secs(70),
        interval: Duration::from_secs(7),
        count: 5,
    };
    keepalive(&listener, probing).unwrap();
    user_timeout(&listener, Duration::from_secs(61)).unwrap();
    notsent_lowat(&listener, 100_000).unwrap();
    defer_accept(&listener, Duration::from_secs(3)).unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", listener.local_port().unwrap())).unwrap();
    client.write_all(b"x").unwrap();
    let (connection, _) = next(&[&listener]);
    let connection_options = SockRef::from(&connection);
    assert!(connection_options.keepalive().unwrap());
    assert_eq!(connection_options.tcp_keepalive_time().unwrap(), probing.idle);
    assert_eq!(connection_options.tcp_keepalive_interval().unwrap(), probing.interval);
    assert_eq!(connection_options.tcp_keepalive_retries().unwrap(), probing.count);
    #[cfg(target_os = "linux")]
    {
        assert_eq!(
            connection_options.tcp_user_timeout().unwrap(),
            Some(Duration::from_secs(61))
        );
        assert_eq!(connection_options.tcp_notsent_lowat().unwrap(), 100_000);
        let (unix, _) = UnixStream::pair().unwrap();
        assert!(defer_accept(&unix, Duration::from_secs(3)).is_err());
    }
}

#[test]
fn accept_errors_are_classified() {
    for (errno, expected) in [
        (Errno::AGAIN, AcceptErrorKind::WouldBlock),
        (Errno::CONNABORTED, AcceptErrorKind::ConnectionLost),
        (Errno::INTR, AcceptErrorKind::ConnectionLost),
        (Errno::HOSTUNREACH, AcceptErrorKind::ConnectionLost),
        (Errno::MFILE, AcceptErrorKind::Exhausted),
        (Errno::NFILE, AcceptErrorKind::Exhausted),
        (Errno::NOBUFS, AcceptErrorKind::Exhausted),
        (Errno::NOMEM, AcceptErrorKind::Exhausted),
        // An error that `accept_error_kind` does not know.
        (Errno::IO, AcceptErrorKind::Exhausted),
        (Errno::BADF, AcceptErrorKind::ListenerBroken),
        (Errno::INVAL, AcceptErrorKind::ListenerBroken),
    ] {
        assert_eq!(accept_error_kind(&errno.into()), expected, "{errno}");
    }
    // An error without an error number is treated like an unknown one.
    assert_eq!(accept_error_kind(&io::Error::other("x")), AcceptErrorKind::Exhausted);
}
