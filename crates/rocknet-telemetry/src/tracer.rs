//! Tracer: decides which requests are recorded, and passes their spans to the exporter.

use std::sync::Arc;

use rocknet_config::model::Tracing;

use crate::context::{SpanId, TraceContext, TraceId};
use crate::queue::{Destination, SpanQueue};
use crate::random::IdGenerator;
use crate::span::Span;

/// Maximum length of `tracestate` in a span, in bytes: the length that the standard requires every system to forward.
const MAX_STATE: usize = 512;

/// Tracer of one configuration.
pub struct Tracer {
    /// A trace that begins here is recorded if the low half of its id is less than this number; `None` if all are.
    limit: Option<u64>,
    destination: Arc<Destination>,
    queue: SpanQueue,
}

/// Trace of one request.
#[derive(Debug, Clone)]
pub struct RequestTrace {
    /// Trace, with the span of the request itself.
    pub context: TraceContext,
    /// Span of the client that sent the request; `None` if the trace begins here.
    pub parent: Option<SpanId>,
    /// Span of the request to an upstream, if there is one.
    pub upstream: SpanId,
    /// Value of `tracestate`; empty without a valid `traceparent`.
    pub state: Vec<u8>,
}

impl RequestTrace {
    /// Returns the context to send to an upstream. An unrecorded request forwards the span of its client, if the client
    /// has sent one.
    pub fn forwarded(&self) -> TraceContext {
        let span = match (self.context.is_sampled, self.parent) {
            (false, Some(parent)) => parent,
            _ => self.upstream,
        };
        TraceContext { span, ..self.context }
    }

    /// Returns `tracestate` as text for a span; empty if it is longer than 512 bytes.
    pub fn state_text(&self) -> String {
        match self.state.len() {
            0..=MAX_STATE => String::from_utf8_lossy(&self.state).into_owned(),
            _ => String::new(),
        }
    }
}

impl Tracer {
    pub(crate) fn new(settings: &Tracing, destination: Arc<Destination>, queue: SpanQueue) -> Tracer {
        let millionths = u64::from(settings.sample.millionths());
        // Exact at both ends: no request with 0 %, and all requests with 100 %.
        let limit = (millionths < 1_000_000).then(|| u64::MAX / 1_000_000 * millionths);
        Tracer {
            limit,
            destination,
            queue,
        }
    }

    /// Begins the trace of a request. `parents`: the values of its fields `traceparent`, of which there must be exactly
    /// one. `states`: the values of its fields `tracestate`. A client that sends a valid `traceparent` decides whether
    /// the request is recorded.
    pub fn begin<'v>(
        &self,
        ids: &IdGenerator,
        mut parents: impl Iterator<Item = &'v [u8]>,
        states: impl Iterator<Item = &'v [u8]>,
    ) -> RequestTrace {
        let parent = parents.next().filter(|_| parents.next().is_none());
        let parent = parent.and_then(TraceContext::parse);
        let trace = parent.map_or_else(|| ids.trace(), |parent| parent.trace);
        let is_sampled = parent.map_or_else(|| self.samples(trace), |parent| parent.is_sampled);
        let state = match parent {
            Some(_) => states.collect::<Vec<_>>().join(&b","[..]),
            None => Vec::new(),
        };
        RequestTrace {
            context: TraceContext {
                trace,
                span: ids.span(),
                is_sampled,
            },
            parent: parent.map(|parent| parent.span),
            upstream: ids.span(),
            state,
        }
    }

    /// Exports a span of a recorded request, or drops it if the queue is full.
    pub fn record(&self, span: Span) {
        self.queue.push(&self.destination, span);
    }

    /// Returns true if a trace that begins here is recorded.
    fn samples(&self, trace: TraceId) -> bool {
        self.limit.is_none_or(|limit| trace.low() < limit)
    }
}
