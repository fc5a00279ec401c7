//! Exporter: a thread that sends spans to collectors in batches.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rocknet_config::model::Tracing;
use rocknet_io::owned_thread::OwnedThread;
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};

use crate::otlp;
use crate::queue::{Destination, SpanCounters, SpanQueue};
use crate::span::Span;
use crate::tracer::Tracer;

/// Maximum number of spans that wait for the thread, each of about 1 KB. Further spans are dropped.
const MAX_WAITING: usize = 8192;
/// Maximum number of spans in one request to a collector: the default of the OpenTelemetry SDKs.
const MAX_BATCH: usize = 512;
/// Maximum time that a span waits for a batch to fill.
const BATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of a request to a collector: the default of OTLP exporters.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a collector's response in bytes. The response is read only so that the connection can be reused.
const MAX_RESPONSE: usize = 64 * 1024;
/// Minimum interval between two warnings, even if they are about different collectors.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// HTTP client that sends the requests.
type Hyper = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Exporter of one server. Its thread is started by the first configuration with a collector.
#[derive(Default)]
pub struct TraceExporter {
    /// `None` until a configuration has a collector, and after [`TraceExporter::stop`].
    thread: Mutex<Option<(SpanQueue, OwnedThread)>>,
    counters: Arc<SpanCounters>,
}

impl TraceExporter {
    /// Returns the numbers of spans.
    pub fn counters(&self) -> &SpanCounters {
        &self.counters
    }

    /// Returns the tracer of a configuration; `None` if it names no collector.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if the settings cannot be used, or if the thread cannot be started.
    pub fn tracer(&self, settings: &Tracing) -> Result<Option<Arc<Tracer>>, String> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        let destination = Destination::new(endpoint, settings)?;
        let queue = self
            .queue()
            .map_err(|error| format!("cannot start the thread that exports traces: {error}"))?;
        Ok(Some(Arc::new(Tracer::new(settings, Arc::new(destination), queue))))
    }

    /// Returns the queue of the thread. Starts the thread if it does not run.
    fn queue(&self) -> io::Result<SpanQueue> {
        let mut thread = self.lock();
        if let Some((queue, _)) = &*thread {
            return Ok(queue.clone());
        }
        let (spans, waiting) = sync_channel(MAX_WAITING);
        let queue = SpanQueue::new(spans, Arc::clone(&self.counters));
        let counters = Arc::clone(&self.counters);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = client().map_err(io::Error::other)?;
        let run = move || {
            ExportLoop {
                runtime,
                client,
                counters,
                last_warning: None,
            }
            .run(&waiting);
        };
        let started = OwnedThread::start("rn-traces", run)?;
        *thread = Some((queue.clone(), started));
        Ok(queue)
    }

    /// Ends the thread after it has sent the waiting spans. Must be called when no tracer is left, because each tracer
    /// keeps the queue open. Returns true if the thread has ended by `deadline`. A collector that does not respond
    /// delays the end.
    pub fn stop(&self, deadline: Instant) -> bool {
        let thread = self.lock().take();
        thread.is_none_or(|(queue, thread)| {
            drop(queue);
            thread.join(deadline)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<(SpanQueue, OwnedThread)>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an HTTP client that trusts the certificate authorities of the system.
fn client() -> Result<Hyper, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_native_roots()
        .map_err(|error| format!("the system's root certificates cannot be read: {error}"))?
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// State of the thread.
struct ExportLoop {
    runtime: Runtime,
    client: Hyper,
    counters: Arc<SpanCounters>,
    last_warning: Option<Instant>,
}

impl ExportLoop {
    /// Sends spans until the queue is closed and empty.
    fn run(mut self, waiting: &Receiver<(Arc<Destination>, Span)>) {
        // First span for another collector, after a reload.
        let mut next = None;
        loop {
            let Some((destination, first)) = next.take().or_else(|| waiting.recv().ok()) else {
                return;
            };
            let mut batch = vec![first];
            let until = Instant::now() + BATCH_INTERVAL;
            while batch.len() < MAX_BATCH {
                match waiting.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok((other, span)) if Arc::ptr_eq(&other, &destination) => batch.push(span),
                    Ok(other) => {
                        next = Some(other);
                        break;
                    }
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.export(&destination, &batch);
        }
    }

    /// Sends a batch, and counts its spans as exported or dropped.
    fn export(&mut self, destination: &Destination, batch: &[Span]) {
        let count = batch.len() as u64;
        match self.runtime.block_on(send(&self.client, destination, batch)) {
            Ok(()) => self.counters.add_exported(count),
            Err(error) => {
                self.counters.add_dropped(count);
                self.warn(&destination.url, &error);
            }
        }
    }

    /// Logs a warning about a collector, at most one per [`WARNING_INTERVAL`].
    fn warn(&mut self, url: &http::Uri, error: &str) {
        let is_due = self.last_warning.is_none_or(|last| last.elapsed() >= WARNING_INTERVAL);
        if is_due {
            self.last_warning = Some(Instant::now());
            let dropped = self.counters.dropped();
            tracing::warn!("the collector {url} did not accept spans: {error}; {dropped} spans were lost so far");
        }
    }
}

/// Sends a batch to a collector. Returns the reason if the collector did not accept it; “it” in the text is the
/// collector.
async fn send(client: &Hyper, destination: &Destination, batch: &[Span]) -> Result<(), String> {
    let body = otlp::request(&destination.service, batch).to_string();
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = destination.url.clone();
    *request.headers_mut() = destination.fields.clone();
    let exchange = async {
        let response = client.request(request).await.map_err(|error| with_causes(&error))?;
        let status = response.status();
        let _ = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("its response has the status {status}"))
        }
    };
    let timed_out = |_| format!("it did not respond within {} s", TIMEOUT.as_secs());
    tokio::time::timeout(TIMEOUT, exchange).await.map_err(timed_out)?
}

/// Returns the text of an error with its causes, because the outermost error is only "client error".
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
