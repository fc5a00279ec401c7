//! A provider: its metadata and its keys, kept for an hour and fetched by one request at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocknet_oidc::{ProviderMetadata, SigningKeys, discovery_url};

use super::failure::ProviderFailure;
use super::http_client::{FetchRequest, FetchResponse, HttpClient, InProgress};

/// Time for which metadata and keys are used before they are fetched again. A token with an unknown key leads to a
/// fetch of the keys at once.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// Time for which metadata and keys are used if they cannot be fetched again, so that logins survive an outage of their
/// endpoints.
const USABLE: Duration = Duration::from_secs(24 * 60 * 60);

/// Time for which no request is sent to a provider after a failure, and minimum time between two fetches of its keys.
/// Otherwise clients could cause any number of requests, for instance by tokens with unknown keys.
const PAUSE: Duration = Duration::from_secs(2);

/// Provider of one issuer. All workers share it.
pub struct Provider {
    issuer: String,
    http: Arc<HttpClient>,
    in_progress: InProgress,
    metadata: Cached<ProviderMetadata>,
    keys: Cached<SigningKeys>,
}

/// A document of a provider.
struct Cached<T> {
    state: Mutex<CachedState<T>>,
    /// Held during a fetch, so that other requests wait for its result.
    fetching: tokio::sync::Mutex<()>,
}

struct CachedState<T> {
    /// The document, and the time of its fetch.
    value: Option<(Arc<T>, Instant)>,
    /// The last failure with its time, if no fetch has succeeded since.
    failure: Option<(ProviderFailure, Instant)>,
}

impl<T> Cached<T> {
    fn new() -> Cached<T> {
        Cached {
            state: Mutex::new(CachedState {
                value: None,
                failure: None,
            }),
            fetching: tokio::sync::Mutex::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, CachedState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the document if it is fresh. `stale`: document that the caller could not use. It is returned only until
    /// [`PAUSE`] after its fetch.
    fn current(&self, stale: Option<&Arc<T>>) -> Option<Arc<T>> {
        let state = self.state();
        let (value, fetched) = state.value.as_ref()?;
        let is_stale = stale.is_some_and(|stale| Arc::ptr_eq(stale, value)) && fetched.elapsed() >= PAUSE;
        (fetched.elapsed() < FRESH && !is_stale).then(|| Arc::clone(value))
    }

    /// Returns the document, and fetches it if necessary.
    async fn get<F>(&self, stale: Option<&Arc<T>>, fetch: impl FnOnce() -> F) -> Result<Arc<T>, ProviderFailure>
    where
        F: Future<Output = Result<T, ProviderFailure>>,
    {
        if let Some(value) = self.current(stale) {
            return Ok(value);
        }
        let waiting_since = Instant::now();
        let _fetching = self.fetching.lock().await;
        // Another request may have fetched the document, or failed, in the meantime.
        if let Some(value) = self.current(stale) {
            return Ok(value);
        }
        if let Some(result) = self.after_failure(waiting_since) {
            return result;
        }
        match fetch().await {
            Ok(value) => {
                let value = Arc::new(value);
                *self.state() = CachedState {
                    value: Some((Arc::clone(&value), Instant::now())),
                    failure: None,
                };
                Ok(value)
            }
            Err(failure) => {
                self.state().failure = Some((failure.clone(), Instant::now()));
                self.usable().ok_or(failure)
            }
        }
    }

    /// Returns the result without a fetch if the last fetch failed after `waiting_since`, or less than [`PAUSE`] ago;
    /// otherwise `None`.
    fn after_failure(&self, waiting_since: Instant) -> Option<Result<Arc<T>, ProviderFailure>> {
        let (failure, at) = self.state().failure.clone()?;
        (at >= waiting_since || at.elapsed() < PAUSE).then(|| self.usable().ok_or(failure))
    }

    /// Returns a document that is not fresh any more, but that can replace a fresh one.
    fn usable(&self) -> Option<Arc<T>> {
        let state = self.state();
        let (value, fetched) = state.value.as_ref()?;
        (fetched.elapsed() < USABLE).then(|| Arc::clone(value))
    }
}

impl Provider {
    /// Creates a provider without a request.
    pub fn new(issuer: String, http: Arc<HttpClient>) -> Provider {
        Provider {
            issuer,
            http,
            in_progress: InProgress::default(),
            metadata: Cached::new(),
            keys: Cached::new(),
        }
    }

    /// Returns the issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the metadata if it is fresh.
    pub fn current_metadata(&self) -> Option<Arc<ProviderMetadata>> {
        self.metadata.current(None)
    }

    /// Returns the metadata, and fetches it if necessary.
    ///
    /// # Errors
    ///
    /// Fails if there is no usable metadata.
    pub async fn metadata(&self, timeout: Duration) -> Result<Arc<ProviderMetadata>, ProviderFailure> {
        self.metadata
            .get(None, || async {
                let response = self
                    .fetch(FetchRequest::get(&discovery_url(&self.issuer), timeout))
                    .await?;
                let body = successful(&response, "the address of its metadata")?;
                ProviderMetadata::parse(&self.issuer, body).map_err(ProviderFailure::invalid)
            })
            .await
    }

    /// Returns the keys, and fetches them if necessary. `stale`: keys that do not have the key of a token. They are
    /// fetched again, unless that was done a moment ago.
    ///
    /// # Errors
    ///
    /// Fails if there are no usable keys.
    pub async fn keys(
        &self,
        metadata: &ProviderMetadata,
        stale: Option<&Arc<SigningKeys>>,
        timeout: Duration,
    ) -> Result<Arc<SigningKeys>, ProviderFailure> {
        self.keys
            .get(stale, || async {
                let response = self.fetch(FetchRequest::get(&metadata.jwks_uri, timeout)).await?;
                let body = successful(&response, "the address of its keys")?;
                let keys = SigningKeys::parse(body).filter(|keys| !keys.is_empty());
                keys.ok_or_else(|| ProviderFailure::invalid("it has no usable keys"))
            })
            .await
    }

    /// Sends a request to an endpoint of the provider.
    ///
    /// # Errors
    ///
    /// Fails if no response arrives.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, ProviderFailure> {
        self.http.fetch(&self.in_progress, request).await
    }
}

/// Returns the body of a response with status 200. `what`: name of the endpoint in the failure.
pub(super) fn successful<'r>(response: &'r FetchResponse, what: &str) -> Result<&'r [u8], ProviderFailure> {
    match response.status {
        200 => Ok(&response.body),
        status => Err(ProviderFailure::invalid(format_args!(
            "{what} responds with status {status}"
        ))),
    }
}
