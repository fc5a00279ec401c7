//! HTTP/3 client behind the byte stream of an HTTP/1.1 client, so that tests written for HTTP/1.1 can run over HTTP/3.
//!
//! Written bytes are parsed as HTTP/1.1 requests, and each is sent on a stream of its own. Responses are read in the
//! order of their requests, as HTTP/1.1: a body without a length is chunked, and a stream that is reset ends the bytes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use h3_quinn::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;

use super::DEADLINE;
use super::client::Stream;
use super::http3::Http3Client;
use super::tls_client::TlsClient;

/// Maximum number of pieces of a response that wait for the reader. Until the reader takes one, the stream is not read,
/// so that its window fills up.
const PIECES: usize = 2;

/// Fields that belong to a connection of HTTP/1.1 (RFC 9114 §4.2).
const CONNECTION_SPECIFIC: &[&str] = &["host", "connection", "keep-alive", "transfer-encoding"];

type Sender = RequestStream<SendStream<Bytes>, Bytes>;
type Receiver = RequestStream<RecvStream, Bytes>;

/// Connection with requests in progress.
pub struct Http3Stream {
    client: Http3Client,
    /// Written bytes that are not yet part of a request.
    unsent: Vec<u8>,
    /// Request whose body is not complete.
    body: Option<(Sender, Body)>,
    responses: VecDeque<mpsc::Receiver<io::Result<Bytes>>>,
    /// Part of a response that the reader has not taken.
    unread: Bytes,
    deadline: Cell<Duration>,
    /// True if the client closes after the response that is read last (`Connection: close`).
    is_last: bool,
}

/// Part of a request body that follows.
enum Body {
    /// Number of bytes.
    Length(usize),
    /// Start of a chunk, or of the trailers.
    Chunks,
    /// Rest of a chunk, and the end of its line.
    Chunk(usize),
}

impl Http3Stream {
    /// Opens a connection.
    pub fn open(client: &TlsClient<'_>, address: SocketAddr) -> Http3Stream {
        Http3Stream {
            client: Http3Client::open(client, address).expect("a connection"),
            unsent: Vec::new(),
            body: None,
            responses: VecDeque::new(),
            unread: Bytes::new(),
            deadline: Cell::new(DEADLINE),
            is_last: false,
        }
    }

    /// Sends the next request in the written bytes, or a part of its body. Returns false if more bytes are needed.
    fn advance(&mut self) -> io::Result<bool> {
        let Some((mut sender, body)) = self.body.take() else {
            return self.begin_request();
        };
        let before = self.unsent.len();
        let (body, piece) = match body {
            Body::Length(length) => {
                let size = length.min(before);
                (Body::Length(length - size), self.take(size))
            }
            Body::Chunk(length) => {
                let size = length.min(before);
                // The last two bytes end the line of the chunk.
                let content = size.min(length.saturating_sub(2));
                let piece = self.take(size).slice(..content);
                let is_whole = length == size;
                (
                    if is_whole {
                        Body::Chunks
                    } else {
                        Body::Chunk(length - size)
                    },
                    piece,
                )
            }
            Body::Chunks => {
                let line = self.take_until(b"\r\n");
                let size = line.map(|line| usize::from_str_radix(line.trim(), 16).expect("a chunk size"));
                match size {
                    None => (Body::Chunks, Bytes::new()),
                    Some(0) => {
                        self.end_chunks(sender);
                        return Ok(true);
                    }
                    Some(size) => (Body::Chunk(size + 2), Bytes::new()),
                }
            }
        };
        if !piece.is_empty() {
            let sent = self.client.try_block_on(self.deadline.get(), sender.send_data(piece));
            // An error means that the server has stopped the stream, because it has responded already.
            sent.map(drop).ok_or(ErrorKind::WouldBlock)?;
        }
        if matches!(body, Body::Length(0)) {
            let _ = self.client.block_on(sender.finish());
        } else {
            self.body = Some((sender, body));
        }
        Ok(self.unsent.len() < before)
    }

    /// Sends the trailers after the last chunk.
    fn end_chunks(&mut self, mut sender: Sender) {
        let mut trailers = HeaderMap::new();
        while let Some(line) = self.take_until(b"\r\n") {
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            trailers.append(to_name(name), to_value(value));
        }
        self.client.block_on(async {
            if !trailers.is_empty() {
                let _ = sender.send_trailers(trailers).await;
            }
            let _ = sender.finish().await;
        });
    }

    fn take(&mut self, size: usize) -> Bytes {
        self.unsent.drain(..size).collect::<Vec<_>>().into()
    }

    /// Removes the written bytes up to and including `end`, and returns those before it.
    fn take_until(&mut self, end: &[u8]) -> Option<String> {
        let at = self.unsent.windows(end.len()).position(|window| window == end)?;
        let bytes = self.take(at + end.len());
        Some(String::from_utf8(bytes[..at].to_vec()).expect("a request in UTF-8"))
    }

    /// Sends the head of the next request. Returns false if the head is not complete.
    fn begin_request(&mut self) -> io::Result<bool> {
        let Some(head) = self.take_until(b"\r\n\r\n") else {
            return Ok(false);
        };
        let Request { head, body, is_last } = parse(&head);
        self.is_last = is_last;
        let method = head.method().clone();
        let mut requests = self.client.sender();
        let is_end = matches!(body, Body::Length(0));
        // A task of the client's thread sends the head and the end, so that both are sent together, as browsers do.
        let sent = self.client.spawn(async move {
            let mut stream = requests.send_request(head).await?;
            if is_end {
                let _ = stream.finish().await;
            }
            Ok::<_, h3::error::StreamError>(stream.split())
        });
        let sent = self.client.block_on(sent).expect("no panic");
        let (sender, receiver) = sent.map_err(|error| io::Error::new(ErrorKind::ConnectionReset, error))?;
        let (pieces, response) = mpsc::channel(PIECES);
        self.responses.push_back(response);
        self.client.spawn(async move {
            if let Err(error) = receive(receiver, method == http::Method::HEAD, &pieces).await {
                let _ = pieces
                    .send(Err(io::Error::new(ErrorKind::ConnectionReset, error)))
                    .await;
            }
        });
        if !is_end {
            self.body = Some((sender, body));
        }
        Ok(true)
    }
}

/// Request head, and the framing of the body that follows.
struct Request {
    head: http::Request<()>,
    body: Body,
    /// True if the connection ends after the response.
    is_last: bool,
}

/// Parses the head of a request. Fields of the connection are left out.
fn parse(head: &str) -> Request {
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let (mut host, mut body, mut fields) = ("localhost", Body::Length(0), Vec::new());
    let mut is_last = false;
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} is no field"));
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match name.as_str() {
            "host" => host = value,
            "content-length" => body = Body::Length(value.parse().expect("a length")),
            "transfer-encoding" => body = Body::Chunks,
            "connection" => is_last = value == "close",
            _ => {}
        }
        if !CONNECTION_SPECIFIC.contains(&name.as_str()) {
            fields.push((name, value));
        }
    }
    let uri = http::Uri::builder()
        .scheme("https")
        .authority(host)
        .path_and_query(target)
        .build()
        .unwrap_or_else(|error| panic!("{host} and {target} make no URI: {error}"));
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(to_name(&name), to_value(value));
    }
    Request {
        head: request.body(()).expect("a request"),
        body,
        is_last,
    }
}

fn to_name(name: &str) -> HeaderName {
    HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).expect("a field name")
}

fn to_value(value: &str) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).expect("a field value")
}

/// Receives a response and passes it on as HTTP/1.1.
async fn receive(
    mut stream: Receiver,
    is_head: bool,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), h3::error::StreamError> {
    let is_chunked = loop {
        let response = stream.recv_response().await?;
        let status = response.status().as_u16();
        let is_interim = status < 200;
        let has_body = !is_head && !is_interim && !matches!(status, 204 | 304);
        let is_chunked = has_body && !response.headers().contains_key("content-length");
        let mut head = format!("HTTP/1.1 {status} \r\n").into_bytes();
        write_fields(response.headers(), &mut head);
        if is_chunked {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        head.extend_from_slice(b"\r\n");
        if pieces.send(Ok(head.into())).await.is_err() {
            return Ok(());
        }
        if !is_interim {
            break is_chunked;
        }
    };
    while let Some(mut piece) = stream.recv_data().await? {
        let piece = piece.copy_to_bytes(piece.remaining());
        let chunk = match is_chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"]
                .concat()
                .into(),
            false => piece,
        };
        if pieces.send(Ok(chunk)).await.is_err() {
            return Ok(());
        }
    }
    let trailers = stream.recv_trailers().await?;
    if is_chunked {
        let mut end = b"0\r\n".to_vec();
        write_fields(&trailers.unwrap_or_default(), &mut end);
        end.extend_from_slice(b"\r\n");
        let _ = pieces.send(Ok(end.into())).await;
    }
    Ok(())
}

/// Writes fields with the capital letters that HTTP/1.1 servers use.
fn write_fields(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        let words: Vec<String> = name
            .as_str()
            .split('-')
            .map(|word| match word {
                "etag" => "ETag".to_owned(),
                "www" => "WWW".to_owned(),
                _ => word.get(..1).unwrap_or_default().to_ascii_uppercase() + word.get(1..).unwrap_or_default(),
            })
            .collect();
        out.extend_from_slice(words.join("-").as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

impl Read for Http3Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            let deadline = self.deadline.get();
            let Some(response) = self.responses.front_mut() else {
                if self.is_last {
                    return Ok(0);
                }
                // Without a response in progress, only the end of the connection remains.
                let closed = self.client.connection.closed();
                let closed = self.client.try_block_on(deadline, closed);
                return closed.map(|_| 0).ok_or(ErrorKind::WouldBlock.into());
            };
            match self.client.try_block_on(deadline, response.recv()) {
                None => return Err(ErrorKind::WouldBlock.into()),
                Some(Some(Ok(piece))) => self.unread = piece,
                Some(Some(Err(error))) => {
                    self.responses.pop_front();
                    return Err(error);
                }
                Some(None) => drop(self.responses.pop_front()),
            }
        }
        let size = buffer.len().min(self.unread.len());
        self.unread.copy_to_slice(&mut buffer[..size]);
        Ok(size)
    }
}

impl Write for Http3Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unsent.extend_from_slice(bytes);
        while self.advance()? {}
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Http3Stream {
    fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        self.deadline.set(deadline);
        Ok(())
    }

    /// Does nothing, because each request has ended its own stream.
    fn end(&self) -> io::Result<()> {
        assert!(self.body.is_none(), "a request that is not complete");
        Ok(())
    }
}
