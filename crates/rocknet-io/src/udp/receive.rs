//! Buffers for received datagrams and their metadata.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::batch::{BUFFER_SIZE, MAX_BATCHES, RecvMeta};
use super::system;

/// Receive buffers of half a megabyte in total, which a worker shares among its sockets. The first receive allocates
/// them, so that a caller can take them out of a struct and leave the default in their place at no cost.
#[derive(Default)]
pub struct RecvBuffers {
    /// Empty before the first receive.
    memory: Box<[u8]>,
    /// Metadata of the batches received last, in the order of their buffers.
    batches: Vec<RecvMeta>,
}

impl RecvBuffers {
    /// Returns the batches that the last [`UdpSocket::poll_receive`](super::UdpSocket::poll_receive) received, each
    /// with its datagrams. A batch without datagrams replaces a datagram that was empty, truncated or without a source.
    pub fn batches(&self) -> impl Iterator<Item = (&RecvMeta, impl Iterator<Item = &[u8]>)> {
        let each = self.batches.iter().zip(self.memory.chunks(BUFFER_SIZE));
        each.map(|(batch, memory)| (batch, memory[..batch.length].chunks(batch.segment.max(1))))
    }

    /// Receives with one call and returns the number of batches. A truncated datagram, or one without a source, becomes
    /// an empty batch.
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        if self.memory.is_empty() {
            self.memory = vec![0; MAX_BATCHES * BUFFER_SIZE].into();
        }
        self.batches.clear();
        system::receive(socket, &mut self.memory, &mut self.batches)?;
        Ok(self.batches.len())
    }
}
