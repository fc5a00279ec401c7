//! Active health check of an upstream: one request on a separate connection.

use std::future::poll_fn;
use std::sync::Arc;

use http::Request;
use rocknet_config::model::Health;
use rocknet_proto::fields::Field;
use rocknet_proto::h1::{ClientConnection, ClientEvent, Length, RequestLine};
use rocknet_proto::limits::Limits;
use rocknet_proto::proxy_protocol::ProxyHeader;
use rocknet_proto::response::ResponseIndex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use crate::happy_eyeballs::{self, ATTEMPT_DELAY};
use crate::proxy_protocol;
use crate::tls_error;
use crate::upstream::{ConnectTarget, Upstream};
use rocknet_handler::port_exhaustion::is_exhausted;

/// Number of bytes of a response head after which an incomplete head fails the check. Only the status in the head is
/// used.
const MAX_HEAD: usize = 16 * 1024;

/// Value of `User-Agent`, unless the configuration sets one.
const USER_AGENT: &str = "RockNet (health check)";

/// Failure of a health check.
#[derive(Debug)]
pub enum CheckError {
    /// The upstream is unhealthy, for this reason.
    Upstream(String),
    /// No local port was free. The upstream is not to blame for this.
    NoLocalPort,
}

impl From<String> for CheckError {
    fn from(reason: String) -> CheckError {
        CheckError::Upstream(reason)
    }
}

/// Sends one request and checks the status of its response.
///
/// # Errors
///
/// Returns the reason for the log, or [`CheckError::NoLocalPort`].
pub async fn check(upstream: &Upstream, health: &Health) -> Result<(), CheckError> {
    let to_text = |error: std::io::Error| error.to_string();
    let status = match upstream.connect_target() {
        // Upstreams with Unix sockets have no TLS.
        ConnectTarget::Unix(path) => {
            request_status(UnixStream::connect(path).await.map_err(to_text)?, upstream, health).await?
        }
        ConnectTarget::Tcp(addresses) => {
            let pause = async || tokio::time::sleep(ATTEMPT_DELAY).await;
            let connected = happy_eyeballs::connect(&addresses, pause).await;
            let mut stream = connected.map_err(|error| match is_exhausted(&error) {
                true => CheckError::NoLocalPort,
                false => CheckError::Upstream(error.to_string()),
            })?;
            match &upstream.tls {
                None => request_status(stream, upstream, health).await?,
                Some((tls, name)) => {
                    if let Some(version) = upstream.proxy_protocol {
                        // The header is sent unencrypted, before the handshake.
                        let mut header = Vec::new();
                        proxy_protocol::write(version, &ProxyHeader::Local, &mut header);
                        stream.write_all(&header).await.map_err(to_text)?;
                    }
                    let connector = TlsConnector::from(Arc::clone(&tls.config));
                    let result = connector.connect(name.clone(), stream).await;
                    let stream =
                        result.map_err(|error| format!("the TLS handshake failed: {}", tls_error::reason(&error)))?;
                    request_status(stream, upstream, health).await?
                }
            }
        }
        ConnectTarget::Unresolved => return Err("its name is not resolved yet".to_owned().into()),
        ConnectTarget::Failed(error) => return Err(error.to_string().into()),
    };
    let is_healthy = match health.status {
        Some(expected) => status == expected,
        // Success or a redirect.
        None => (200..400).contains(&status),
    };
    match is_healthy {
        true => Ok(()),
        false => Err(format!("it responded with status {status}").into()),
    }
}

/// Returns the value of `Host`: the configured value, or the host of the upstream.
fn host<'a>(upstream: &'a Upstream, health: &'a Health) -> &'a str {
    let mut configured = health
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    configured.next().map_or(&*upstream.host, |(_, host)| host)
}

/// Returns the configured fields of the request other than `Host`, and `User-Agent` unless it is configured.
fn fields(health: &Health) -> impl Iterator<Item = (&str, &str)> {
    let names_agent = health
        .headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("user-agent"));
    let configured = health
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let configured = configured.filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    configured.chain((!names_agent).then_some(("User-Agent", USER_AGENT)))
}

/// Sends the request over a connected stream, in the upstream's version of HTTP, and returns the status.
async fn request_status<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    upstream: &Upstream,
    health: &Health,
) -> Result<u16, String> {
    if upstream.http2 {
        return check_h2(stream, upstream, health).await;
    }
    let mut engine = ClientConnection::new();
    let line = RequestLine {
        method: b"GET",
        target: health.path.as_bytes(),
        host: host(upstream, health).as_bytes(),
        length: Length::None,
        upgrade: None,
        close: true,
    };
    let mut bytes = Vec::new();
    // With TLS, `check` has sent the header before the handshake.
    if let Some(version) = upstream.proxy_protocol.filter(|_| upstream.tls.is_none()) {
        proxy_protocol::write(version, &ProxyHeader::Local, &mut bytes);
    }
    let fields = fields(health).map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()));
    engine
        .encode_request(&mut bytes, &line, fields)
        .map_err(|error| error.to_string())?;
    stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
    bytes.clear();
    let (limits, mut index) = (Limits::default(), ResponseIndex::default());
    loop {
        let mut at = 0;
        loop {
            match engine
                .receive(&limits, &bytes[at..], &mut index)
                .map_err(|error| error.reason().to_owned())?
            {
                ClientEvent::Response { .. } => return Ok(index.status.code()),
                ClientEvent::Interim { consumed } => at += consumed,
                // The head is incomplete.
                _ => break,
            }
        }
        bytes.drain(..at);
        let mut buffer = [0; 2048];
        let count = stream.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if count == 0 || bytes.len() > MAX_HEAD {
            return Err("it sent no complete response head".to_owned());
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}

/// Sends the request over HTTP/2, and returns the status.
async fn check_h2<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    upstream: &Upstream,
    health: &Health,
) -> Result<u16, String> {
    let to_text = |error: h2::Error| error.to_string();
    let scheme = if upstream.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", host(upstream, health), health.path);
    let request = fields(health).fold(Request::get(url), |request, (name, value)| request.header(name, value));
    let request = request.body(()).map_err(|error| error.to_string())?;
    let (mut sender, connection) = h2::client::handshake(stream).await.map_err(to_text)?;
    let exchange = async {
        poll_fn(|context| sender.poll_ready(context)).await?;
        // `true`: the request has no body.
        let (response, _) = sender.send_request(request, true)?;
        Ok(response.await?.status().as_u16())
    };
    tokio::select! {
        biased;
        status = exchange => status.map_err(to_text),
        ended = connection => Err(match ended {
            Ok(()) => "it closed the connection without a response".to_owned(),
            Err(error) => error.to_string(),
        }),
    }
}
