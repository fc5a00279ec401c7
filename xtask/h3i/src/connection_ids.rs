//! A client that retires each connection ID of the server as soon as it has another one. Each RETIRE_CONNECTION_ID
//! frame (RFC 9000 §19.16) makes the server issue a new ID, so a server that kept the old ones would run out of memory.

use crate::actions::FILE;
use h3i::quiche::{self, Config, Connection, ConnectionId, RecvInfo, h3};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Number of connection IDs that the client retires.
const RETIRED: u64 = 100_000;
/// Maximum number of unused connection IDs that the client keeps. A server may issue fewer.
const ACTIVE_LIMIT: u64 = 8;
const DATAGRAM_SIZE: usize = 1350;
/// Time after which the flood fails: far longer than a busy machine needs.
const DEADLINE: Duration = Duration::from_secs(60);
/// Size of a connection ID of the client, in bytes.
const CLIENT_ID_SIZE: usize = 16;

/// Retires [`RETIRED`] connection IDs, then sends a request on the same connection, which must be served.
pub fn flood(port: u16) -> Result<u64, String> {
    let mut client = Client::connect(port)?;
    client.run_until(|connection| connection.is_established())?;
    let mut retired = 0;
    while retired < RETIRED {
        let waited = client.run_until(|connection| connection.available_dcids() > 0);
        waited.map_err(|failure| format!("{failure} after {retired} connection IDs"))?;
        while client.connection.available_dcids() > 0 && retired < RETIRED {
            let retire = client.connection.retire_dcid(retired);
            retire.map_err(|error| format!("cannot retire connection ID {retired}: {error}"))?;
            retired += 1;
        }
    }
    client.get()?;
    Ok(retired)
}

struct Client {
    socket: UdpSocket,
    local: SocketAddr,
    connection: Connection,
    started: Instant,
}

impl Client {
    fn connect(port: u16) -> Result<Client, String> {
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let local = socket.local_addr().map_err(|error| error.to_string())?;
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        socket.connect(peer).map_err(|error| error.to_string())?;
        let id = [0x5a; CLIENT_ID_SIZE];
        let mut config = config().map_err(|error| format!("configuration: {error}"))?;
        let connection = quiche::connect(
            Some("localhost"),
            &ConnectionId::from_ref(&id),
            local,
            peer,
            &mut config,
        )
        .map_err(|error| format!("connection: {error}"))?;
        Ok(Client {
            socket,
            local,
            connection,
            started: Instant::now(),
        })
    }

    /// Exchanges datagrams until a condition holds.
    fn run_until(&mut self, mut condition: impl FnMut(&mut Connection) -> bool) -> Result<(), String> {
        loop {
            self.send()?;
            if condition(&mut self.connection) {
                return Ok(());
            }
            if self.connection.is_closed() {
                return Err(format!(
                    "the server closed the connection: {:?}",
                    self.connection.peer_error()
                ));
            }
            if self.started.elapsed() > DEADLINE {
                return Err("timeout".to_owned());
            }
            self.receive()?;
        }
    }

    fn send(&mut self) -> Result<(), String> {
        let mut datagram = [0; DATAGRAM_SIZE];
        loop {
            match self.connection.send(&mut datagram) {
                Ok((length, _)) => self
                    .socket
                    .send(&datagram[..length])
                    .map_err(|error| error.to_string())?,
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(format!("cannot send: {error}")),
            };
        }
    }

    /// Receives one datagram, or waits for the next timer of the connection.
    fn receive(&mut self) -> Result<(), String> {
        let wait = self
            .connection
            .timeout()
            .unwrap_or(DEADLINE)
            .max(Duration::from_millis(1));
        let result = self.socket.set_read_timeout(Some(wait));
        result.map_err(|error| error.to_string())?;
        let mut datagram = [0; 65_535];
        match self.socket.recv_from(&mut datagram) {
            Ok((length, from)) => {
                let info = RecvInfo { from, to: self.local };
                let received = self.connection.recv(&mut datagram[..length], info);
                received
                    .map(|_| ())
                    .map_err(|error| format!("cannot read a datagram: {error}"))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                self.connection.on_timeout();
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends a request and waits for the status 200.
    fn get(&mut self) -> Result<(), String> {
        let config = h3::Config::new().map_err(|error| error.to_string())?;
        let mut http3 = h3::Connection::with_transport(&mut self.connection, &config);
        let http3 = http3.as_mut().map_err(|error| error.to_string())?;
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", FILE),
        ];
        let fields = fields.map(|(name, value)| h3::Header::new(name.as_bytes(), value.as_bytes()));
        let sent = http3.send_request(&mut self.connection, &fields, true);
        sent.map_err(|error| format!("cannot send a request: {error}"))?;
        let mut status = None;
        self.run_until(|connection| {
            while let Ok((_, event)) = http3.poll(connection) {
                if let h3::Event::Headers { list, .. } = event {
                    let of_status = list.iter().find(|field| h3::NameValue::name(*field) == b":status");
                    status = of_status.map(|field| h3::NameValue::value(field).to_owned());
                }
            }
            status.is_some()
        })?;
        match status {
            Some(status) if status == b"200" => Ok(()),
            other => Err(format!("the response has the status {other:?}")),
        }
    }
}

fn config() -> quiche::Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.verify_peer(true);
    config.set_application_protos(&[b"h3"])?;
    config.set_max_send_udp_payload_size(DATAGRAM_SIZE);
    config.set_initial_max_data(1 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 18);
    config.set_initial_max_stream_data_uni(1 << 18);
    config.set_initial_max_streams_uni(3);
    config.set_active_connection_id_limit(ACTIVE_LIMIT);
    Ok(config)
}
