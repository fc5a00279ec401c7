//! Log lines as server-sent events, for clients of the control API.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use rocknet::log::{FollowedLines, FollowedLog};
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};
use rocknet_handler::response::Stream;
use tokio::sync::mpsc::Receiver;

/// Stream of the lines that a filter selects.
pub struct LogFeed {
    /// Batches of lines. The first one has the recent lines of the error log.
    batches: Receiver<FollowedLines>,
    filter: LogFilter,
    /// True until the first batch has been received.
    is_first: bool,
    /// Lines dropped since the last event, because the client reads too slowly.
    lost: u64,
}

impl LogFeed {
    /// Creates the stream.
    pub fn new(batches: Receiver<FollowedLines>, filter: LogFilter) -> LogFeed {
        LogFeed {
            batches,
            filter,
            is_first: true,
            lost: 0,
        }
    }

    /// Returns the events of the next batch, or `None` at the end.
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
        for line in String::from_utf8_lossy(&batch.bytes).lines() {
            if !self.filter.selects(kind, line) {
                continue;
            }
            let event = LogEvent {
                kind,
                line: line.to_owned(),
                lost: std::mem::take(&mut self.lost),
            };
            if let Ok(json) = serde_json::to_string(&event) {
                events.push_str(&format!("data: {json}\n\n"));
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
