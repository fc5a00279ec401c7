//! Traces of requests: the context that clients and upstreams exchange (W3C Trace Context), spans, and their export to
//! a collector of OpenTelemetry by OTLP over HTTP.
//!
//! ```text
//! request ─▶ Tracer::begin: context of the client, sampling ─▶ traceparent for the upstream
//! response ─▶ Tracer::record ─▶ bounded queue ─▶ exporter.rs, a thread: batches ─▶ otlp.rs: JSON ─▶ collector
//! ```
//! A worker never waits: if the queue is full, the span is dropped and counted.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod context;
mod exporter;
mod otlp;
mod queue;
mod random;
mod span;
mod tracer;

pub use context::{SpanId, TraceContext, TraceId};
pub use exporter::TraceExporter;
pub use queue::SpanCounters;
pub use random::IdGenerator;
pub use span::{Attribute, Span, SpanKind};
pub use tracer::{RequestTrace, Tracer};
