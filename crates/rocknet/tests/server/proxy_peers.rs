//! Real upstreams: the installed nginx and HAProxy.

use super::support::client::request;
use super::support::http2::Http2;
use super::support::peer::Peer;
use super::support::{Folder, Running};

/// Starts nginx at a socket file.
fn nginx(folder: &Folder) -> Peer {
    let here = folder.path("").display().to_string();
    folder.write(
        "nginx.conf",
        format!(
            "daemon off;\nmaster_process off;\npid {here}nginx.pid;\nerror_log {here}nginx.log;\nevents {{}}\nhttp {{\n\
             access_log off;\nclient_body_temp_path {here}body;\nproxy_temp_path {here}p;\nfastcgi_temp_path {here}f;\n\
             scgi_temp_path {here}s;\nuwsgi_temp_path {here}u;\nclient_max_body_size 100m;\nserver {{\nlisten unix:{here}announced.sock proxy_protocol;\n\
             location / {{ return 200 \"$proxy_protocol_addr $proxy_protocol_port\"; }}\n}}\nserver {{\nlisten unix:{here}nginx.sock;\n\
             root {here}files;\nlocation /client {{ return 200 \"$host $http_x_forwarded_for $request_uri\"; }}\n\
             location /upload {{ client_body_in_file_only off; proxy_pass http://unix:{here}nginx.sock:/client; }}\n}}\n}}\n"
        ),
    );
    let arguments = [
        "-c",
        &format!("{here}nginx.conf"),
        "-p",
        &here,
        "-e",
        &format!("{here}nginx.log"),
    ];
    Peer::start(folder, "nginx", &arguments, "nginx.sock", "nginx.log")
}

/// Starts HAProxy in front of the nginx that [`nginx`] starts, with a socket file for each protocol.
fn haproxy(folder: &Folder) -> Peer {
    let here = folder.path("").display().to_string();
    folder.write(
        "haproxy.cfg",
        format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
             frontend announced\n bind unix@{here}client.sock accept-proxy\n\
             http-request return status 200 content-type text/plain lf-string \"%[src] %[src_port]\"\n\
             frontend http2\n bind unix@{here}http2.sock proto h2\n default_backend behind\n\
             frontend http1\n bind unix@{here}http1.sock\n default_backend behind\n\
             backend behind\n server nginx unix@{here}nginx.sock\n"
        ),
    );
    Peer::start(
        folder,
        "haproxy",
        &["-db", "-f", "haproxy.cfg"],
        "http1.sock",
        "haproxy.log",
    )
}

/// Returns a folder with files for nginx, and the contents of the large file.
fn files() -> (Folder, Vec<u8>) {
    let folder = Folder::with(&[("files/small.txt", "small"), ("files/dir/x", "")]);
    let large: Vec<u8> = (0..10_000_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    folder.write("files/large", &large);
    (folder, large)
}

/// Requests all files of nginx over HTTP/1.1 and HTTP/2.
fn fetch_all(server: &Running, large: &[u8]) {
    let mut client = server.connect();
    client.get("/small.txt").expect(
        "a file",
        200,
        &["Content-Length: 5", "ETag", "Last-Modified", "Server: RockNet"],
    );
    assert_eq!(client.get("/client?x=1").text(), "localhost 127.0.0.1 /client?x=1");
    client.get("/none").expect("missing", 404, &["Content-Type: text/html"]);
    client.get("/dir").expect("a folder", 301, &["Location"]);
    let response = client.fetch("GET /large", &["Range: bytes=4-7"]);
    response.expect("a range", 206, &["Content-Range: bytes 4-7/40000000"]);
    assert_eq!(response.body, [1, 0, 0, 0]);
    assert!(client.get("/large").body == large);
    client
        .fetch("HEAD /large", &[])
        .expect("HEAD", 200, &["Content-Length: 40000000"]);
    let tag = client.get("/small.txt").field("ETag").expect("a tag").to_owned();
    client
        .fetch("GET /small.txt", &[&format!("If-None-Match: {tag}")])
        .expect("not modified", 304, &[]);
    client.send(request("POST /upload", &["Content-Length: 20000000"]));
    client.send(vec![b'u'; 20_000_000]);
    assert_eq!(
        client.response().expect("upload", 200, &[]).text(),
        "localhost 127.0.0.1 /client"
    );
    let mut client = Http2::to(server.address());
    assert!(client.get("/large").content == large);
    assert_eq!(client.get("/small.txt").content, b"small");
}

/// Starts a proxy. `to` is the TOML value of the key `proxy`.
fn start_proxy(folder: Folder, to: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 2\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {to}\n"
    );
    Running::start(folder, &text)
}

#[test]
fn nginx_responses_are_forwarded() {
    let (folder, large) = files();
    let _nginx = nginx(&folder);
    fetch_all(&start_proxy(folder, "\"unix:nginx.sock\""), &large);
}

#[test]
fn haproxy_responses_are_forwarded_in_both_protocols() {
    for to in ["\"unix:http1.sock\"", "{ to = \"unix:http2.sock\", http2 = true }"] {
        let (folder, large) = files();
        let _peers = (nginx(&folder), haproxy(&folder));
        fetch_all(&start_proxy(folder, to), &large);
    }
}

/// Asserts the client address that the server at this socket file receives.
fn check_announced_client(folder: Folder, socket: &str) {
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\ntrusted_proxies = [\"127.0.0.1\"]\n\
                [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"unix:{socket}\", proxy_protocol = \"v1\" }}\n\
                [site.default.route.\"/second\"]\nproxy = {{ to = \"unix:{socket}\", proxy_protocol = \"v2\" }}\n"
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    for path in ["/first", "/second"] {
        for (source, expected) in [
            ("192.0.2.1", "192.0.2.1 "),
            ("192.0.2.1:4711", "192.0.2.1 4711"),
            ("[2001:db8::1]:4711", "2001:db8::1 4711"),
        ] {
            let response = client.fetch(&format!("GET {path}"), &[&format!("X-Forwarded-For: {source}")]);
            assert_eq!(response.expect(path, 200, &[]).text(), expected, "{path}");
        }
    }
}

#[test]
fn nginx_gets_the_client_by_the_proxy_protocol() {
    let folder = Folder::with(&[]);
    let _nginx = nginx(&folder);
    check_announced_client(folder, "announced.sock");
}

#[test]
fn haproxy_gets_the_client_by_the_proxy_protocol() {
    let folder = Folder::with(&[]);
    let _haproxy = haproxy(&folder);
    check_announced_client(folder, "client.sock");
}
