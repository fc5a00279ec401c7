//! Opens a TLS connection: reads the ClientHello, selects the site, performs the handshake and starts the protocol.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::runtime::spawn;
use rocknet_io::tls::{ClientHelloAcceptor, FirstBytes, Tls};
use rocknet_io::wheel::Deadline;
use rocknet_proto::status::Status;
use rustls::ServerConfig;
use tracing::Level;

use crate::bans::Offence;
use crate::certificates::{ACME_PROTOCOL, HTTP_2, SecureSite, SingleCertificate, TlsPolicy};
use crate::exchange::Client;
use crate::handshake::Handshake;
use crate::lifecycle::connection::ConnectionCore;
use crate::log::throttle::Cause;
use crate::pages;
use crate::protocol::{h1, h2};
use crate::site::Site;
use crate::worker::{OpenConnection, Worker};

/// Alert for a server name that is unknown or has no certificate (RFC 8446 §6.2).
const UNRECOGNIZED_NAME: u8 = 112;
/// Alert for data that is not a handshake (RFC 8446 §6.2).
const UNEXPECTED_MESSAGE: u8 = 10;
/// Maximum length in bytes of the method of a plain-HTTP request, which gets a plain-HTTP response. No registered
/// method is longer.
const MAX_METHOD_LENGTH: usize = 20;
/// Maximum number of bytes that are read and discarded after an alert or a plain-HTTP response, so that a client that
/// never stops sending costs little.
const MAX_LINGER_BYTES: usize = 1 << 20;

/// A connection whose handshake is not complete.
pub struct PendingHandshake<L> {
    acceptor: ClientHelloAcceptor<L>,
    open: OpenConnection,
    deadline: Deadline,
    client: Client,
    /// Local address of the connection, set only if sites are selected by it.
    local: Option<IpAddr>,
}

/// The TLS configuration selected for a client.
struct SelectedConfig {
    settings: Arc<ServerConfig>,
    /// TLS policy of the site; `None` for an ACME challenge, which needs only the handshake.
    policy: Option<Arc<TlsPolicy>>,
    /// Server name that the client sent (SNI), if any.
    name: Option<Box<str>>,
}

impl<L: Link + Unpin + 'static> PendingHandshake<L> {
    /// Takes over a link, and starts the deadline of the handshake.
    pub fn new(open: OpenConnection, link: L, client: Client, local: Option<IpAddr>) -> PendingHandshake<L> {
        let worker = open.worker();
        let deadline = worker.wheel.deadline();
        // As for a request head, received bytes do not extend the deadline.
        deadline.set(worker.config().ticks.header);
        PendingHandshake {
            acceptor: ClientHelloAcceptor::new(link, worker.tls_buffers()),
            open,
            deadline,
            client,
            local,
        }
    }

    /// Runs until a protocol takes over or the connection ends.
    pub async fn run(self) {
        let client = self.client;
        if let Err(error) = self.perform().await {
            tracing::debug!(%client, "a handshake failed: {error}");
        }
    }

    /// Performs the handshake, and starts the protocol that it selected.
    async fn perform(mut self) -> io::Result<()> {
        let worker = Rc::clone(self.open.worker());
        let selected = match self.receive_hello(&worker).await {
            Ok(Some(selected)) => selected,
            Ok(None) => {
                count_failed(&worker, self.client);
                return self.reject_plain_http().await;
            }
            Err(error) => {
                // An alert was sent, unless the link has failed. There is no need to linger for a client that has sent
                // nothing, because without unread bytes closing does not reset the connection.
                if !self.acceptor.has_received_nothing() {
                    count_failed(&worker, self.client);
                    let (mut link, _) = self.acceptor.into_parts();
                    linger(&worker, &mut link, &self.deadline).await;
                }
                return Err(error);
            }
        };
        let PendingHandshake {
            acceptor,
            open,
            deadline,
            client,
            local,
        } = self;
        let mut tls = acceptor
            .accept(selected.settings)
            .inspect_err(|_| count_failed(&worker, client))?;
        let outcome = deadline.within(poll_fn(|context| tls.poll_handshake(context))).await;
        if let Err(error) = or_timed_out(outcome).and_then(|outcome| outcome) {
            count_failed(&worker, client);
            if error.kind() == io::ErrorKind::TimedOut {
                tls.abort_handshake();
            }
            linger(&worker, &mut tls.into_link(), &deadline).await;
            return Err(error);
        }
        drop(deadline);
        worker.counters.handshakes.count(tls.negotiated().resumed);
        match selected.policy {
            Some(policy) => {
                let secure = Rc::new(Handshake::new(policy, &tls.negotiated(), selected.name));
                serve(open, tls, client, local, secure);
            }
            // An ACME challenge ends with the handshake, which carried the certificate.
            None => tls.finish(),
        }
        Ok(())
    }

    /// Receives the ClientHello and waits for the permit to start the handshake. Returns the configuration, or `None`
    /// for a plain-HTTP request. Before it returns an error it sends an alert, unless the link has failed.
    async fn receive_hello(&mut self, worker: &Worker) -> io::Result<Option<SelectedConfig>> {
        let (acceptor, deadline) = (&mut self.acceptor, &self.deadline);
        let received = poll_fn(|context| match acceptor.poll(context) {
            // A client that has sent nothing when the server stops is not served.
            Poll::Pending if worker.closes_idle() && acceptor.has_received_nothing() => {
                acceptor.cancel();
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            Poll::Pending if deadline.poll_past(context.waker()) => {
                acceptor.cancel();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            received => received,
        });
        if received.await? == FirstBytes::NotTls {
            if acceptor.looks_like_http(MAX_METHOD_LENGTH) {
                return Ok(None);
            }
            acceptor.send_fatal_alert(UNEXPECTED_MESSAGE);
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the first bytes are not a TLS record",
            ));
        }
        let Some(selected) = self.select_config(worker) else {
            self.acceptor.send_fatal_alert(UNRECOGNIZED_NAME);
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no certificate for the requested name",
            ));
        };
        let permit = self.deadline.within(worker.handshake_limiter.acquire()).await;
        or_timed_out(permit).inspect_err(|_| self.acceptor.cancel())?;
        Ok(Some(selected))
    }

    /// Returns the configuration for the requested server name and protocols; `None` if there is no site or no
    /// certificate for them.
    fn select_config(&self, worker: &Worker) -> Option<SelectedConfig> {
        let certificates = &worker.shared.certificates;
        let hello = self.acceptor.client_hello()?;
        let name = hello.server_name().map(str::to_ascii_lowercase);
        if hello
            .alpn()
            .is_some_and(|mut all| all.any(|name| name == ACME_PROTOCOL))
        {
            let key = certificates.store.tls_alpn_challenge(&name?)?;
            let mut settings = ServerConfig::clone(&certificates.challenge_config);
            settings.cert_resolver = Arc::new(SingleCertificate(key));
            return Some(SelectedConfig {
                settings: Arc::new(settings),
                policy: None,
                name: None,
            });
        }
        let config = worker.config();
        let (site, is_own) = config.sites.site_of_server_name(self.local, name.as_deref())?;
        let site = config.snapshot.sites.get(site as usize)?;
        let secure = site.secure.as_ref()?;
        // Only a name of the site selects one of its certificates.
        let Some(settings) = secure.server_config(&certificates.store, name.as_deref().filter(|_| is_own)) else {
            log_missing_certificate(site, secure);
            return None;
        };
        Some(SelectedConfig {
            settings,
            policy: Some(Arc::clone(&secure.policy)),
            name: name.map(Into::into),
        })
    }

    /// Responds in plain HTTP to a client that used `http` instead of `https`.
    async fn reject_plain_http(self) -> io::Result<()> {
        let worker = Rc::clone(self.open.worker());
        let (mut link, _) = self.acceptor.into_parts();
        let mut response = plain_http_response(&worker);
        let sent = self
            .deadline
            .within(poll_fn(|context| link.poll_send(context, &mut response)));
        or_timed_out(sent.await)??;
        worker.counters.count_response(Status::BAD_REQUEST);
        linger(&worker, &mut link, &self.deadline).await;
        Ok(())
    }
}

/// Counts a handshake that did not complete.
#[cold]
fn count_failed(worker: &Worker, client: Client) {
    worker.counters.handshakes.failed.add(1);
    worker.shared.registries.bans.offend(client, Offence::Handshake);
}

/// Shuts down the sending side, then reads and discards what the client still sends, bounded in bytes and time. Closing
/// with unread bytes resets the connection, and the client may then lose the alert or response.
async fn linger<L: Link>(worker: &Worker, link: &mut L, deadline: &Deadline) {
    if link.shut_down().is_err() {
        return;
    }
    deadline.set(worker.config().ticks.linger);
    let mut dropped = 0;
    let drain = poll_fn(|context| {
        loop {
            let input = &mut worker.buffers.borrow_mut().input;
            match link.poll_recv(context, input) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() && dropped < MAX_LINGER_BYTES => dropped += bytes.len(),
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
    });
    // The result does not matter, because the connection is closed in both cases.
    deadline.within(drain).await;
}

/// Starts the protocol that ALPN selected. No other function chooses the protocol of a TLS connection.
fn serve<L: Link + Unpin + 'static>(
    open: OpenConnection,
    tls: Tls<L>,
    client: Client,
    local: Option<IpAddr>,
    secure: Rc<Handshake>,
) {
    let is_http2 = tls.negotiated().alpn == Some(HTTP_2);
    let core = ConnectionCore::new(open, tls, client, local).with_handshake(secure);
    // Each protocol has its own task, because the task of the handshake is larger than that of a connection.
    if is_http2 {
        spawn(h2::Connection::new(core));
    } else {
        spawn(h1::Connection::new(core));
    }
}

/// Logs that a site has no certificate, at most once a second for each site.
#[cold]
fn log_missing_certificate(site: &Site, secure: &SecureSite) {
    let cause = Cause {
        level: Level::WARN,
        what: "a handshake was refused, because the site has no certificate",
        site: &site.name,
        subject: "",
    };
    if cause.may_be_logged() {
        let why = secure.error();
        let why = why
            .as_deref()
            .unwrap_or("no certificate was issued yet for the requested name");
        tracing::warn!(site = %site.name, "a handshake was refused, because the site has no certificate: {why}");
    }
}

/// Converts `None`, the result of a passed deadline, into a timeout error.
fn or_timed_out<T>(found: Option<T>) -> io::Result<T> {
    found.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Renders the response to a plain-HTTP request on a port that uses TLS.
fn plain_http_response(worker: &Worker) -> SendQueue {
    const HINT: &str = "This port uses HTTPS, but the request was plain HTTP: write https:// before the address.";
    let (status, mut page) = (Status::BAD_REQUEST, Vec::new());
    pages::error::render(status.code(), status.reason(), Some(HINT), &mut page);
    let mut response = SendQueue::default();
    let head = format!(
        "HTTP/1.1 {} {}\r\nDate: {}\r\nServer: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        status.code(),
        status.reason(),
        String::from_utf8_lossy(&worker.clock.date()),
        crate::headers::SERVER,
        pages::CONTENT_TYPE,
        page.len(),
    );
    response.buffer().extend_from_slice(head.as_bytes());
    response.buffer().extend_from_slice(&page);
    response
}
