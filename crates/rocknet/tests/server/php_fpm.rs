//! Runs the installed php-fpm in a temporary folder and requests scripts through it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::support::client::request;
use super::support::{Folder, Running};

/// php-fpm in the foreground. It is stopped when the value is dropped.
struct Fpm(Child);

impl Fpm {
    /// Starts php-fpm and returns when it accepts connections.
    fn start(folder: &Folder) -> Fpm {
        let path = |name: &str| folder.path(name).display().to_string();
        let user = String::from_utf8(Command::new("id").arg("-un").output().expect("id").stdout).expect("a name");
        let user = user.trim();
        // php-fpm requires a user in its configuration if it runs as root, and ignores one otherwise.
        let owner = if user == "root" {
            format!("user = {user}\n")
        } else {
            String::new()
        };
        let pool = format!(
            "[global]\nerror_log = /proc/self/fd/2\n[www]\n{owner}listen = {}\npm = static\npm.max_children = 2\n\
             catch_workers_output = yes\nphp_admin_value[upload_max_filesize] = 64M\nphp_admin_value[post_max_size] = 65M\n\
             php_admin_value[upload_tmp_dir] = {}\n",
            path("php.sock"),
            path(""),
        );
        folder.write("fpm.conf", pool);
        let mut command = Command::new(program());
        command.args(["--nodaemonize", "--fpm-config", &path("fpm.conf")]);
        if user == "root" {
            command.arg("--allow-to-run-as-root");
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("php-fpm to start");
        let mut lines = BufReader::new(child.stderr.take().expect("its messages")).lines();
        let mut output = String::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("ready to handle connections") => break,
                Some(Ok(line)) => output.push_str(&(line + "\n")),
                _ => panic!("php-fpm exited: {output}"),
            }
        }
        // php-fpm would block if nothing read its further output.
        thread::spawn(move || lines.for_each(drop));
        Fpm(child)
    }

    /// Stops php-fpm and returns when all its processes have exited.
    fn stop(self) {}
}

impl Drop for Fpm {
    fn drop(&mut self) {
        // SIGTERM is used, because on SIGKILL php-fpm would leave its child processes running.
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

fn program() -> PathBuf {
    let names = ["/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm", "/usr/bin/php-fpm"];
    let found = names.iter().map(Path::new).find(|path| path.is_file());
    found
        .expect("php-fpm, which `cargo xtask test` installs (php8.2-fpm)")
        .to_path_buf()
}

/// Duration of a restart of php-fpm up to which a waiting request must succeed. Shorter than the time for which
/// RockNet waits for php-fpm.
const WAIT: Duration = Duration::from_secs(2);
const PHP: &str = "php = \"unix:php.sock\"";

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.php", "<?php echo 'front ', $_SERVER['REQUEST_URI'];"),
        (
            "www/about.php",
            "<?php foreach (['SCRIPT_NAME', 'PATH_INFO', 'REMOTE_ADDR', 'HTTP_X_A', 'PHP_SELF', 'PHP_AUTH_USER'] as $name)\n\
             echo $name, '=', $_SERVER[$name] ?? '', \"\\n\"; echo getenv('HTTP_PROXY');",
        ),
        (
            "www/status.php",
            "<?php http_response_code(418); header('X-A: b'); echo 'tea';",
        ),
        ("www/away.php", "<?php header('Location: /there');"),
        ("www/inject.php", "<?php header(\"X-A: b\\r\\nX-B: c\"); echo 'x';"),
        (
            "www/form.php",
            "<?php echo $_POST['a'], strlen(file_get_contents('php://input'));",
        ),
        (
            "www/upload.php",
            "<?php $file = $_FILES['f']; echo $file['error'], ' ', $file['size'], ' ', md5_file($file['tmp_name']);",
        ),
        (
            "www/large.php",
            "<?php for ($i = 0; $i < 300; $i++) { echo str_repeat(chr(97 + $i % 26), 10000); flush(); }",
        ),
        ("www/fatal.php", "<?php ini_set('display_errors', '0'); nowhere();"),
        ("www/dies.php", "<?php posix_kill(getmypid(), 9); sleep(9);"),
    ])
}

#[test]
fn scripts_are_run() {
    let folder = folder();
    let _fpm = Fpm::start(&folder);
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    for _ in 0..2 {
        for (path, status, fields, content) in [
            ("/", 200, &["Content-Type: text/html; charset=UTF-8"][..], "front /"),
            ("/some/where?a=b", 200, &[], "front /some/where?a=b"),
            ("/status.php", 418, &["X-A: b"], "tea"),
            ("/away.php", 302, &["Location: /there"], ""),
            ("/inject.php", 200, &["!X-B"], ""),
            ("/fatal.php", 500, &[], ""),
        ] {
            let response = client.get(path);
            response.expect(path, status, fields);
            assert!(response.text().contains(content), "{path}: {response:?}");
        }
    }
    let fields = [
        "X-A: 1",
        "X-A: 2",
        "Proxy: http://evil",
        "Authorization: Basic Ym9iOng=",
    ];
    let text = client.fetch("GET /about.php/info", &fields).text();
    assert_eq!(
        text,
        "SCRIPT_NAME=/about.php\nPATH_INFO=/info\nREMOTE_ADDR=127.0.0.1\nHTTP_X_A=1, 2\nPHP_SELF=/about.php/info\n\
         PHP_AUTH_USER=bob\n"
    );
    let response = client.get("/large.php");
    let expected: Vec<u8> = (0..300_u32).flat_map(|i| vec![b'a' + (i % 26) as u8; 10_000]).collect();
    assert!(response.body == expected, "{response:?}");
    assert_eq!(client.fetch("HEAD /large.php", &[]).status, 200);
    assert_eq!(client.get("/").text(), "front /", "after HEAD");
}

#[test]
fn more_clients_than_processes_are_all_served() {
    let folder = folder();
    let _fpm = Fpm::start(&folder);
    let server = Running::site(folder, &format!("{PHP}\nlimits = {{ answer_timeout = \"15s\" }}"));
    let address = server.address();
    // Connections must not be kept while requests wait: otherwise two clients would use both processes, and no other
    // client would be served.
    let clients: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let mut client = super::support::Client::to(address);
                (0..40).all(|_| client.get("/").status == 200)
            })
        })
        .collect();
    for client in clients {
        assert!(client.join().expect("a client"), "a client got no response");
    }
}

#[test]
fn request_bodies_arrive_complete() {
    let folder = folder();
    let _fpm = Fpm::start(&folder);
    let server = Running::site(folder, PHP);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let mut client = server.connect();
    for framing in ["Content-Length: 7", "Transfer-Encoding: chunked"] {
        let content = if framing.contains("chunked") {
            "7\r\na=hello\r\n0\r\n\r\n"
        } else {
            "a=hello"
        };
        client.send(request("POST /form.php", &[form, framing]) + content);
        assert_eq!(client.response().text(), "hello7", "{framing}");
    }
    // The upload has 50 MB, more than RockNet keeps in memory.
    let file: Vec<u8> = (0..50_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let before = b"--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n";
    let content = [&before[..], &file, b"\r\n--B--\r\n"].concat();
    let length = format!("Content-Length: {}", content.len());
    client.send(request(
        "POST /upload.php",
        &["Content-Type: multipart/form-data; boundary=B", &length],
    ));
    client.send(&content);
    server.folder.write("file", &file);
    let sum = Command::new("md5sum")
        .arg(server.folder.path("file"))
        .output()
        .expect("md5sum");
    let sum = String::from_utf8_lossy(&sum.stdout)
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert_eq!(client.response().text(), format!("0 50000000 {sum}"));
}

#[test]
fn a_restart_of_php_loses_no_request() {
    let folder = folder();
    let fpm = Fpm::start(&folder);
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "front /");
    // A process that dies loses its own request and no other.
    client.get("/dies.php").expect("killed", 502, &[]);
    assert_eq!(client.get("/").text(), "front /");
    fpm.stop();
    // The request is sent while php-fpm is down, and waits for its start. On a very busy machine the start can take
    // longer than the wait.
    let begun = Instant::now();
    client.send(request("GET /back", &[]));
    let _fpm = Fpm::start(&server.folder);
    let (in_time, response) = (begun.elapsed() < WAIT, client.response());
    assert!(
        response.text() == "front /back" || !in_time && response.status == 502,
        "in time: {in_time}; {response:?}"
    );
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "front /");
    }
}

#[test]
fn scripts_are_run_over_tcp() {
    // php-cgi inherits a listening socket, so that the kernel can choose the port.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let mut php = Command::new("/usr/bin/php-cgi8.2")
        .env("PHP_FCGI_MAX_REQUESTS", "100")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::null())
        .spawn()
        .expect("php-cgi, which `cargo xtask test` installs (php8.2-cgi)");
    let server = Running::site(folder(), &format!("php = \"127.0.0.1:{port}\""));
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/some/where").text(), "front /some/where");
        assert_eq!(client.get("/large.php").body.len(), 3_000_000);
    }
    client.send(
        request(
            "POST /form.php",
            &["Content-Type: application/x-www-form-urlencoded", "Content-Length: 7"],
        ) + "a=hello",
    );
    assert_eq!(client.response().text(), "hello7");
    php.kill().expect("it to end");
    php.wait().expect("its end");
    assert_eq!(server.get("/").status, 502);
}

over_http3! {
    scripts_are_run,
    a_restart_of_php_loses_no_request,
    scripts_are_run_over_tcp,
}
