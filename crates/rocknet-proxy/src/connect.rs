//! Opens connections to upstreams on the I/O back end of the worker.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::stream::Stream;
use rocknet_io::tls::{ClientSide, Tls};
use rocknet_io::wheel::Deadline;
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};

use crate::Proxy;
use crate::error::ProxyError;
use crate::h1_connection::H1Connection;
use crate::happy_eyeballs::{self, ATTEMPT_DELAY};
use crate::proxy_protocol;
use crate::tls_config::TlsClientConfig;
use crate::tls_error;
use crate::transport::Transport;
use crate::upstream::{ConnectTarget, Upstream};
use rocknet_certificates::HTTP_2;
use rocknet_handler::exchange::Client;
use rocknet_handler::services::Services;

/// Opens a connection to an upstream that speaks HTTP/1.1.
pub async fn connect(
    services: &Rc<Services>,
    upstream: &Arc<Upstream>,
    proxy: &Proxy,
    client: Client,
    deadline: &Deadline,
) -> Result<Box<H1Connection>, ProxyError> {
    let transport = open_transport(services, upstream, proxy, client, deadline).await?;
    Ok(Box::new(H1Connection::new(transport)))
}

/// Connects to the first address of the upstream that accepts a connection. If the proxy has a dialer, which replaces
/// sockets, connects through the dialer instead. Then completes the TLS handshake if the upstream uses TLS.
///
/// The timeout `connect` of the proxy covers both connecting and the handshake.
pub async fn open_transport(
    services: &Rc<Services>,
    upstream: &Arc<Upstream>,
    proxy: &Proxy,
    client: Client,
    deadline: &Deadline,
) -> Result<Transport, ProxyError> {
    deadline.set(services.wheel.ticks(proxy.connect));
    let mut header = Vec::new();
    if let Some(version) = upstream.proxy_protocol {
        proxy_protocol::write(
            version,
            &proxy_protocol::for_client(client, &services.address),
            &mut header,
        );
    }
    if let Some(dialer) = proxy.dialer.as_deref() {
        let link = dialer.dial(&upstream.name).map_err(ProxyError::Connect)?;
        let transport = deadline.within(set_up_dialed(services, upstream, link, header)).await;
        let transport = transport.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()));
        return transport.map_err(ProxyError::Handshake);
    }
    let connected = deadline.within(connect_socket(services, upstream, &header)).await;
    let socket = connected.unwrap_or_else(|| Err(ProxyError::Connect(ErrorKind::TimedOut.into())))?;
    let stream = Stream::connected(socket).map_err(ProxyError::Connect)?;
    let Some(tls_settings) = &upstream.tls else {
        return Ok(Transport::Plain(stream));
    };
    let tls = deadline
        .within(handshake(services, upstream, tls_settings, stream))
        .await;
    let tls = tls.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()));
    tls.map(|tls| Transport::Tls(Box::new(tls)))
        .map_err(ProxyError::Handshake)
}

/// Prepares a dialed link for the first request: sends `header` (of the PROXY protocol, or empty), then completes the
/// TLS handshake if the upstream uses TLS.
async fn set_up_dialed(
    services: &Rc<Services>,
    upstream: &Upstream,
    mut link: Box<dyn Link>,
    header: Vec<u8>,
) -> io::Result<Transport> {
    let mut queue = SendQueue::default();
    queue.push_owned(header.into());
    poll_fn(|context| link.poll_send(context, &mut queue)).await?;
    Ok(Transport::Dialed(match &upstream.tls {
        None => link,
        Some(tls_settings) => Box::new(handshake(services, upstream, tls_settings, link).await?),
    }))
}

/// Completes the TLS handshake on a link. Fails if the upstream is configured for HTTP/2 and does not select it.
async fn handshake<L: Link>(
    services: &Rc<Services>,
    upstream: &Upstream,
    (tls, name): &(Arc<TlsClientConfig>, ServerName<'static>),
    link: L,
) -> io::Result<Tls<L, ClientSide>> {
    // Verifying the certificate costs as much CPU time as the handshake of a client, so the same limiter applies.
    services.handshake_limiter.acquire().await;
    let mut tls = Tls::connect(link, Arc::clone(&tls.config), name.clone(), services.tls_buffers())?;
    poll_fn(|context| tls.poll_handshake(context)).await?;
    if upstream.http2 && tls.negotiated().alpn != Some(HTTP_2) {
        return Err(io::Error::other(tls_error::NO_HTTP2));
    }
    Ok(tls)
}

/// Connects a socket and sends `header`: the PROXY protocol header, or nothing if it is empty.
async fn connect_socket(services: &Rc<Services>, upstream: &Upstream, header: &[u8]) -> Result<OwnedFd, ProxyError> {
    loop {
        match upstream.connect_target() {
            ConnectTarget::Unix(path) => {
                services.connect_limiter.acquire().await;
                return unix(path, header).await.map_err(ProxyError::Connect);
            }
            ConnectTarget::Tcp(addresses) => {
                services.connect_limiter.acquire().await;
                let delay = services.wheel.ticks(ATTEMPT_DELAY);
                let pause = async || {
                    let pause = services.wheel.deadline();
                    pause.set(delay);
                    pause.past().await;
                };
                let stream = happy_eyeballs::connect(&addresses, pause).await;
                let stream = stream.map_err(ProxyError::Connect)?;
                return tcp(stream, header).await.map_err(ProxyError::Connect);
            }
            ConnectTarget::Failed(error) => return Err(ProxyError::Resolve(error)),
            // The first lookup takes only a moment after the start or a reload, so the next tick checks again.
            ConnectTarget::Unresolved => {
                let pause = services.wheel.deadline();
                pause.set(1);
                pause.past().await;
            }
        }
    }
}

/// Connects to a Unix socket and sends `header`.
async fn unix(path: &Path, header: &[u8]) -> io::Result<OwnedFd> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(header).await?;
    stream.into_std().map(OwnedFd::from)
}

/// Prepares a connected TCP socket and sends `header`.
async fn tcp(mut stream: TcpStream, header: &[u8]) -> io::Result<OwnedFd> {
    // Each message is written in one piece, so Nagle's algorithm would only delay its last segment.
    stream.set_nodelay(true)?;
    stream.write_all(header).await?;
    stream.into_std().map(OwnedFd::from)
}
