//! A connection to an application server, over a socket file or TCP.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};

use rocknet_config::model::Host;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::handler::cgi::Program;

/// Names that are looked up at once, for all workers. Each takes a thread for as long as the system asks about, which may be
/// half a minute, and nothing cuts that short for a request that has been given up.
const LOOKUPS: usize = 16;

static PLACES: Semaphore = Semaphore::const_new(LOOKUPS);

pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// A program that was started for one request.
    Program(Box<Program>),
}

/// One that nobody uses. It stays with the loop of the worker that used it last, which costs that worker nothing when it is
/// wanted again; any other may take it over.
pub struct Idle {
    socket: Socket,
    thread: ThreadId,
}

impl Socket {
    pub async fn connect(host: &Host) -> io::Result<Socket> {
        let stream = match host {
            Host::Unix(path) => return UnixStream::connect(path).await.map(Socket::Unix),
            Host::Address(ip, port) => TcpStream::connect((*ip, *port)).await?,
            Host::Name(name, port) => TcpStream::connect(&look_up(name, *port).await?[..]).await?,
        };
        // A request is written whole, and its end is not to wait for the other side.
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let read = match self {
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Socket::Program(program) => Pin::new(&mut program.output).poll_read(context, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Program(program) => match &mut program.input {
                Some(input) => Pin::new(input).poll_write(context, bytes),
                None => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
            },
        }
    }

    /// A piece of what it says on a stream of its own; 0 where there is none.
    pub fn poll_complaint(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Program(program) => program.poll_complaint(context, buffer),
            Socket::Unix(_) | Socket::Tcp(_) => Poll::Ready(Ok(0)),
        }
    }

    /// Nothing more is written. Servers are told by the length of the content, programs by the end of their input.
    pub fn end_writing(&mut self) {
        if let Socket::Program(program) = self {
            program.input = None;
        }
    }

    /// The end of what was read: whether it was meant.
    pub fn is_whole(&self) -> bool {
        match self {
            Socket::Program(program) => program.process.ends_itself(),
            Socket::Unix(_) | Socket::Tcp(_) => true,
        }
    }

    /// Puts it aside; a program, which serves one request, is left to end.
    pub fn rest(self) -> Option<Idle> {
        match self {
            Socket::Program(mut program) => {
                program.process.leave();
                None
            }
            socket => Some(Idle {
                socket,
                thread: thread::current().id(),
            }),
        }
    }
}

async fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let place = PLACES.acquire().await.map_err(io::Error::other)?;
    let name = name.to_owned();
    let found = spawn_blocking(move || {
        // Taken along: whoever leaves does not end this.
        let _place = place;
        (name.as_str(), port).to_socket_addrs().map(Iterator::collect)
    });
    found.await.map_err(io::Error::other)?
}

impl Idle {
    /// On the worker's own loop; `None` where the other side has closed it meanwhile, or said what nobody asked.
    pub fn wake(self) -> Option<Socket> {
        let mut byte = [0];
        if self.thread == thread::current().id() {
            // Where the loop has heard nothing, this asks nobody.
            let read = match &self.socket {
                Socket::Unix(stream) => stream.try_read(&mut byte),
                Socket::Tcp(stream) => stream.try_read(&mut byte),
                Socket::Program(_) => return None,
            };
            return is_quiet(read).then_some(self.socket);
        }
        match self.socket {
            Socket::Unix(stream) => {
                let mut stream = stream.into_std().ok()?;
                let is_quiet = is_quiet(stream.read(&mut byte));
                is_quiet.then(|| UnixStream::from_std(stream).ok().map(Socket::Unix))?
            }
            Socket::Tcp(stream) => {
                let mut stream = stream.into_std().ok()?;
                let is_quiet = is_quiet(stream.read(&mut byte));
                is_quiet.then(|| TcpStream::from_std(stream).ok().map(Socket::Tcp))?
            }
            Socket::Program(_) => None,
        }
    }
}

/// Nothing has come, and the connection has not ended.
fn is_quiet(read: io::Result<usize>) -> bool {
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::TcpListener;
    use std::pin::pin;

    use rocknet_io::runtime::Runtime;

    use super::*;

    #[test]
    fn so_many_names_are_looked_up_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let port = listener.local_addr().expect("its address").port();
        let host = Host::Name("localhost".to_owned(), port);
        Runtime::new(16).expect("a runtime").block_on(async {
            let all = PLACES.acquire_many(LOOKUPS as u32).await.expect("places");
            let mut connect = pin!(Socket::connect(&host));
            poll_fn(|context| {
                assert!(connect.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            assert_eq!(PLACES.available_permits(), 0);
            drop(all);
            assert!(matches!(connect.await, Ok(Socket::Tcp(_))));
            assert_eq!(PLACES.available_permits(), LOOKUPS);
        });
    }
}
