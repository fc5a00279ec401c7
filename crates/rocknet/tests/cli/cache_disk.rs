//! Stored responses on disk when the server is killed, upgraded, or has a full disk.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rocknet_testing::{Need, skip};
use rustix::process::Signal;

use crate::failures::wait_until;
use crate::program::{ProgramFolder, Server};
use crate::upgrade::{KillAtEnd, upgrade};

/// An upstream that closes each connection after its response.
pub struct Upstream {
    pub address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Upstream {
    /// `padding`: number of bytes of each body after the target of the request.
    pub fn start(padding: usize) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        // Ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(line) = lines.next() else { continue };
                lines.find(String::is_empty);
                counted.fetch_add(1, Ordering::SeqCst);
                let target = line.split(' ').nth(1).unwrap_or_default();
                let body = format!("{target}{}", "x".repeat(padding));
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Upstream { address, requests }
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Returns the folder of a server that caches responses of an upstream. `cache`: keys of `[cache]`.
pub fn folder(upstream: &Upstream, cache: &str) -> ProgramFolder {
    let config = format!(
        "[server]\nworkers = 1\nstate = \"state\"\n[cache]\n{cache}\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"http://{}\"\ncache = true\n",
        upstream.address
    );
    ProgramFolder::new(&[("rocknet.toml", &config)])
}

/// Starts the server, and waits until it can read responses from disk.
pub fn serve(dir: &ProgramFolder) -> Server {
    let server = dir.serve(&["run", "-c", "rocknet.toml"]);
    server.logged("can be used");
    server
}

/// Waits until the segments have a record of a target.
pub fn wait_for_record(segments: &Path, target: &str) {
    let has_record = |path: PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(target.len()).any(|part| part == target.as_bytes())
    };
    wait_until("a record", || {
        let files = fs::read_dir(segments).into_iter().flatten();
        files.filter_map(Result::ok).any(|file| has_record(file.path()))
    });
}

#[test]
fn responses_and_purges_survive_sigkill() {
    let upstream = Upstream::start(0);
    let dir = folder(&upstream, "responses_disk = \"64MiB\"");
    let server = serve(&dir);
    for target in ["/kept", "/purged", "/last"] {
        assert!(server.get_from("localhost", target).ends_with(target));
    }
    let segments = dir.path().join("state/responses");
    wait_for_record(&segments, "/last");
    let purged = dir.run(&["purge", "--url", "http://localhost/purged", "-c", "rocknet.toml"]);
    assert_eq!(purged.code, Some(0), "{purged:?}");
    server.signal(Signal::KILL);
    server.wait();
    let server = serve(&dir);
    assert_eq!(upstream.requests(), 3);
    let kept = server.get_from("localhost", "/kept");
    assert!(kept.contains("detail=disk") && kept.ends_with("/kept"), "{kept}");
    let purged = server.get_from("localhost", "/purged");
    assert!(purged.contains("fwd=uri-miss"), "{purged}");
    assert_eq!(upstream.requests(), 4);
    // A server that stops in order leaves the same.
    wait_for_record(&segments, "/purged");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let server = serve(&dir);
    for target in ["/kept", "/purged", "/last"] {
        let response = server.get_from("localhost", target);
        assert!(response.contains("detail=disk"), "{response}");
    }
}

#[test]
fn the_new_process_of_an_upgrade_continues_with_the_responses() {
    let upstream = Upstream::start(0);
    let dir = folder(&upstream, "responses_disk = \"64MiB\"");
    let server = serve(&dir);
    let targets: Vec<_> = (0..2000).map(|number| format!("/{number}")).collect();
    targets.iter().for_each(|target| drop(server.get(target)));
    server.get("/last");
    wait_for_record(&dir.path().join("state/responses"), "/last");
    let _end = KillAtEnd(&dir);
    upgrade(&dir, &["-c", "rocknet.toml"]);
    // Until the old process has released the folder, the new one forwards requests.
    let mut left = targets.iter();
    wait_until("a response of the disk", || {
        let target = left.next().expect("a response that is still on disk");
        let response = server.get(target);
        assert!(response.ends_with(target), "{response}");
        response.contains("detail=disk")
    });
}

#[test]
fn a_full_disk_fails_no_request() {
    if !rustix::process::geteuid().is_root() {
        skip(Need::Root, "only root can mount a small disk");
        return;
    }
    let upstream = Upstream::start(100_000);
    let dir = folder(
        &upstream,
        "responses = \"1MiB\"\nresponses_disk = \"16MiB\"\nresponses_folder = \"disk\"",
    );
    fs::create_dir(dir.path().join("disk")).expect("a folder");
    let mounted = "mount -t tmpfs -o size=5m,mode=700 none disk && exec \"$@\"";
    let server = dir.serve_by(
        &["unshare", "--mount", "sh", "-c", mounted, "sh"],
        &["run", "-c", "rocknet.toml"],
    );
    server.logged("can be used");
    // Six times what the disk can hold.
    for number in 0..300 {
        let target = format!("/{number}");
        let response = server.get(&target);
        assert!(response.contains(&format!("\r\n\r\n{target}x")), "{number}");
    }
    server.logged("the disk is full");
    // This path leads into the mount namespace of the server.
    let disk = PathBuf::from(format!(
        "/proc/{}/root{}",
        server.id(),
        dir.path().join("disk/responses").display()
    ));
    let size = || -> u64 {
        let files = fs::read_dir(&disk).into_iter().flatten().filter_map(Result::ok);
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    };
    assert!((1..5 << 20).contains(&size()), "{}", size());
    let mut from_disk = 0;
    for number in (0..300).rev() {
        let target = format!("/{number}");
        let response = server.get(&target);
        assert!(response.contains(&format!("\r\n\r\n{target}x")), "{number}");
        from_disk += usize::from(response.contains("detail=disk"));
    }
    assert!(from_disk > 0, "the disk is still used");
}
