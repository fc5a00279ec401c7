//! Lines of the logs, received by a thread of their own and passed on in batches.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::api::Request;
use rocknet_control::logs::{LogEvent, LogFilter};
use rocknet_control::{Client, ClientError};

/// Interval between two batches, so that a busy server does not redraw the window all the time.
const INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of lines of a batch. Older ones are dropped, because the window would not keep them either.
const MAX_BATCH: usize = 2_000;

/// Lines that have arrived, and not been passed on.
type Pending = Arc<Mutex<VecDeque<LogEvent>>>;

/// Stream of log lines.
#[derive(Default)]
pub struct LogStream {
    /// `None` until the logs are followed.
    pending: Option<Pending>,
    taken: Option<Instant>,
}

impl LogStream {
    /// Follows the logs of the server at a socket. A stream that was followed before ends with its server.
    pub fn follow(&mut self, socket: &Path) {
        let pending = Pending::default();
        self.pending = Some(Arc::clone(&pending));
        let socket = socket.to_owned();
        // The thread ends with the connection, or with the first line after the logs of another server are followed.
        thread::spawn(move || {
            let mut client = Client::connect(&socket)?;
            let filter = LogFilter {
                follow: true,
                ..LogFilter::default()
            };
            client.stream(&Request::Logs(filter), |event| push(&pending, event))
        });
    }

    /// Returns the time of the next batch; `None` if the logs are not followed.
    pub fn due(&self) -> Option<Instant> {
        self.pending.as_ref()?;
        Some(self.taken.map_or_else(Instant::now, |taken| taken + INTERVAL))
    }

    /// Returns the lines of a batch that is due; `None` before its time, and without a line.
    pub fn take(&mut self, now: Instant) -> Option<Vec<LogEvent>> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.taken = Some(now);
        let mut pending = self.pending.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        (!pending.is_empty()).then(|| pending.drain(..).collect())
    }
}

/// Keeps a line. Fails if no reader is left, which ends the stream.
fn push(pending: &Pending, event: LogEvent) -> Result<(), ClientError> {
    if Arc::strong_count(pending) == 1 {
        return Err(ClientError::Invalid("the stream is no longer followed".to_owned()));
    }
    let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
    pending.push_back(event);
    if pending.len() > MAX_BATCH {
        pending.pop_front();
    }
    Ok(())
}
