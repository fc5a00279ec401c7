//! Where a site listens: ports, addresses with ports, Unix sockets.

use std::net::{IpAddr, SocketAddr};

use crate::check::host::SiteName;
use crate::check::keys::not_yet;
use crate::check::words::short;
use crate::check::{Check, value};
use crate::defaults;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::model::{Listen, Mode};
use crate::source::Span;

/// Longest path of a Unix socket: `sun_path` has 108 bytes on Linux, one of them the end.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The listeners of a site, each with its place, and whether they were written.
pub(super) fn build(
    check: &mut Check<'_>,
    name: &SiteName,
    header: Span,
    written: Option<&Node>,
    mode: Mode,
) -> (Vec<(Listen, Span)>, bool) {
    let address = match name {
        SiteName::Address(address) => Some(*address),
        _ => None,
    };
    let Some(node) = written else {
        let listen = match name {
            SiteName::Port(address, port) => Listen::Tcp {
                address: *address,
                port: *port,
            },
            _ => Listen::Tcp {
                address,
                port: defaults::port(mode),
            },
        };
        return (vec![(listen, header)], false);
    };
    if let SiteName::Port(..) = name {
        let help = "remove `listen`, or give the site a name: [site.\"example.com\"]";
        check.error(
            Code::Conflict,
            node.span,
            "the site's name says already where it listens",
            help,
        );
        return (Vec::new(), true);
    }
    let items = value::several(node);
    if items.is_empty() && matches!(node.value, Value::List(_)) {
        check.error(
            Code::BadValue,
            node.span,
            "`listen` is empty",
            "write listen = [80], or leave it off",
        );
    }
    let mut listeners: Vec<(Listen, Span)> = Vec::new();
    for item in items {
        let Some(listen) = one(check, item, address) else {
            continue;
        };
        if listeners.iter().any(|(other, _)| *other == listen) {
            check.warning(Code::Useless, item.span, "this listener is written twice", "remove one");
            continue;
        }
        listeners.push((listen, item.span));
    }
    (listeners, true)
}

fn one(check: &mut Check<'_>, item: &Node, address: Option<IpAddr>) -> Option<Listen> {
    let span = item.span;
    let written = match &item.value {
        Value::Integer(443) => {
            let help = "write 80 until then, or \"http://443\" if it shall speak clear HTTP";
            not_yet(check, "443", "TLS", span, help);
            return None;
        }
        Value::Integer(port) => {
            return Some(Listen::Tcp {
                address,
                port: u16::try_from(*port).ok()?,
            });
        }
        Value::Text(text) => text,
        _ => return None,
    };
    let text = written.value.as_str();
    let (place, clear) = match text.split_once("://") {
        None => (text, false),
        Some(("http", place)) => (place.trim_end_matches('/'), true),
        Some(("https", _)) => {
            not_yet(check, "https://", "TLS", span, "write 80 or \"http://…\" until then");
            return None;
        }
        Some((scheme, _)) => {
            let message = format!("`listen` knows no {}://", short(scheme));
            let help = "write \"http://…\", or leave the scheme off";
            check.bad_text(written, span, message, help);
            return None;
        }
    };
    if let Some(path) = place.strip_prefix("unix:") {
        return unix(check, path, span);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // `:80`, `*:80`, and `80` in quotes all mean the port; only the number itself is the form to learn.
    let port_alone = place.strip_prefix("*:").or(place.strip_prefix(':')).unwrap_or(place);
    if digits(port_alone) {
        return match port_alone.parse::<u16>() {
            Ok(443) if !clear => {
                let help = "write 80 until then, or \"http://443\" if it shall speak clear HTTP";
                not_yet(check, "443", "TLS", span, help);
                None
            }
            Ok(port) => Some(Listen::Tcp { address, port }),
            Err(_) => {
                let message = format!("{} is no port", short(port_alone));
                check.bad_text(written, span, message, "ports go from 0 to 65535");
                None
            }
        };
    }
    match place.parse::<SocketAddr>() {
        Ok(socket) if socket.port() == 443 && !clear => {
            let help = format!("write \"http://{socket}\" if it shall speak clear HTTP");
            not_yet(check, "443", "TLS", span, &help);
            None
        }
        Ok(socket) => Some(Listen::Tcp {
            address: Some(socket.ip()),
            port: socket.port(),
        }),
        Err(_) => {
            let (message, help) = misread(place);
            check.bad_text(written, span, message, help);
            None
        }
    }
}

/// What was meant by something that is no address with a port.
fn misread(place: &str) -> (String, String) {
    let shown = short(place);
    let message = format!("\"{shown}\" is no place to listen at");
    let bare = place.trim_matches(['[', ']']);
    let help = if let Ok(address) = bare.parse::<IpAddr>() {
        format!("add the port: \"{}\"", SocketAddr::new(address, 80))
    } else if place.starts_with('/') {
        format!("write \"unix:{shown}\" for a Unix socket")
    } else if let Some(port) = place.strip_prefix("localhost:") {
        format!("addresses are numbers: write \"127.0.0.1:{}\"", short(port))
    } else if place
        .rsplit_once(':')
        .is_some_and(|(host, _)| host.contains(|c: char| c.is_ascii_alphabetic()))
    {
        "addresses are numbers: write \"IP:port\"; host names go into the site's name and `aliases`".to_owned()
    } else {
        "write a port, \"IP:port\", \"[IPv6]:port\" or \"unix:/path\"".to_owned()
    };
    (message, help)
}

fn unix(check: &mut Check<'_>, path: &str, span: Span) -> Option<Listen> {
    let resolved = check.resolve(span, path);
    if path.is_empty() || path.ends_with('/') || path.contains(|c: char| c.is_control()) {
        let help = "write \"unix:/run/rocknet/site.sock\"";
        check.error(Code::BadValue, span, "`unix:` takes the path of a socket", help);
        return None;
    }
    if resolved.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
        let message = format!("the path of a socket has at most {MAX_SOCKET_PATH_BYTES} bytes");
        check.error(
            Code::BadValue,
            span,
            message,
            "put it into a folder with a short name, such as /run/rocknet",
        );
        return None;
    }
    Some(Listen::Unix(resolved))
}
