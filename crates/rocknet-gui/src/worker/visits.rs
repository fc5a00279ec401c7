//! Visits to a website of this machine: the server requests its start page, and this program looks its name up.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use rocknet_control::api::Request;
use rocknet_control::route::SiteName;
use rocknet_control::site_visit::SiteVisit;
use rocknet_control::{Client, ClientError, ServerAddress};

use crate::job::{Trouble, Visit};

/// Lets the server request the start page of a website, and looks its name up. `url`: URL to open in the browser. The
/// server does the request, because this program has no TLS, and most websites are served over HTTPS.
pub fn visit(server: Option<&ServerAddress>, name: &str, url: Option<String>) -> Visit {
    Visit {
        site: name.to_owned(),
        url: url.unwrap_or_default(),
        reply: reply(server, name),
        name_resolves: resolves(name),
    }
}

/// Returns the status of the response to the server's request.
fn reply(server: Option<&ServerAddress>, name: &str) -> Result<u16, Trouble> {
    let server = server.ok_or(Trouble::NoReply)?;
    let request = Request::VisitSite(SiteName { name: name.to_owned() });
    let visited = Client::connect_to(server).and_then(|mut client| client.call::<SiteVisit>(&request));
    match visited {
        Ok(visited) if visited.url.is_empty() => Err(Trouble::NoAddress),
        Ok(visited) => visited
            .status
            .ok_or_else(|| visited.error.map_or(Trouble::NotHttp, Trouble::Text)),
        Err(ClientError::Api(error)) => Err(Trouble::Text(error.error)),
        Err(error) => Err(Trouble::Text(error.to_string())),
    }
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
    use crate::worker::fake_server::FakeServer;

    #[test]
    fn the_reply_is_the_one_to_the_server() {
        let server = FakeServer::start(|request| {
            let body = match request.split_once("name=")?.1.split(' ').next()? {
                "a.test" => r#"{"url":"https://a.test/","status":500}"#,
                "b.test" => r#"{"url":"https://b.test/","error":"no certificate"}"#,
                "c.test" => "{}",
                _ => return Some((404, r#"{"error":"there is no site with this name"}"#.to_owned())),
            };
            Some((200, body.to_owned()))
        });
        let address = ServerAddress::Socket(server.socket());
        for (name, expected) in [
            ("a.test", Ok(500)),
            ("b.test", Err(Trouble::Text("no certificate".to_owned()))),
            ("c.test", Err(Trouble::NoAddress)),
            (
                "d.test",
                Err(Trouble::Text("there is no site with this name".to_owned())),
            ),
        ] {
            assert_eq!(visit(Some(&address), name, None).reply, expected, "{name}");
        }
        let url = "http://localhost/";
        let visit = visit(None, ":80", Some(url.to_owned()));
        assert_eq!((visit.url.as_str(), visit.name_resolves), (url, true));
        assert!(visit.reply.is_err());
    }

    #[test]
    fn names_are_looked_up() {
        assert!(resolves("localhost") && resolves(":8080") && resolves("127.0.0.1"));
        assert!(!resolves("no-such-name.invalid") && !resolves("192.0.2.1"));
    }
}
