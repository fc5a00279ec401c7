//! Tests of the client with servers that send fixed responses.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;

use super::*;
use crate::api::{Done, Level, LogLevel, LogLevelChange};
use crate::config::{Candidate, Checked};

/// Serves one connection with the given responses, one for each request, and returns the received bytes.
fn serve(listener: UnixListener, responses: Vec<&'static str>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut all = String::new();
        for response in responses {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).expect("a request");
            all += &String::from_utf8_lossy(&buffer[..count]);
            stream.write_all(response.as_bytes()).expect("written");
        }
        all
    })
}

#[test]
fn a_request_that_was_not_read_is_repeated_over_another_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut client = Client::connect(&socket).expect("a connection");
    // The server closes the first connection without reading from it.
    drop(listener.accept().expect("the first connection"));
    let server = serve(
        listener,
        vec!["HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"level\":\"debug\"}"],
    );
    let level: LogLevel = client.call(&Request::LogLevel).expect("a reply");
    assert_eq!(level.level, Level::Debug);
    assert!(server.join().expect("a server").starts_with("GET /api/log-level "));
}

#[test]
fn a_request_to_a_process_that_was_replaced_is_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut client = Client::connect(&socket).expect("a connection");
    let old = serve(
        listener.try_clone().expect("a descriptor"),
        vec!["HTTP/1.1 421 Misdirected Request\r\nContent-Length: 13\r\n\r\n{\"error\":\"x\"}"],
    );
    let new = thread::spawn(move || {
        old.join().expect("the old process");
        serve(
            listener,
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"level\":\"debug\"}"],
        )
        .join()
        .expect("the new process")
    });
    let level: LogLevel = client.call(&Request::LogLevel).expect("a reply");
    assert_eq!(level.level, Level::Debug);
    assert!(new.join().expect("a server").starts_with("GET /api/log-level "));
}

#[test]
fn requests_are_sent_and_replies_received() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let server = serve(
        listener,
        vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"level\":\"debug\"}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"mes\r\nb\r\nsage\":\"a\" }\r\n0\r\n\r\n",
            "HTTP/1.1 422 Unprocessable Content\r\nContent-Length: 13\r\n\r\n{\"error\":\"b\"}",
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nno, ",
        ],
    );
    let mut client = Client::connect(&socket).expect("a server");
    let level: LogLevel = client
        .call(&Request::SetLogLevel(LogLevelChange::new(Level::Debug)))
        .expect("a level");
    assert_eq!(level.level, Level::Debug);
    let done: Done = client.call(&Request::Reload).expect("a message");
    assert_eq!(done.message, "a");
    for expected in ["b", "status 503"] {
        let error = client.call::<Done>(&Request::Reload).expect_err("a rejection");
        assert_eq!(error.to_string(), expected);
    }
    let requests = server.join().expect("no panic");
    assert!(
        requests.starts_with("PUT /api/log-level HTTP/1.1\r\nHost: localhost\r\n"),
        "{requests}"
    );
    assert!(
        requests.contains("\r\n\r\n{\"level\":\"debug\"}POST /api/reload HTTP/1.1\r\n"),
        "{requests}"
    );
}

#[test]
fn a_missing_server_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let missing = Client::connect(&socket).expect_err("no server").to_string();
    assert!(
        missing.starts_with("no server is running: nothing listens at /"),
        "{missing}"
    );
    // The socket of a server that was killed.
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert_eq!(Client::connect(&socket).expect_err("no server").to_string(), missing);
    // A server that ends while it replies.
    let socket = folder.path().join("t");
    let server = serve(
        UnixListener::bind(&socket).expect("a socket"),
        vec!["HTTP/1.1 200 OK\r\n"],
    );
    let mut client = Client::connect(&socket).expect("a server");
    let error = client
        .call::<Done>(&Request::Stop)
        .expect_err("an incomplete reply")
        .to_string();
    assert!(
        error.starts_with("the connection to the server has failed: "),
        "{error}"
    );
    server.join().expect("no panic");
}

#[test]
fn a_token_is_sent_to_an_address_of_this_machine_only() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).expect("a request");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n# EOF\n")
            .expect("written");
        let count = count + stream.read(&mut buffer[count..]).expect("a second request");
        stream
            .write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            .expect("written");
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    });
    let server_address = |address| ServerAddress::Tcp {
        address,
        token: "secret".to_owned(),
    };
    let mut client = Client::connect_to(&server_address(address)).expect("a server");
    assert_eq!(client.text(&Request::Metrics).expect("a text"), "# EOF\n");
    let Err(ClientError::Api(error)) = client.call::<Done>(&Request::Stop) else {
        panic!("an error of the server")
    };
    assert_eq!(error.status, 401);
    let requests = server.join().expect("no panic");
    assert_eq!(
        requests.matches("\r\nAuthorization: Bearer secret\r\n").count(),
        2,
        "{requests}"
    );
    let other = "192.0.2.1:7625".parse().expect("an address");
    let refused = Client::connect_to(&server_address(other)).expect_err("another machine");
    assert!(refused.to_string().contains("ssh -L"), "{refused}");
    // The token is in no message.
    assert!(!format!("{:?}", server_address(address)).contains("secret"));
}

#[test]
fn a_server_that_accepts_no_connection_is_left_after_the_timeout() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None);
    let listener = listener.expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(&socket).expect("an address");
    rustix::net::bind(&listener, &address).expect("a name");
    rustix::net::listen(&listener, 1).expect("a queue");
    let timeout = Duration::from_millis(100);
    let mut waiting = Vec::new();
    let error = loop {
        match Client::connect_with_timeout(&socket, timeout) {
            Ok(client) => waiting.push(client),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100, "the queue is endless");
    };
    assert!(error.is_timeout() && error.to_string().contains(UNSENT), "{error}");
    // A connection in the queue gets no reply.
    let error = waiting[0].call::<Done>(&Request::Stop).expect_err("no reply");
    assert!(
        error.is_timeout() && error.to_string().contains("may still carry out"),
        "{error}"
    );
    // The socket has no room for a large request, because the server does not read from it.
    let large = Request::CheckConfig(Candidate {
        text: "#".repeat(8 << 20),
        file: None,
    });
    let error = waiting[1].call::<Checked>(&large).expect_err("no room");
    assert!(error.is_timeout() && error.to_string().contains(UNSENT), "{error}");
}

/// End of the error of a request that was not sent as a whole.
const UNSENT: &str = "so it does not carry it out";
