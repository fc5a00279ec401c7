//! Buffers that the TLS connections of a worker share, because they are served one at a time.

use std::cell::RefCell;
use std::rc::Rc;

use crate::queue::SendQueue;
use crate::wheel::{Tick, Wheel};

use super::record_size::MAX_RECORD_PLAINTEXT;

/// Number of bytes of records to collect before they are passed to the inner link: the transport below TLS, such as a
/// TCP socket. This amount fills a send window, and is still in the CPU cache when the kernel copies it.
pub(super) const BATCH_BYTES: usize = 64 * 1024;
/// Maximum size of incomplete data during the handshake: the longest message that rustls accepts (64 KiB), such as a
/// second ClientHello or a chain of client certificates, with record headers and encryption overhead.
pub(super) const MAX_PARTIAL_HANDSHAKE: usize = 80 * 1024;
/// Size of the receive buffer in bytes: the incomplete data, 64 KiB of new records, and [`SPARE`]. The 64 KiB hold at
/// least three records of the maximum size, which is about 16.25 KiB with the overhead of encryption.
const INCOMING: usize = 64 * 1024 + MAX_PARTIAL_HANDSHAKE + SPARE;
/// Number of bytes at the end of the receive buffer that no receive fills. To make rustls create an alert, the session
/// writes an invalid record after the received bytes. Its header of 5 bytes is enough, and fits into these bytes.
pub(super) const SPARE: usize = 8;
/// Bytes reserved for the overhead of an encrypted record, such as header and tag.
const OVERHEAD: usize = 64;

/// Buffers for receiving, encrypting and sending, shared by all TLS connections of a worker.
pub struct TlsBuffers {
    /// Received records, which are decrypted in place.
    pub(super) incoming: RefCell<Box<[u8]>>,
    /// Plaintext of one record, if it is not contiguous in the queue.
    pub(super) scratch: RefCell<Box<[u8]>>,
    /// Records to send.
    pub(super) outgoing: RefCell<SendQueue>,
    /// Timer wheel of the worker, which supplies the time.
    wheel: Rc<Wheel>,
}

impl TlsBuffers {
    /// Allocates the buffers of a worker. `wheel` is the timer wheel of the worker, from which the time is read.
    pub fn new(wheel: &Rc<Wheel>) -> Rc<TlsBuffers> {
        Rc::new(TlsBuffers {
            incoming: RefCell::new(vec![0; INCOMING].into_boxed_slice()),
            scratch: RefCell::new(vec![0; MAX_RECORD_PLAINTEXT].into_boxed_slice()),
            // The last record of a batch may begin just below `BATCH_BYTES`, so one more record has to fit. One
            // overhead would be enough; the other seven are a reserve.
            outgoing: RefCell::new(SendQueue::with_capacity(
                BATCH_BYTES + MAX_RECORD_PLAINTEXT + 8 * OVERHEAD,
            )),
            wheel: Rc::clone(wheel),
        })
    }

    /// Returns the current tick, which determines the sizes of records.
    pub(super) fn now(&self) -> Tick {
        self.wheel.now()
    }
}
