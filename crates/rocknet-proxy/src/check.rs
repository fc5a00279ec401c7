//! One check of a server in the background: a request of its own, on a connection of its own.

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

use crate::announcement;
use crate::mistrust;
use crate::race::{self, HEAD_START};
use crate::upstream::{Upstream, Way};
use rocknet_handler::port_exhaustion::is_exhausted;

/// Head of an answer to a check: those that say more are not what checks are for.
const MAX_HEAD: usize = 16 * 1024;

/// Who asks.
const AGENT: &str = "RockNet (health check)";

/// Why a check did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The server is not well.
    Server(String),
    /// No local port was left for a connection to it, which says nothing of the server.
    NoLocalPort,
}

impl From<String> for Failure {
    fn from(fault: String) -> Failure {
        Failure::Server(fault)
    }
}

pub async fn check(upstream: &Upstream, health: &Health) -> Result<(), Failure> {
    let told = |error: std::io::Error| error.to_string();
    let status = match upstream.way() {
        Way::Unix(path) => ask(UnixStream::connect(path).await.map_err(told)?, upstream, health).await?,
        Way::Tcp(addresses) => {
            let pause = async || tokio::time::sleep(HEAD_START).await;
            let connected = race::connect(&addresses, pause).await;
            let mut stream = connected.map_err(|error| match is_exhausted(&error) {
                true => Failure::NoLocalPort,
                false => Failure::Server(error.to_string()),
            })?;
            match &upstream.secure {
                None => ask(stream, upstream, health).await?,
                Some((secure, name)) => {
                    if let Some(version) = upstream.announce {
                        // In the clear, before all else.
                        let mut header = Vec::new();
                        announcement::write(version, &ProxyHeader::Local, &mut header);
                        stream.write_all(&header).await.map_err(told)?;
                    }
                    let connector = TlsConnector::from(Arc::clone(&secure.settings));
                    let shaken = connector.connect(name.clone(), stream).await;
                    let stream = shaken.map_err(|error| format!("no handshake: {}", mistrust::reason(&error)))?;
                    ask(stream, upstream, health).await?
                }
            }
        }
        Way::Unknown => return Err("its name is not known yet".to_owned().into()),
        Way::Nowhere(error) => return Err(error.to_string().into()),
    };
    let is_well = match health.status {
        Some(wanted) => status == wanted,
        None => (200..400).contains(&status),
    };
    match is_well {
        true => Ok(()),
        false => Err(format!("it answers {status}").into()),
    }
}

/// What the server is called: as requests call it, where the configuration says so.
fn host<'a>(upstream: &'a Upstream, health: &'a Health) -> &'a str {
    let mut given = health
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    given.next().map_or(&*upstream.host, |(_, host)| host)
}

fn fields(health: &Health) -> impl Iterator<Item = (&str, &str)> {
    let names_agent = health
        .headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("user-agent"));
    let given = health
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let given = given.filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    given.chain((!names_agent).then_some(("User-Agent", AGENT)))
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    upstream: &Upstream,
    health: &Health,
) -> Result<u16, String> {
    if upstream.http2 {
        return ask_in_http2(stream, upstream, health).await;
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
    if let Some(version) = upstream.announce.filter(|_| upstream.secure.is_none()) {
        announcement::write(version, &ProxyHeader::Local, &mut bytes);
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
                .map_err(|fault| fault.reason().to_owned())?
            {
                ClientEvent::Response { .. } => return Ok(index.status.code()),
                ClientEvent::Interim { consumed } => at += consumed,
                _ => break,
            }
        }
        bytes.drain(..at);
        let mut room = [0; 2048];
        let got = stream.read(&mut room).await.map_err(|error| error.to_string())?;
        if got == 0 || bytes.len() > MAX_HEAD {
            return Err("it closed the connection without an answer".to_owned());
        }
        bytes.extend_from_slice(&room[..got]);
    }
}

async fn ask_in_http2<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    upstream: &Upstream,
    health: &Health,
) -> Result<u16, String> {
    let told = |error: h2::Error| error.to_string();
    let scheme = if upstream.secure.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", host(upstream, health), health.path);
    let request = fields(health).fold(Request::get(url), |request, (name, value)| request.header(name, value));
    let request = request.body(()).map_err(|error| error.to_string())?;
    let (mut sender, connection) = h2::client::handshake(stream).await.map_err(told)?;
    let asked = async {
        poll_fn(|context| sender.poll_ready(context)).await?;
        let (answer, _) = sender.send_request(request, true)?;
        Ok(answer.await?.status().as_u16())
    };
    tokio::select! {
        biased;
        status = asked => status.map_err(told),
        ended = connection => Err(match ended {
            Ok(()) => "it closed the connection without an answer".to_owned(),
            Err(error) => error.to_string(),
        }),
    }
}
