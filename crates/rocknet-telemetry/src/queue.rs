//! Queue of spans that wait for the exporter, with the collectors that they go to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use http::{HeaderMap, HeaderName, HeaderValue};
use rocknet_config::model::Tracing;

use crate::span::Span;

/// Numbers of spans since the start of the server.
#[derive(Debug, Default)]
pub struct SpanCounters {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl SpanCounters {
    /// Returns the number of spans that collectors have accepted.
    pub fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    /// Returns the number of spans that were lost, because the queue was full or a collector did not accept them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn add_exported(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

/// Collector, and the constant parts of the requests to it.
#[derive(Debug)]
pub(crate) struct Destination {
    /// URL of the requests.
    pub url: http::Uri,
    /// Header fields of the requests.
    pub fields: HeaderMap,
    /// Name of this server in its spans (`service.name`).
    pub service: String,
}

/// Sender of the exporter thread's queue.
#[derive(Clone)]
pub(crate) struct SpanQueue {
    spans: SyncSender<(Arc<Destination>, Span)>,
    counters: Arc<SpanCounters>,
}

impl SpanQueue {
    /// Creates the sending end of a queue.
    pub fn new(spans: SyncSender<(Arc<Destination>, Span)>, counters: Arc<SpanCounters>) -> SpanQueue {
        SpanQueue { spans, counters }
    }

    /// Appends a span, or drops it if the queue is full or the thread has ended.
    pub fn push(&self, destination: &Arc<Destination>, span: Span) {
        if self.spans.try_send((Arc::clone(destination), span)).is_err() {
            self.counters.add_dropped(1);
        }
    }
}

impl Destination {
    /// Prepares the requests to a collector.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a setting cannot be used.
    pub fn new(endpoint: &str, settings: &Tracing) -> Result<Destination, String> {
        let url = endpoint.parse().map_err(|error| format!("tracing.endpoint: {error}"))?;
        let mut fields = HeaderMap::new();
        fields.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &settings.headers {
            let invalid = || format!("tracing.headers: `{name}` cannot be sent");
            let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            let mut value = HeaderValue::from_bytes(value.bytes()).map_err(|_| invalid())?;
            // The value may be a secret, so debug output omits it.
            value.set_sensitive(true);
            fields.insert(field, value);
        }
        Ok(Destination {
            url,
            fields,
            service: settings.service.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::time::SystemTime;

    use super::*;
    use crate::context::{SpanId, TraceId};
    use crate::span::SpanKind;

    #[test]
    fn spans_beyond_the_bound_are_dropped_and_counted() {
        let (spans, waiting) = sync_channel(2);
        let counters = Arc::<SpanCounters>::default();
        let queue = SpanQueue::new(spans, Arc::clone(&counters));
        let destination = Destination::new("http://127.0.0.1:1/v1/traces", &Tracing::default()).unwrap();
        let destination = Arc::new(destination);
        let span = Span {
            trace: TraceId::new(1),
            id: SpanId::new(1),
            parent: None,
            state: String::new(),
            kind: SpanKind::Server,
            name: String::new(),
            start: SystemTime::now(),
            end: SystemTime::now(),
            attributes: Vec::new(),
            is_error: false,
        };
        for _ in 0..5 {
            queue.push(&destination, span.clone());
        }
        assert_eq!(counters.dropped(), 3);
        drop(waiting);
        queue.push(&destination, span);
        assert_eq!(counters.dropped(), 4, "the thread has ended");
    }
}
