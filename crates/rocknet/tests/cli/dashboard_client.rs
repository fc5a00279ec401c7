//! Client of the dashboard of a server, with a session.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::program::{ProgramFolder, Server};

/// Configuration with a dashboard at a free port.
pub const DASHBOARD_CONFIG: &str = "[server]\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
                                    [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// Header field that browsers send with a navigation.
pub const ACCEPT_PAGE: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";

/// Header fields of a navigation that begins at a page of another site.
pub const FROM_OTHER_SITE: &str =
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";

/// A server with a dashboard, and the browser that uses it.
pub struct DashboardClient {
    pub dir: ProgramFolder,
    pub server: Server,
    address: String,
    /// Header field with the cookie of the session, and its line end.
    pub cookie: String,
}

/// Status, head and body of a response of the dashboard.
pub struct DashboardReply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl DashboardReply {
    /// Returns the value of `Location`.
    pub fn location(&self) -> &str {
        let (_, rest) = self
            .head
            .split_once("\r\nLocation: ")
            .expect("the response has a location");
        rest.lines().next().unwrap_or_default()
    }
}

impl DashboardClient {
    /// Starts a server whose folder also has `files`, and begins a session with the token in `state/admin/token`, which
    /// permits reading and changes.
    pub fn start(config: &str, files: &[(&str, &str)]) -> DashboardClient {
        let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", config)]);
        for (name, content) in files {
            dir.write(name, content);
        }
        let server = dir.serve(&["run"]);
        let link = dir.run(&["dashboard"]);
        assert_eq!(link.code, Some(0), "{link:?}");
        let (host, _) = link.out.trim_start_matches("http://").split_once('/').unwrap();
        // Browsers resolve this name to the address of this machine.
        let port = host.strip_prefix("rocknet.localhost:").unwrap();
        let mut client = DashboardClient {
            dir,
            server,
            address: format!("127.0.0.1:{port}"),
            cookie: String::new(),
        };
        client.cookie = client.session("token");
        client
    }

    /// Begins a session with the token in the file `name` of the state folder. Returns the cookie as a header field.
    pub fn session(&self, name: &str) -> String {
        let token = self.dir.read(&format!("state/admin/{name}"));
        let body = format!("{{\"token\":\"{}\"}}", token.trim());
        let reply = self.send("POST", "/login", "Content-Type: application/json\r\n", &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        let (_, rest) = reply.head.split_once("\r\nSet-Cookie: ").unwrap();
        format!("Cookie: {}\r\n", rest.split(';').next().unwrap())
    }

    /// Opens a connection to the dashboard.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request with header fields, each with its line end.
    pub fn send(&self, method: &str, path: &str, fields: &str, body: &str) -> DashboardReply {
        let mut stream = self.connect();
        let (host, length) = (&self.address, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {length}\r\n{fields}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        DashboardReply {
            status: head[9..12].parse().unwrap(),
            head: format!("{head}\r\n"),
            body: body.to_owned(),
        }
    }

    /// Requests a page with the cookie of the session, as a browser does when it navigates to the page.
    pub fn page(&self, path: &str) -> DashboardReply {
        self.send("GET", path, &format!("{}{ACCEPT_PAGE}", self.cookie), "")
    }

    /// Sends a form of a page of the dashboard, as a browser without scripts does.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> DashboardReply {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let own = self.own();
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.send("POST", path, &format!("{own}{ACCEPT_PAGE}{form}"), &body)
    }

    /// Sends a form whose response redirects to a page with a notice of the result. Returns the HTML of this page from
    /// the notice to the end. Also checks that the page reports no success if its URL lacks the result.
    #[track_caller]
    pub fn instruct(&self, page: &str, fields: &[(&str, &str)]) -> String {
        let sent = self.post(page, fields);
        assert_eq!(sent.status, 303, "{}", sent.body);
        let location = sent.location();
        // The location has the number of the result and no input, which could be too long for it.
        let number = location.strip_prefix(&format!("{page}?result="));
        assert!(number.is_some_and(|number| number.parse::<u64>().is_ok()), "{location}");
        let shown = self.page(location);
        assert_eq!(shown.status, 200, "{}", shown.body);
        let (_, notice) = shown.body.split_once("<div id=\"notice\" role=\"alert\"><div").unwrap();
        assert!(!self.page(page).body.contains("class=\"notice good\""));
        notice.to_owned()
    }

    /// Returns the header fields of a request that a page of the dashboard makes: the cookie of the session, and the
    /// origin of the dashboard itself.
    pub fn own(&self) -> String {
        format!("{}Origin: http://{}\r\n", self.cookie, self.address)
    }
}
