//! Traces of connections in the qlog format, for debugging.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn_proto::{ConnectionId, QlogConfig, QlogStream};

/// Maximum number of bytes that are kept of a trace until its connection is accepted. The records of the first packet
/// are a few kilobytes.
const MAX_PENDING_BYTES: usize = 16 * 1024;

/// Opens the trace of each new connection.
pub trait OpenTrace: Send + Sync + 'static {
    /// Returns the writer of a trace; `None` if the connection is not traced. The writer must not block. Each record is
    /// one JSON text between the bytes 0x1e and 0x0a (RFC 7464), and may be written in pieces. `name` consists of the
    /// hexadecimal digits of the connection ID that the client chose first (RFC 9000 §7.2), which also names the trace
    /// of the client.
    fn open(&self, name: &str) -> Option<Box<dyn Write + Send + Sync>>;
}

/// Trace of a new connection. It is opened once the connection is accepted, because a forged packet must not leave a
/// trace.
#[derive(Clone)]
pub(crate) struct ConnectionTrace(Arc<Mutex<State>>);

enum State {
    /// Records of a connection that is not accepted.
    Pending(Vec<u8>),
    /// Writer of an accepted connection.
    Open(Box<dyn Write + Send + Sync>),
    /// The connection is not traced.
    Untraced,
}

impl ConnectionTrace {
    /// Returns a trace, and the stream through which `quinn-proto` writes its records. The stream is never `None`,
    /// because it has a writer.
    pub(crate) fn new() -> (ConnectionTrace, Option<QlogStream>) {
        let trace = ConnectionTrace(Arc::new(Mutex::new(State::Pending(Vec::new()))));
        let mut config = QlogConfig::default();
        config.writer(Box::new(trace.clone())).title(Some("RockNet".to_owned()));
        (trace, config.into_stream())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the trace, because the connection is accepted.
    pub(crate) fn accept(&self, traces: &dyn OpenTrace, original_destination: ConnectionId) {
        let mut state = self.state();
        let State::Pending(records) = &mut *state else {
            return;
        };
        let records = mem::take(records);
        *state = match traces.open(&original_destination.to_string()) {
            // The writer reports its errors itself.
            Some(mut writer) => match writer.write_all(&records) {
                Ok(()) => State::Open(writer),
                Err(_) => State::Untraced,
            },
            None => State::Untraced,
        };
    }
}

impl Write for ConnectionTrace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.state() {
            State::Pending(records) if records.len() + bytes.len() <= MAX_PENDING_BYTES => {
                records.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            State::Open(writer) => writer.write(bytes),
            // Records above the limit, and those of an untraced connection, are dropped.
            State::Pending(_) | State::Untraced => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and records of a trace.
    type Recorded = (String, Vec<u8>);

    /// Traces whose records are kept in memory.
    #[derive(Default, Clone)]
    struct Memory(Arc<Mutex<Vec<Recorded>>>);

    /// Writer of the trace with this index.
    struct MemoryTrace(Memory, usize);

    impl OpenTrace for Memory {
        fn open(&self, name: &str) -> Option<Box<dyn Write + Send + Sync>> {
            let mut traces = self.0.lock().expect("a lock");
            traces.push((name.to_owned(), Vec::new()));
            Some(Box::new(MemoryTrace(self.clone(), traces.len() - 1)))
        }
    }

    impl Write for MemoryTrace {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.0.lock().expect("a lock")[self.1].1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_an_accepted_connection_is_traced_from_its_first_record() {
        let traces = Memory::default();
        let (refused, stream) = ConnectionTrace::new();
        drop((refused, stream));
        assert!(traces.0.lock().expect("a lock").is_empty());

        let (mut accepted, _stream) = ConnectionTrace::new();
        accepted.write_all(b"one").expect("written");
        accepted.accept(&traces, ConnectionId::new(&[1, 2]));
        accepted.write_all(b"two").expect("written");
        let all = traces.0.lock().expect("a lock");
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, "0102");
        assert!(all[0].1.ends_with(b"onetwo"), "the header precedes the records");
    }

    #[test]
    fn records_of_a_pending_trace_are_bounded() {
        let (mut trace, _stream) = ConnectionTrace::new();
        // More than MAX_PENDING_BYTES in total.
        for _ in 0..100 {
            trace.write_all(&[b'a'; 1024]).expect("written");
        }
        match &*trace.state() {
            State::Pending(records) => assert!(records.len() <= MAX_PENDING_BYTES),
            _ => panic!("the trace is pending until its connection is accepted"),
        };
    }
}
