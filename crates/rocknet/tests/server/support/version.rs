//! Runs a test over HTTP/3: the servers that the test starts also listen for HTTP/3, and its clients use HTTP/3.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::certs::{Authority, Kind};
use super::http3_stream::Http3Stream;
use super::tls_client::TlsClient;
use super::{Client, Folder};

/// Address at which the servers of a test listen for HTTP/3. It differs from 127.0.0.1, at which they listen without
/// TLS, because one address has one scheme.
const SECURE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99));

thread_local! {
    /// Number of connections over HTTP/3 in the test of this thread; `None` if the test runs over HTTP/1.1.
    static CONNECTIONS: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
}

/// Runs the test function `case` over HTTP/3. Panics if the test opens no connection over HTTP/3.
pub fn over_http3(case: fn()) {
    let connections = Arc::<AtomicUsize>::default();
    CONNECTIONS.set(Some(Arc::clone(&connections)));
    case();
    CONNECTIONS.take();
    assert!(
        connections.load(Ordering::Relaxed) > 0,
        "the case opens no connection over HTTP/3"
    );
}

/// HTTP/3 of one server.
pub struct Http3Access {
    authority: Authority,
    /// Server name that clients send (SNI).
    name: OnceLock<String>,
    connections: Arc<AtomicUsize>,
}

impl Http3Access {
    /// Returns the access to a server that the test of this thread starts; `None` if the test runs over HTTP/1.1.
    pub fn of_case() -> Option<Http3Access> {
        let connections = CONNECTIONS.with_borrow(Option::clone)?;
        Some(Http3Access {
            authority: Authority::new("suite"),
            name: OnceLock::new(),
            connections,
        })
    }

    /// Returns a configuration whose sites listen for HTTP/3 as well, except sites with another `listen` than the usual
    /// one of the tests.
    pub fn configure(&self, folder: &Folder, text: &str) -> String {
        let mut names: Vec<&str> = text.lines().filter_map(site_name).collect();
        names.push("localhost");
        let is_default = text.contains("[site.default]");
        self.name
            .get_or_init(|| if is_default { "localhost" } else { names[0] }.to_owned());
        self.authority.leaf(Kind::Ecdsa, &names).write(folder, "suite");
        let tls = "tls = { cert = \"suite.pem\", key = \"suite.key\", redirect = false, hsts = \"0s\" }";
        let listen = format!("listen = [\"http://127.0.0.1:0\", \"https://{SECURE}:0\"]\n{tls}");
        let lines = text.lines().map(|line| match line {
            "listen = \"127.0.0.1:0\"" | "listen = \"http://127.0.0.1:0\"" => &listen,
            line => line,
        });
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }

    /// Opens a connection to the server that listens at these addresses.
    pub fn connect(&self, addresses: &[SocketAddr]) -> Client {
        let address = addresses.iter().find(|address| is_secure(address));
        let address = *address.expect("a site that listens for HTTP/3");
        self.connections.fetch_add(1, Ordering::Relaxed);
        let name = self.name.get().expect("a server that was configured");
        Client::over(Http3Stream::open(
            &TlsClient::new(self.authority.roots(), name),
            address,
        ))
    }
}

/// Returns true if a server listens for HTTP/3 at this address.
pub fn is_secure(address: &SocketAddr) -> bool {
    address.ip() == SECURE
}

/// Returns the name in the header of the table of a site.
fn site_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("[site.\"")?.strip_suffix("\"]")?;
    (name.contains('.') && !name.contains(['/', ':', '*'])).then_some(name)
}
