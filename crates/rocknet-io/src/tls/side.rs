//! The two sides of a session: whoever accepted the connection, and whoever opened it.

use rustls::CommonState;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::UnbufferedStatus;

/// What rustls has a type of its own for on each side, though it does the same on both.
pub trait Side {
    type Data;

    /// Whether an end that the peer has not told is a cut. Clients leave without a word, and the framing of their requests
    /// shows what is missing; an answer may end with its connection, and be forged by whoever can end that.
    const NEEDS_CLOSE_NOTIFY: bool;

    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn state(&self) -> &CommonState;
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    const NEEDS_CLOSE_NOTIFY: bool = false;

    #[inline]
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(records)
    }

    fn state(&self) -> &CommonState {
        self
    }
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    const NEEDS_CLOSE_NOTIFY: bool = true;

    #[inline]
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(records)
    }

    fn state(&self) -> &CommonState {
        self
    }
}
