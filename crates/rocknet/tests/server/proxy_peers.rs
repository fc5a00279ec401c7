//! Servers in use as upstreams: nginx of the system, in a folder of the test's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::client::request;
use super::support::http2::Http2;
use super::support::{DEADLINE, Folder, Running};

/// nginx in the foreground, listening at a socket file; ended with the test.
struct Nginx(Child);

impl Nginx {
    fn start(folder: &Folder) -> Nginx {
        let here = folder.path("").display().to_string();
        folder.write(
            "nginx.conf",
            format!(
                "daemon off;\nmaster_process off;\npid {here}nginx.pid;\nerror_log {here}nginx.log;\nevents {{}}\nhttp {{\n\
                 access_log off;\nclient_body_temp_path {here}body;\nproxy_temp_path {here}p;\nfastcgi_temp_path {here}f;\n\
                 scgi_temp_path {here}s;\nuwsgi_temp_path {here}u;\nclient_max_body_size 100m;\nserver {{\nlisten unix:{here}announced.sock proxy_protocol;\n\
                 location / {{ return 200 \"$proxy_protocol_addr $proxy_protocol_port\"; }}\n}}\nserver {{\nlisten unix:{here}nginx.sock;\n\
                 root {here}files;\nlocation /told {{ return 200 \"$host $http_x_forwarded_for $request_uri\"; }}\n\
                 location /upload {{ client_body_in_file_only off; proxy_pass http://unix:{here}nginx.sock:/told; }}\n}}\n}}\n"
            ),
        );
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"]
            .into_iter()
            .find(|path| Path::new(path).is_file());
        let child = Command::new(program.expect("nginx, which `cargo xtask test` installs"))
            .args([
                "-c",
                &format!("{here}nginx.conf"),
                "-p",
                &here,
                "-e",
                &format!("{here}nginx.log"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx to start");
        let nginx = Nginx(child);
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(folder.path("nginx.sock")).is_err() {
            let log = std::fs::read_to_string(folder.path("nginx.log")).unwrap_or_default();
            assert!(began.elapsed() < DEADLINE, "nginx does not listen: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nginx_is_passed_on() {
    let folder = Folder::with(&[("files/small.txt", "small"), ("files/dir/x", "")]);
    let large: Vec<u8> = (0..10_000_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    folder.write("files/large", &large);
    let _nginx = Nginx::start(&folder);
    let text = "[server]\nworkers = 2\nh2c = true\nevents = { wait = \"20ms\" }\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"unix:nginx.sock\"\n";
    let server = Running::start(folder, text);
    let mut client = server.connect();
    client.get("/small.txt").expect(
        "a file",
        200,
        &["Content-Length: 5", "ETag", "Last-Modified", "Server: RockNet"],
    );
    assert_eq!(client.get("/told?x=1").text(), "localhost 127.0.0.1 /told?x=1");
    client.get("/none").expect("missing", 404, &["Content-Type: text/html"]);
    client.get("/dir").expect("a folder", 301, &["Location"]);
    let answer = client.ask("GET /large", &["Range: bytes=4-7"]);
    answer.expect("a range", 206, &["Content-Range: bytes 4-7/40000000"]);
    assert_eq!(answer.body, [1, 0, 0, 0]);
    assert!(client.get("/large").body == large);
    client
        .ask("HEAD /large", &[])
        .expect("HEAD", 200, &["Content-Length: 40000000"]);
    let tag = client.get("/small.txt").field("ETag").expect("a tag").to_owned();
    client
        .ask("GET /small.txt", &[&format!("If-None-Match: {tag}")])
        .expect("not modified", 304, &[]);
    client.send(request("POST /upload", &["Content-Length: 20000000"]));
    client.send(vec![b'u'; 20_000_000]);
    assert_eq!(
        client.answer().expect("upload", 200, &[]).text(),
        "localhost 127.0.0.1 /told"
    );
    let mut client = Http2::to(server.address());
    assert!(client.get("/large").content == large);
    assert_eq!(client.get("/small.txt").content, b"small");
}

#[test]
fn nginx_is_told_the_client_by_the_proxy_protocol() {
    let folder = Folder::with(&[]);
    let _nginx = Nginx::start(&folder);
    let text = "[server]\nworkers = 1\nevents = { wait = \"20ms\" }\ntrusted_proxies = [\"127.0.0.1\"]\n\
                [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = { to = \"unix:announced.sock\", proxy_protocol = \"v1\" }\n\
                [site.default.route.\"/second\"]\nproxy = { to = \"unix:announced.sock\", proxy_protocol = \"v2\" }\n";
    let server = Running::start(folder, text);
    let mut client = server.connect();
    for path in ["/first", "/second"] {
        for (source, expected) in [
            ("192.0.2.1", "192.0.2.1 "),
            ("192.0.2.1:4711", "192.0.2.1 4711"),
            ("[2001:db8::1]:4711", "2001:db8::1 4711"),
        ] {
            let answer = client.ask(&format!("GET {path}"), &[&format!("X-Forwarded-For: {source}")]);
            assert_eq!(answer.expect(path, 200, &[]).text(), expected, "{path}");
        }
    }
}
