//! Tests of connections that are established, are refused, or meet a full backlog.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::*;
use crate::link::Link;
use crate::queue::SendQueue;
use crate::runtime::Runtime;

/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 8;

/// Awaits the connection `link`, takes its other end from `accept`, and exchanges one message in each direction.
fn check(link: impl Future<Output = io::Result<EpollStream>>, accept: impl FnOnce() -> Box<dyn ReadAndWrite>) {
    Runtime::new(MAX_EVENTS).unwrap().block_on(async {
        let mut link = link.await.unwrap();
        let mut peer = accept();
        let mut queue = SendQueue::from(b"question".to_vec());
        poll_fn(|context| link.poll_send(context, &mut queue)).await.unwrap();
        let mut question = [0; 8];
        peer.read_exact(&mut question).unwrap();
        assert_eq!(&question, b"question");
        peer.write_all(b"answer").unwrap();
        let mut buffer = [0; 16];
        let answer = poll_fn(|context| link.poll_recv(context, &mut buffer).map_ok(|it| it.to_vec())).await;
        assert_eq!(answer.unwrap(), b"answer");
    });
}

trait ReadAndWrite: Read + Write {}

impl<T: Read + Write> ReadAndWrite for T {}

#[test]
fn connects_to_a_file_and_to_an_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    check(
        async {
            let link = EpollStream::connect(address).await?;
            assert!(SockRef::from(link.socket.get_ref()).tcp_nodelay()?);
            Ok(link)
        },
        || Box::new(listener.accept().unwrap().0),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    check(EpollStream::connect_to_file(&path), || {
        Box::new(listener.accept().unwrap().0)
    });
}

#[test]
fn connecting_without_a_listener_is_an_error() {
    // The socket is bound, so that no other process can listen on its port, but it does not listen itself.
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = bound.local_addr().unwrap().as_socket().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    Runtime::new(MAX_EVENTS).unwrap().block_on(async {
        let kind = |connected: io::Result<EpollStream>| connected.map(drop).map_err(|error| error.kind());
        assert_eq!(
            kind(EpollStream::connect(address).await),
            Err(ErrorKind::ConnectionRefused)
        );
        assert_eq!(
            kind(EpollStream::connect_to_file(&stale).await),
            Err(ErrorKind::ConnectionRefused)
        );
        let none = folder.path().join("none");
        assert_eq!(
            kind(EpollStream::connect_to_file(&none).await),
            Err(ErrorKind::NotFound)
        );
        // The address of a Unix socket has room for about 100 bytes, so this path is rejected before `connect(2)`.
        let long = folder.path().join("x".repeat(200));
        assert_eq!(
            kind(EpollStream::connect_to_file(&long).await),
            Err(ErrorKind::InvalidInput)
        );
    });
}

#[test]
fn a_full_backlog_is_an_immediate_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    listener.listen(1).unwrap();
    Runtime::new(MAX_EVENTS).unwrap().block_on(async {
        let mut links = Vec::new();
        let error = loop {
            match EpollStream::connect_to_file(&path).await {
                Ok(link) => links.push(link),
                Err(error) => break error,
            }
            assert!(links.len() < 10, "more connections than the backlog has room for");
        };
        // For a Unix socket, `connect(2)` fails with EAGAIN if the backlog is full.
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}
