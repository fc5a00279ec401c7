//! A scripted CA: it creates accounts and refuses every order in the same way.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rocknet_config::model::AcmeCa;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivatePkcs8KeyDer;

use crate::pebble::own_address;

pub struct ScriptedCa {
    pub ca: AcmeCa,
    /// Paths that were requested.
    pub requested: Arc<Mutex<Vec<String>>>,
    root: String,
}

impl ScriptedCa {
    /// Starts the CA. `order` is the status line, header fields and body of its response to every new order.
    pub fn new(order: &'static str) -> ScriptedCa {
        let ip: Ipv4Addr = own_address();
        let made = rcgen::generate_simple_self_signed([ip.to_string()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind((ip, 0)).unwrap());
        let base = format!("https://{}", listener.local_addr().unwrap());
        let requested: Arc<Mutex<Vec<String>>> = Arc::default();
        let scripted = ScriptedCa {
            ca: AcmeCa {
                url: format!("{base}/dir"),
                binding: None,
            },
            requested: Arc::clone(&requested),
            root: made.cert.pem(),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                let (base, requested) = (base.clone(), Arc::clone(&requested));
                thread::spawn(move || serve(StreamOwned::new(tls, stream), &base, order, &requested));
            }
        });
        scripted
    }

    /// Appends the root certificate of this CA to a file.
    pub fn add_root(&self, file: &Path) {
        let mut all = std::fs::read_to_string(file).unwrap_or_default();
        all.push_str(&self.root);
        std::fs::write(file, all).unwrap();
    }

    /// Number of orders that the CA has received.
    pub fn orders(&self) -> usize {
        self.requested
            .lock()
            .unwrap()
            .iter()
            .filter(|path| *path == "/order")
            .count()
    }
}

fn serve(stream: impl Read + Write, base: &str, order: &str, requested: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            match stream.read_line(&mut line) {
                Ok(read) if read > 0 => {}
                _ => return,
            }
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            } else if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        let directory = format!(
            r#"{{"newNonce":"{base}/nonce","newAccount":"{base}/account","newOrder":"{base}/order","revokeCert":"{base}/r","keyChange":"{base}/k"}}"#
        );
        let (head, body) = match path.as_str() {
            "/dir" => ("200 OK".to_owned(), directory.as_str()),
            "/nonce" => ("200 OK".to_owned(), ""),
            "/account" => (
                format!("201 Created\r\nLocation: {base}/account/1"),
                r#"{"status":"valid"}"#,
            ),
            // Every other request is a new order.
            _ => {
                let (head, body) = order.split_once("\r\n\r\n").unwrap();
                (head.to_owned(), body)
            }
        };
        requested.lock().unwrap().push(path);
        let fields = "Replay-Nonce: bm9uY2U\r\nContent-Type: application/json";
        let response = format!(
            "HTTP/1.1 {head}\r\n{fields}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream
            .get_mut()
            .write_all(response.as_bytes())
            .and_then(|()| stream.get_mut().flush())
            .is_err()
        {
            return;
        }
    }
}
