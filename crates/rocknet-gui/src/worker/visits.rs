//! Visits to a website of this machine: its start page is requested as a browser would.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use rocknet_control::SiteSummary;

use crate::job::{Trouble, Visit};
use crate::model::Website;

/// Maximum time for a reply. The first request to a PHP site starts processes.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Requests the start page of a website, and looks its name up.
pub fn visit(site: Option<&SiteSummary>, name: &str) -> Visit {
    let website = site.map(|summary| Website {
        summary: summary.clone(),
        ..Website::default()
    });
    let url = website
        .as_ref()
        .and_then(|website| website.url())
        .unwrap_or_default()
        .to_owned();
    // A request in the clear needs no certificate. If it leads to HTTPS, the website works as well.
    let clear = site.and_then(|site| site.urls.iter().find(|url| url.starts_with("http://")));
    let fault = site.and_then(|site| site.fault.clone());
    // A name below a wildcard stands for all of them.
    let named = |url: &String| url.replacen("://*.", "://www.", 1);
    let any = site.and_then(|site| site.urls.first());
    let reply = match (fault, clear) {
        (Some(fault), _) => Err(fault.into()),
        (None, Some(clear)) => request(&named(clear)),
        (None, None) => connect(&any.map(named).unwrap_or_default()).map(|_| 200),
    };
    Visit {
        url,
        reply,
        name_resolves: resolves(name),
    }
}

/// Splits a URL into host and port.
fn authority(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let default = if scheme == "https" { 443 } else { 80 };
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => Some((host, port.parse().ok()?)),
        _ => Some((authority, default)),
    }
}

/// Connects to the port of a URL on this machine.
fn connect(url: &str) -> Result<TcpStream, Trouble> {
    let (host, port) = authority(url).ok_or(Trouble::NoAddress)?;
    let ip = host
        .trim_matches(['[', ']'])
        .parse()
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let stream = TcpStream::connect_timeout(&SocketAddr::new(ip, port), TIMEOUT)
        .map_err(|error| Trouble::Text(error.to_string()))?;
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&stream, Some(TIMEOUT)).map_err(|error| Trouble::Text(error.to_string()))?;
    }
    Ok(stream)
}

/// Requests a URL in the clear from this machine, and returns the status of the response.
fn request(url: &str) -> Result<u16, Trouble> {
    let mut stream = connect(url)?;
    let host = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .unwrap_or_default();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: rocknet-gui\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .map_err(|error| Trouble::Text(error.to_string()))?;
    // "HTTP/1.1 200": the rest of the response is not needed.
    let mut line = [0; 12];
    stream
        .read_exact(&mut line)
        .map_err(|error| Trouble::Text(error.to_string()))?;
    let status = std::str::from_utf8(&line[9..])
        .ok()
        .and_then(|status| status.parse().ok());
    status.ok_or(Trouble::NotHttp)
}

/// Returns true if the name leads to this machine. A name without a host, such as `:8080`, always does.
fn resolves(name: &str) -> bool {
    if name.starts_with(':') {
        return true;
    }
    let host = name.trim_start_matches("*.").split(':').next().unwrap_or_default();
    // Only addresses of this machine can be bound.
    let is_own = |address: SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    (host, 0)
        .to_socket_addrs()
        .is_ok_and(|mut addresses| addresses.any(is_own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn urls_are_split() {
        for (url, expected) in [
            ("http://a.test:8080/", Some(("a.test", 8080))),
            ("http://a.test/", Some(("a.test", 80))),
            ("https://a.test", Some(("a.test", 443))),
            ("http://[::1]:81/", Some(("[::1]", 81))),
            ("http://[::1]/", Some(("[::1]", 80))),
            ("unix:/x", None),
        ] {
            assert_eq!(authority(url), expected, "{url}");
        }
    }

    /// Replies to one request with status 404. Returns the port, and the thread, which returns the request.
    fn serve_once() -> (u16, thread::JoinHandle<String>) {
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
            stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            String::from_utf8(head).unwrap()
        });
        (port, server)
    }

    #[test]
    fn the_status_of_the_response_is_returned() {
        let (port, server) = serve_once();
        let site = SiteSummary {
            name: "a.localhost".to_owned(),
            urls: vec![format!("http://a.localhost:{port}/")],
            ..SiteSummary::default()
        };
        assert_eq!(visit(Some(&site), "a.localhost").reply, Ok(404));
        assert!(
            server
                .join()
                .unwrap()
                .contains(&format!("Host: a.localhost:{port}\r\n"))
        );
        assert!(visit(Some(&site), "a.localhost").reply.is_err());
    }

    #[test]
    fn a_website_with_a_wildcard_is_requested_by_a_name_below_it() {
        let (port, server) = serve_once();
        let site = SiteSummary {
            name: "*.a.test".to_owned(),
            urls: vec![format!("http://*.a.test:{port}/")],
            ..SiteSummary::default()
        };
        let visit = visit(Some(&site), "*.a.test");
        assert_eq!((visit.url.as_str(), visit.reply), ("", Ok(404)));
        let head = server.join().unwrap();
        assert!(head.contains(&format!("Host: www.a.test:{port}\r\n")), "{head}");
    }

    #[test]
    fn names_are_looked_up() {
        assert!(resolves("localhost") && resolves(":8080") && resolves("127.0.0.1"));
        assert!(!resolves("no-such-name.invalid") && !resolves("192.0.2.1"));
    }
}
