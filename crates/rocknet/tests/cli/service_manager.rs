//! The protocol of systemd: notifications, the watchdog, and passed sockets. The test plays the service manager.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{ProgramFolder, Server};
use crate::upgrade::{KillAtEnd, upgrade};

const SITE: &str =
    "[server]\nworkers = 1\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// Time limit of any notification.
const TIMEOUT: Duration = Duration::from_secs(30);

fn folder(config: &str) -> ProgramFolder {
    ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", config)])
}

/// Notifications that the server has sent, one datagram each.
struct Notifications(UnixDatagram);

impl Notifications {
    fn at(folder: &ProgramFolder) -> Notifications {
        let socket = UnixDatagram::bind(folder.path().join("notify.sock")).expect("a socket");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        Notifications(socket)
    }

    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).expect("a notification");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// Returns the next notification that is not a sign of life (`WATCHDOG=1`).
    fn next_state(&self) -> String {
        loop {
            let next = self.next();
            if next != "WATCHDOG=1" {
                return next;
            }
        }
    }
}

/// Starts the server with environment variables in the form `NAME=VALUE`, and sockets from descriptor 3 on.
fn serve(folder: &ProgramFolder, variables: &[&str], sockets: &[OwnedFd]) -> Server {
    // The shell moves the sockets to the numbers that the protocol requires, and becomes the server: `LISTEN_PID` is
    // its process.
    let mut script = String::new();
    let mut copies = Vec::new();
    for (passed, socket) in (3..).zip(sockets) {
        // Numbers from 100 on do not collide with the final ones.
        let copy = rustix::io::fcntl_dupfd_cloexec(socket, 100).expect("a descriptor");
        rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty()).expect("flags");
        let number = copy.as_raw_fd();
        let _ = write!(script, "exec {passed}<&{number} {number}<&-; ");
        copies.push(copy);
    }
    if !sockets.is_empty() {
        let _ = write!(script, "export LISTEN_PID=$$ LISTEN_FDS={}; ", sockets.len());
    }
    script += "exec \"$@\"";
    let mut words = vec!["env"];
    words.extend(variables);
    // Descriptors above 9 need bash.
    words.extend(["bash", "-c", &script, "bash"]);
    folder.serve_by(&words, &["run", "-c", "rocknet.toml"])
}

#[test]
fn states_are_notified_and_programs_do_not_inherit_the_variables() {
    let config = format!("{SITE}cgi = \"/cgi-bin\"\n");
    let dir = folder(&config);
    let script = dir.write(
        "www/cgi-bin/env",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nenv\n",
    );
    fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let notified = Notifications::at(&dir);
    let address = format!("NOTIFY_SOCKET={}", dir.path().join("notify.sock").display());
    let server = serve(&dir, &[&address], &[]);
    assert_eq!(notified.next(), "READY=1\nSTATUS=sites: 1");
    // Ready means that requests are served.
    let response = server.get("/cgi-bin/env");
    assert!(
        response.contains("SCRIPT_NAME=") && !response.contains("NOTIFY_SOCKET"),
        "{response}"
    );
    // Programs that are started do not inherit the variables, but the server was started with them.
    let own = fs::read(format!("/proc/{}/environ", server.id())).expect("an environment");
    assert!(String::from_utf8_lossy(&own).contains("NOTIFY_SOCKET"));

    server.signal(Signal::HUP);
    let reloading = notified.next();
    let time = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(reloading.starts_with("RELOADING=1\n"), "{reloading}");
    assert!(
        time.is_some_and(|time| time.parse::<u64>().is_ok_and(|time| time > 0)),
        "{reloading}"
    );
    assert_eq!(notified.next(), "READY=1\nSTATUS=sites: 1");

    // A failed reload ends too, and the old configuration is served.
    dir.write("rocknet.toml", "no = key = here");
    assert_eq!(dir.run(&["reload", "-c", "rocknet.toml"]).code, Some(1));
    assert!(notified.next().starts_with("RELOADING=1\n"));
    let ready = notified.next();
    assert!(
        ready.starts_with("READY=1\nSTATUS=sites: 1; the last reload failed: "),
        "{ready}"
    );

    server.signal(Signal::TERM);
    assert!(notified.next().starts_with("STOPPING=1\n"));
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn notifications_go_to_an_abstract_socket() {
    let dir = folder(SITE);
    let name = format!("rocknet-test-{}-notify", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let _server = serve(&dir, &[&format!("NOTIFY_SOCKET=@{name}")], &[]);
    assert!(Notifications(socket).next().starts_with("READY=1\n"));
}

#[test]
fn a_hung_worker_stops_the_signs_of_life() {
    let config = format!("{SITE}[site.default.route.\"/hang\"]\ncontroller = \"l.so:die\"\nrun_on = \"network\"\n");
    let dir = folder(&config);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c99", "-fPIC", "-shared", "-o"])
        .arg(dir.path().join("l.so"));
    compiler.arg("-I").arg(here.join("../rocknet-controller/include"));
    compiler.arg(here.join("tests/server/controllers/library.c"));
    assert!(compiler.status().expect("cc").success());
    let notified = Notifications::at(&dir);
    let address = format!("NOTIFY_SOCKET={}", dir.path().join("notify.sock").display());
    let server = serve(&dir, &[&address, "WATCHDOG_USEC=600000"], &[]);
    assert!(notified.next_state().starts_with("READY=1"));
    for _ in 0..4 {
        assert_eq!(notified.next(), "WATCHDOG=1");
    }
    let mut stream = server.connect();
    stream
        .write_all(b"GET /hang?loop HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("a request");
    server.logged("a worker hangs");
    // A sign of life that was sent before is still in the queue. No further one arrives in twice the time of the
    // watchdog.
    notified.0.set_nonblocking(true).expect("a mode");
    while notified.0.recv(&mut [0; 64]).is_ok() {}
    notified.0.set_nonblocking(false).expect("a mode");
    notified
        .0
        .set_read_timeout(Some(Duration::from_millis(1200)))
        .expect("a timeout");
    assert!(
        notified.0.recv(&mut [0; 64]).is_err(),
        "a sign of life of a hung worker"
    );
    // The main loop still runs.
    assert_eq!(dir.run(&["status", "-c", "rocknet.toml"]).code, Some(0));
}

#[test]
fn passed_sockets_are_used_for_their_addresses() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let other = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let udp = UdpSocket::bind(tcp.local_addr().expect("an address"));
    let address = tcp.local_addr().expect("an address");
    let other_address = other.local_addr().expect("an address");
    let config = format!(
        "[server]\nworkers = 2\nstate = \"state\"\n[site.\"a.localhost\"]\nlisten = \"https://{address}\"\nroot = \"www\"\n\
         tls = \"local\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n"
    );
    let dir = folder(&config);
    // A client that connects before the server is started is served once it is.
    let mut early = std::net::TcpStream::connect(address).expect("a connection");
    let mut sockets: Vec<OwnedFd> = vec![tcp.into(), other.into()];
    let has_udp = udp.is_ok();
    sockets.extend(udp.ok().map(OwnedFd::from));
    let server = serve(&dir, &["LISTEN_FDNAMES=web:spare:quic"], &sockets);
    server.logged(&format!("spare: no site listens on {other_address}"));
    drop(sockets);

    // The server did not bind the address itself: it would have failed, because the address was in use.
    early
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("a request");
    early.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut response = String::new();
    let _ = early.read_to_string(&mut response);
    // Plain HTTP on a port for HTTPS is refused.
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(server.get("/").contains("home"));
    if has_udp {
        // The server could not have bound the UDP port itself either.
        let status = dir.run(&["status", "--json", "-c", "rocknet.toml"]).out;
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        assert_eq!(status["http3_ports"][0], address.port(), "{status}");
    }
}

#[test]
fn the_new_process_of_an_upgrade_becomes_the_main_process() {
    let dir = folder(SITE);
    let notified = Notifications::at(&dir);
    let address = format!("NOTIFY_SOCKET={}", dir.path().join("notify.sock").display());
    let old = serve(&dir, &[&address, "WATCHDOG_USEC=600000"], &[]);
    let _end = KillAtEnd(&dir);
    assert_eq!(notified.next_state(), "READY=1\nSTATUS=sites: 1");
    // The second upgrade shows that the new process passes the variables on too.
    let first = upgrade(&dir, &[]);
    for process in [first, upgrade(&dir, &[])] {
        // A service manager ignores notifications of a process that is not the main process.
        assert_eq!(
            notified.next_state(),
            format!("MAINPID={process}\nREADY=1\nSTATUS=serving by the new process")
        );
        assert_eq!(notified.next_state(), "READY=1\nSTATUS=sites: 1");
    }
    assert_eq!(old.wait(), Some(0));
    // Signs of life that are still in the queue may be from the time before the upgrades.
    notified.0.set_nonblocking(true).expect("a mode");
    while notified.0.recv(&mut [0; 64]).is_ok() {}
    notified.0.set_nonblocking(false).expect("a mode");
    assert_eq!(notified.next(), "WATCHDOG=1");
    assert_eq!(dir.run(&["stop"]).code, Some(0));
    assert!(notified.next_state().starts_with("STOPPING=1\n"));
}

#[test]
fn passed_sockets_stay_with_the_service_manager_after_an_upgrade() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = tcp.local_addr().expect("an address");
    let config = format!(
        "[server]\nworkers = 1\nstate = \"state\"\n[site.default]\nlisten = [\"{address}\", \"unix:web.sock\"]\n\
         root = \"www\"\n"
    );
    let dir = folder(&config);
    let file = dir.path().join("web.sock");
    let unix = UnixListener::bind(&file).expect("a socket");
    let sockets: Vec<OwnedFd> = vec![tcp.into(), unix.into()];
    let server = serve(&dir, &[], &sockets);
    let _end = KillAtEnd(&dir);
    // The new worker shares the queue of the socket that was passed.
    dir.write("rocknet.toml", &config.replace("workers = 1", "workers = 2"));
    upgrade(&dir, &[]);
    assert_eq!(server.wait(), Some(0));
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for _ in 0..4 {
        let mut response = String::new();
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        stream.write_all(request).expect("a request");
        stream.read_to_string(&mut response).expect("a response");
        assert!(response.ends_with("home"), "{response}");
        let mut response = String::new();
        let mut stream = UnixStream::connect(&file).expect("a connection");
        stream.write_all(request).expect("a request");
        stream.read_to_string(&mut response).expect("a response");
        assert!(response.ends_with("home"), "{response}");
    }
    assert_eq!(dir.run(&["stop"]).code, Some(0));
    assert!(file.exists(), "the file belongs to the service manager");
    // A client can still connect, and waits for the next start.
    UnixStream::connect(&file).expect("a connection");
}
