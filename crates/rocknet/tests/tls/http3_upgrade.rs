//! HTTP/3 during an upgrade: the new process passes the datagrams of old connections to the old process.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bytes::{Buf, Bytes};
use quinn::VarInt;
use rustix::process::{Pid, Signal, kill_process};

use super::certs::{Authority, Kind};
use super::child::{DEADLINE, Server, Setup};
use super::client::TlsClient;
use super::http3_client::{Http3Client, get};
use super::http3_reload::free_port;
use super::support::Folder;

/// Size in bytes of a download that exceeds the window of the client by far.
const LARGE: u64 = 16 << 20;
/// Bytes of a response that the client accepts before it reads.
const WINDOW: u32 = 256 << 10;

/// Process that has taken over. It is killed when dropped.
pub struct NewProcess(pub Pid);

impl Drop for NewProcess {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Upgrades a process, and returns the new one once it has taken over.
pub fn upgrade(server: &Server, old: Pid) -> NewProcess {
    kill_process(old, Signal::USR2).expect("a process");
    let marker = format!(" has taken over from process {}", old.as_raw_nonzero());
    let log = server.error_with(&marker);
    let (before, _) = log.split_once(&marker).expect("the process");
    let digits = before.rsplit(' ').next().expect("a number");
    let id = digits.parse().ok().and_then(Pid::from_raw);
    NewProcess(id.expect("a process ID"))
}

/// Waits until the process has ended.
fn wait_for_end(process: Pid) {
    let deadline = Instant::now() + DEADLINE;
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    // A zombie has ended, too: it remains only until its parent, the test, waits for it.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < deadline, "the old process did not end");
        thread::yield_now();
    }
}

/// Starts the server of a setup with the TLS site `z.test`. `tls`: further keys of `tls`. Returns the address of the
/// site.
pub fn serve(authority: &Authority, setup: Setup, tls: &str) -> (Server, SocketAddr) {
    serve_at(authority, setup, tls, 0)
}

/// Starts a server like [`serve`], with this port of 127.0.0.2. The kernel chooses the port if it is 0.
fn serve_at(authority: &Authority, mut setup: Setup, tls: &str, port: u16) -> (Server, SocketAddr) {
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["z.test"]).write(&folder, "a");
    for name in ["a.pem", "a.key"] {
        std::fs::copy(folder.path(name), setup.folder.path().join(name)).expect("a file");
    }
    setup.keys = format!(
        "[site.\"z.test\"]\nlisten = \"https://127.0.0.2:{port}\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\"{tls} }}\n"
    );
    let server = setup.start();
    let line = server.line_with("https://z.test:");
    let digits = line.split_once("https://z.test:").expect("a URL").1;
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    (
        server,
        SocketAddr::from(([127, 0, 0, 2], digits.parse().expect("a port"))),
    )
}

/// Opens a connection with a receive window that is much smaller than the large file.
fn open_slowly(client: &TlsClient<'_>, address: SocketAddr) -> Http3Client {
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW));
    Http3Client::open_with(client, address, transport).expect("a connection")
}

type Download = h3::client::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

async fn begin_download(sender: &mut h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>) -> Download {
    let request = get("https://z.test/large.bin");
    let mut stream = sender.send_request(request).await.expect("a stream");
    stream.finish().await.expect("an open stream");
    assert_eq!(stream.recv_response().await.expect("a response").status(), 200);
    stream
}

/// Receives a body up to its end, and returns its number of bytes.
async fn finish_download(download: &mut Download) -> u64 {
    let mut received = 0;
    while let Some(piece) = download.recv_data().await.expect("a whole response") {
        received += piece.remaining() as u64;
    }
    received
}

#[test]
fn connections_continue_if_the_new_process_has_no_http3() {
    let authority = Authority::new("root");
    let setup = Setup::new().tables("state = \"state\"\n");
    setup.sparse("large.bin", LARGE);
    let (server, address) = serve(&authority, setup, "");
    let old = open_slowly(&TlsClient::new(authority.roots(), "z.test"), address);
    let mut sender = old.sender();
    let mut download = old.block_on(begin_download(&mut sender));

    let path = server.setup.folder.path().join("rocknet.toml");
    let text = std::fs::read_to_string(&path).expect("a configuration");
    // The file ends with the keys of the site.
    std::fs::write(&path, format!("{text}http3 = false\n")).expect("written");
    let first = server.pid();
    let _second = upgrade(&server, first);
    assert_eq!(old.block_on(finish_download(&mut download)), LARGE);
    drop((download, sender));
    wait_for_end(first);
    UdpSocket::bind(address).expect("no process has the UDP port");
}

#[test]
fn connections_of_the_old_process_continue_and_new_ones_reach_the_new_process() {
    let authority = Authority::new("root");
    let setup = Setup::new().tables("state = \"state\"\n");
    setup.sparse("large.bin", LARGE);
    let (server, address) = serve(&authority, setup, "");
    let client = || TlsClient::new(authority.roots(), "z.test");

    let old = open_slowly(&client(), address);
    assert_eq!(old.get("https://z.test/small.txt").body, b"Hello, world!");
    let mut sender = old.sender();
    let mut download = old.block_on(begin_download(&mut sender));

    let (ends, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let _third = thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let one = Http3Client::open(&client(), address).expect("a connection");
                assert_eq!(one.get("https://z.test/small.txt").body, b"Hello, world!");
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
        let wait_for_requests = || {
            let (deadline, target) = (Instant::now() + DEADLINE, served.load(Ordering::Relaxed) + 5);
            while served.load(Ordering::Relaxed) < target {
                assert!(Instant::now() < deadline, "no requests were served");
                thread::yield_now();
            }
        };
        wait_for_requests();
        let first = server.pid();
        let second = upgrade(&server, first);
        wait_for_requests();
        // The third process must pass datagrams to the first, which still serves the download.
        let third = upgrade(&server, second.0);
        wait_for_requests();
        wait_for_end(second.0);

        assert_eq!(old.block_on(finish_download(&mut download)), LARGE);
        drop((download, sender));
        wait_for_end(first);
        wait_for_requests();
        ends.store(true, Ordering::Relaxed);
        // The third process is returned, so that it is killed only after the clients have ended.
        third
    });
}

#[test]
fn connections_of_the_old_process_continue_while_the_new_one_removes_and_adds_their_address() {
    let authority = Authority::new("root");
    let setup = Setup::new().tables("state = \"state\"\n");
    setup.sparse("large.bin", LARGE);
    let (server, address) = serve_at(&authority, setup, "", free_port());
    let client = || TlsClient::new(authority.roots(), "z.test");
    let old = open_slowly(&client(), address);
    let mut sender = old.sender();
    let mut download = old.block_on(begin_download(&mut sender));
    let second = upgrade(&server, server.pid());

    let path = server.setup.folder.path().join("rocknet.toml");
    let text = std::fs::read_to_string(&path).expect("a configuration");
    let reload = |text: &str, is_listened_at: bool| {
        std::fs::write(&path, text).expect("written");
        kill_process(second.0, Signal::HUP).expect("a process");
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect(address).is_ok() != is_listened_at {
            assert!(Instant::now() < deadline, "the configuration was not loaded");
            thread::yield_now();
        }
    };
    reload(&text.replace(&address.to_string(), "127.0.0.2:0"), false);
    // The download continues only if datagrams of the client extend the window, and these reach the new process.
    let mut received = 0;
    while received < 4 * u64::from(WINDOW) {
        let piece = old.block_on(download.recv_data()).expect("an open stream");
        received += piece.expect("more data").remaining() as u64;
    }
    reload(&text, true);
    // TCP connections are accepted a moment before connections of HTTP/3, which are refused until then.
    let deadline = Instant::now() + DEADLINE;
    let new = loop {
        match Http3Client::open(&client(), address) {
            Ok(new) => break new,
            Err(error) => assert!(Instant::now() < deadline, "no connection: {error:?}"),
        }
    };
    assert_eq!(new.get("https://z.test/small.txt").body, b"Hello, world!");
    assert_eq!(received + old.block_on(finish_download(&mut download)), LARGE);
}

#[test]
fn an_upgrade_may_move_a_port_to_all_addresses() {
    let authority = Authority::new("root");
    let setup = Setup::new().tables("state = \"state\"\n");
    let (server, address) = serve_at(&authority, setup, "", free_port());
    let path = server.setup.folder.path().join("rocknet.toml");
    let text = std::fs::read_to_string(&path).expect("a configuration");
    let moved = text.replace(&address.to_string(), &address.port().to_string());
    std::fs::write(&path, moved).expect("written");
    let _second = upgrade(&server, server.pid());

    let other = SocketAddr::from(([127, 0, 0, 3], address.port()));
    let client = Http3Client::open(&TlsClient::new(authority.roots(), "z.test"), other).expect("a connection");
    assert_eq!(client.get("https://z.test/small.txt").body, b"Hello, world!");
}
