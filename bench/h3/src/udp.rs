//! UDP sockets that send and receive batches of datagrams (GSO, GRO and `recvmmsg`).

use quinn_proto::Transmit;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of datagrams in one send, which is the limit of the kernel.
pub const MAX_SEGMENTS: usize = 64;
/// Maximum number of bytes in one send, a little less than a UDP datagram may have (65,507).
pub const MAX_BYTES: usize = 65_000;
/// Number of batches that one call receives, each of up to 64 datagrams.
const BATCHES: usize = 16;
/// Bytes of a batch: the kernel coalesces at most 64 KiB.
const BATCH_BYTES: usize = 64 << 10;
/// Requested socket buffer in bytes. The kernel grants at most `net.core.rmem_max`.
const SOCKET_BUFFER: usize = 2 << 20;

/// A non-blocking UDP socket.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// Memory for received datagrams, allocated by the first receive.
#[derive(Default)]
pub struct Buffers {
    /// Empty before the first receive.
    memory: Vec<u8>,
    metas: [RecvMeta; BATCHES],
    received: usize,
}

impl Socket {
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // A smaller buffer than requested is acceptable.
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
        Ok(Self { socket, state })
    }

    /// Receives the batches that have arrived. Returns false if nothing has arrived.
    pub fn receive(&self, buffers: &mut Buffers) -> io::Result<bool> {
        if buffers.memory.is_empty() {
            buffers.memory = vec![0; BATCHES * BATCH_BYTES];
        }
        let mut chunks = buffers.memory.chunks_mut(BATCH_BYTES);
        let mut slices: [IoSliceMut<'_>; BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        buffers.received = 0;
        match self.state.recv((&self.socket).into(), &mut slices, &mut buffers.metas) {
            Ok(received) => buffers.received = received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // An earlier datagram reached a closed port; the connection it belongs to times out.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        Ok(buffers.received > 0)
    }

    /// Sends the datagrams of `transmit`, which are in `bytes`. Returns false if the socket is full.
    pub fn send(&self, transmit: &Transmit, bytes: &[u8]) -> io::Result<bool> {
        let datagrams = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            contents: &bytes[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        match self.state.send((&self.socket).into(), &datagrams) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Buffers {
    /// Returns the received batches: the metadata of each, and its datagrams one after another.
    pub fn batches(&self) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let memory = self.memory.chunks(BATCH_BYTES);
        let metas = self.metas[..self.received].iter();
        metas.zip(memory).map(|(meta, bytes)| (meta, &bytes[..meta.len]))
    }
}
