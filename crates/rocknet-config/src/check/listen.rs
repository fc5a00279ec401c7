//! Checks the listeners of a site: ports, addresses with ports, Unix sockets.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::context::Check;
use crate::file::{Node, Text, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Listen, Mode};
use crate::source::Span;
use crate::value::host::SiteName;
use crate::value::socket::{self, Help};
use crate::value::typed;

/// Listener of a site, with its span.
#[derive(Clone)]
pub(super) struct SiteListener {
    pub listen: Listen,
    pub span: Span,
    /// True if the listener uses TLS.
    pub secure: bool,
    /// True if the listener accepts HTTP/2 without TLS.
    pub h2c: bool,
}

/// Scheme before the address of a listener.
#[derive(Clone, Copy, PartialEq)]
enum ListenScheme {
    /// The address has no scheme.
    Unspecified,
    Http,
    Https,
    /// Without TLS, for HTTP/1 and for HTTP/2 with prior knowledge.
    H2c,
}

/// Returns the listeners of a site, and true if the site has the key `listen`. `header`: span of the site's name.
/// `written`: value of `listen`. `mode`: selects the default ports. `tls`: true if the site uses TLS. An invalid `tls`
/// also counts as true, so that https:// is not reported as well.
pub(super) fn build(
    check: &mut Check<'_>,
    name: &SiteName,
    header: Span,
    written: Option<&Node>,
    mode: Mode,
    tls: bool,
) -> (Vec<SiteListener>, bool) {
    let address = match name {
        SiteName::Address(address) => Some(*address),
        _ => None,
    };
    let Some(node) = written else {
        let listener = |address: Option<IpAddr>, port, secure| SiteListener {
            listen: Listen::Tcp { address, port },
            span: header,
            secure,
            h2c: false,
        };
        if let SiteName::Port(address, port) = name {
            return (vec![listener(*address, *port, tls)], false);
        }
        // Default ports without and with TLS.
        let (clear, secure) = mode.ports();
        let mut listeners = vec![listener(address, clear, false)];
        if tls {
            listeners.push(listener(address, secure, true));
        }
        return (listeners, false);
    };
    if let SiteName::Port(..) = name {
        let help = "remove `listen`, or give the site a name: [site.\"example.com\"]";
        check.error(
            Code::Conflict,
            node.span,
            "`listen` conflicts with the port in the name of the site",
            help,
        );
        return (Vec::new(), true);
    }
    let items = typed::elements(node);
    if items.is_empty() && matches!(node.value, Value::List(_)) {
        check.error(
            Code::BadValue,
            node.span,
            "`listen` is empty",
            "write listen = [80], or remove it",
        );
    }
    let mut listeners: Vec<SiteListener> = Vec::new();
    let mut seen: HashSet<Listen> = HashSet::new();
    for item in items {
        let Some((listen, scheme)) = listener(check, item, address) else {
            continue;
        };
        if scheme == ListenScheme::Https && !tls {
            let help = "write tls = \"auto\" in the site, or remove https://";
            check.error(Code::Conflict, item.span, "the site does not use TLS", help);
            continue;
        }
        if !seen.insert(listen.clone()) {
            check.warning(Code::Useless, item.span, "the listener is listed twice", "remove one");
            continue;
        }
        // True if the listener does not use TLS unless it has the scheme https://.
        let clear = match &listen {
            Listen::Tcp { port, .. } => *port == CLEAR_PORT,
            // The proxy in front of a Unix socket usually terminates TLS.
            Listen::Unix(_) => true,
        };
        listeners.push(SiteListener {
            listen,
            span: item.span,
            secure: tls && (scheme == ListenScheme::Https || scheme == ListenScheme::Unspecified && !clear),
            h2c: scheme == ListenScheme::H2c,
        });
    }
    (listeners, true)
}

/// TCP port that does not use TLS in a site with TLS if `listen` gives no scheme. All other ports use TLS, in every
/// mode: `listen = 8080` uses TLS, although the default port 8080 of `dev` mode does not.
const CLEAR_PORT: u16 = 80;

/// Reads one listener. `address`: IP address for a bare port; `None` for every address. Returns `None` after a
/// finding. The check of the keys has already reported wrong types and ports out of range.
fn listener(check: &mut Check<'_>, item: &Node, address: Option<IpAddr>) -> Option<(Listen, ListenScheme)> {
    let span = item.span;
    let written = match &item.value {
        Value::Integer(port) => {
            let port = u16::try_from(*port).ok()?;
            return Some((Listen::Tcp { address, port }, ListenScheme::Unspecified));
        }
        Value::Text(text) => text,
        _ => return None,
    };
    let text = written.value.as_str();
    let (bind_address, scheme) = match text.split_once("://") {
        None => (text, ListenScheme::Unspecified),
        Some(("http", bind_address)) => (bind_address.trim_end_matches('/'), ListenScheme::Http),
        Some(("https", bind_address)) => (bind_address.trim_end_matches('/'), ListenScheme::Https),
        Some(("h2c", bind_address)) => (bind_address.trim_end_matches('/'), ListenScheme::H2c),
        Some((other, _)) => {
            let message = format!("`listen` does not take the scheme {}://", short(other));
            let help = "write \"http://…\", \"https://…\" or \"h2c://…\", or remove the scheme";
            check.bad_text(written, span, message, help);
            return None;
        }
    };
    let listen = if let Some(path) = bind_address.strip_prefix("unix:") {
        unix(check, path, span)?
    } else {
        tcp(check, written, bind_address, address, span)?
    };
    Some((listen, scheme))
}

/// Reads one element of `except` in `http3`: a port, or an address with a port, without a scheme.
/// Returns `None` after an error.
pub(super) fn without_scheme(check: &mut Check<'_>, item: &Node) -> Option<Listen> {
    match listener(check, item, None)? {
        (listen @ Listen::Tcp { .. }, ListenScheme::Unspecified) => Some(listen),
        (Listen::Unix(_), _) => {
            let message = "`except` of `http3` takes no Unix socket, because HTTP/3 needs UDP";
            check.error(Code::BadValue, item.span, message, "remove it");
            None
        }
        (Listen::Tcp { .. }, _) => {
            let message = "`except` of `http3` takes no scheme";
            check.error(Code::BadValue, item.span, message, "write a port or \"IP:port\"");
            None
        }
    }
}

/// Reads the address of the control API. A bare port is a port of 127.0.0.1. Returns `None` after an error.
pub(super) fn of_admin(check: &mut Check<'_>, node: &Node) -> Option<SocketAddr> {
    let localhost = IpAddr::from(Ipv4Addr::LOCALHOST);
    match listener(check, node, Some(localhost))? {
        (Listen::Tcp { address, port }, ListenScheme::Unspecified) => {
            Some(SocketAddr::new(address.unwrap_or(localhost), port))
        }
        (Listen::Tcp { .. }, _) => {
            let message = "`listen` of [admin] takes no scheme: it uses TLS if `cert` is set";
            let help = "write a port, \"127.0.0.1:7625\" or \"[::1]:7625\"";
            check.error(Code::BadValue, node.span, message, help);
            None
        }
        (Listen::Unix(_), _) => {
            let message = "`listen` of [admin] takes no Unix socket";
            check.error(Code::BadValue, node.span, message, "use `socket`");
            None
        }
    }
}

/// Reads a port, or an IP address with a port. `written`: the whole string, for messages. `bind_address`: the string
/// without its scheme. `address`: IP address for a bare port; `None` for every address. Returns `None` after an error.
fn tcp(
    check: &mut Check<'_>,
    written: &Text,
    bind_address: &str,
    address: Option<IpAddr>,
    span: Span,
) -> Option<Listen> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // `:80`, `*:80` and `80` in quotes are also accepted, but the documentation names only the number.
    let port_alone = bind_address
        .strip_prefix("*:")
        .or(bind_address.strip_prefix(':'))
        .unwrap_or(bind_address);
    if digits(port_alone) {
        return match port_alone.parse::<u16>() {
            Ok(port) => Some(Listen::Tcp { address, port }),
            Err(_) => {
                let message = format!("{} is not a port", short(port_alone));
                check.bad_text(written, span, message, "write a port from 0 to 65535");
                None
            }
        };
    }
    match bind_address.parse::<SocketAddr>() {
        Ok(socket) => Some(Listen::Tcp {
            address: Some(socket.ip()),
            port: socket.port(),
        }),
        Err(_) => {
            let (message, help) = invalid_address(bind_address);
            check.bad_text(written, span, message, help);
            None
        }
    }
}

/// Returns message and help for a text that is neither a port nor an address with a port.
fn invalid_address(bind_address: &str) -> (String, String) {
    let shown = short(bind_address);
    let message = format!("\"{shown}\" is not an address to listen on");
    let bare = bind_address.trim_matches(['[', ']']);
    let help = if let Ok(address) = bare.parse::<IpAddr>() {
        format!("add the port: \"{}\"", SocketAddr::new(address, 80))
    } else if bind_address.starts_with('/') {
        format!("write \"unix:{shown}\" for a Unix socket")
    } else if let Some(port) = bind_address.strip_prefix("localhost:") {
        format!("write the IP address: \"127.0.0.1:{}\"", short(port))
    } else if bind_address
        .rsplit_once(':')
        .is_some_and(|(host, _)| host.contains(|c: char| c.is_ascii_alphabetic()))
    {
        "write \"IP:port\"; host names belong in the site's name and `aliases`".to_owned()
    } else {
        "write a port, \"IP:port\", \"[IPv6]:port\" or \"unix:/path\"".to_owned()
    };
    (message, help)
}

/// Reads the path of a Unix socket; `None` after an error. `path`: the string after `unix:`.
fn unix(check: &mut Check<'_>, path: &str, span: Span) -> Option<Listen> {
    let help = Help {
        example: "write \"unix:/run/rocknet/site.sock\"",
        shorter: "use a folder with a shorter path, such as /run/rocknet",
    };
    socket::path(check, "unix:", path, span, help).map(Listen::Unix)
}
