//! FastCGI, SCGI and uwsgi applications, simulated by scripted peers: variables, responses and errors.

mod connections;

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};

use super::support::client::request;
use super::support::fastcgi::{self, Next, Peer, ReceivedRequest, write_to};
use super::support::gateway::GatewayProtocol;
use super::support::http2::Http2;
use super::support::running::site;
use super::support::{DEADLINE, Folder, Running};

/// Keys of the configuration, one for each protocol.
const KEYS: [&str; 3] = ["fastcgi", "scgi", "uwsgi"];

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/app/index.html", "not to be seen"),
        ("www/static/a.css", "a file"),
        ("www/503.html", "a page of its own"),
    ])
}

/// Starts an application at the socket `app.sock` that speaks the protocol of `key`. `response` returns head and body.
fn peer(
    key: &str,
    folder: &Folder,
    response: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + Clone + 'static,
) -> Peer {
    peer_at(key, folder, "app.sock", response)
}

/// Starts an application like [`peer`], at the socket `name`.
fn peer_at(
    key: &str,
    folder: &Folder,
    name: &str,
    response: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + Clone + 'static,
) -> Peer {
    let socket = folder.path(name);
    let plain = |protocol: GatewayProtocol| {
        let response = response.clone();
        protocol.start(&socket, move |incoming: &ReceivedRequest, stream: &mut UnixStream| {
            write_to(stream, response(incoming));
        })
    };
    match key {
        "scgi" => plain(GatewayProtocol::Scgi),
        "uwsgi" => plain(GatewayProtocol::Uwsgi),
        _ => Peer::start(&socket, move |incoming, stream| {
            write_to(stream, fastcgi::response(&response(incoming)));
            Next::Keep
        }),
    }
}

/// Returns a response with the variables, one per line, followed by the request body.
fn mirror(incoming: &ReceivedRequest) -> Vec<u8> {
    let mut text = String::from("Content-Type: text/plain\r\n\r\n");
    for (name, value) in &incoming.variables {
        text.push_str(&format!("{name}={value}\n"));
    }
    [text.as_bytes(), &incoming.content].concat()
}

/// Returns true if a line of the text equals `line`.
fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

#[test]
fn an_application_gets_every_request_below_its_route() {
    for key in KEYS {
        let folder = folder();
        let _peer = peer(key, &folder, mirror);
        let keys = format!(
            "[site.default.route.\"/app/*\"]\n{key} = \"unix:app.sock\"\n\
             [site.default.route.\"/hook\"]\n{key} = \"unix:app.sock\"\n\
             [site.default.route.\"*.do\"]\n{key} = \"unix:app.sock\"\n\
             [site.default.route.\"/whole/*\"]\n{key} = {{ to = \"unix:app.sock\", mount = \"/\" }}\n\
             [site.default.route.\"/app/static/*\"]\nroot = \"www\"\n"
        );
        let server = Running::site(folder, &keys);
        let mut client = server.connect();
        for (path, name, info) in [
            ("/app/", "/app", "/"),
            ("/app/index.html?x=1", "/app", "/index.html"),
            ("/app//a/./b/../c%20d", "/app", "/a/c d"),
            ("/app/wiki/Special:Search", "/app", "/wiki/Special:Search"),
            // An encoded slash becomes a backslash, because it must not separate path segments.
            ("/app/a%2Fb", "/app", "/a\\b"),
            ("/hook", "/hook", ""),
            ("/some.do", "", "/some.do"),
            ("/whole/x", "", "/whole/x"),
        ] {
            let response = client.get(path);
            response.expect(path, 200, &["Content-Type: text/plain"]);
            let text = response.text();
            for line in [
                format!("SCRIPT_NAME={name}"),
                format!("PATH_INFO={info}"),
                format!("DOCUMENT_URI={name}{info}"),
                format!("REQUEST_URI={path}"),
                format!("QUERY_STRING={}", path.split_once('?').map_or("", |(_, query)| query)),
                "REQUEST_METHOD=GET".to_owned(),
                "HTTP_HOST=localhost".to_owned(),
                "GATEWAY_INTERFACE=CGI/1.1".to_owned(),
            ] {
                assert!(has(&text, &line), "{key} {path}: {line} in {text}");
            }
            assert!(!text.contains("SCRIPT_FILENAME"), "{text}");
        }
        assert_eq!(client.get("/").text(), "home");
        assert_eq!(client.get("/static/a.css").text(), "a file");
        assert_eq!(client.get("/app/static/none").status, 404);
        for (line, status) in [
            ("PUT /app/x", 200),
            ("OPTIONS /app/x", 200),
            ("BREW /app/x", 200),
            ("TRACE /app/x", 405),
        ] {
            assert_eq!(client.fetch(line, &[]).status, status, "{line}");
        }
    }
}

#[test]
fn an_application_can_be_the_whole_site() {
    for key in KEYS {
        let folder = folder();
        let _peer = peer(key, &folder, mirror);
        let keys = format!("{key} = \"unix:app.sock\"\n[site.default.route.\"/static/*\"]\nroot = \"www\"\n");
        let server = Running::site(folder, &keys);
        let text = server.get("/index.html").text();
        assert!(
            has(&text, "SCRIPT_NAME=") && has(&text, "PATH_INFO=/index.html"),
            "{text}"
        );
        assert_eq!(server.get("/static/a.css").text(), "a file");
        server.reload(&site(&format!("{key} = false"))).expect("a reload");
        assert_eq!(server.get("/index.html").text(), "home");
    }
}

#[test]
fn variables_come_from_the_request_and_the_configuration() {
    for key in KEYS {
        let folder = folder();
        let _peer = peer(key, &folder, mirror);
        let params = "{ SCRIPT_FILENAME = \"/opt/app.py\", HTTP_COOKIE = \"\", SERVER_NAME = \"other\" }";
        let server = Running::site(
            folder,
            &format!("{key} = {{ to = \"unix:app.sock\", params = {params} }}"),
        );
        let fields = [
            "Cookie: a=b",
            "Proxy: http://evil",
            "X_A: 1",
            "X-A: 2",
            "Authorization: Basic x",
            "Content-Type: text/x",
            "Content-Length: 4",
        ];
        let mut client = server.connect();
        client.send(request("POST /x?q", &fields) + "body");
        let text = client.response().text();
        for line in [
            "SCRIPT_FILENAME=/opt/app.py",
            "SERVER_NAME=other",
            "HTTP_X_A=2",
            "HTTP_AUTHORIZATION=Basic x",
            "CONTENT_TYPE=text/x",
            "CONTENT_LENGTH=4",
            "REMOTE_ADDR=127.0.0.1",
            "SERVER_PROTOCOL=HTTP/1.1",
            "REQUEST_SCHEME=http",
        ] {
            assert!(has(&text, line), "{key}: {line} in {text}");
        }
        assert!(
            !text.contains("COOKIE") && !text.contains("HTTP_PROXY") && text.ends_with("\nbody"),
            "{text}"
        );
        // The application gets a length although the client sent chunks, because the body is spooled first.
        client.send(request("POST /", &["Transfer-Encoding: chunked"]) + "5\r\nhello\r\n0\r\n\r\n");
        let text = client.response().text();
        assert!(has(&text, "CONTENT_LENGTH=5") && text.ends_with("\nhello"), "{text}");
        let large = "0123456789".repeat(300_000);
        client.send(request("POST /", &["Content-Length: 3000000"]) + &large);
        assert!(client.response().text().ends_with(&large), "{key}: a large one");
    }
}

#[test]
fn responses_are_forwarded_or_refused() {
    let long = format!("A: {}\r\n\r\n", "x".repeat(64 * 1024));
    let large = format!("Content-Type: text/x\r\n\r\n{}", "0123456789".repeat(100_000));
    let with_length = format!("Content-Length: 1000000\r\n\r\n{}", "0123456789".repeat(100_000));
    // A row has the output of an application, the expected status over FastCGI, the one over SCGI and uwsgi, header
    // fields (absent ones with `!`) and the length of the body; `usize::MAX` leaves the length unchecked. Only SCGI and
    // uwsgi applications can begin with an HTTP status line.
    let rows: Vec<(&str, u16, u16, &[&str], usize)> = vec![
        (
            "Content-Type: text/x\r\n\r\nhello",
            200,
            200,
            &["Content-Type: text/x"],
            5,
        ),
        ("Status: 404 Nope\nX-A: b\n\nhello", 404, 404, &["X-A: b", "!Status"], 5),
        ("Location: /x\r\n\r\n", 302, 302, &["Location: /x"], 0),
        ("Status: 204\r\n\r\n", 204, 204, &["!Content-Length"], 0),
        (
            "HTTP/1.1 418 Tea\r\nX-A: b\r\nConnection: close\r\n\r\ntea",
            502,
            418,
            &["!Connection"],
            usize::MAX,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", 502, 502, &[], usize::MAX),
        ("Content-Length: 3\r\n\r\nhello", 200, 200, &[], usize::MAX),
        (&large, 200, 200, &["Transfer-Encoding: chunked"], 1_000_000),
        (&with_length, 200, 200, &["Content-Length: 1000000"], 1_000_000),
        (&long, 502, 502, &[], usize::MAX),
        ("no head at all", 502, 502, &[], usize::MAX),
        ("A: b\rSet-Cookie: c\r\n\r\n", 502, 502, &[], usize::MAX),
        ("X-Accel-Redirect: /static/a.css\r\n\r\n", 200, 200, &[], 6),
        ("", 502, 502, &[], usize::MAX),
    ];
    for key in KEYS {
        let folder = folder();
        let texts: Arc<Vec<String>> = Arc::new(rows.iter().map(|row| row.0.to_owned()).collect());
        let _peer = peer(key, &folder, move |incoming| {
            let number: usize = incoming.variable("QUERY_STRING").parse().expect("the number of a row");
            texts[number].clone().into_bytes()
        });
        let keys = format!("[site.default.route.\"/app/*\"]\n{key} = \"unix:app.sock\"\n");
        let server = Running::site(folder, &keys);
        let mut client = server.connect();
        for (number, (text, over_fastcgi, over_others, fields, length)) in rows.iter().enumerate() {
            let start: String = text.chars().take(40).collect();
            let status = if key == "fastcgi" { *over_fastcgi } else { *over_others };
            let response = client.get(&format!("/app/?{number}"));
            response.expect(&format!("{key}: {start}"), status, fields);
            assert!(
                *length == usize::MAX || response.body.len() == *length,
                "{key} {start:?}: {response:?}"
            );
            let head = client.fetch(&format!("HEAD /app/?{number}"), &[]);
            assert_eq!(head.status, status, "{key} {start:?}");
        }
    }
}

#[test]
fn a_response_shorter_than_announced_is_cut() {
    for key in ["scgi", "uwsgi"] {
        let folder = folder();
        let _peer = peer(key, &folder, |incoming| match incoming.variable("QUERY_STRING") {
            "small" => b"Content-Length: 6\r\n\r\nhello".to_vec(),
            _ => [&b"Content-Length: 500001\r\n\r\n"[..], &[b'x'; 500_000]].concat(),
        });
        let server = Running::site(folder, &format!("{key} = \"unix:app.sock\""));
        // The application can close before or after the response has begun, so the client gets a 502 or a cut response.
        let mut client = server.connect();
        client.send(request("GET /?small", &["Connection: close"]));
        let head = client.head();
        let is_cut = head.contains("Content-Length: 6\r\n") && client.rest().len() == 5;
        assert!(head.starts_with("HTTP/1.1 502") || is_cut, "{head}");
        // This response has begun, so the client gets fewer bytes than `Content-Length` says.
        let mut client = server.connect();
        client.send(request("GET /?large", &[]));
        assert!(client.head().contains("Content-Length: 500001\r\n"));
        assert_eq!(client.rest().len(), 500_000);
    }
}

#[test]
fn applications_get_the_same_requests_over_http2() {
    for key in KEYS {
        let folder = folder();
        let _peer = peer(key, &folder, mirror);
        let keys = site(&format!("{key} = \"unix:app.sock\""));
        let server = Running::start(folder, &format!("[server]\nh2c = true\nworkers = 1\n{keys}"));
        let mut client = Http2::to(server.address());
        for _ in 0..3 {
            let response = client.get("/x");
            let text = String::from_utf8_lossy(&response.content).into_owned();
            assert!(
                response.status == 200 && has(&text, "SERVER_PROTOCOL=HTTP/2.0"),
                "{text}"
            );
        }
    }
}

#[test]
fn errors_get_a_status_and_in_dev_mode_a_hint() {
    const SERVER: &str = "[server]\nmode = \"MODE\"\nworkers = 1\nevents = { wait = \"20ms\" }\n";
    for mode in ["dev", "prod"] {
        for key in KEYS {
            let folder = folder();
            // A slow application sends nothing until the server has responded with a timeout.
            let (given_up, slow) = mpsc::channel::<()>();
            let slow = Arc::new(Mutex::new(slow));
            let _peer = peer(key, &folder, move |incoming| {
                if incoming.variable("QUERY_STRING") == "slow" {
                    let _ = slow.lock().expect("a lock").recv_timeout(DEADLINE);
                }
                Vec::new()
            });
            let keys = format!(
                "{key} = \"unix:app.sock\"\n\
                 [site.default.route.\"/slow\"]\nlimits = {{ answer_timeout = \"300ms\" }}\n{key} = \"unix:app.sock\"\n\
                 [site.default.route.\"/nobody/*\"]\n{key} = \"127.0.0.1:1\"\n\
                 [site.default.route.\"/no-file/*\"]\n{key} = \"unix:none.sock\"\n"
            );
            let server = Running::start(folder, &format!("{}{}", SERVER.replace("MODE", mode), site(&keys)));
            for (path, status, hint) in [
                ("/nobody/x", 502, "127.0.0.1:1 cannot be reached"),
                ("/no-file/x", 502, "Start the application"),
                ("/?silent", 502, "before its response was complete"),
                ("/slow?slow", 504, "limits.answer_timeout"),
            ] {
                let response = server.get(path);
                assert_eq!(response.status, status, "{key} {path}: {response:?}");
                let has_hint = response.text().contains(hint);
                assert_eq!(has_hint, mode == "dev", "{key} {path}: {}", response.text());
            }
            drop(given_up);
        }
    }
}

#[test]
fn fields_too_large_for_a_protocol_get_431() {
    // The variables of a uwsgi request have at most 64 KiB, because their length is a 16-bit number.
    let fields: Vec<String> = (0..3)
        .map(|number| format!("X-{number}: {}", "x".repeat(22_000)))
        .collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    for (key, status) in [("fastcgi", 200), ("scgi", 200), ("uwsgi", 431)] {
        let folder = folder();
        let _peer = peer(key, &folder, mirror);
        let text = format!(
            "[limits]\nheader_size = \"128KiB\"\n{}",
            site(&format!("{key} = \"unix:app.sock\""))
        );
        let server = Running::start(folder, &text);
        assert_eq!(server.fetch("GET /", &fields).status, status, "{key}");
        assert_eq!(server.fetch("GET /", &fields[..2]).status, 200, "{key}");
    }
}

/// The body is sent in small pieces that together exceed the socket buffers.
#[test]
fn an_application_that_reads_late_gets_the_whole_body_in_order() {
    let content: Vec<u8> = (0..400_000).map(|at| (at / 7 % 251) as u8).collect();
    let length = format!("Content-Length: {}", content.len());
    for key in KEYS {
        let folder = folder();
        let (go_on, waits) = mpsc::channel::<()>();
        let waits = Arc::new(Mutex::new(waits));
        let read = move |stream: &mut UnixStream| {
            let _ = waits.lock().expect("a lock").recv_timeout(DEADLINE);
            let protocol = if key == "scgi" {
                GatewayProtocol::Scgi
            } else {
                GatewayProtocol::Uwsgi
            };
            let incoming = match key {
                "fastcgi" => fastcgi::request(stream).ok().flatten(),
                _ => protocol.request(stream).ok(),
            };
            let response = mirror(&incoming.expect("a request"));
            match key {
                "fastcgi" => write_to(stream, fastcgi::response(&response)),
                _ => write_to(stream, response),
            }
        };
        let _peer = Peer::raw(&folder.path("app.sock"), move |mut stream| read(&mut stream));
        let server = Running::site(folder, &format!("{key} = \"unix:app.sock\""));
        let cookie = format!("Cookie: {}", "x".repeat(6000));
        let mut client = server.connect();
        client.send(request("POST /x", &[&length, &cookie]));
        for piece in content.chunks(1000) {
            client.send(piece);
        }
        go_on.send(()).expect("the application");
        let response = client.response();
        assert_eq!(response.status, 200, "{key}");
        assert!(response.text().contains(&cookie["Cookie: ".len()..]), "{key}");
        assert!(response.body.ends_with(&content), "{key}");
    }
}

over_http3! {
    an_application_gets_every_request_below_its_route,
    an_application_can_be_the_whole_site,
    responses_are_forwarded_or_refused,
    errors_get_a_status_and_in_dev_mode_a_hint,
    fields_too_large_for_a_protocol_get_431,
    an_application_that_reads_late_gets_the_whole_body_in_order,
}
