//! Server at a control socket that a test plays.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::{Options, Worker};
use crate::job::Report;

/// Reply to a request line such as `GET /api/status HTTP/1.1`: status and body. `None`: the server hangs.
pub type Reply = Option<(u16, String)>;

/// Reply of a server that has nothing to list, and is too old for the queries of its permission and its files.
pub fn empty(request: &str) -> Reply {
    Some(match request.split(' ').nth(1) {
        Some("/api/permission" | "/api/config/state") => (404, "{\"error\":\"unknown\"}".to_owned()),
        _ => (200, "[]".to_owned()),
    })
}

/// Folder with the socket of the server, and with programs of the system that the test plays.
pub struct FakeServer {
    pub folder: tempfile::TempDir,
}

impl FakeServer {
    /// Starts the server. Its thread ends with the process of the test.
    pub fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> FakeServer {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("control.sock")).unwrap();
        let reply: Arc<dyn Fn(&str) -> Reply + Send + Sync> = Arc::new(reply);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let reply = Arc::clone(&reply);
                thread::spawn(move || serve(stream, &*reply));
            }
        });
        FakeServer { folder }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// Returns a worker for the server, and its reports.
    pub fn worker(&self) -> (Worker, Receiver<Report>) {
        self.worker_with("/nonexistent/rocknet".into())
    }

    /// Returns a worker that uses this program, and its reports.
    pub fn worker_with(&self, program: PathBuf) -> (Worker, Receiver<Report>) {
        let options = Options {
            socket: Some(self.socket()),
            config: Some(self.folder.path().join("rocknet.toml")),
            program: Some(program),
            place: None,
            search_path: Some(self.folder.path().into()),
            ..Options::default()
        };
        let (sender, reports) = channel();
        let mut worker = Worker::new(options, move |report| drop(sender.send(report)));
        worker.watches_traffic = false;
        (worker, reports)
    }
}

/// Replies to the requests of a connection, which have no body.
fn serve(mut stream: UnixStream, reply: &dyn Fn(&str) -> Reply) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(request)) = lines.next() {
        if lines.by_ref().map_while(Result::ok).all(|line| !line.is_empty()) {
            return;
        }
        let Some((status, body)) = reply(&request) else {
            // The connection stays open until the client closes it.
            let _ = lines.by_ref().count();
            return;
        };
        let head = format!("HTTP/1.1 {status} Played\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}
