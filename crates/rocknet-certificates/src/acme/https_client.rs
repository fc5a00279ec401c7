//! HTTPS client for CAs, with a timeout, a limit on response sizes, and a record of the last `Retry-After`.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// Client of the library hyper that connects over TLS.
type Hyper = Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>;

/// An HTTPS client for one CA.
#[derive(Clone)]
pub struct HttpsClient {
    client: Hyper,
    /// Delay requested by the last 429 or 503 response (`Retry-After`).
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl HttpsClient {
    /// Creates a client. `root` is a PEM file with the roots of a private CA; without it, the client trusts the
    /// system's roots.
    ///
    /// # Errors
    /// Describes why the roots cannot be read.
    pub fn new(root: Option<&Path>) -> Result<HttpsClient, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match root {
            Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
            None => builder
                .with_native_roots()
                .map_err(|error| format!("the system's roots cannot be read: {error}"))?
                .with_no_client_auth(),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .build();
        Ok(HttpsClient {
            client: Client::builder(TokioExecutor::new()).build(connector),
            retry_after: Arc::default(),
        })
    }

    /// Returns the `Retry-After` of the last 429 or 503 response since the previous call, if there was one.
    pub fn take_retry_after(&self) -> Option<Duration> {
        self.retry_after.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads the root certificates of a PEM file.
fn roots(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let mut roots = RootCertStore::empty();
    for der in CertificateDer::pem_file_iter(path).map_err(|error| format!("{shown}: {error}"))? {
        let der = der.map_err(|error| format!("{shown}: {error}"))?;
        roots.add(der).map_err(|error| format!("{shown}: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{shown} contains no certificate"));
    }
    Ok(roots)
}

impl HttpClient for HttpsClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (response, retry_after) = (self.client.request(request), Arc::clone(&self.retry_after));
        Box::pin(async move {
            let exchange = tokio::time::timeout(TIMEOUT, async {
                let (parts, body) = response.await.map_err(|error| with_causes(&error))?.into_parts();
                let body = Limited::new(body, MAX_RESPONSE_BODY).collect().await;
                let body = body.map_err(Error::Other)?.to_bytes();
                Ok::<_, Error>((parts, body))
            });
            let (mut parts, body) = exchange
                .await
                .map_err(|_| Error::Str("the CA did not respond within 30 s"))??;
            if matches!(
                parts.status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            ) {
                let value = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let after = value.and_then(|value| parse_retry_after(value, SystemTime::now()));
                *retry_after.lock().unwrap_or_else(PoisonError::into_inner) = after;
            }
            // The collected body reports its own length, so the received `Content-Length` is removed.
            parts.headers.remove(CONTENT_LENGTH);
            Ok(BytesResponse::from(http::Response::from_parts(parts, Full::new(body))))
        })
    }
}

/// Converts an error with all its causes, because the text of the outermost error is only "client error".
fn with_causes(error: &dyn std::error::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Error::Other(text.into())
}

/// Parses `Retry-After` (RFC 9110 §10.2.3): seconds or a date; `None` if the value is malformed. `now`: time to which a
/// date is relative.
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    u64::from_str(value).map(Duration::from_secs).ok().or_else(|| {
        let unix = rocknet_proto::semantics::date::parse(value.as_bytes())?;
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(unix);
        Some(then.duration_since(now).unwrap_or_default())
    })
}

/// Timeout of one request. CAs that sign while the client waits take a few seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response body in bytes. Certificate chains and problem documents have a few kilobytes.
const MAX_RESPONSE_BODY: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(
                parse_retry_after(value, now).map(|after| after.as_secs()),
                expected,
                "{value:?}"
            );
        }
    }
}
