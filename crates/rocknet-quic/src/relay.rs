//! Passes datagrams to an older process of the same server, which still serves the connections that it began.
//!
//! After a restart without interruption, the new process reads the UDP sockets. Connection IDs contain the generation
//! of their process, a number that distinguishes the processes of one server. A datagram with the generation of an
//! older process is sent to that process, which passes it to the worker of the connection. That worker sends through
//! its own copy of the socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::udp::{Ecn, RecvMeta};

use crate::connection_id::{CONNECTION_ID_LENGTH, Owner};
use crate::forwarding::{ForwardedDatagram, Forwarding};

/// Maximum size of a message in bytes: the largest datagram with its [`Head`].
const MAX_MESSAGE: usize = 65_536 + 256;

/// Channel to an older process for the datagrams of its connections.
#[derive(Clone)]
pub struct Relay {
    /// Generation of the process.
    generation: u16,
    /// `None` once the process has ended, so that a process that no longer exists costs no descriptor.
    channel: Arc<RwLock<Option<FdChannel>>>,
}

impl Relay {
    /// Creates the relay to the process with this generation. `channel` is the descriptor from
    /// [`RelayReceiver::pair`].
    pub fn new(generation: u16, channel: OwnedFd) -> Relay {
        Relay {
            generation,
            channel: Arc::new(RwLock::new(Some(FdChannel::from(channel)))),
        }
    }

    /// Closes the channel if the process has ended. Returns true if it is open.
    pub fn check_running(&self) -> bool {
        let channel = self.channel.read().unwrap_or_else(PoisonError::into_inner);
        let is_open = match &*channel {
            // The process sends nothing, so the channel becomes readable only when the process ends.
            Some(channel) => !channel.wait_readable(Duration::ZERO),
            None => return false,
        };
        drop(channel);
        if !is_open {
            self.close();
        }
        is_open
    }

    /// Returns a duplicate of the channel; `None` if the process has ended.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is free.
    pub fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        let channel = self.channel.read().unwrap_or_else(PoisonError::into_inner);
        let duplicate = |channel: &FdChannel| channel.as_fd().try_clone_to_owned();
        channel.as_ref().map(duplicate).transpose()
    }

    fn is_open(&self) -> bool {
        self.channel.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn close(&self) {
        *self.channel.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the generation of the process.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Sends a datagram to a worker of the process. A datagram that does not fit into the queue of the channel is
    /// dropped, as if a socket buffer were full. Returns false if the process has ended.
    pub(crate) fn send(&self, listener: &str, worker: u16, meta: &RecvMeta, datagram: &[u8]) -> bool {
        let head = Head {
            listener,
            worker,
            ecn: meta.ecn,
            source: meta.source,
            destination: meta.destination,
        };
        let mut message = head.encode();
        message.extend_from_slice(datagram);
        let channel = self.channel.read().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &*channel else {
            return false;
        };
        // `None`: no descriptor is passed with the message.
        let has_ended = open.send(&message, None, Blocking::No).is_err_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
            )
        });
        drop(channel);
        if has_ended {
            self.close();
        }
        !has_ended
    }
}

/// End of the channel in the older process.
pub struct RelayReceiver(FdChannel);

impl RelayReceiver {
    /// Creates a channel. The descriptor is for [`Relay::new`] in the new process.
    ///
    /// # Errors
    ///
    /// Fails if the system has no free descriptor.
    pub fn pair() -> io::Result<(RelayReceiver, OwnedFd)> {
        let (receiver, sender) = FdChannel::pair()?;
        Ok((RelayReceiver(receiver), sender))
    }

    /// Passes datagrams to the workers until all sending ends of the channel are closed. Blocks the thread.
    pub fn run(&self, forwarding: &Forwarding) {
        let mut buffer = vec![0; MAX_MESSAGE];
        while let Ok(Some(message)) = self.0.recv(&mut buffer, Blocking::Yes) {
            let Some((head, datagram)) = Head::decode(&buffer[..message.size]) else {
                continue;
            };
            // The number of the worker is unique in this process. Without such a worker, the datagram is dropped.
            forwarding.send(
                head.worker,
                ForwardedDatagram {
                    source: head.source,
                    destination: head.destination,
                    ecn: head.ecn,
                    bytes: datagram.to_vec(),
                },
            );
        }
    }
}

/// First line of a message, followed by the bytes of a datagram. Spaces separate its values.
#[derive(Debug, PartialEq, Eq)]
struct Head<'a> {
    /// Name of the listening address, for processes of earlier versions, which number the workers of each address
    /// separately.
    listener: &'a str,
    /// Number of the worker in the older process.
    worker: u16,
    ecn: Ecn,
    /// Address of the client.
    source: SocketAddr,
    /// Local address that the client sent to, if known; written as `-` if it is unknown.
    destination: Option<IpAddr>,
}

impl Head<'_> {
    fn encode(&self) -> Vec<u8> {
        let Head {
            listener,
            worker,
            ecn,
            source,
            destination,
        } = self;
        let destination = destination.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
        format!("{listener} {worker} {} {source} {destination}\n", *ecn as u8).into_bytes()
    }

    /// Returns the head of a message, and the datagram after it; `None` if the head is invalid.
    fn decode(message: &[u8]) -> Option<(Head<'_>, &[u8])> {
        let end = message.iter().position(|&byte| byte == b'\n')?;
        let mut words = std::str::from_utf8(&message[..end]).ok()?.split(' ');
        let head = Head {
            listener: words.next()?,
            worker: words.next()?.parse().ok()?,
            ecn: ecn(words.next()?)?,
            source: words.next()?.parse().ok()?,
            destination: match words.next()? {
                "-" => None,
                ip => Some(ip.parse().ok()?),
            },
        };
        Some((head, &message[end + 1..]))
    }
}

/// Returns the ECN codepoint with this decimal number; `None` if there is no such codepoint.
fn ecn(digits: &str) -> Option<Ecn> {
    let number: u8 = digits.parse().ok()?;
    [Ecn::None, Ecn::Ect0, Ecn::Ect1, Ecn::Congested]
        .into_iter()
        .find(|ecn| *ecn as u8 == number)
}

/// Returns true if the first packet of a datagram has a long header (RFC 9000 §17.2), as in a handshake.
pub(crate) fn has_long_header(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 != 0)
}

/// Returns the destination connection ID of the first packet of a datagram. Returns `None` if the datagram is too
/// short, or if the ID in a long header has another length than the IDs of this server.
pub(crate) fn destination_id(datagram: &[u8]) -> Option<&[u8]> {
    // A short header has one byte of flags before the ID. A long header has flags, a version of four bytes, and the
    // length of the ID in one byte (RFC 8999 §5).
    if !has_long_header(datagram) {
        return datagram.get(1..1 + CONNECTION_ID_LENGTH);
    }
    let length = usize::from(*datagram.get(5)?);
    if length != CONNECTION_ID_LENGTH {
        return None;
    }
    datagram.get(6..6 + length)
}

/// Relays of an endpoint.
#[derive(Clone, Default)]
pub struct Relays {
    /// Name of the listening address of the endpoint.
    listener: String,
    all: Vec<Relay>,
}

impl Relays {
    /// Creates the relays of a listening address. Its name must have no space and no newline.
    pub fn new(listener: String, all: Vec<Relay>) -> Relays {
        Relays { listener, all }
    }

    /// Returns true if no older process is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Removes the processes that are known to have ended.
    pub(crate) fn retain_open(&mut self) {
        self.all.retain(Relay::is_open);
    }

    /// Removes the processes that have ended. Queries the kernel about each process that is not known to have ended.
    pub(crate) fn retain_running(&mut self) {
        self.all.retain(Relay::check_running);
    }

    /// Sends a datagram to the process of its owner. Returns false if that process has ended, or if no relay leads to
    /// it.
    pub(crate) fn send(&mut self, owner: Owner, meta: &RecvMeta, datagram: &[u8]) -> bool {
        let Some(index) = self.all.iter().position(|one| one.generation == owner.generation) else {
            return false;
        };
        let is_sent = self.all[index].send(&self.listener, owner.worker, meta, datagram);
        if !is_sent {
            self.all.swap_remove(index);
        }
        is_sent
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::thread;

    use rocknet_io::socket::Address;

    use super::*;

    #[test]
    fn heads_are_decoded() {
        for (source, destination) in [
            ("127.0.0.1:1", None),
            ("[fe80::1%3]:65535", Some("::ffff:10.0.0.1")),
            ("[::1]:443", Some("10.0.0.1")),
        ] {
            let head = Head {
                listener: "[::1]:443",
                worker: 7,
                ecn: Ecn::Congested,
                source: source.parse().expect("an address"),
                destination: destination.map(|ip| ip.parse().expect("an address")),
            };
            let mut message = head.encode();
            message.extend(b"a\nb c");
            assert_eq!(Head::decode(&message), Some((head, &b"a\nb c"[..])));
        }
        for message in [
            "",
            "a",
            "a 1 0 127.0.0.1:1",
            "a 1 9 127.0.0.1:1 -\n",
            "a x 0 127.0.0.1:1 -\n",
            "\n",
        ] {
            assert_eq!(Head::decode(message.as_bytes()), None, "{message:?}");
        }
    }

    #[test]
    fn destination_ids_are_found() {
        let id = [7; CONNECTION_ID_LENGTH];
        let short = [&[0x40][..], &id, b"x"].concat();
        assert_eq!(destination_id(&short), Some(&id[..]));
        let long = [&[0xc0, 0, 0, 0, 1, 16][..], &id, b"x"].concat();
        assert_eq!(destination_id(&long), Some(&id[..]));
        for datagram in [
            &short[..16],
            &long[..21],
            &[0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            &[],
        ] {
            assert_eq!(destination_id(datagram), None, "{datagram:?}");
        }
    }

    #[test]
    fn datagrams_reach_the_worker_of_the_older_process_until_it_ends() {
        let (receiver, sender) = RelayReceiver::pair().expect("a channel");
        let mut relays = Relays::new("a:1".to_owned(), vec![Relay::new(3, sender)]);
        let meta = RecvMeta {
            source: ([127, 0, 0, 1], 5).into(),
            destination: None,
            ecn: Ecn::Ect0,
            length: 2,
            segment: 2,
        };
        let owner = |generation, worker| Owner { generation, worker };
        assert!(!relays.send(owner(4, 0), &meta, b"no"));
        assert!(relays.send(owner(3, 1), &meta, b"ab"));
        let forwarding = Forwarding::default();
        let address = Address::from(SocketAddr::from(([127, 0, 0, 1], 443)));
        let workers = [(); 2].map(|()| forwarding.register(&address).expect("a number"));
        thread::scope(|scope| {
            let running = scope.spawn(|| {
                receiver.run(&forwarding);
                drop(receiver);
            });
            let mut received = workers[1].take(Waker::noop());
            while received.is_empty() {
                thread::yield_now();
                received = workers[1].take(Waker::noop());
            }
            assert_eq!((&received[0].bytes[..], received[0].ecn), (&b"ab"[..], Ecn::Ect0));
            assert!(relays.all[0].check_running());
            let channel = relays.all[0]
                .duplicate()
                .expect("a descriptor")
                .expect("an open channel");
            FdChannel::from(channel).shut_down();
            running.join().expect("the receiver ends");
        });
        let copy = relays.clone();
        assert!(!copy.all[0].check_running());
        assert!(copy.all[0].duplicate().expect("no error").is_none());
        assert!(!relays.send(owner(3, 1), &meta, b"ab"));
        assert!(relays.is_empty());
    }
}
