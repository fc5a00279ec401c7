//! Log lines as server-sent events, for clients of the control API.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocknet::log::{FollowedLines, FollowedLog};
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};
use rocknet_handler::response::Stream;
use rocknet_io::alarm::Alarm;
use tokio::sync::mpsc::Receiver;

/// Maximum time between two pieces of the stream. If no line is selected, a comment is sent, so that neither the server
/// nor a proxy takes the client for dead, and a disconnect is noticed.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// Comment of an event stream, which clients ignore.
const COMMENT: &str = ":\n\n";

/// Stream of the lines that a filter selects.
pub struct LogFeed {
    /// Batches of lines. The first one has the recent lines of the error log.
    batches: Receiver<FollowedLines>,
    filter: LogFilter,
    is_first: bool,
    /// Lines lost since the last event.
    lost: u64,
    max_silence: Duration,
    /// Timer of the next comment. Created with the first piece, because it belongs to the worker that sends the stream.
    alarm: Option<Alarm>,
}

impl LogFeed {
    /// Creates the stream.
    pub fn new(batches: Receiver<FollowedLines>, filter: LogFilter) -> LogFeed {
        LogFeed {
            batches,
            filter,
            is_first: true,
            lost: 0,
            max_silence: MAX_SILENCE,
            alarm: None,
        }
    }

    /// Returns the events of the next batch, or `None` at the end. After a silence, it returns a comment.
    ///
    /// # Errors
    ///
    /// Fails if the timer cannot be created.
    async fn next_events(&mut self) -> io::Result<Option<Bytes>> {
        if self.alarm.is_none() {
            self.alarm = Some(Alarm::new()?);
        }
        if let Some(alarm) = &mut self.alarm {
            let now = Instant::now();
            alarm.set(Some(now + self.max_silence), now);
        }
        std::future::poll_fn(|context| self.poll_events(context).map(Ok)).await
    }

    fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if !self.is_first && !self.filter.follow {
                return Poll::Ready(None);
            }
            match self.batches.poll_recv(context) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(batch)) => {
                    let is_first = std::mem::take(&mut self.is_first);
                    let events = self.events(&batch);
                    // The first batch is sent even without an event, so that the client gets the head of the response.
                    if !events.is_empty() || is_first {
                        return Poll::Ready(Some(Bytes::from(events + COMMENT)));
                    }
                }
                Poll::Pending => {
                    let is_silent = self.alarm.as_mut().is_some_and(|alarm| alarm.poll(context));
                    return if is_silent {
                        Poll::Ready(Some(Bytes::from_static(COMMENT.as_bytes())))
                    } else {
                        Poll::Pending
                    };
                }
            }
        }
    }

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
        Box::pin(async { self.next_events().await.transpose() })
    }
}

#[cfg(test)]
mod tests {
    use rocknet::log::Logger;
    use rocknet_config::Config;

    use super::*;

    #[test]
    fn comments_are_sent_while_no_line_is_selected() {
        let logger = Logger::start(&Config::default().log).expect("a logger");
        let filter = LogFilter {
            follow: true,
            contains: Some("never".into()),
            ..LogFilter::default()
        };
        let mut feed = LogFeed::new(logger.follow(None), filter);
        feed.max_silence = Duration::from_millis(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            for _ in 0..3 {
                let piece = feed.next().await.expect("a piece").expect("a comment");
                assert_eq!(&piece[..], COMMENT.as_bytes());
            }
        });
    }
}
