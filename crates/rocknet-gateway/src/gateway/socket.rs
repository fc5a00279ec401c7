//! A connection to a back end: a Unix socket, TCP, or the pipes of a CGI program.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rocknet_config::model::Host;
use rocknet_io::epoll::{EpollStream, ParkedConnection};
use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Wheel;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::gateway::cgi_program::CgiProgram;
use rocknet_handler::port_exhaustion;

/// Maximum number of concurrent name lookups of all workers. Each lookup occupies a thread until the system's resolver
/// returns, which may take half a minute. A lookup cannot be cancelled when its request is given up.
const MAX_LOOKUPS: usize = 16;

/// Permits for concurrent name lookups of one server. Clones share them.
#[derive(Clone)]
pub struct Lookups(Arc<Semaphore>);

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

/// A connection to a back end, or the pipes of a program.
pub enum Socket {
    /// A connection over a Unix socket or TCP. The runtime's epoll drives it even with the io_uring back end, so that
    /// another worker can take the connection over.
    Server(EpollStream),
    /// A program that was started for one request.
    Program(Box<CgiProgram>),
}

impl Socket {
    /// Connects to a socket file or an address. A name is looked up first, and its addresses are tried in order.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. For a name with several addresses, this is the error of the last address.
    pub async fn connect(host: &Host, lookups: &Lookups) -> io::Result<Socket> {
        let link = match host {
            Host::Unix(path) => EpollStream::connect_to_file(path).await?,
            Host::Address(ip, port) => connect_to(SocketAddr::new(*ip, *port)).await?,
            Host::Name(name, port) => connect_to_any(&look_up(name, *port, lookups).await?).await?,
        };
        Ok(Socket::Server(link))
    }

    /// Receives bytes; empty at the end of the stream.
    pub fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        match self {
            Socket::Server(link) => link.poll_recv(context, buffer),
            Socket::Program(program) => {
                let mut read = ReadBuf::new(buffer);
                ready!(Pin::new(&mut program.stdout).poll_read(context, &mut read))?;
                let length = read.filled().len();
                Poll::Ready(Ok(Received::Borrowed(&buffer[..length])))
            }
        }
    }

    /// Sends the bytes of the queue; ready when the queue is empty. Small output joins a write batch. If the kernel
    /// does not accept all of it, a later call puts the unsent bytes back into the queue and sends them again. The task
    /// must therefore call this first whenever it is polled, until [`Socket::is_flushed`] returns true.
    pub fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        match self {
            Socket::Server(link) => {
                if let Some(unsent) = link.take_unsent() {
                    queue.put_back(unsent);
                    return link.poll_send(context, queue);
                }
                if queue.is_empty() || link.send_batched(context, queue) {
                    return Poll::Ready(Ok(()));
                }
                link.poll_send(context, queue)
            }
            Socket::Program(program) => program.poll_send(context, queue),
        }
    }

    /// Sends the write batch and returns whether the kernel accepted all bytes. Unsent bytes are put back at the front
    /// of the queue.
    pub fn is_flushed(&mut self, queue: &mut SendQueue) -> bool {
        let Socket::Server(link) = self else { return true };
        link.flush();
        let unsent = link.take_unsent();
        let is_flushed = unsent.is_none();
        if let Some(unsent) = unsent {
            queue.put_back(unsent);
        }
        is_flushed
    }

    /// Reads from the standard error of a program and returns the number of bytes; 0 once it is closed. Always returns
    /// 0 for a server, because a server has no standard error.
    pub fn poll_stderr(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Program(program) => program.poll_stderr(context, buffer),
            Socket::Server(_) => Poll::Ready(Ok(0)),
        }
    }

    /// Ready once a program has ended and a background process keeps its output open without writing to it. Call it
    /// only while no output is available.
    pub fn poll_abandoned(&mut self, context: &mut Context<'_>, wheel: &Rc<Wheel>) -> Poll<()> {
        match self {
            Socket::Program(program) => program.end.poll_abandoned(context, wheel),
            Socket::Server(_) => Poll::Pending,
        }
    }

    /// Called after the last byte of the request. Closes the standard input of a program. Other back ends find the end
    /// of the request by its length or its last record.
    pub fn end_writing(&mut self) {
        if let Socket::Program(program) = self {
            program.stdin = None;
        }
    }

    /// Returns false if the stream ended because the program was killed, so that its response may be truncated.
    pub fn has_ended_cleanly(&self) -> bool {
        match self {
            Socket::Program(program) => !program.process.was_killed(),
            Socket::Server(_) => true,
        }
    }

    /// Parks the connection for reuse. Returns `None` if a batched write could not be sent completely. A program serves
    /// only one request, so it is released and `None` is returned.
    pub fn into_idle(self) -> Option<ParkedConnection> {
        match self {
            Socket::Program(mut program) => {
                program.process.release();
                None
            }
            Socket::Server(link) => link.park(),
        }
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<EpollStream> {
    port_exhaustion::connect(address, EpollStream::connect(address)).await
}

async fn connect_to_any(addresses: &[SocketAddr]) -> io::Result<EpollStream> {
    let mut last = ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match connect_to(*address).await {
            Ok(link) => return Ok(link),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn look_up(name: &str, port: u16, lookups: &Lookups) -> io::Result<Vec<SocketAddr>> {
    let permit = Arc::clone(&lookups.0).acquire_owned().await.map_err(io::Error::other)?;
    let name = name.to_owned();
    let found = spawn_blocking(move || {
        // The lookup owns the permit, because it continues after its request is given up.
        let _permit = permit;
        (name.as_str(), port).to_socket_addrs().map(Iterator::collect)
    });
    found.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::thread;

    use rocknet_io::runtime::{Runtime, drain_events};

    use super::*;

    #[test]
    fn concurrent_lookups_are_bounded() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let port = listener.local_addr().expect("its address").port();
        let host = Host::Name("localhost".to_owned(), port);
        Runtime::new(16).expect("a runtime").block_on(async {
            let lookups = Lookups::default();
            let all = lookups.0.acquire_many(MAX_LOOKUPS as u32).await.expect("permits");
            let mut connect = pin!(Socket::connect(&host, &lookups));
            poll_fn(|context| {
                assert!(connect.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            assert_eq!(lookups.0.available_permits(), 0);
            drop(all);
            assert!(matches!(connect.await, Ok(Socket::Server(_))));
            assert_eq!(lookups.0.available_permits(), MAX_LOOKUPS);
        });
    }

    #[test]
    fn unsent_bytes_return_and_arrive_in_order() {
        const PIECE: usize = 1000;
        // Far more than the system buffers for a Unix socket.
        const PIECES: usize = 2000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a file to listen at");
        let (start_reading, may_read) = mpsc::channel::<()>();
        let application = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut all = Vec::new();
            may_read.recv().expect("the signal to read");
            stream.read_to_end(&mut all).expect("all bytes");
            all
        });
        let content: Vec<u8> = (0..PIECE * PIECES).map(|at| (at / 7 % 251) as u8).collect();
        Runtime::new(16).expect("a runtime").block_on(async {
            let mut socket = Socket::connect(&Host::Unix(path), &Lookups::default())
                .await
                .expect("a connection");
            let (mut queue, mut returned) = (SendQueue::default(), 0);
            for piece in content.chunks(PIECE) {
                queue.buffer().extend_from_slice(piece);
                let sent = poll_fn(|context| Poll::Ready(socket.poll_send(context, &mut queue))).await;
                assert!(matches!(sent, Poll::Pending | Poll::Ready(Ok(()))));
                let is_taken = queue.is_empty();
                drain_events().await;
                // The peer reads nothing, so the socket buffer fills up and accepted bytes return to the queue.
                returned += usize::from(!socket.is_flushed(&mut queue) && is_taken);
            }
            assert!(returned > 0 && !queue.is_empty());
            start_reading.send(()).expect("a running application");
            poll_fn(|context| socket.poll_send(context, &mut queue))
                .await
                .expect("sent");
            assert!(socket.is_flushed(&mut queue) && socket.into_idle().is_some());
        });
        assert!(application.join().expect("the bytes that the application has read") == content);
    }
}
