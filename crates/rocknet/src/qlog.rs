//! Traces of QUIC connections in the qlog format, one file for each connection. A thread writes them, so that no worker
//! waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rocknet_io::owned_thread::OwnedThread;
use rocknet_quic::OpenTrace;

/// Maximum number of connections that are traced at the same time. Each has an open file.
const MAX_TRACES: usize = 256;
/// Maximum number of traces until the server is restarted, so that clients cannot use up the inodes of the file system.
const MAX_FILES: usize = 10_000;
/// Maximum size of a trace in bytes. Records that would exceed it are dropped.
const MAX_TRACE_BYTES: usize = 64 << 20;
/// Maximum number of records that wait for the thread, each of about 300 bytes. Further records are dropped.
const MAX_WAITING: usize = 8192;

/// Writer of the traces of one server.
#[derive(Default)]
pub struct QlogWriter {
    /// `None` until a connection is traced, and after [`QlogWriter::stop`].
    thread: Mutex<Option<(SyncSender<Record>, OwnedThread)>>,
    /// Number of connections that are traced.
    traces: Arc<AtomicUsize>,
    /// Number of traces that were requested since the start of the server while fewer than `MAX_TRACES` were open.
    requested: AtomicUsize,
}

/// Record of a trace, with its file.
type Record = (Arc<Mutex<TraceFile>>, Vec<u8>);

/// File of a trace. Only the thread opens it and writes to it.
enum TraceFile {
    /// Path of the file, which is created with the first record.
    Unopened(PathBuf),
    /// Open file, to which records are appended.
    Open(File),
    /// The file could not be created or written.
    Failed,
}

impl QlogWriter {
    /// Returns the object that opens traces in `folder`.
    pub fn traces_in(self: &Arc<QlogWriter>, folder: &Path) -> Arc<dyn OpenTrace> {
        Arc::new(QlogFolder {
            folder: folder.to_owned(),
            writer: Arc::clone(self),
        })
    }

    /// Locks the thread and the sender of its records.
    fn thread(&self) -> MutexGuard<'_, Option<(SyncSender<Record>, OwnedThread)>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sender of records to the thread, which the first call starts.
    fn records(&self) -> io::Result<SyncSender<Record>> {
        let mut thread = self.thread();
        if let Some((records, _)) = &*thread {
            return Ok(records.clone());
        }
        let (records, waiting) = sync_channel(MAX_WAITING);
        let started = OwnedThread::start("rn-qlog", move || write_all(&waiting))?;
        *thread = Some((records.clone(), started));
        Ok(records)
    }

    /// Ends the thread after it has written the waiting records. Open traces keep it running, so their connections have
    /// to end first. Returns true if it has ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let taken = self.thread().take();
        taken.is_none_or(|(records, thread)| {
            drop(records);
            thread.join(deadline)
        })
    }
}

/// Opens traces in one folder.
struct QlogFolder {
    folder: PathBuf,
    writer: Arc<QlogWriter>,
}

impl OpenTrace for QlogFolder {
    fn open(&self, name: &str) -> Option<Box<dyn Write + Send + Sync>> {
        if self.writer.traces.load(Ordering::Relaxed) >= MAX_TRACES {
            return None;
        }
        match self.writer.requested.fetch_add(1, Ordering::Relaxed) {
            0..MAX_FILES => {}
            // Only the first refused trace is logged.
            MAX_FILES => {
                tracing::warn!("qlog: {MAX_FILES} traces were opened; no more are written until the server restarts");
                return None;
            }
            _ => return None,
        }
        let records = match self.writer.records() {
            Ok(records) => records,
            Err(error) => {
                tracing::error!("cannot start the thread that writes qlog: {error}");
                return None;
            }
        };
        let count = Arc::clone(&self.writer.traces);
        count.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{name}_server.sqlog"));
        Some(Box::new(Trace {
            file: Arc::new(Mutex::new(TraceFile::Unopened(path.clone()))),
            path,
            record: Vec::new(),
            records,
            bytes: 0,
            dropped: 0,
            count,
        }))
    }
}

/// Trace of one connection.
struct Trace {
    file: Arc<Mutex<TraceFile>>,
    path: PathBuf,
    /// Record that is not complete.
    record: Vec<u8>,
    records: SyncSender<Record>,
    /// Size of the records that were passed to the thread.
    bytes: usize,
    /// Number of records that were not passed to the thread.
    dropped: usize,
    /// Number of connections that are traced, shared with the [`QlogWriter`].
    count: Arc<AtomicUsize>,
}

impl Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.record.extend_from_slice(bytes);
        // Each record ends with a line feed (RFC 7464 §2.2).
        if bytes.last() == Some(&b'\n') {
            let record = mem::take(&mut self.record);
            let size = self.bytes + record.len();
            let file = Arc::clone(&self.file);
            if size <= MAX_TRACE_BYTES && self.records.try_send((file, record)).is_ok() {
                self.bytes = size;
            } else {
                self.dropped += 1;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if self.dropped > 0 {
            let (file, records) = (self.path.display(), self.dropped);
            tracing::warn!(%file, "the trace lacks {records} records: it was too long, or the disk too slow");
        }
    }
}

/// Writes the records that are sent to the thread, until no sender is left.
fn write_all(waiting: &Receiver<Record>) {
    while let Ok((file, record)) = waiting.recv() {
        file.lock().unwrap_or_else(PoisonError::into_inner).write(&record);
    }
}

impl TraceFile {
    /// Writes a record, and creates the file first if it does not exist yet. After an error nothing more is written.
    fn write(&mut self, record: &[u8]) {
        if let TraceFile::Unopened(path) = self {
            *self = match create(path) {
                Ok(file) => TraceFile::Open(file),
                // The name contains the connection ID that the client chose. An earlier connection may have had it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    tracing::debug!("{} exists; this connection is not traced", path.display());
                    TraceFile::Failed
                }
                Err(error) => {
                    tracing::error!("cannot create {}: {error}", path.display());
                    TraceFile::Failed
                }
            };
        }
        if let TraceFile::Open(file) = self
            && let Err(error) = file.write_all(record)
        {
            tracing::error!("a qlog trace ends, because it cannot be written: {error}");
            *self = TraceFile::Failed;
        }
    }
}

/// Creates a file that only the server's user may read, because it shows the behaviour of a client.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns a deadline that no test reaches.
    fn distant_deadline() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn records_of_each_connection_are_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Arc::<QlogWriter>::default();
        let traces = writer.traces_in(folder.path());
        let mut open = ["0a", "0b"].map(|name| traces.open(name).expect("a trace"));
        for number in 0..100 {
            for (trace, name) in open.iter_mut().zip(["0a", "0b"]) {
                // A record begins with the record separator 0x1e (RFC 7464 §2.2), and may be written in parts.
                trace.write_all(b"\x1e{").expect("written");
                let rest = format!("\"{name}\":{number}}}\n");
                trace.write_all(rest.as_bytes()).expect("written");
            }
        }
        // An incomplete record is not written.
        open[0].write_all(b"\x1e{").expect("written");
        drop(open);
        assert!(writer.stop(distant_deadline()));
        for name in ["0a", "0b"] {
            let text = std::fs::read_to_string(folder.path().join(format!("{name}_server.sqlog"))).expect("a file");
            let expected: Vec<_> = (0..100)
                .map(|number| format!("\x1e{{\"{name}\":{number}}}\n"))
                .collect();
            assert_eq!(text, expected.concat());
        }
    }

    #[test]
    fn the_number_of_traces_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Arc::<QlogWriter>::default();
        let traces = writer.traces_in(folder.path());
        let mut open: Vec<_> = (0..MAX_TRACES)
            .map(|name| traces.open(&name.to_string()).expect("a trace"))
            .collect();
        assert!(traces.open("more").is_none());
        open.pop();
        assert!(traces.open("more").is_some());
        drop(open);
        assert!(writer.stop(distant_deadline()));
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Arc::<QlogWriter>::default();
        let traces = writer.traces_in(folder.path());
        let opened = (0..MAX_FILES + 10).filter(|name| traces.open(&name.to_string()).is_some());
        assert_eq!(opened.count(), MAX_FILES);
        assert!(writer.stop(distant_deadline()));
    }

    #[test]
    fn a_trace_ends_at_its_maximum_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Arc::<QlogWriter>::default();
        let mut trace = writer.traces_in(folder.path()).open("0c").expect("a trace");
        // A record with its line feed is longer than a quarter of the maximum, so only three of eight records are
        // written.
        let mut record = vec![b'a'; MAX_TRACE_BYTES / 4];
        record.push(b'\n');
        for _ in 0..8 {
            trace.write_all(&record).expect("written");
        }
        drop(trace);
        assert!(writer.stop(distant_deadline()));
        let file = std::fs::metadata(folder.path().join("0c_server.sqlog")).expect("a file");
        assert_eq!(file.len(), 3 * record.len() as u64);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Arc::<QlogWriter>::default();
        let traces = writer.traces_in(&folder.path().join("missing"));
        let mut trace = traces.open("0d").expect("a trace");
        for _ in 0..3 {
            trace.write_all(b"\x1e{}\n").expect("no error");
        }
        drop(trace);
        assert!(writer.stop(distant_deadline()));
        assert!(!folder.path().join("missing").exists());
    }
}
