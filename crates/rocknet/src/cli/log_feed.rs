//! Log lines as server-sent events, for clients of the control API.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use rocknet::log::{FollowedLines, FollowedLog, MAX_FOLLOWERS};
use rocknet_control::api::ApiError;
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};
use rocknet_handler::response::Stream;
use tokio::sync::mpsc::Receiver;

/// Number of clients that follow the logs.
#[derive(Clone, Default)]
pub struct FollowerCount(Arc<AtomicUsize>);

/// Place of a follower among the [`MAX_FOLLOWERS`], given back when it is dropped.
pub struct FollowerPlace(FollowerCount);

impl FollowerCount {
    /// Takes a place.
    ///
    /// # Errors
    ///
    /// Status 503 if all places are taken.
    pub fn take_place(&self) -> Result<FollowerPlace, ApiError> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let place = FollowerPlace(self.clone());
        // If all places are taken, the drop of `place` takes the increment back.
        if count < MAX_FOLLOWERS {
            return Ok(place);
        }
        let message = format!("{MAX_FOLLOWERS} clients follow the logs, which is the maximum: end one of them");
        Err(ApiError::new(503, message))
    }
}

impl Drop for FollowerPlace {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stream of the lines that a filter selects.
pub struct LogFeed {
    /// Batches of lines. The first one has the recent lines of the error log.
    batches: Receiver<FollowedLines>,
    filter: LogFilter,
    /// True until the first batch has been received.
    is_first: bool,
    /// Lines dropped since the last event, because the client reads too slowly.
    lost: u64,
    /// Held as long as the client follows the logs.
    _place: Option<FollowerPlace>,
}

impl LogFeed {
    /// Creates the stream. `place`: place of a follower; `None` for a stream that only sends the recent lines.
    pub fn new(batches: Receiver<FollowedLines>, filter: LogFilter, place: Option<FollowerPlace>) -> LogFeed {
        LogFeed {
            batches,
            filter,
            is_first: true,
            lost: 0,
            _place: place,
        }
    }

    /// Returns the events of the next batch, or `None` at the end of the stream. If the filter does not follow the
    /// logs, the stream ends after the first batch.
    async fn next_events(&mut self) -> Option<Bytes> {
        loop {
            if !self.is_first && !self.filter.follow {
                return None;
            }
            // Nothing is changed before the batch has arrived, because the future may be dropped while it waits.
            let batch = self.batches.recv().await?;
            let is_first = std::mem::take(&mut self.is_first);
            let events = self.events(&batch);
            // The first batch is sent even without an event, so that the client gets the head of the response. The
            // colon is an empty comment of server-sent events.
            if !events.is_empty() || is_first {
                return Some(Bytes::from(format!("{events}:\n\n")));
            }
        }
    }

    /// Returns the events of the lines that the filter selects, in the format of server-sent events.
    fn events(&mut self, batch: &FollowedLines) -> String {
        self.lost += batch.lost;
        let kind = match batch.log {
            FollowedLog::Error => LogKind::Error,
            FollowedLog::Access => LogKind::Access,
        };
        let mut events = String::new();
        for (site, lines) in batch.by_site() {
            for line in String::from_utf8_lossy(lines).lines() {
                if !self.filter.selects(kind, site, line) {
                    continue;
                }
                let event = LogEvent {
                    kind,
                    line: line.to_owned(),
                    site: site.map(str::to_owned),
                    lost: std::mem::take(&mut self.lost),
                };
                if let Ok(json) = serde_json::to_string(&event) {
                    events.push_str(&format!("data: {json}\n\n"));
                }
            }
        }
        events
    }
}

impl Stream for LogFeed {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async { self.next_events().await.map(Ok) })
    }
}
