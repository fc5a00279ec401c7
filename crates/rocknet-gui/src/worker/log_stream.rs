//! Lines of the logs, received by a separate thread and passed on in batches.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::api::Request;
use rocknet_control::logs::{LogEvent, LogFilter};
use rocknet_control::{Client, ClientError, ServerAddress};

/// Interval between two batches, so that a busy server does not redraw the window all the time.
const INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of lines of a batch. Older ones are dropped, because the window would not keep them either.
const MAX_BATCH: usize = 2_000;

/// Maximum size of a batch in bytes. Lines of the access log have the whole target of a request.
const MAX_BYTES: usize = 1 << 20;

/// Time after the end of a stream until it is reported, and the logs may be followed again. It doubles with each stream
/// that ends soon, because each new stream sends the recent lines again.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum of that time.
const MAX_PAUSE: Duration = Duration::from_secs(32);

/// Duration of a stream after whose end the pause is short again.
const STABLE: Duration = Duration::from_secs(60);

/// Lines that have arrived but were not yet passed on.
#[derive(Default)]
struct Pending {
    lines: VecDeque<LogEvent>,
    /// Size of the lines in bytes.
    bytes: usize,
    /// Reason why the stream has ended; `None` while it is open.
    ended: Option<StreamEnd>,
}

impl Pending {
    /// Adds a line. Older lines are dropped if there are too many, and the next one counts them as lost.
    fn add(&mut self, event: LogEvent) {
        self.bytes += event.line.len();
        self.lines.push_back(event);
        while self.lines.len() > MAX_BATCH || self.bytes > MAX_BYTES && self.lines.len() > 1 {
            let Some(dropped) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= dropped.line.len();
            if let Some(next) = self.lines.front_mut() {
                next.lost += dropped.lost + 1;
            }
        }
    }
}

/// Reason why a stream has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEnd {
    /// The token of this program does not permit it.
    Denied,
    /// The server refuses it for another reason, such as too many followers.
    Refused(String),
    /// The stream was cut, or the process that sent it is stopping. After an upgrade, another process serves the same
    /// address.
    Cut,
}

/// Stream of log lines.
pub struct LogStream {
    /// Lines, and the time of the last batch; `None` until the logs are followed.
    followed: Option<(Arc<Mutex<Pending>>, Instant)>,
    /// Time at which the stream has begun.
    began: Instant,
    /// Time after the end of the stream until it is reported.
    pause: Duration,
}

impl Default for LogStream {
    fn default() -> LogStream {
        LogStream {
            followed: None,
            began: Instant::now(),
            pause: PAUSE,
        }
    }
}

impl LogStream {
    /// Follows the logs of a server. An earlier stream is no longer followed.
    pub fn follow(&mut self, server: &ServerAddress) {
        self.pause = PAUSE;
        self.resume(server);
    }

    /// Follows the logs again after their stream was cut. The next pause is longer if the stream is cut soon.
    pub fn resume(&mut self, server: &ServerAddress) {
        self.began = Instant::now();
        let pending = Arc::<Mutex<Pending>>::default();
        self.followed = Some((Arc::clone(&pending), Instant::now()));
        let server = server.clone();
        // The thread ends with the connection, or with the first line or comment after the stream is no longer
        // followed.
        thread::spawn(move || {
            let filter = LogFilter {
                follow: true,
                ..LogFilter::default()
            };
            let ended = Client::connect_to(&server).and_then(|mut client| {
                let is_followed = || Arc::strong_count(&pending) > 1;
                client.stream_while(&Request::Logs(filter), is_followed, |event| push(&pending, event))
            });
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.ended = Some(match ended {
                Err(ClientError::Api(error)) if error.status == 403 => StreamEnd::Denied,
                Err(ClientError::Api(error)) => StreamEnd::Refused(error.error),
                _ => StreamEnd::Cut,
            });
        });
    }

    /// Ends following, and returns the lines that were not yet passed on.
    pub fn end(&mut self) -> Vec<LogEvent> {
        let ended = std::mem::take(self).followed;
        ended.map_or(Vec::new(), |(pending, _)| {
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut pending.lines).into()
        })
    }

    /// Returns the time of the next batch or end; `None` if the logs are not followed.
    pub fn due(&self) -> Option<Instant> {
        let (pending, taken) = self.followed.as_ref()?;
        let pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = pending.lines.is_empty() && pending.ended == Some(StreamEnd::Cut);
        Some(*taken + if is_cut { self.pause } else { INTERVAL })
    }

    /// Returns the lines of a batch that is due; `None` before its time, or if no line came. The end of the stream is
    /// returned once, after the last line; the end of a stream that was cut only after a pause. The logs are then no
    /// longer followed.
    pub fn take(&mut self, now: Instant) -> Option<Result<Vec<LogEvent>, StreamEnd>> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        let (pending, taken) = self.followed.as_mut()?;
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = now;
        if !pending.lines.is_empty() {
            pending.bytes = 0;
            return Some(Ok(std::mem::take(&mut pending.lines).into()));
        }
        let end = pending.ended.take()?;
        drop(pending);
        self.followed = None;
        self.pause = next_pause(self.pause, now.saturating_duration_since(self.began));
        Some(Err(end))
    }
}

/// Returns the pause after the next stream. `pause` and `lasted`: pause after the last stream, and its duration.
fn next_pause(pause: Duration, lasted: Duration) -> Duration {
    match lasted >= STABLE {
        true => PAUSE,
        false => (pause * 2).min(MAX_PAUSE),
    }
}

/// Keeps a line. Never fails; the result is of the type that the client expects.
fn push(pending: &Arc<Mutex<Pending>>, event: LogEvent) -> Result<(), ClientError> {
    let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
    pending.add(event);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Follows a server that sends a fixed response, and returns the first batch.
    fn first_batch(response: &'static str) -> Result<Vec<LogEvent>, StreamEnd> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let read = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
            (stream, read)
        });
        let mut logs = LogStream::default();
        assert!(logs.due().is_none() && logs.take(Instant::now()).is_none());
        logs.follow(&ServerAddress::Socket(socket));
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            // Time passes in steps of an interval, so that each attempt is due.
            let due = logs.due().unwrap();
            if let Some(batch) = logs.take(due) {
                drop(server.join().unwrap());
                return batch;
            }
            assert!(Instant::now() < deadline, "no batch");
            thread::park_timeout(Duration::from_millis(10));
        }
    }

    #[test]
    fn waiting_lines_are_bounded_by_number_and_size() {
        let event = |line: String| LogEvent {
            kind: rocknet_control::logs::LogKind::Access,
            line,
            site: None,
            lost: 0,
        };
        let mut pending = Pending::default();
        for number in 0..MAX_BATCH + 7 {
            pending.add(event(number.to_string()));
        }
        assert_eq!((pending.lines.len(), pending.lines[0].lost), (MAX_BATCH, 7));
        for _ in 0..3 {
            pending.add(event("x".repeat(MAX_BYTES / 2)));
        }
        // Two of the long lines fit. All the others are lost.
        assert_eq!((pending.lines.len(), pending.bytes), (2, MAX_BYTES));
        assert_eq!(pending.lines[0].lost, MAX_BATCH as u64 + 7 + 1);
        pending.add(event("x".repeat(2 * MAX_BYTES)));
        assert_eq!((pending.lines.len(), pending.bytes), (1, 2 * MAX_BYTES));
    }

    #[test]
    fn a_comment_ends_a_stream_that_is_no_longer_followed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut logs = LogStream::default();
        logs.follow(&ServerAddress::Socket(socket));
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        logs = LogStream::default();
        let comment =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\n\n\r\n";
        stream.write_all(comment.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
        assert!(logs.due().is_none());
    }

    #[test]
    fn the_last_lines_are_left_when_following_ends() {
        let event = LogEvent {
            kind: rocknet_control::logs::LogKind::Error,
            line: "ERROR no memory".to_owned(),
            site: None,
            lost: 0,
        };
        let mut logs = LogStream::default();
        assert_eq!(logs.end(), []);
        logs.follow(&ServerAddress::Socket("/nonexistent/s".into()));
        let (pending, _) = logs.followed.as_ref().unwrap();
        pending.lock().unwrap().add(event.clone());
        assert_eq!(logs.end(), [event]);
        assert!(logs.due().is_none() && logs.end().is_empty());
    }

    #[test]
    fn lines_arrive_in_batches() {
        let batch = first_batch(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             26\r\ndata: {\"kind\":\"error\",\"line\":\"ready\"}\n\n\r\n",
        );
        let lines: Vec<String> = batch.unwrap().into_iter().map(|event| event.line).collect();
        assert_eq!(lines, ["ready"]);
    }

    #[test]
    fn refusals_are_reported() {
        let denied = "HTTP/1.1 403 Forbidden\r\nContent-Length: 13\r\n\r\n{\"error\":\"a\"}";
        assert_eq!(first_batch(denied), Err(StreamEnd::Denied));
        let full = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 13\r\n\r\n{\"error\":\"b\"}";
        assert_eq!(first_batch(full), Err(StreamEnd::Refused("b".to_owned())));
    }

    #[test]
    fn the_pause_grows_with_streams_that_end_soon_and_is_bounded() {
        let mut pause = PAUSE;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            pauses.push(pause.as_secs());
            pause = next_pause(pause, Duration::from_secs(1));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 32]);
        assert_eq!(next_pause(pause, STABLE), PAUSE);
        // The user who opens the logs again does not wait.
        let mut logs = LogStream {
            pause,
            ..LogStream::default()
        };
        let nowhere = ServerAddress::Socket("/nonexistent/s".into());
        logs.resume(&nowhere);
        assert_eq!(logs.pause, MAX_PAUSE);
        logs.follow(&nowhere);
        assert_eq!(logs.pause, PAUSE);
    }

    #[test]
    fn the_end_of_a_stream_is_reported() {
        let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(first_batch(empty), Err(StreamEnd::Cut));
    }
}
