//! `reference-h3 PORT CHAIN KEY FOLDER`: the usual way to make an HTTP/3 server in Rust, `quinn` with the `h3` crate on
//! one thread of `tokio`.
//!
//! `/hello.html` is 13 bytes in memory. Other paths are files of FOLDER, which are read in pieces.

use bench_h3::tls;
use bytes::Bytes;
use h3::quic::BidiStream;
use h3::server::RequestStream;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED, SERVER};
use http::{Request, Response, StatusCode};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{LocalSet, spawn_local};

const HELLO: &str = "/hello.html";
const BODY: &[u8] = b"Hello, world!";
/// Bytes of a file that are read at once. Larger pieces were not faster.
const PIECE: u64 = 64 << 10;
/// Streams that a client may have open, as at other servers.
const STREAMS: u32 = 128;

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, chain, key, folder] = &arguments[..] else {
        eprintln!("usage: reference-h3 PORT CHAIN KEY FOLDER");
        std::process::exit(2);
    };
    let served = port
        .parse()
        .map_err(Into::into)
        .and_then(|port| run(port, chain, key, folder));
    if let Err(error) = served {
        eprintln!("reference-h3: {error}");
        std::process::exit(1);
    }
}

fn run(port: u16, chain: &str, key: &str, folder: &str) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tls = tls::server(Path::new(chain), Path::new(key))?;
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_bidi_streams(STREAMS.into());
    let mut config = quinn::ServerConfig::with_crypto(tls);
    config.transport_config(Arc::new(transport));
    let folder: Rc<PathBuf> = Rc::new(folder.into());
    LocalSet::new().block_on(&runtime, async move {
        let endpoint = quinn::Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        while let Some(incoming) = endpoint.accept().await {
            let folder = Rc::clone(&folder);
            // A connection or a request that fails ends only itself.
            spawn_local(async move { drop(serve(incoming, folder).await) });
        }
        Ok(())
    })
}

async fn serve(incoming: quinn::Incoming, folder: Rc<PathBuf>) -> Result<(), Box<dyn Error>> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::Connection::new(connection).await?;
    while let Some(resolver) = connection.accept().await? {
        let folder = Rc::clone(&folder);
        spawn_local(async move {
            if let Ok((request, stream)) = resolver.resolve_request().await {
                drop(respond(&request, stream, &folder).await);
            }
        });
    }
    Ok(())
}

async fn respond(request: &Request<()>, mut stream: Stream, folder: &Path) -> Result<(), Box<dyn Error>> {
    let path = request.uri().path();
    if path == HELLO {
        stream.send_response(head(StatusCode::OK, BODY.len() as u64)?).await?;
        stream.send_data(Bytes::from_static(BODY)).await?;
    } else {
        match File::open(folder.join(path.trim_start_matches('/'))) {
            Ok(file) => send_file(&mut stream, file).await?,
            Err(_) => stream.send_response(head(StatusCode::NOT_FOUND, 0)?).await?,
        }
    }
    stream.finish().await?;
    Ok(())
}

async fn send_file<S: BidiStream<Bytes>>(
    stream: &mut RequestStream<S, Bytes>,
    file: File,
) -> Result<(), Box<dyn Error>> {
    let length = file.metadata()?.len();
    stream.send_response(head(StatusCode::OK, length)?).await?;
    loop {
        // The file is in memory, so that a read does not block for long.
        let mut piece = Vec::with_capacity(PIECE as usize);
        if (&file).take(PIECE).read_to_end(&mut piece)? == 0 {
            return Ok(());
        }
        stream.send_data(piece.into()).await?;
    }
}

/// Returns a head with the fields of a real server.
fn head(status: StatusCode, length: u64) -> http::Result<Response<()>> {
    Response::builder()
        .status(status)
        .header(SERVER, "Reference")
        .header(DATE, "Sat, 21 Nov 2026 09:00:00 GMT")
        .header(CONTENT_TYPE, "text/html; charset=utf-8")
        .header(CONTENT_LENGTH, length)
        .header(LAST_MODIFIED, "Sat, 21 Nov 2026 08:00:00 GMT")
        .header(ETAG, format!("\"18a9f2c4d3e5b600-{length:x}\""))
        .header(ACCEPT_RANGES, "bytes")
        .body(())
}
