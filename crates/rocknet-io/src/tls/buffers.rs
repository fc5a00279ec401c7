//! What the TLS connections of one worker use while they are served, one at a time.

use std::cell::RefCell;
use std::rc::Rc;

use crate::queue::SendQueue;
use crate::wheel::{Tick, Wheel};

use super::record_size::MAX_RECORD_PLAINTEXT;

/// Records made before they are handed to the inner link: enough for a send window, little enough that they are still in
/// the processor's cache when the kernel copies them.
pub(super) const BATCH: usize = 64 * 1024;
/// What a peer may leave incomplete during the handshake: the longest message that rustls takes (64 KiB), such as a second ClientHello or a client's
/// chain of certificates, with the headers of its records and what encryption adds to each.
pub(super) const MAX_PARTIAL_HANDSHAKE: usize = 80 * 1024;
/// Records received at once: three of the largest, and what was held before them.
const INCOMING: usize = 64 * 1024 + MAX_PARTIAL_HANDSHAKE + SPARE;
/// Never received into: room for the header of the record that stands for none, after whatever was received.
pub(super) const SPARE: usize = 8;
/// What sealing adds to plain text: header, nonce, tag, content type.
const OVERHEAD: usize = 64;

pub struct TlsBuffers {
    pub(super) incoming: RefCell<Box<[u8]>>,
    /// Plain text of one record, where it does not lie in one piece.
    pub(super) scratch: RefCell<Box<[u8]>>,
    /// Records on their way out.
    pub(super) outgoing: RefCell<SendQueue>,
    wheel: Rc<Wheel>,
}

impl TlsBuffers {
    pub fn new(wheel: &Rc<Wheel>) -> Rc<TlsBuffers> {
        Rc::new(TlsBuffers {
            incoming: RefCell::new(vec![0; INCOMING].into_boxed_slice()),
            scratch: RefCell::new(vec![0; MAX_RECORD_PLAINTEXT].into_boxed_slice()),
            outgoing: RefCell::new(SendQueue::with_capacity(BATCH + MAX_RECORD_PLAINTEXT + 8 * OVERHEAD)),
            wheel: Rc::clone(wheel),
        })
    }

    /// The wheel's tick: the time as far as record sizes have to know it.
    pub(super) fn now(&self) -> Tick {
        self.wheel.now()
    }
}
