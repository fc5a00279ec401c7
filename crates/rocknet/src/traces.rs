//! Traces of requests: the context that handlers forward, and the spans of responses.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rocknet_proto::request::{OwnedRequest, Request, split_target};
use rocknet_proto::status::Status;
use rocknet_telemetry::{IdGenerator, RequestTrace, Span, SpanKind, Tracer};

use crate::metrics::RouteLabels;
use crate::response::UpstreamTiming;

// Fields of W3C Trace Context.
const TRACEPARENT: &[u8] = b"traceparent";
const TRACESTATE: &[u8] = b"tracestate";

/// Methods that the semantic conventions of OpenTelemetry list. Other methods are recorded as `_OTHER`, so that clients
/// cannot create names of spans.
const METHODS: [&[u8]; 10] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"QUERY",
];

/// Tracer of a worker.
pub struct WorkerTracer {
    tracer: Arc<Tracer>,
    ids: IdGenerator,
}

/// Data of a response for its span.
pub struct TracedResponse<'r> {
    /// Number of the route in the metrics.
    pub route: u32,
    pub status: Status,
    /// Address of the client.
    pub client: String,
    /// True if the request arrived over TLS.
    pub is_secure: bool,
    /// Time since the request.
    pub duration: Duration,
    /// Upstream that the request was sent to, and the time at which its response began or its failure was known. `None`
    /// if the request was sent to no upstream.
    pub upstream: Option<(&'r UpstreamTiming, Instant)>,
}

impl WorkerTracer {
    /// Returns the tracer of a configuration for one worker; `None` if the configuration records no spans, or if the
    /// system provides no random numbers for IDs.
    pub fn new(tracer: Option<&Arc<Tracer>>) -> Option<WorkerTracer> {
        let tracer = Arc::clone(tracer?);
        let ids = IdGenerator::new().ok()?;
        Some(WorkerTracer { tracer, ids })
    }

    /// Begins the trace of a request.
    pub fn begin(&self, request: &Request<'_>) -> RequestTrace {
        let fields = request.fields;
        self.tracer
            .begin(&self.ids, fields.by_name(TRACEPARENT), fields.by_name(TRACESTATE))
    }

    /// Records the span of a response, and that of its upstream, if the request is recorded.
    pub fn record(
        &self,
        trace: &RequestTrace,
        labels: &RouteLabels,
        request: &Request<'_>,
        response: &TracedResponse<'_>,
    ) {
        if !trace.context.is_sampled {
            return;
        }
        let now = SystemTime::now();
        if let Some((timing, arrived)) = response.upstream {
            let end = now - arrived.elapsed();
            self.tracer.record(upstream_span(trace, request, timing, end));
        }
        self.tracer.record(server_span(trace, labels, request, response, now));
    }
}

/// Returns the request with the context of its trace in place of the context that the client sent.
pub fn with_context(request: &OwnedRequest, trace: &RequestTrace) -> Rc<OwnedRequest> {
    let parent = trace.forwarded().to_string();
    let mut fields = vec![(TRACEPARENT, parent.as_bytes())];
    if !trace.state.is_empty() {
        fields.push((TRACESTATE, &trace.state));
    }
    Rc::new(request.with_replaced_fields(&[TRACEPARENT, TRACESTATE], &fields))
}

/// Returns the span of a request at this server, which ended with its response at `end`.
fn server_span(
    trace: &RequestTrace,
    labels: &RouteLabels,
    request: &Request<'_>,
    response: &TracedResponse<'_>,
    end: SystemTime,
) -> Span {
    let label = labels
        .label(response.route)
        .filter(|_| response.route != crate::metrics::OTHER);
    let route = label.as_ref().map_or("", |label| &label.route);
    let method = method(request);
    // In the name of a span, the semantic conventions write `HTTP` for an unknown method.
    let shown = if method == "_OTHER" { "HTTP" } else { method };
    let mut span = Span {
        trace: trace.context.trace,
        id: trace.context.span,
        parent: trace.parent,
        state: trace.state_text(),
        kind: SpanKind::Server,
        name: format!("{shown} {route}").trim_end().to_owned(),
        start: end - response.duration,
        end,
        // Room for all attributes that are added below.
        attributes: Vec::with_capacity(12),
        is_error: response.status.code() >= 500,
    };
    span.add_text("http.request.method", method);
    span.add_number("http.response.status_code", response.status.code());
    span.add_text("http.route", route);
    span.add_text("url.scheme", if response.is_secure { "https" } else { "http" });
    span.add_text("url.path", path(request));
    address(&mut span, &String::from_utf8_lossy(request.authority));
    span.add_text("client.address", response.client.as_str());
    span.add_text("network.protocol.version", version(request));
    if let Some(agent) = request.fields.get(rocknet_proto::fields::KnownField::UserAgent) {
        span.add_text("user_agent.original", String::from_utf8_lossy(agent));
    }
    if span.is_error {
        span.add_text("error.type", response.status.code().to_string());
    }
    span
}

/// Returns the span of the request to an upstream, which ended with the head of its response, or with its failure, at
/// `end`. After a failure, the beginning is unknown, and the span has no duration.
fn upstream_span(trace: &RequestTrace, request: &Request<'_>, timing: &UpstreamTiming, end: SystemTime) -> Span {
    let mut span = Span {
        trace: trace.context.trace,
        id: trace.upstream,
        parent: Some(trace.context.span),
        state: trace.state_text(),
        kind: SpanKind::Client,
        name: method(request).to_owned(),
        start: end - timing.head.unwrap_or_default(),
        end,
        // Room for all attributes that are added below.
        attributes: Vec::with_capacity(6),
        is_error: timing.status.is_none_or(|status| status.code() >= 500),
    };
    span.add_text("http.request.method", method(request));
    match timing.address.split_once("://") {
        Some((_, authority)) => {
            address(&mut span, authority);
            span.add_text("url.full", format!("{}{}", timing.address, path(request)));
        }
        None => span.add_text("server.address", &*timing.address),
    }
    match timing.status {
        Some(status) => span.add_number("http.response.status_code", status.code()),
        None => span.add_text("error.type", "no_response"),
    }
    span
}

/// Adds the host and the port of an authority to a span.
fn address(span: &mut Span, authority: &str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            span.add_text("server.address", host);
            if let Ok(port) = port.parse::<u16>() {
                span.add_number("server.port", port);
            }
        }
        _ => span.add_text("server.address", authority),
    }
}

/// Returns the method of a request for its spans: one of [`METHODS`], or `_OTHER`.
fn method<'r>(request: &Request<'r>) -> &'r str {
    let known = METHODS.contains(&request.method_name);
    std::str::from_utf8(request.method_name)
        .ok()
        .filter(|_| known)
        .unwrap_or("_OTHER")
}

/// Returns the path as the client sent it, without the query, which may contain secrets.
fn path(request: &Request<'_>) -> String {
    let sent = match request.target.first() {
        Some(b'/') => split_target(request.target).0,
        _ => request.path,
    };
    String::from_utf8_lossy(sent).into_owned()
}

/// Returns the HTTP version as the semantic conventions write it, such as `1.1`.
fn version(request: &Request<'_>) -> &'static str {
    let version = request.version.as_str();
    version.strip_prefix("HTTP/").unwrap_or(version)
}
