//! TLS clients: a client in this process, and command-line tools such as OpenSSL.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::certs::Leaf;
use super::client::Stream;
use super::{Client, DEADLINE};

/// Settings of a TLS client.
pub struct TlsClient<'w> {
    pub roots: RootCertStore,
    /// Server name for SNI and for the verification of the certificate.
    pub name: &'w str,
    /// True if the client sends SNI.
    pub sni: bool,
    /// Only protocol version that the client offers; `None` for all.
    pub only: Option<&'static rustls::SupportedProtocolVersion>,
    /// Client certificate.
    pub own: Option<&'w Leaf>,
    pub alpn: &'w [&'w [u8]],
}

impl<'w> TlsClient<'w> {
    pub fn new(roots: RootCertStore, name: &'w str) -> TlsClient<'w> {
        TlsClient {
            roots,
            name,
            sni: true,
            only: None,
            own: None,
            alpn: &[b"http/1.1"],
        }
    }

    pub fn config(&self) -> ClientConfig {
        let versions: &[_] = match self.only {
            Some(only) => &[only],
            None => &[&TLS13, &TLS12],
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(self.roots.clone());
        let mut config = match self.own {
            None => builder.with_no_client_auth(),
            Some(leaf) => {
                let chain = std::iter::once(&leaf.der).chain(&leaf.chain).cloned().collect();
                builder
                    .with_client_auth_cert(chain, leaf.private_key())
                    .expect("a certificate of the client's own")
            }
        };
        config.enable_sni = self.sni;
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// Connects and completes the handshake.
    pub fn open(&self, address: SocketAddr) -> io::Result<Tls> {
        open(address, &Arc::new(self.config()), self.name)
    }

    pub fn client(&self, address: SocketAddr) -> Client {
        Client::over(self.open(address).expect("a handshake"))
    }
}

/// TLS connection after its handshake.
pub struct Tls(pub StreamOwned<ClientConnection, TcpStream>);

/// Connects to the server `name` and completes the handshake.
pub fn open(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> io::Result<Tls> {
    let mut socket = TcpStream::connect_timeout(&address, DEADLINE)?;
    Stream::set_deadline(&socket, DEADLINE)?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    Ok(Tls(StreamOwned::new(tls, socket)))
}

impl Tls {
    /// Returns the certificate that the server presented.
    pub fn peer_certificate(&self) -> CertificateDer<'static> {
        let chain = self.0.conn.peer_certificates().expect("a chain");
        chain[0].clone().into_owned()
    }
}

impl io::Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl io::Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Stream for Tls {
    fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        Stream::set_deadline(&self.0.sock, deadline)
    }

    fn end(&self) -> io::Result<()> {
        Stream::end(&self.0.sock)
    }
}

/// Runs a tool with `input` on standard input. Returns standard output followed by standard error.
pub fn tool(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    let mut stdin = child.stdin.take().expect("its input");
    // If the tool has already exited, its output shows the reason.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
