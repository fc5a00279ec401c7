//! HTTP client for providers: a thread of its own, with a timeout and bounds on responses and on requests in progress.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rocknet_handler::background::Background;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::failure::ProviderFailure;

/// Maximum number of requests in progress. Further logins get 503.
const MAX_IN_PROGRESS: usize = 64;

/// Maximum number of requests in progress to one provider, so that the logins of one site do not prevent all others.
const MAX_PER_PROVIDER: usize = 16;

/// Maximum size of a response body in bytes. Keys and tokens have a few kilobytes.
const MAX_BODY: usize = 256 * 1024;

/// Maximum number of lookups of host names at the same time, because each needs a thread.
const MAX_LOOKUPS: usize = 4;

type Hyper = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Request to a provider.
pub struct FetchRequest {
    /// URL.
    pub url: String,
    /// Body of a POST request with a form; `None` for a GET request.
    pub form: Option<String>,
    /// Value of `Authorization`, if there is one.
    pub authorization: Option<String>,
    /// Time in which the whole response has to arrive.
    pub timeout: Duration,
}

impl FetchRequest {
    /// Returns a GET request.
    pub fn get(url: &str, timeout: Duration) -> FetchRequest {
        FetchRequest {
            url: url.to_owned(),
            form: None,
            authorization: None,
            timeout,
        }
    }
}

/// Response of a provider.
pub struct FetchResponse {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: Bytes,
}

/// Number of requests in progress to one provider.
pub type InProgress = Arc<AtomicUsize>;

type FetchResult = Result<FetchResponse, ProviderFailure>;

/// A request on its way to the thread. It is cancelled if the caller drops the receiver of `reply`.
struct FetchJob {
    request: FetchRequest,
    reply: oneshot::Sender<FetchResult>,
    /// Permits that count the request among those to its provider and among all, until the job is dropped.
    _permits: [FetchPermit; 2],
}

/// HTTP client of a server. Its thread is started by the first request.
pub struct HttpClient {
    thread: Background<FetchJob>,
    in_progress: Arc<AtomicUsize>,
}

impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient {
            thread: Background::new("rn-oidc", MAX_LOOKUPS, |jobs| Box::pin(run(jobs))),
            in_progress: Arc::default(),
        }
    }
}

impl HttpClient {
    /// Sends a request, and waits for its response. `of_provider`: number of requests to the same provider.
    ///
    /// # Errors
    ///
    /// Fails if there are too many requests, if the provider does not respond in time, or if its response is too large.
    pub async fn fetch(&self, of_provider: &InProgress, request: FetchRequest) -> FetchResult {
        let busy = ProviderFailure::busy;
        let permits = [
            FetchPermit::take(of_provider, MAX_PER_PROVIDER).ok_or_else(busy)?,
            FetchPermit::take(&self.in_progress, MAX_IN_PROGRESS).ok_or_else(busy)?,
        ];
        let (reply, response) = oneshot::channel();
        let job = FetchJob {
            request,
            reply,
            _permits: permits,
        };
        // If the thread cannot be started or was stopped, the browser gets 503, as with too many requests.
        if !self.thread.send(job) {
            return Err(ProviderFailure::busy());
        }
        response.await.unwrap_or_else(|_| Err(ProviderFailure::busy()))
    }

    /// Ends the thread. Returns true if it has ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.thread.stop(deadline)
    }
}

/// Permit for a request in progress. Dropping it admits another request.
struct FetchPermit(Arc<AtomicUsize>);

impl FetchPermit {
    fn take(in_progress: &Arc<AtomicUsize>, maximum: usize) -> Option<FetchPermit> {
        let permit = FetchPermit(Arc::clone(in_progress));
        // Above the maximum, dropping the permit takes the addition back.
        (in_progress.fetch_add(1, Ordering::Relaxed) < maximum).then_some(permit)
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn run(mut jobs: UnboundedReceiver<FetchJob>) {
    let client = client();
    while let Some(job) = jobs.recv().await {
        let client = client.clone();
        drop(tokio::spawn(async move {
            let FetchJob {
                request,
                mut reply,
                _permits,
            } = job;
            let result = match client {
                Ok(client) => tokio::select! {
                    result = send(client, request) => result,
                    // The caller waits no longer, for example because the browser has disconnected.
                    () = reply.closed() => return,
                },
                Err(error) => Err(ProviderFailure::unreachable(error)),
            };
            let _ = reply.send(result);
        }));
    }
}

/// Returns a client that trusts the certificate authorities of the system.
fn client() -> Result<Hyper, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let tls = match builder.clone().with_native_roots() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(
                "no provider of `oidc` can be reached by https, because the system has no root certificates: {error}"
            );
            builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        // The check of the configuration warns of http:// unless the provider is on a loopback address.
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn send(client: Hyper, request: FetchRequest) -> Pin<Box<dyn Future<Output = FetchResult> + Send>> {
    Box::pin(async move {
        let timeout = request.timeout;
        let exchange = async {
            let request = build(&request)?;
            let response = client.request(request).await.map_err(|error| with_causes(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
            let body = body.map_err(|error| with_causes(&*error))?.to_bytes();
            Ok::<_, String>(FetchResponse { status, body })
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(result) => result.map_err(ProviderFailure::unreachable),
            Err(_) => Err(ProviderFailure::timed_out()),
        }
    })
}

fn build(request: &FetchRequest) -> Result<Request<Full<Bytes>>, String> {
    let uri: Uri = request
        .url
        .parse()
        .map_err(|error| format!("its URL is invalid: {error}"))?;
    let mut built = Request::new(Full::new(Bytes::from(request.form.clone().unwrap_or_default())));
    *built.uri_mut() = uri;
    let fields = built.headers_mut();
    fields.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(value) = &request.authorization {
        let mut value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        fields.insert(AUTHORIZATION, value);
    }
    if request.form.is_some() {
        fields.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        *built.method_mut() = Method::POST;
    }
    Ok(built)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_provider_does_not_take_all_permits() {
        let (one, all) = (InProgress::default(), InProgress::default());
        let mut taken: Vec<_> = (0..MAX_PER_PROVIDER)
            .map(|_| {
                [
                    FetchPermit::take(&one, MAX_PER_PROVIDER),
                    FetchPermit::take(&all, MAX_IN_PROGRESS),
                ]
            })
            .collect();
        assert!(taken.iter().flatten().all(Option::is_some));
        assert!(FetchPermit::take(&one, MAX_PER_PROVIDER).is_none());
        assert!(FetchPermit::take(&all, MAX_IN_PROGRESS).is_some());
        taken.pop();
        assert!(FetchPermit::take(&one, MAX_PER_PROVIDER).is_some());
    }
}
