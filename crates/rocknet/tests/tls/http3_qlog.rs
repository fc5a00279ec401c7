//! The key `qlog`: traces of QUIC connections.

use std::path::Path;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::Http3Client;
use super::support::{Folder, Running};

/// Returns the records of each trace in a folder.
fn traces(folder: &Path) -> Vec<Vec<serde_json::Value>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            assert!(
                path.to_str().is_some_and(|path| path.ends_with("_server.sqlog")),
                "{path:?}"
            );
            let text = std::fs::read_to_string(path).expect("a file");
            // Each record begins with this separator (RFC 7464).
            let records = text.split('\x1e').skip(1);
            records
                .map(|record| serde_json::from_str(record).expect("a record in JSON"))
                .collect()
        })
        .collect()
}

#[test]
fn each_connection_has_a_trace_while_the_key_is_set() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "home"), ("traces/.keep", "")]);
    // `Folder::with` creates a folder only together with a file in it.
    let path = folder.path("traces");
    std::fs::remove_file(path.join(".keep")).expect("removed");
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = |key: &str| {
        format!(
            "[server]\nworkers = 1\n{key}[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\" }}\n"
        )
    };
    let server = Running::start(folder, &text(""));
    let address = server.address();
    let visit = || {
        let client = TlsClient::new(authority.roots(), "a.test");
        let client = Http3Client::open(&client, address).expect("a connection");
        assert_eq!(client.get("https://a.test/").body, b"home");
    };
    visit();
    server
        .reload(&text("qlog = \"traces\"\n"))
        .expect("a valid configuration");
    visit();
    visit();
    server.reload(&text("")).expect("a valid configuration");
    visit();
    let (server, folder) = server.take();
    assert!(server.stop(), "the thread that writes has ended");

    let traces = traces(&folder.path("traces"));
    assert_eq!(traces.len(), 2);
    for trace in traces {
        assert_eq!(trace[0]["qlog_format"], "JSON-SEQ");
        let has = |name: &str| trace.iter().any(|record| record["name"] == name);
        assert!(
            has("transport:packet_sent") && has("transport:packet_received"),
            "{trace:#?}"
        );
    }
}
