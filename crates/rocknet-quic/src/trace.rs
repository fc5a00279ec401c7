//! Traces of connections in the qlog format, for debugging.

use std::io::Write;

use quinn_proto::{ConnectionId, QlogConfig, QlogStream};

/// Opens the trace of each new connection.
pub trait OpenTrace: Send + Sync + 'static {
    /// Returns the writer of a trace; `None` if the connection is not traced. The writer must not block. Each record is
    /// one JSON text between the bytes 0x1e and 0x0a (RFC 7464), and may be written in pieces. `name` consists of the
    /// hexadecimal digits of the connection ID that the client chose first (RFC 9000 §7.2), which also names the trace
    /// of the client.
    fn open(&self, name: &str) -> Option<Box<dyn Write + Send + Sync>>;
}

/// Opens the trace of a connection.
pub(crate) fn open(traces: &dyn OpenTrace, original_destination: ConnectionId) -> Option<QlogStream> {
    let writer = traces.open(&original_destination.to_string())?;
    let mut config = QlogConfig::default();
    config.writer(writer).title(Some("RockNet".to_owned()));
    config.into_stream()
}
