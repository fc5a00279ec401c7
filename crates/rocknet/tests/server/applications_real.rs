//! Real applications: Python in uWSGI over FastCGI, SCGI and uwsgi, and fcgiwrap with one process.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::support::client::request;
use super::support::{DEADLINE, Folder, Running};

/// A program with its child processes. They are killed when the value is dropped.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Program {
        use std::os::unix::process::CommandExt;
        Program(command.process_group(0).spawn().expect("the application to start"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Waits until an application listens at `socket`.
fn wait_for(socket: &Path) {
    let deadline = Instant::now() + DEADLINE;
    while UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < deadline, "nothing listens at {}", socket.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Python application (WSGI) that selects its response by the path.
const APP: &str = r#"
import hashlib

def application(environ, start_response):
    path = environ['PATH_INFO']
    if path == '/upload':
        digest, total = hashlib.md5(), 0
        while chunk := environ['wsgi.input'].read(65536):
            digest.update(chunk)
            total += len(chunk)
        body = f'{total} {digest.hexdigest()}'
    elif path == '/large':
        start_response('200 OK', [('Content-Type', 'text/plain')])
        return (bytes([97 + i % 26]) * 10000 for i in range(300))
    elif path == '/status':
        start_response('418 Tea', [('X-A', 'b'), ('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')])
        return [b'tea']
    elif path == '/fails':
        raise RuntimeError('on purpose')
    else:
        names = ['REQUEST_METHOD', 'SCRIPT_NAME', 'PATH_INFO', 'QUERY_STRING', 'HTTP_X_A', 'REMOTE_ADDR', 'wsgi.url_scheme']
        body = ' '.join(f'{name}={environ.get(name)}' for name in names)
    start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', str(len(body)))])
    return [body.encode()]
"#;

/// Starts uWSGI with the application [`APP`] at a socket for each protocol.
fn uwsgi(folder: &Folder) -> Program {
    folder.write("app.py", APP);
    let path = |name: &str| folder.path(name).display().to_string();
    let mut command = Command::new("uwsgi_python3");
    for (option, name) in [
        ("--socket", "uwsgi.sock"),
        ("--scgi-socket", "scgi.sock"),
        ("--fastcgi-socket", "fastcgi.sock"),
    ] {
        command.args([option, &path(name)]);
    }
    command.args([
        "--wsgi-file",
        &path("app.py"),
        "--master",
        "--processes",
        "2",
        "--die-on-term",
        "--need-app",
    ]);
    command
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut program = Program::start(&mut command);
    let mut lines = BufReader::new(program.0.stderr.take().expect("its messages")).lines();
    let mut output = String::new();
    loop {
        match lines.next() {
            Some(Ok(line)) if line.contains("spawned uWSGI worker 2") => break,
            Some(Ok(line)) => output.push_str(&(line + "\n")),
            _ => panic!("uWSGI exited: {output}"),
        }
    }
    // uWSGI would block if nothing read its further output.
    thread::spawn(move || lines.for_each(drop));
    program
}

#[test]
fn python_responds_over_each_protocol() {
    let folder = Folder::with(&[("www/index.html", "home")]);
    let _uwsgi = uwsgi(&folder);
    let keys: String = ["fastcgi", "scgi", "uwsgi"]
        .map(|key| format!("[site.default.route.\"/{key}/*\"]\n{key} = \"unix:{key}.sock\"\n"))
        .concat();
    let server = Running::site(folder, &keys);
    let expected: Vec<u8> = (0..300_u32).flat_map(|i| vec![b'a' + (i % 26) as u8; 10_000]).collect();
    let content: Vec<u8> = (0..5_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    server.folder.write("content", &content);
    let sum = Command::new("md5sum")
        .arg(server.folder.path("content"))
        .output()
        .expect("md5sum");
    let sum = String::from_utf8_lossy(&sum.stdout);
    let sum = sum.split(' ').next().unwrap_or_default();
    let mut client = server.connect();
    for key in ["fastcgi", "scgi", "uwsgi"] {
        for _ in 0..3 {
            let text = client
                .fetch(&format!("GET /{key}/some/where?q=1"), &["X-A: 1", "X-A: 2"])
                .text();
            assert_eq!(
                text,
                format!(
                    "REQUEST_METHOD=GET SCRIPT_NAME=/{key} PATH_INFO=/some/where QUERY_STRING=q=1 HTTP_X_A=1, 2 \
                     REMOTE_ADDR=127.0.0.1 wsgi.url_scheme=http"
                )
            );
        }
        let response = client.get(&format!("/{key}/status"));
        assert_eq!((response.status, response.text().as_str()), (418, "tea"), "{key}");
        let cookies = response.fields.iter().filter(|(name, _)| name == "Set-Cookie").count();
        assert_eq!(cookies, 2, "{key}");
        assert!(client.get(&format!("/{key}/large")).body == expected, "{key}");
        client.send(request(&format!("POST /{key}/upload"), &["Content-Length: 5000000"]));
        client.send(&content);
        assert_eq!(client.response().text(), format!("5000000 {sum}"), "{key}");
        let head = client.fetch(&format!("HEAD /{key}/x"), &[]);
        head.expect(key, 200, &["Content-Length"]);
        assert!(client.get(&format!("/{key}/fails")).status >= 500, "{key}");
    }
}

#[test]
fn a_request_beyond_the_buffer_of_uwsgi_gets_502_and_in_dev_mode_a_hint() {
    let folder = Folder::with(&[("www/index.html", "home")]);
    let _uwsgi = uwsgi(&folder);
    let site = super::support::running::site("uwsgi = \"unix:uwsgi.sock\"");
    let server = Running::start(folder, &format!("[server]\nmode = \"dev\"\nworkers = 1\n{site}"));
    let field = format!("X-A: {}", "x".repeat(5000));
    let response = server.fetch("GET /", &[&field]);
    assert_eq!(response.status, 502);
    assert!(response.text().contains("buffer-size"), "{}", response.text());
}

#[test]
fn fcgiwrap_runs_the_script_named_by_params() {
    let folder = Folder::with(&[
        ("www/index.html", "home"),
        (
            "run.sh",
            "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\necho \"$PATH_INFO\"\ncat\n",
        ),
    ]);
    use std::os::unix::fs::PermissionsExt;
    let run = folder.path("run.sh");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let socket = folder.path("wrap.sock");
    let mut command = Command::new("fcgiwrap");
    command
        .args(["-s", &format!("unix:{}", socket.display())])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let _wrap = Program::start(&mut command);
    wait_for(&socket);
    let server = Running::site(
        folder,
        &format!(
            "fastcgi = {{ to = \"unix:wrap.sock\", keep = 2, params = {{ SCRIPT_FILENAME = \"{}\" }} }}",
            run.display()
        ),
    );
    let mut client = server.connect();
    for path in ["/", "/a/b", "/c"] {
        assert_eq!(client.get(path).text(), format!("{path}\n"));
    }
    client.send(request("POST /x", &["Content-Length: 5"]) + "hello");
    assert_eq!(client.response().text(), "/x\nhello");
    // fcgiwrap has one process, so concurrent requests wait for one another.
    let address = server.address();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut client = super::support::Client::to(address);
                (0..10).all(|_| client.get("/x").text() == "/x\n")
            })
        })
        .collect();
    for client in clients {
        assert!(client.join().expect("a client"));
    }
}

over_http3! {
    a_request_beyond_the_buffer_of_uwsgi_gets_502_and_in_dev_mode_a_hint,
    fcgiwrap_runs_the_script_named_by_params,
}
