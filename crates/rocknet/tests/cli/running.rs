//! Servers started by the program: found, reloaded, queried and stopped.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Signal, test_kill_process};

use crate::program::Place;

const ANY_PORT: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

fn home() -> Place {
    Place::new(&[("www/index.html", "home"), ("rocknet.toml", ANY_PORT)])
}

#[test]
fn a_server_prints_its_url_serves_it_and_stops_gracefully() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = home();
        let server = place.serve(&[]);
        assert!(
            server.told.contains("RockNet") && !server.told.contains('\x1b'),
            "{}",
            server.told
        );
        let root = place.path().join("www");
        assert!(
            server.told.contains(&format!("/  →  {}\n", root.display())),
            "{}",
            server.told
        );
        let answer = server.get("/");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhome"),
            "{answer}"
        );
        server.signal(signal);
        assert_eq!(server.ended(), Some(0));
    }
}

#[test]
fn the_io_backend_is_logged_at_debug_level_only() {
    let place = home();
    for (level, is_told) in [("info", false), ("debug", true)] {
        place.write("rocknet.toml", &format!("[log]\nlevel = \"{level}\"\n{ANY_PORT}"));
        let server = place.serve(&["run"]);
        server.signal(Signal::USR1);
        // The lines logged at start precede this one.
        let before = server.logged_until("log files are opened anew");
        assert_eq!(before.contains("sockets are driven by"), is_told, "{level}: {before}");
    }
}

#[test]
fn sighup_applies_a_valid_file_and_refuses_an_invalid_one() {
    let place = home();
    let server = place.serve(&["run", "-c", "rocknet.toml"]);
    let mut kept = server.connect();
    let mut ask = |expected: &str| {
        write!(kept, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = vec![0; 4096];
        let length = kept.read(&mut answer).unwrap();
        assert!(String::from_utf8_lossy(&answer[..length]).contains(expected));
    };
    ask("\r\n\r\nhome");

    place.write("rocknet.toml", &format!("{ANY_PORT}rot = 1\nheaders = 7\n"));
    server.signal(Signal::HUP);
    server.logged("rocknet.toml:4:1: unknown key `rot`");
    server.logged("rocknet.toml:5:");
    server.logged("is not reloaded, nothing has changed: 2 errors");
    assert!(!server.get("/").contains("X-New"));

    place.write(
        "rocknet.toml",
        &format!("[server]\nworkers = 3\nblocking_threads = 9\n{ANY_PORT}headers = {{ \"X-New\" = \"yes\" }}\n"),
    );
    server.signal(Signal::HUP);
    let waiting = server.logged("from the next start on");
    assert!(waiting.contains("server.workers, server.blocking_threads"), "{waiting}");
    server.logged("is reloaded, sites: 1");
    assert!(server.get("/").contains("X-New: yes\r\n"));
    // The connection opened before goes on.
    ask("200 OK");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn console_commands_work_and_end_of_input_does_not_stop_the_server() {
    let place = home();
    let mut server = place.serve(&["--console"]);
    assert!(
        server.told.contains("Type status, sites, reload, quit or help."),
        "{}",
        server.told
    );
    assert!(server.get("/").contains("200 OK"));
    server.type_line("dance");
    server.said("unknown command `dance`");
    server.type_line("help");
    server.said("status  ");
    server.type_line("status");
    server.said("requests     1");
    server.type_line("sites");
    server.said(&format!("http://{}/", server.authority()));
    server.type_line("reload");
    server.said("rocknet.toml is reloaded, sites: 1");
    place.write("rocknet.toml", "[site");
    server.type_line("reload");
    server.logged("is not reloaded");
    server.type_line("status");
    server.said("reloads      1");
    server.said("the last reload changed nothing:");
    server.input = None;
    assert!(server.get("/").contains("200 OK"));
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));

    place.write("rocknet.toml", ANY_PORT);
    let mut server = place.serve(&["run", "--console"]);
    server.type_line("quit");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_second_signal_stops_at_once() {
    let place = home();
    // More than the sockets' buffers hold, so the response stays in flight until the client reads it.
    fs::File::create(place.path().join("www/big.bin"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    let server = place.serve(&[]);
    let mut stream = server.connect();
    write!(stream, "GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1024]).unwrap();
    server.signal(Signal::TERM);
    server.logged("stopping");
    server.signal(Signal::TERM);
    server.logged("stopped at once");
    assert_eq!(server.ended(), Some(1));
}

#[test]
fn an_error_for_a_busy_port_names_the_process_that_holds_it() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let place = Place::new(&[("www/index.html", ""), ("rocknet.toml", "")]);
    place.write(
        "rocknet.toml",
        &format!("[site.\"127.0.0.1:{port}\"]\nroot = \"www\"\n"),
    );
    let expected = format!("cannot start: 127.0.0.1:{port} is in use by ");
    for arguments in [&["run"][..], &["serve", "www", "--listen", &port.to_string()]] {
        let ended = place.run(arguments);
        assert!(ended.code == Some(1) && ended.err.contains(&expected), "{ended:?}");
        assert!(
            ended.err.contains(&format!("(pid {})", std::process::id())),
            "{ended:?}"
        );
        assert_eq!(ended.out, "");
    }
}

#[test]
fn without_a_configuration_a_page_or_a_folder_is_served_on_the_next_free_port() {
    let place = Place::new(&[("site/style.css", "x"), ("site/sub/y", "")]);
    // Whichever process holds the port, the first server cannot have it; so the second takes a different port from the
    // first.
    let _holder = TcpListener::bind("127.0.0.1:8080");
    let folder = place.serve(&["serve", "site/../site"]);
    assert!(folder.told.contains("Port 8080 is held by "), "{}", folder.told);
    let whole = place.path().canonicalize().unwrap().join("site");
    assert!(
        folder.told.contains(&format!("→  {}\n", whole.display())),
        "{}",
        folder.told
    );
    assert!(folder.get("/").contains("style.css"));

    if fs::exists("/etc/rocknet/rocknet.toml").unwrap() {
        return;
    }
    let page = place.serve(&["run"]);
    assert_ne!(page.authority(), folder.authority());
    assert!(
        page.told.contains("default page") && page.told.contains("rocknet serve FOLDER"),
        "{}",
        page.told
    );
    assert!(page.get("/").contains("RockNet"));
    page.signal(Signal::HUP);
    page.logged("nothing to reload");
    page.signal(Signal::TERM);
    assert_eq!(page.ended(), Some(0));
}

#[test]
fn serve_prints_the_reachable_addresses_of_the_machine() {
    let place = home();
    let addresses = rocknet_io::machine::addresses();
    for (listen, is_open) in [(":0", true), ("127.0.0.1:0", false)] {
        let server = place.serve(&["serve", "www", "--listen", listen]);
        let is_told = server.told.contains("Other machines reach it at:");
        assert_eq!(is_told, is_open && !addresses.is_empty(), "{listen}: {}", server.told);
        if let (true, Some(first)) = (is_told, addresses.iter().find(|address| address.is_ipv4())) {
            assert!(server.told.contains(&format!("  http://{first}:")), "{}", server.told);
        }
    }
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let place = home();
    let path = place.path().join("s");
    let server = place.serve(&["serve", "www", "--listen", "unix:s"]);
    assert!(
        server.told.contains(&format!("  unix:{}  →", path.display())),
        "{}",
        server.told
    );
    let mut stream = UnixStream::connect(&path).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("home"), "{answer}");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
    assert!(!path.exists());
}

#[test]
fn sigusr1_reopens_the_logs() {
    let place = home();
    place.write("rocknet.toml", &format!("[log]\naccess = \"access.log\"\n{ANY_PORT}"));
    let server = place.serve(&[]);
    server.get("/first");
    // All lines are in the file once the server has closed it.
    fs::rename(place.path().join("access.log"), place.path().join("old.log")).unwrap();
    server.signal(Signal::USR1);
    server.logged("opened anew");
    server.get("/second");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
    let (old, new) = (place.read("old.log"), place.read("access.log"));
    assert!((old + &new).contains("/first") && new.contains("/second"), "{new}");
}

#[test]
fn a_missing_folder_is_reported_and_other_sites_are_served() {
    let place = home();
    place.write(
        "rocknet.toml",
        &format!("{ANY_PORT}[site.\"other.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"gone\"\n"),
    );
    let server = place.serve(&[]);
    server.logged("warning");
    server.logged("rocknet.toml:6:");
    assert!(server.get("/").ends_with("home"));
}

#[test]
fn root_switches_to_the_user_and_other_users_get_an_error() {
    let place = home();
    place.write(
        "rocknet.toml",
        &format!("[server]\nworkers = 3\nuser = \"nobody\"\nstate = \"state\"\n{ANY_PORT}"),
    );
    let server = place.serve(&[]);
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let ids = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    if rustix::process::geteuid().is_root() {
        assert!(ids.split_whitespace().skip(1).all(|id| id != "0"), "{ids}");
    } else {
        server.logged("`user` is ignored");
        skip(Need::Root, "only root can become another user");
    }
    place.write(
        "rocknet.toml",
        &format!("[server]\nuser = \"no-such-user\"\n{ANY_PORT}"),
    );
    if rustix::process::geteuid().is_root() {
        let ended = place.run(&["run"]);
        assert!(
            ended.code == Some(1) && ended.err.contains("no user `no-such-user`"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_folder_with_scripts_is_served_by_php() {
    let place = Place::new(&[("site/index.php", "<?php echo 'sum ', 40 + 2;"), ("site/a.txt", "a")]);
    for folder in [place.path().to_owned(), place.path().join("site")] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder, open).unwrap();
    }
    let server = place.serve(&["serve", "site", "--listen", "0"]);
    for path in ["/", "/pretty/path"] {
        let answer = server.get(path);
        assert!(answer.ends_with("\r\n\r\nsum 42"), "{path}: {answer}");
    }
    assert!(server.get("/a.txt").ends_with("\r\n\r\na"));
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn background_processes_of_cgi_programs_end_with_the_server() {
    const LEAVES: &str = "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\nprintf 'Content-Type: text/plain\\n\\n%s\\n' $!\n";
    let place = home();
    let program = place.write("www/cgi-bin/leaves", LEAVES);
    // Run by root, the server runs programs as another user, who must be able to reach this one.
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    [place.path(), &program].into_iter().for_each(open);
    place.write("rocknet.toml", &format!("{ANY_PORT}cgi = \"/cgi-bin\"\n"));
    let server = place.serve(&[]);
    let answer = server.get("/cgi-bin/leaves");
    // The pid stands among the chunk sizes.
    let pid = answer.lines().filter_map(|line| line.trim().parse().ok()).max();
    let pid = pid.and_then(Pid::from_raw).unwrap_or_else(|| panic!("{answer}"));
    assert!(test_kill_process(pid).is_ok(), "it has ended by itself");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
    let began = Instant::now();
    while test_kill_process(pid).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "it goes on");
        std::thread::yield_now();
    }
}
