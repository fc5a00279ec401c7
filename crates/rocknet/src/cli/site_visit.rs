//! Visits to the server's own sites: the start page is requested from this machine as a browser would.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rocknet_control::site_visit::SiteVisit;
use rocknet_control::{ListeningSocket, SiteSummary};
use rocknet_proxy::accept_any_certificate::AcceptAnyCertificate;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// Maximum wait for the connection, and for each part of the response. The first request to a PHP site starts
/// processes.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum size in bytes of the head of the response, interim responses included.
const MAX_HEAD: u64 = 64 << 10;

/// Requests the start page of a site. Returns an empty visit if the site has no URL of HTTP, such as a site on a Unix
/// socket. `sockets`: listening sockets of the server.
pub fn visit(site: &SiteSummary, sockets: &[ListeningSocket]) -> SiteVisit {
    // Visitors see the page that is served over HTTPS. A request in the clear may get only a redirect to it.
    let url_of = |scheme: &str| site.urls.iter().find(|url| url.starts_with(scheme));
    let Some(url) = url_of("https://").or_else(|| url_of("http://")) else {
        return SiteVisit::default();
    };
    // For a wildcard, one name that it matches is requested.
    let url = url.replacen("://*.", "://www.", 1);
    let result = match &site.fault {
        Some(fault) => Err(fault.clone()),
        None => request(&url, sockets).map_err(|error| error.to_string()),
    };
    SiteVisit {
        url,
        status: result.as_ref().ok().copied(),
        error: result.err(),
    }
}

/// Requests a URL from this machine, and returns the status of the response.
fn request(url: &str, sockets: &[ListeningSocket]) -> io::Result<u16> {
    let (scheme, rest) = url.split_once("://").ok_or(io::ErrorKind::InvalidInput)?;
    let authority = rest.split('/').next().unwrap_or_default();
    let is_secure = scheme == "https";
    let (host, port) = split(authority, if is_secure { 443 } else { 80 });
    let socket = TcpStream::connect_timeout(&address(host, port, sockets), TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    match is_secure {
        true => exchange(secure(socket, host)?, authority),
        false => exchange(socket, authority),
    }
    .map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::other(format!("no response within {} seconds", TIMEOUT.as_secs()))
        }
        _ => error,
    })
}

/// Splits the authority of a URL into host and port.
fn split(authority: &str, default: u16) -> (&str, u16) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(default)),
        _ => (authority, default),
    }
}

/// Returns the address of this machine at which the server listens for a host.
fn address(host: &str, port: u16, sockets: &[ListeningSocket]) -> SocketAddr {
    let named = host.trim_matches(['[', ']']).parse().ok();
    let mut bound = sockets
        .iter()
        .filter(|socket| socket.port == port && socket.file.is_none());
    let first = bound.clone().next().and_then(|socket| socket.ip);
    // A socket without an IP address accepts connections at any address of the machine, the loopback address included.
    let ip = match bound.any(|socket| socket.ip.is_none()) {
        true => named,
        false => named.or(first),
    };
    SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port)
}

/// Sends the request, and returns the status of the final response.
fn exchange(mut stream: impl Read + Write, authority: &str) -> io::Result<u16> {
    let request =
        format!("GET / HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: rocknet-visit\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut head = BufReader::new(stream.take(MAX_HEAD));
    loop {
        let mut line = Vec::new();
        head.read_until(b'\n', &mut line)?;
        let status = std::str::from_utf8(&line)
            .ok()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|rest| rest.get(..3)?.parse().ok());
        match status {
            // Interim responses come before the final one.
            Some(100..=199) => {
                while !matches!(&line[..], b"\r\n" | b"\n" | b"") {
                    line.clear();
                    head.read_until(b'\n', &mut line)?;
                }
            }
            Some(status) => return Ok(status),
            None => return Err(io::Error::other("the response is not one of HTTP/1.1")),
        }
    }
}

/// Completes a TLS handshake. Any certificate is accepted, because the visit checks only the response.
fn secure(mut socket: TcpStream, host: &str) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(&provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(tls, socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Replies to one request. Returns the port, and the thread, which returns the request.
    fn serve_once(response: &'static [u8]) -> (u16, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(response).unwrap();
            String::from_utf8(head).unwrap()
        });
        (port, server)
    }

    fn site(url: String) -> SiteSummary {
        SiteSummary {
            urls: vec!["unix:/s".to_owned(), url],
            ..SiteSummary::default()
        }
    }

    #[test]
    fn the_status_of_the_final_response_is_returned() {
        let (port, server) = serve_once(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n");
        let site = site(format!("http://*.a.test:{port}/"));
        let visited = visit(&site, &[]);
        let expected = SiteVisit {
            url: format!("http://www.a.test:{port}/"),
            status: Some(404),
            error: None,
        };
        assert_eq!(visited, expected);
        let head = server.join().unwrap();
        assert!(head.contains(&format!("Host: www.a.test:{port}\r\n")), "{head}");
        // Nothing listens any more.
        let again = visit(&site, &[]);
        assert!(again.status.is_none() && again.error.is_some());
    }

    #[test]
    fn sites_without_a_response_have_the_reason() {
        for response in [&b"220 ftp\r\n"[..], b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n"] {
            let (port, server) = serve_once(response);
            let visited = visit(&site(format!("http://a.test:{port}/")), &[]);
            let error = visited.error.unwrap();
            assert!(error.contains("not one of HTTP/1.1"), "{error}");
            server.join().unwrap();
        }
        // A redirect in the clear does not stand for the page behind HTTPS.
        let both = SiteSummary {
            urls: vec!["http://127.0.0.1:1/".to_owned(), "https://127.0.0.1:2/".to_owned()],
            ..SiteSummary::default()
        };
        assert_eq!(visit(&both, &[]).url, "https://127.0.0.1:2/");
        let faulty = SiteSummary {
            fault: Some("no root".to_owned()),
            ..site("http://a.test/".to_owned())
        };
        assert_eq!(visit(&faulty, &[]).error.as_deref(), Some("no root"));
        assert_eq!(visit(&SiteSummary::default(), &[]), SiteVisit::default());
    }

    #[test]
    fn the_address_is_one_at_which_the_server_listens() {
        let socket = |ip: Option<&str>, port| ListeningSocket {
            ip: ip.map(|ip| ip.parse().unwrap()),
            port,
            ..ListeningSocket::default()
        };
        let sockets = [
            socket(Some("127.0.0.9"), 81),
            socket(None, 82),
            socket(Some("::1"), 83),
            socket(None, 443),
        ];
        for (authority, default, expected) in [
            ("a.test:81", 80, "127.0.0.9:81"),
            ("a.test:82", 80, "127.0.0.1:82"),
            ("a.test:83", 80, "[::1]:83"),
            ("[::1]:82", 80, "[::1]:82"),
            ("127.0.0.2", 443, "127.0.0.2:443"),
            ("[::1]", 443, "[::1]:443"),
            ("a.test", 80, "127.0.0.1:80"),
        ] {
            let (host, port) = split(authority, default);
            assert_eq!(address(host, port, &sockets).to_string(), expected, "{authority}");
        }
    }
}
