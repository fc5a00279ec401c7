//! A site that waits for its certificate: the issuer with its store, and the listeners that serve from the store.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rocknet::certificates::acme::{AcmeIssuer, Clock};
use rocknet::certificates::storage::FileStorage;
use rocknet::certificates::{Authority, CertificateRequest, CertificateSet, CertificateStore, Issuer};
use rocknet_config::model::Acme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, Stream};

use crate::pebble::{HTTP_PORT, TIMEOUT, TLS_PORT};

pub struct Site {
    pub folder: Arc<tempfile::TempDir>,
    pub clock: Clock,
    pub store: Arc<CertificateStore>,
    pub issuer: AcmeIssuer,
    /// Paths that the CA requested over plain HTTP.
    pub requested: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub fn new(settings: &Acme) -> Site {
        Site::in_folder(Arc::new(tempfile::tempdir().unwrap()), settings, Clock::default())
    }

    /// Builds the site in the folder of an earlier process, as after a restart.
    pub fn in_folder(folder: Arc<tempfile::TempDir>, settings: &Acme, clock: Clock) -> Site {
        let storage = Arc::new(FileStorage::new(folder.path()));
        Site {
            issuer: AcmeIssuer::with_storage(storage, settings, clock.clone()),
            folder,
            clock,
            store: Arc::default(),
            requested: Arc::default(),
        }
    }

    /// Requests certificates for the names of a site. The issuer orders one certificate for each name.
    pub fn request(&mut self, names: &[&str]) {
        let request = CertificateRequest {
            site: names[0].to_owned(),
            authority: Authority::Acme,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.issuer.set_requests(&[request], &self.store);
    }

    /// Waits for the certificate of a name and returns it.
    pub fn wait_for(&self, name: &str) -> Arc<CertificateSet> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(set) = self.store.find(name) {
                return set;
            }
            let failures = self.failures(name);
            assert!(Instant::now() < deadline, "no certificate for {name}: {failures:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stored record of the failures of a name.
    pub fn failures(&self, name: &str) -> Option<serde_json::Value> {
        let file = self.folder.path().join(format!("acme/failures/{name}.json"));
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    /// Serves the proofs at this address, as the server does on its ports.
    pub fn listen(&self, ip: Ipv4Addr) {
        let (store, requested) = (Arc::clone(&self.store), Arc::clone(&self.requested));
        let clear = TcpListener::bind((ip, HTTP_PORT)).unwrap();
        thread::spawn(move || {
            for mut stream in clear.incoming().flatten() {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                let target = String::from_utf8_lossy(&head[..read]);
                let target = target.split(' ').nth(1).unwrap_or_default().to_owned();
                let token = target.strip_prefix("/.well-known/acme-challenge/").unwrap_or_default();
                let response = match store.http_challenge(token) {
                    Some(text) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
                    None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
                };
                requested.lock().unwrap().push(target);
                let _ = stream.write_all(response.as_bytes());
            }
        });
        let secure = TcpListener::bind((ip, TLS_PORT)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let resolver = Arc::new(ChallengeResolver(Arc::clone(&self.store)));
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        let config = Arc::new(config);
        thread::spawn(move || {
            for mut stream in secure.incoming().flatten() {
                let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                // Reading drives the handshake. The CA sends no data after it.
                let _ = Stream::new(&mut tls, &mut stream).read(&mut [0; 16]);
            }
        });
    }
}

#[derive(Debug)]
struct ChallengeResolver(Arc<CertificateStore>);

impl ResolvesServerCert for ChallengeResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.tls_alpn_challenge(hello.server_name()?)
    }
}

/// Leaf certificate of a set, to distinguish one certificate from another.
pub fn leaf(set: &CertificateSet) -> Vec<u8> {
    set.certificates()[0].key().cert[0].to_vec()
}

pub fn not_after(set: &CertificateSet) -> SystemTime {
    set.certificates()[0].not_after()
}
