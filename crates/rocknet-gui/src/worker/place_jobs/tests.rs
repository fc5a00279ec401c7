//! Servers elsewhere: a wrong token, a forwarded port without a server, and a server that replies.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use rocknet_control::ServerAddress;

use super::*;
use crate::job::Job;
use crate::worker::connection::Places;
use crate::worker::options::Options;

/// Returns a worker for a server at an address, and its reports.
fn worker(server: ServerAddress) -> (Worker, std::sync::mpsc::Receiver<Report>) {
    let (sender, reports) = std::sync::mpsc::channel();
    let options = Options {
        config: Some("/nonexistent/rocknet.toml".into()),
        program: Some("/nonexistent/rocknet".into()),
        // There is no systemd and no desktop.
        search_path: Some("/nonexistent".into()),
        ..Options::default()
    };
    let mut worker = Worker::new(options, move |report| drop(sender.send(report)));
    worker.places.use_server(Some(server));
    worker.watches_traffic = false;
    (worker, reports)
}

/// Serves connections one after the other, each request with the same response, or with nothing.
fn serve(response: &'static str) -> ServerAddress {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let reply = |mut stream: TcpStream| {
            let mut buffer = [0; 4096];
            while !response.is_empty() && stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                if stream.write_all(response.as_bytes()).is_err() {
                    return;
                }
            }
        };
        listener.incoming().flatten().for_each(reply);
    });
    ServerAddress::Tcp {
        address,
        token: "abc".to_owned(),
    }
}

#[test]
fn a_wrong_token_is_sent_once() {
    let server = serve("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    let shown = server.shown().to_string_lossy().into_owned();
    let (mut worker, reports) = worker(server);
    for _ in 0..3 {
        worker.poll(false);
    }
    let wrong = Report::Absent(Absence::WrongToken(shown));
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), std::slice::from_ref(&wrong));
    worker.connect_again();
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [wrong]);
}

#[test]
fn a_forwarded_port_without_a_server_is_not_reachable() {
    let server = serve("");
    let shown = server.shown().to_string_lossy().into_owned();
    let (mut worker, reports) = worker(server);
    worker.poll(false);
    worker.poll(false);
    let unreachable = Report::Absent(Absence::Unreachable(shown));
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [unreachable]);
}

#[test]
fn a_server_that_replies_is_used() {
    let server = serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let (mut worker, reports) = worker(server.clone());
    assert!(worker.connect());
    assert_eq!(
        reports.try_iter().collect::<Vec<_>>(),
        [Report::Connected(server.shown())]
    );
    // Nothing listens at this address of this computer, unlike at a port that another test could use next.
    let free = SocketAddr::from(([127, 0, 0, 3], 9));
    worker.server = None;
    worker.places.use_server(Some(ServerAddress::Tcp {
        address: free,
        token: "abc".to_owned(),
    }));
    worker.connect_again();
    let unreachable = Report::Absent(Absence::Unreachable(free.to_string()));
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [unreachable]);
}

#[test]
fn jobs_of_this_computer_are_not_carried_out_for_a_server_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (mut worker, reports) = worker(serve(""));
    for job in [
        Job::Inspect(folder.path().into()),
        Job::FindServers,
        Job::Visit("a.test".to_owned()),
        Job::CreateStartPage(folder.path().into()),
        Job::Trust,
        Job::OpenEditor(folder.path().into()),
    ] {
        assert!(job.is_of_this_computer());
        worker.carry_out(job);
    }
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), []);
    assert!(!folder.path().join("index.html").exists());
}

#[test]
fn the_logs_of_a_server_end_with_its_use() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let (mut worker, _reports) = worker(server.clone());
    worker.places = Places::new(&Options {
        config: Some("/nonexistent/rocknet.toml".into()),
        place: Some(folder.path().join("server.toml")),
        ..Options::default()
    });
    worker.logs.follow(&server);
    let elsewhere = Elsewhere {
        place: crate::elsewhere::ServerPlace::Socket,
        socket: folder.path().join("s").to_string_lossy().into_owned(),
        ..Elsewhere::default()
    };
    worker.use_server(&elsewhere);
    assert!(worker.logs.due().is_none());
    // The same after the loss of the server, which is found again at the same address.
    worker.logs.follow(&server);
    let timeout = std::io::Error::from(std::io::ErrorKind::TimedOut);
    worker.lose(&ClientError::Io(timeout));
    assert!(worker.logs.due().is_none());
}
