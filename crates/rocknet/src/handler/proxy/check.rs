//! One check of a server in the background: a request of its own, on a connection of its own.

use rocknet_config::model::Health;
use rocknet_proto::h1::{Answered, ClientConnection, Length, RequestLine};
use rocknet_proto::limits::Limits;
use rocknet_proto::proxy_protocol::Announced;
use rocknet_proto::response::ResponseIndex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::announcement;
use super::upstream::{Upstream, Way};

/// Head of an answer to a check: those that say more are not what checks are for.
const MAX_HEAD: usize = 16 * 1024;

/// Why the server is not well.
pub async fn check(upstream: &Upstream, health: &Health) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let status = match upstream.way() {
        Way::Unix(path) => ask(UnixStream::connect(path).await.map_err(told)?, upstream, health).await?,
        Way::Tcp(addresses) => {
            ask(
                TcpStream::connect(&addresses[..]).await.map_err(told)?,
                upstream,
                health,
            )
            .await?
        }
        Way::Unknown => return Err("its name is not known yet".to_owned()),
        Way::Nowhere(error) => return Err(error.to_string()),
    };
    let is_well = match health.status {
        Some(wanted) => status == wanted,
        None => (200..400).contains(&status),
    };
    match is_well {
        true => Ok(()),
        false => Err(format!("it answers {status}")),
    }
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    upstream: &Upstream,
    health: &Health,
) -> Result<u16, String> {
    let mut engine = ClientConnection::new();
    let line = RequestLine {
        method: b"GET",
        target: health.path.as_bytes(),
        host: upstream.host.as_bytes(),
        length: Length::None,
        upgrade: None,
        close: true,
    };
    let mut bytes = Vec::new();
    if let Some(version) = upstream.announce {
        announcement::write(version, &Announced::Own, &mut bytes);
    }
    let fields = [(&b"User-Agent"[..], &b"RockNet (health check)"[..])];
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
                Answered::Response { .. } => return Ok(index.status.code()),
                Answered::Interim { consumed } => at += consumed,
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
