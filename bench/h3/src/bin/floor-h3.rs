//! `floor-h3 PORT CHAIN KEY`: sends the same 13 bytes for every request of HTTP/3.
//!
//! The program runs `quinn-proto` on the event loop of the load generator and does the minimum for each request. It
//! reads the request to its end without parsing it, and writes frames that were encoded in advance. The response head
//! has the fields of a real server. There are no QPACK streams, limits, deadlines or paths.

use bench_h3::event_loop::{EventLoop, Program};
use bench_h3::udp::Socket;
use bench_h3::varint::{CONTROL_STREAM, DATA, HEADERS, write_frame};
use bench_h3::{qpack, tls};
use bytes::Bytes;
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{
    Connection, Dir, Endpoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BODY: &[u8] = b"Hello, world!";
/// Streams that a client may have open, as at other servers.
const STREAMS: u32 = 128;
/// Response fields: the index of the name in the static table (RFC 9204, appendix A), and the value.
const FIELDS: &[(u8, &str)] = &[
    (92, "Floor"),
    (6, "Sat, 21 Nov 2026 09:00:00 GMT"),
    (44, "text/html; charset=utf-8"),
    (4, "13"),
    (10, "Sat, 21 Nov 2026 08:00:00 GMT"),
    (7, "\"18a9f2c4d3e5b600-d\""),
    (32, "bytes"),
];

struct Floor {
    response: Bytes,
}

impl Floor {
    fn new() -> Self {
        let mut response = Vec::new();
        write_frame(HEADERS, &qpack::ok(FIELDS), &mut response);
        write_frame(DATA, BODY, &mut response);
        Self {
            response: response.into(),
        }
    }

    fn read(&self, connection: &mut Connection, stream: StreamId) {
        let mut receiver = connection.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else {
            return;
        };
        let is_end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let _ = chunks.finalize();
        if is_end && stream.dir() == Dir::Bi {
            let mut sender = connection.send_stream(stream);
            // An error means that the client has stopped the stream.
            let _ = sender.write_chunks(&mut [self.response.clone()]);
            let _ = sender.finish();
        }
    }
}

impl Program for Floor {
    type State = ();

    fn accept(&mut self) {}

    fn process(&mut self, connection: &mut Connection, (): &mut (), _: Instant) {
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    if let Some(control) = connection.streams().open(Dir::Uni) {
                        let _ = connection.send_stream(control).write(CONTROL_STREAM);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = connection.streams().accept(dir) {
                        self.read(connection, stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(connection, id),
                _ => {}
            }
        }
    }
}

fn serve(port: u16, chain: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .congestion_controller_factory(Arc::new(CubicConfig::default()));
    let mut config = ServerConfig::with_crypto(tls::server(Path::new(chain), Path::new(key))?);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(config)), true, None);
    let socket = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let mut events = EventLoop::new(endpoint, vec![socket])?;
    let mut floor = Floor::new();
    loop {
        events.run_once(&mut floor, None)?;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, chain, key] = &arguments[..] else {
        eprintln!("usage: floor-h3 PORT CHAIN KEY");
        std::process::exit(2);
    };
    let served = port
        .parse()
        .map_err(Into::into)
        .and_then(|port| serve(port, chain, key));
    if let Err(error) = served {
        eprintln!("floor-h3: {error}");
        std::process::exit(1);
    }
}
