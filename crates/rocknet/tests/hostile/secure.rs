//! Server under attack over QUIC, with innocent clients that it must serve during the attack.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use rustls::RootCertStore;

use crate::SMALL;
use crate::child::{Server, Setup};
use crate::support::certs::{Authority, Kind};
use crate::support::http3::Http3Client;
use crate::support::tls_client::TlsClient;

/// Name of the site.
pub const NAME: &str = "a.test";

/// Child process that listens for HTTP/3.
pub struct SecureServer {
    pub server: Server,
    pub target: Target,
}

/// Address of the server, and the root of its certificate.
pub struct Target {
    pub address: SocketAddr,
    roots: RootCertStore,
}

/// Maximum time until the connections of clients that have ended are closed. If the datagram that closes a QUIC
/// connection is lost, the idle timeout of 30 s closes the connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

impl SecureServer {
    /// Starts a server with the files `page.bin`, which is cached, and `large.bin`. `limits`: keys of `[limits]`.
    pub fn start(limits: &str) -> SecureServer {
        SecureServer::start_with(limits, &[NAME])
    }

    /// Starts a server whose certificate has these names.
    pub fn start_with(limits: &str, names: &[&str]) -> SecureServer {
        let authority = Authority::new("root");
        let leaf = authority.leaf(Kind::Ecdsa, names);
        let mut setup = Setup::new()
            .tables(&format!("[limits]\n{limits}"))
            .keys("tls = { cert = \"a.pem\", key = \"a.key\" }");
        setup.scheme = "https";
        setup.file("page.bin", vec![b'x'; 10_000]);
        setup.sparse("large.bin", 64 << 20);
        let path = |name: &str| setup.folder.path().join(name);
        fs::write(path("a.pem"), &leaf.cert).expect("a file");
        fs::write(path("a.key"), &leaf.key).expect("a file");
        fs::set_permissions(path("a.key"), fs::Permissions::from_mode(0o600)).expect("rights");
        let server = setup.start();
        let target = Target {
            address: server.address(),
            roots: authority.roots(),
        };
        SecureServer { server, target }
    }

    /// Asserts that memory has not grown from `before` by more than `kib`, both in KiB. Then stops the server, which
    /// must not have panicked.
    pub fn finish(mut self, before: u64, kib: u64) {
        let peak = self.server.peak();
        assert!(
            peak <= before + kib,
            "memory grew from {before} KiB to a peak of {peak} KiB, more than the permitted {kib} KiB"
        );
        self.server
            .wait_for_within(CLOSE_LIMIT, "connections close", |status| status.open == 0);
        let (status, errors) = self.server.stop();
        assert!(status.success(), "{status}");
        assert!(!errors.contains("panic"), "{errors}");
    }

    /// Sends a few requests, and returns the resident memory of the server in KiB.
    pub fn warm(&self) -> u64 {
        let client = self.target.connect();
        for _ in 0..10 {
            assert_eq!(client.get("https://a.test/page.bin").status, 200);
            assert_eq!(client.get("https://a.test/small.txt").body, SMALL);
        }
        self.server.memory()
    }
}

impl Target {
    /// Returns the TLS settings of a client.
    pub fn tls(&self) -> TlsClient<'static> {
        TlsClient::new(self.roots.clone(), NAME)
    }

    /// Opens a connection over HTTP/3.
    pub fn connect(&self) -> Http3Client {
        Http3Client::open(&self.tls(), self.address).expect("a connection")
    }

    /// Runs `attack` while an innocent client sends requests on one connection and another opens new connections. All
    /// their requests must succeed. Returns the result of the attack.
    pub fn beside<T: Send>(&self, attack: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let attack = scope.spawn(attack);
            let innocent = self.connect();
            let mut waits = Vec::new();
            let mut is_over = false;
            // The last round begins after the end of the attack.
            while !is_over {
                is_over = attack.is_finished();
                let began = Instant::now();
                assert_eq!(innocent.get("https://a.test/small.txt").body, SMALL);
                waits.push(began.elapsed());
                assert_eq!(self.connect().get("https://a.test/small.txt").body, SMALL);
            }
            waits.sort();
            let median = waits[waits.len() / 2];
            assert!(
                median < MEDIAN_WAIT,
                "the innocent client waited {median:?} in the median"
            );
            attack.join().expect("an attack without a failed assertion")
        })
    }
}

/// Maximum time in which half of the innocent requests get their response. It allows for a busy machine.
const MEDIAN_WAIT: Duration = Duration::from_millis(250);
