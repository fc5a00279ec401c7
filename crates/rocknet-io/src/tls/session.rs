//! The session: records to plain text and back, by rustls, in buffers that others hold.

use std::io;

use rustls::pki_types::CertificateDer;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus, WriteTraffic,
};
use rustls::{Error, ProtocolVersion, SupportedCipherSuite};

use super::side::Side;

/// Most that sealing adds to a record's plain text: header (5), explicit nonce (8), content type (1), tag (16 to 32).
const OVERHEAD: usize = 64;

pub(super) struct Session<S> {
    connection: S,
    peer_closed: bool,
    /// A fatal alert was made; rustls makes no second one.
    alert_sent: bool,
    /// Records could not be opened. rustls must see no more of them: it would make a second fatal alert.
    has_failed: bool,
}

/// What both sides have settled in the handshake.
#[derive(Debug, Clone, Copy)]
pub struct Negotiated<'s> {
    /// The protocol above, if any was offered and taken.
    pub alpn: Option<&'s [u8]>,
    pub version: Option<ProtocolVersion>,
    pub suite: Option<SupportedCipherSuite>,
    /// The peer's certificate and what signed it.
    pub peer: Option<&'s [CertificateDer<'static>]>,
    /// Whether an earlier session went on.
    pub resumed: bool,
}

impl<S: Side> Session<S> {
    pub fn new(connection: S) -> Session<S> {
        Session {
            connection,
            peer_closed: false,
            alert_sent: false,
            has_failed: false,
        }
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection.state().is_handshaking()
    }

    /// Whether the peer has said that it sends nothing more.
    pub fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

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

    /// Opens the records in `incoming`: what was in them goes to `plain`, what they call for to the end of `outgoing`.
    /// Returns how many bytes are done with; the rest belongs to a record that has not come whole, and has to stand at
    /// the front next time. After an error, `outgoing` holds the alert for the peer.
    pub fn decrypt(
        &mut self,
        incoming: &mut [u8],
        outgoing: &mut Vec<u8>,
        plain: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        if self.has_failed {
            return Err(Error::General(
                "records came after one that could not be opened".to_owned(),
            ));
        }
        let decrypted = self.decrypt_records(incoming, outgoing, plain);
        self.has_failed = decrypted.is_err();
        decrypted
    }

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
                // Data before the handshake is over was never allowed.
                Ok(_) => return Err(Error::General("early data".to_owned())),
                Err(error) => {
                    // What was made before, and the alert behind it. Not one call more: the record that was wrong would be
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

    /// Makes a fatal alert where none was made, under whatever keys are in use. rustls makes alerts only for what it receives,
    /// so it is given a record of a type that does not exist, and its alert is decode_error.
    ///
    /// `room` is filled with such records. It has to be longer than all that was given to `open` and not used up by at least
    /// the header of a record, because rustls goes on after the records that it has seen.
    pub fn write_fatal_alert(&mut self, room: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        const INVALID_TYPE: u8 = 0xff;
        if self.alert_sent {
            return Ok(());
        }
        self.alert_sent = true;
        room.fill(INVALID_TYPE);
        // What was made before leaves first.
        self.flush(room, outgoing)?;
        if self.connection.process(room).state.is_err() {
            self.flush(room, outgoing)?;
        }
        Ok(())
    }

    /// Appends what rustls has made ready; true if there was any.
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

    /// Seals plain text, no more than one record holds, at the end of `outgoing`. `held`: what `open` has left over.
    pub fn encrypt(&mut self, partial: &mut [u8], plain: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.write(partial, plain.len(), outgoing, |traffic, room| {
            traffic.encrypt(plain, room)
        })
    }

    /// Tells the peer that nothing more will come.
    pub fn close(&mut self, partial: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.write(partial, 0, outgoing, |traffic, room| traffic.queue_close_notify(room))
    }

    fn write(
        &mut self,
        partial: &mut [u8],
        length: usize,
        outgoing: &mut Vec<u8>,
        write: impl FnOnce(&mut WriteTraffic<'_, S::Data>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        loop {
            // What is held is no whole record, so nothing of it is used up here.
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

/// Appends what was made ready; it tells how much room it needs.
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

/// What the peer, or we, did wrong.
pub(super) fn to_io_error(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
