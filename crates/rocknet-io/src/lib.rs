//! Sockets, files, processes, timers and event loops: the layer that makes the system calls of RockNet. Nothing here
//! depends on HTTP.
//!
//! A connection is a [`Link`](link::Link): a socket driven by epoll or io_uring, TLS over another link, or memory in
//! tests. Output waits in a [`SendQueue`](queue::SendQueue) until the link sends it. A [`Runtime`](runtime::Runtime) is
//! the event loop of one worker, and a [`Wheel`](wheel::Wheel) holds the deadlines of its connections.
//!
//! ```
//! use std::task::{Context, Poll, Waker};
//!
//! use rocknet_io::link::Link;
//! use rocknet_io::queue::SendQueue;
//! use rocknet_io::sim;
//!
//! // An in-memory link, as in tests of protocols. The links of a worker are `stream::Stream`.
//! let (mut link, peer) = sim::pair();
//! let mut context = Context::from_waker(Waker::noop());
//!
//! peer.send(b"ping");
//! let mut buffer = [0; 64];
//! match link.poll_recv(&mut context, &mut buffer)? {
//!     Poll::Ready(received) => assert_eq!(&*received, b"ping"),
//!     Poll::Pending => panic!("the bytes are there"),
//! }
//!
//! let mut queue = SendQueue::default();
//! queue.buffer().extend_from_slice(b"pong");
//! assert!(link.poll_send(&mut context, &mut queue)?.is_ready());
//! assert!(queue.is_empty());
//! assert_eq!(*peer.received(), *b"pong");
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(missing_docs)]

pub mod alarm;
pub mod byte_budget;
#[cfg(unix)]
pub mod child;
#[cfg(unix)]
pub mod clock_sync;
#[cfg(unix)]
pub mod confined_fs;
#[cfg(unix)]
pub mod descriptors;
pub mod epoll;
#[cfg(all(unix, not(target_vendor = "apple")))]
pub mod fd_channel;
#[cfg(target_vendor = "apple")]
#[path = "fd_channel/unsupported.rs"]
pub mod fd_channel;
#[cfg(unix)]
pub mod file;
#[cfg(unix)]
pub mod inherited_sockets;
#[cfg(target_os = "linux")]
pub mod io_uring;
#[cfg(test)]
mod isolated_test;
pub mod link;
pub mod machine;
#[cfg(unix)]
pub mod machine_clock;
pub mod owned_thread;
pub mod pipe;
#[cfg(unix)]
pub mod port_owner;
#[cfg(unix)]
pub mod privileges;
pub mod process_end;
pub mod program;
pub mod queue;
pub mod read_ahead;
pub mod runtime;
#[cfg(unix)]
pub mod sandbox;
#[cfg(unix)]
pub mod sealed_file;
#[cfg(unix)]
pub mod service_manager;
pub mod sim;
#[cfg(unix)]
pub mod socket;
#[cfg(unix)]
pub mod stream;
#[cfg(unix)]
pub mod temp_file;
pub mod terminal;
pub mod thread_priority;
pub mod ticker;
#[cfg(unix)]
pub mod tls;
#[cfg(unix)]
pub mod udp;
pub mod uptime;
pub mod usage;
pub mod wheel;
