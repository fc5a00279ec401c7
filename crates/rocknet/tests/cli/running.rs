//! Running servers: their URL, reload, console commands, signals and stop.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Signal, test_kill_process};

use crate::program::ProgramFolder;

const ANY_PORT: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

fn home() -> ProgramFolder {
    ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", ANY_PORT)])
}

#[test]
fn a_server_prints_its_url_serves_it_and_stops_gracefully() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = home();
        let server = dir.serve(&[]);
        assert!(
            server.banner.contains("RockNet") && !server.banner.contains('\x1b'),
            "{}",
            server.banner
        );
        let root = dir.path().join("www");
        assert!(
            server.banner.contains(&format!("/  →  {}\n", root.display())),
            "{}",
            server.banner
        );
        let response = server.get("/");
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nhome"),
            "{response}"
        );
        server.signal(signal);
        assert_eq!(server.wait(), Some(0));
    }
}

#[test]
fn the_io_backend_is_logged_at_debug_level_only() {
    let dir = home();
    for (level, is_logged) in [("info", false), ("debug", true)] {
        dir.write("rocknet.toml", &format!("[log]\nlevel = \"{level}\"\n{ANY_PORT}"));
        let server = dir.serve(&["run"]);
        server.signal(Signal::USR1);
        // All lines logged at start come before this line.
        let before = server.logged_until("log files were reopened");
        assert_eq!(before.contains("the I/O back end is"), is_logged, "{level}: {before}");
    }
}

#[test]
fn sighup_applies_a_valid_file_and_refuses_an_invalid_one() {
    let dir = home();
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    let mut kept = server.connect();
    let mut fetch = |expected: &str| {
        write!(kept, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut response = vec![0; 4096];
        let length = kept.read(&mut response).unwrap();
        assert!(String::from_utf8_lossy(&response[..length]).contains(expected));
    };
    fetch("\r\n\r\nhome");

    dir.write("rocknet.toml", &format!("{ANY_PORT}rot = 1\nheaders = 7\n"));
    server.signal(Signal::HUP);
    server.logged("rocknet.toml:4:1: unknown key `rot`");
    server.logged("rocknet.toml:5:");
    server.logged("is not reloaded, nothing has changed: 2 errors");
    assert!(!server.get("/").contains("X-New"));

    dir.write(
        "rocknet.toml",
        &format!("[server]\nworkers = 3\nblocking_threads = 9\n{ANY_PORT}headers = {{ \"X-New\" = \"yes\" }}\n"),
    );
    server.signal(Signal::HUP);
    let waiting = server.logged("takes effect after a restart");
    assert!(
        waiting.contains("`server.blocking_threads`: ") && !waiting.contains("server.workers"),
        "{waiting}"
    );
    server.logged("is reloaded, sites: 1");
    assert!(server.get("/").contains("X-New: yes\r\n"));
    // A connection that was opened before the reload is still served.
    fetch("200 OK");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn console_commands_work_and_end_of_input_does_not_stop_the_server() {
    let dir = home();
    let mut server = dir.serve(&["--console"]);
    assert!(
        server.banner.contains("Type status, sites, reload, quit or help."),
        "{}",
        server.banner
    );
    assert!(server.get("/").contains("200 OK"));
    server.type_line("dance");
    server.line_with("unknown command `dance`");
    server.type_line("help");
    server.line_with("status  ");
    server.type_line("status");
    server.line_with("requests     1");
    server.type_line("sites");
    server.line_with(&format!("http://{}/", server.authority()));
    server.type_line("reload");
    server.line_with("rocknet.toml is reloaded, sites: 1");
    dir.write("rocknet.toml", "[site");
    server.type_line("reload");
    server.logged("is not reloaded");
    server.type_line("status");
    server.line_with("reloads      1");
    server.line_with("the last reload changed nothing:");
    server.input = None;
    assert!(server.get("/").contains("200 OK"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));

    dir.write("rocknet.toml", ANY_PORT);
    let mut server = dir.serve(&["run", "--console"]);
    server.type_line("quit");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_second_signal_stops_the_server_immediately() {
    let dir = home();
    // The file is larger than the socket buffers, so the response is in progress until the client reads it.
    fs::File::create(dir.path().join("www/big.bin"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    let server = dir.serve(&[]);
    let mut stream = server.connect();
    write!(stream, "GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1024]).unwrap();
    server.signal(Signal::TERM);
    server.logged("stopping");
    server.signal(Signal::TERM);
    server.logged("stopped immediately");
    assert_eq!(server.wait(), Some(1));
}

#[test]
fn an_error_for_a_busy_port_names_the_process_that_uses_it() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", "")]);
    dir.write(
        "rocknet.toml",
        &format!("[site.\"127.0.0.1:{port}\"]\nroot = \"www\"\n"),
    );
    let expected = format!("cannot start: 127.0.0.1:{port} is in use by ");
    for arguments in [&["run"][..], &["serve", "www", "--listen", &port.to_string()]] {
        let output = dir.run(arguments);
        assert!(output.code == Some(1) && output.err.contains(&expected), "{output:?}");
        assert!(
            output.err.contains(&format!("(pid {})", std::process::id())),
            "{output:?}"
        );
        assert_eq!(output.out, "");
    }
}

#[test]
fn a_server_without_a_configuration_uses_the_next_free_port() {
    let dir = ProgramFolder::new(&[("site/style.css", "x"), ("site/sub/y", "")]);
    // Port 8080 is in use, by this test or another process. The first server uses the next free port, and the second
    // server the one after that.
    let _holder = TcpListener::bind("127.0.0.1:8080");
    let folder = dir.serve(&["serve", "site/../site"]);
    assert!(folder.banner.contains("Port 8080 is held by "), "{}", folder.banner);
    let whole = dir.path().canonicalize().unwrap().join("site");
    assert!(
        folder.banner.contains(&format!("→  {}\n", whole.display())),
        "{}",
        folder.banner
    );
    assert!(folder.get("/").contains("style.css"));

    // The next server would load this file.
    if fs::exists("/etc/rocknet/rocknet.toml").unwrap() {
        return;
    }
    let page = dir.serve(&["run"]);
    assert_ne!(page.authority(), folder.authority());
    assert!(
        page.banner.contains("welcome page") && page.banner.contains("rocknet serve FOLDER"),
        "{}",
        page.banner
    );
    assert!(page.get("/").contains("RockNet"));
    page.signal(Signal::HUP);
    page.logged("nothing to reload");
    page.signal(Signal::TERM);
    assert_eq!(page.wait(), Some(0));
}

#[test]
fn serve_prints_the_reachable_addresses_of_the_machine() {
    let dir = home();
    let addresses = rocknet_io::machine::lan_addresses();
    for (listen, is_open) in [(":0", true), ("127.0.0.1:0", false)] {
        let server = dir.serve(&["serve", "www", "--listen", listen]);
        let is_listed = server.banner.contains("Other machines reach it at:");
        assert_eq!(
            is_listed,
            is_open && !addresses.is_empty(),
            "{listen}: {}",
            server.banner
        );
        if let (true, Some(first)) = (is_listed, addresses.iter().find(|address| address.is_ipv4())) {
            assert!(
                server.banner.contains(&format!("  http://{first}:")),
                "{}",
                server.banner
            );
        }
    }
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let dir = home();
    let path = dir.path().join("s");
    let server = dir.serve(&["serve", "www", "--listen", "unix:s"]);
    assert!(
        server.banner.contains(&format!("  unix:{}  →", path.display())),
        "{}",
        server.banner
    );
    let mut stream = UnixStream::connect(&path).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("home"), "{response}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(!path.exists());
}

#[test]
fn sigusr1_reopens_the_logs() {
    let dir = home();
    dir.write("rocknet.toml", &format!("[log]\naccess = \"access.log\"\n{ANY_PORT}"));
    let server = dir.serve(&[]);
    server.get("/first");
    // The line of the first request may be written before or after the log is reopened, so it may be in either file.
    fs::rename(dir.path().join("access.log"), dir.path().join("old.log")).unwrap();
    server.signal(Signal::USR1);
    server.logged("reopened");
    server.get("/second");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let (old, new) = (dir.read("old.log"), dir.read("access.log"));
    assert!((old + &new).contains("/first") && new.contains("/second"), "{new}");
}

#[test]
fn a_missing_folder_is_reported_and_other_sites_are_served() {
    let dir = home();
    dir.write(
        "rocknet.toml",
        &format!("{ANY_PORT}[site.\"other.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"gone\"\n"),
    );
    let server = dir.serve(&[]);
    server.logged("warning");
    server.logged("rocknet.toml:6:");
    assert!(server.get("/").ends_with("home"));
}

#[test]
fn root_switches_to_the_user_and_other_users_get_an_error() {
    let dir = home();
    dir.write(
        "rocknet.toml",
        &format!("[server]\nworkers = 3\nuser = \"nobody\"\nstate = \"state\"\n{ANY_PORT}"),
    );
    let server = dir.serve(&[]);
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let ids = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    if rustix::process::geteuid().is_root() {
        assert!(ids.split_whitespace().skip(1).all(|id| id != "0"), "{ids}");
    } else {
        server.logged("`user` is ignored");
        skip(Need::Root, "only root can become another user");
    }
    dir.write(
        "rocknet.toml",
        &format!("[server]\nuser = \"no-such-user\"\n{ANY_PORT}"),
    );
    if rustix::process::geteuid().is_root() {
        let output = dir.run(&["run"]);
        assert!(
            output.code == Some(1) && output.err.contains("no user `no-such-user`"),
            "{output:?}"
        );
    }
}

#[test]
fn a_folder_with_scripts_is_served_by_php() {
    let dir = ProgramFolder::new(&[("site/index.php", "<?php echo 'sum ', 40 + 2;"), ("site/a.txt", "a")]);
    for folder in [dir.path().to_owned(), dir.path().join("site")] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder, open).unwrap();
    }
    let server = dir.serve(&["serve", "site", "--listen", "0"]);
    for path in ["/", "/pretty/path"] {
        let response = server.get(path);
        assert!(response.ends_with("\r\n\r\nsum 42"), "{path}: {response}");
    }
    assert!(server.get("/a.txt").ends_with("\r\n\r\na"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn background_processes_of_cgi_programs_end_with_the_server() {
    const LEAVES: &str = "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\nprintf 'Content-Type: text/plain\\n\\n%s\\n' $!\n";
    let dir = home();
    let program = dir.write("www/cgi-bin/leaves", LEAVES);
    // A server started by root runs programs as another user, who needs access to this program.
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    [dir.path(), &program].into_iter().for_each(open);
    dir.write("rocknet.toml", &format!("{ANY_PORT}cgi = \"/cgi-bin\"\n"));
    let server = dir.serve(&[]);
    let response = server.get("/cgi-bin/leaves");
    // The body has chunked coding: the pid is the largest number, and the others are chunk sizes.
    let pid = response.lines().filter_map(|line| line.trim().parse().ok()).max();
    let pid = pid.and_then(Pid::from_raw).unwrap_or_else(|| panic!("{response}"));
    assert!(
        test_kill_process(pid).is_ok(),
        "the background process has exited by itself"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let began = Instant::now();
    while test_kill_process(pid).is_ok() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the background process still runs"
        );
        std::thread::yield_now();
    }
}
