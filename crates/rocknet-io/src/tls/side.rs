//! The two sides of a session: server and client.

use rustls::CommonState;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::UnbufferedStatus;

/// A connection of rustls, which has a separate type for each side with the same operations.
pub trait Side {
    /// Type that rustls uses for the data of this side.
    type Data;

    /// True if the end of the connection without close_notify is an error. A server does not require close_notify,
    /// because clients often omit it, and the framing of requests reveals missing bytes. A client requires it, because
    /// a response can end with its connection, so an attacker who closes the connection could truncate the response.
    const NEEDS_CLOSE_NOTIFY: bool;

    /// Processes received records until an action of the caller is due, and returns that action.
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Returns the state that both sides have, such as the negotiated version.
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
