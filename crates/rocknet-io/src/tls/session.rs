//! TLS session: converts records to plaintext and back with rustls, in buffers of the caller.

use std::io;

use rustls::pki_types::CertificateDer;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus, WriteTraffic,
};
use rustls::{Error, ProtocolVersion, SupportedCipherSuite};

use super::side::Side;

/// Bytes reserved for the overhead of an encrypted record: header (5), explicit nonce (8), content type (1), tag (16 to
/// 32), rounded up.
const OVERHEAD: usize = 64;

/// Connection of rustls, with flags that rustls does not store.
pub(super) struct Session<S> {
    connection: S,
    /// True once the peer has sent close_notify.
    peer_closed: bool,
    /// True if a fatal alert was created, after which no second one may be created.
    alert_sent: bool,
    /// True if records could not be decrypted. rustls must not process more records then, because it would create a
    /// second fatal alert.
    has_failed: bool,
}

/// Results of the handshake.
#[derive(Debug, Clone, Copy)]
pub struct Negotiated<'s> {
    /// The application protocol selected by ALPN (RFC 7301), if any.
    pub alpn: Option<&'s [u8]>,
    /// Protocol version.
    pub version: Option<ProtocolVersion>,
    /// Cipher suite.
    pub suite: Option<SupportedCipherSuite>,
    /// Certificate chain of the peer, its own certificate first; `None` if it sent none.
    pub peer: Option<&'s [CertificateDer<'static>]>,
    /// True if an earlier session was resumed.
    pub resumed: bool,
}

impl<S: Side> Session<S> {
    /// Wraps a connection whose handshake has not begun.
    pub fn new(connection: S) -> Session<S> {
        Session {
            connection,
            peer_closed: false,
            alert_sent: false,
            has_failed: false,
        }
    }

    /// Returns whether the handshake is still incomplete.
    pub fn is_handshaking(&self) -> bool {
        self.connection.state().is_handshaking()
    }

    /// Returns whether the peer has sent close_notify.
    pub fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// Returns the results of the handshake, as far as they are known.
    pub fn negotiated(&self) -> Negotiated<'_> {
        let connection = self.connection.state();
        Negotiated {
            alpn: connection.alpn_protocol(),
            version: connection.protocol_version(),
            suite: connection.negotiated_cipher_suite(),
            peer: connection.peer_certificates(),
            resumed: connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        }
    }

    /// Decrypts the records in `incoming`. Passes the plaintext to `plain`, and appends the records that are due in
    /// response to `outgoing`. Returns the number of bytes consumed. The remaining bytes are an incomplete record. In
    /// the next call, `incoming` has to begin with them. After an error, `outgoing` contains the alert for the peer, if
    /// rustls created one; otherwise see [`Session::write_fatal_alert`].
    pub fn decrypt(
        &mut self,
        incoming: &mut [u8],
        outgoing: &mut Vec<u8>,
        plain: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        if self.has_failed {
            return Err(Error::General(
                "received records after one that could not be decrypted".to_owned(),
            ));
        }
        let decrypted = self.decrypt_records(incoming, outgoing, plain);
        self.has_failed = decrypted.is_err();
        decrypted
    }

    /// Decrypts the records for [`Session::decrypt`], which does not call it again after a failure.
    fn decrypt_records(
        &mut self,
        incoming: &mut [u8],
        outgoing: &mut Vec<u8>,
        mut plain: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } = self.connection.process(&mut incoming[used..]);
            let mut done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        plain(record.payload);
                        discard += record.discard;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(|room| data.encode(room), outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(ConnectionState::Closed) => {
                    self.peer_closed = true;
                    done = true;
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => done = true,
                // Only the configurations for QUIC permit early data, and QUIC does not use this code.
                Ok(_) => return Err(Error::General("received early data".to_owned())),
                Err(error) => {
                    // Earlier records were written by the arms above, so a record that is pending now is the alert.
                    // Decryption ends here, because rustls would process the invalid record again.
                    self.alert_sent = self.flush(&mut incoming[used..], outgoing)?;
                    return Err(error);
                }
            }
            used += discard;
            if done {
                return Ok(used);
            }
        }
    }

    /// Creates a fatal alert with the keys in use, unless one was created already. rustls creates alerts only for
    /// received records, so this method passes rustls a record with an invalid type. The alert is decode_error.
    ///
    /// Overwrites all bytes of `room` with that type. `room` has to be longer than the unconsumed bytes passed to
    /// `decrypt` by at least a record header, because rustls continues after the bytes that it has seen.
    pub fn write_fatal_alert(&mut self, room: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        const INVALID_TYPE: u8 = 0xff;
        if self.alert_sent {
            return Ok(());
        }
        self.alert_sent = true;
        room.fill(INVALID_TYPE);
        // Writes records that were created before the alert.
        self.flush(room, outgoing)?;
        if self.connection.process(room).state.is_err() {
            self.flush(room, outgoing)?;
        }
        Ok(())
    }

    /// Appends the records that rustls has prepared. Returns true if there were any.
    fn flush(&mut self, incoming: &mut [u8], outgoing: &mut Vec<u8>) -> Result<bool, Error> {
        let at = outgoing.len();
        while self.connection.state().wants_write() {
            let next = self.connection.process(incoming);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = next.state else {
                break;
            };
            encode(|room| data.encode(room), outgoing)?;
        }
        Ok(outgoing.len() > at)
    }

    /// Encrypts plaintext of at most one record, and appends the record to `outgoing`. `partial` has to contain the
    /// received bytes that `decrypt` did not consume.
    pub fn encrypt(&mut self, partial: &mut [u8], plain: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.write(partial, plain.len(), outgoing, |traffic, room| {
            traffic.encrypt(plain, room)
        })
    }

    /// Appends close_notify to `outgoing`; `partial` as in [`Session::encrypt`].
    pub fn close(&mut self, partial: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.write(partial, 0, outgoing, |traffic, room| traffic.queue_close_notify(room))
    }

    /// Calls `write` with room for one record of `length` bytes of plaintext, and appends the bytes that it writes to
    /// `outgoing`. Records that rustls has prepared are appended first.
    fn write(
        &mut self,
        partial: &mut [u8],
        length: usize,
        outgoing: &mut Vec<u8>,
        write: impl FnOnce(&mut WriteTraffic<'_, S::Data>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        loop {
            // `partial` is an incomplete record, so none of its bytes is consumed here.
            let UnbufferedStatus { state, .. } = self.connection.process(partial);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let at = outgoing.len();
                    outgoing.resize(at + length + OVERHEAD, 0);
                    let written = write(&mut traffic, &mut outgoing[at..]);
                    outgoing.truncate(at + written.as_ref().map_or(0, |written| *written));
                    return written.map(drop).map_err(|error| Error::General(error.to_string()));
                }
                ConnectionState::EncodeTlsData(mut data) => encode(|room| data.encode(room), outgoing)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                _ => return Err(Error::HandshakeNotComplete),
            }
        }
    }
}

/// Appends data after querying its size with an empty buffer.
fn encode(
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
    outgoing: &mut Vec<u8>,
) -> Result<(), Error> {
    let at = outgoing.len();
    match encode(&mut []) {
        Ok(_) => return Ok(()),
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
            outgoing.resize(at + required_size, 0);
        }
        Err(error) => return Err(Error::General(error.to_string())),
    }
    let written = encode(&mut outgoing[at..]).map_err(|error| Error::General(error.to_string()))?;
    outgoing.truncate(at + written);
    Ok(())
}

/// Converts a TLS error, caused by either side, to an I/O error.
pub(super) fn to_io_error(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
