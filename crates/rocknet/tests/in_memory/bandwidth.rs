//! Bandwidth that the responses to one client share, over virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocknet::clock::TimeSource;
use rocknet::registries::Registries;

use crate::proxied::Dials;
use crate::test_server::{TestClient, TestServer};

/// Bytes per second of a client.
const RATE: usize = 2_000;
const TICKS_PER_SECOND: u32 = 4;

/// A server on virtual time, with a file that is cached in memory.
struct Limited {
    server: TestServer,
    now_ms: Arc<AtomicU64>,
}

impl Limited {
    /// `limit`: value of the key `limit`.
    fn new(limit: &str) -> Limited {
        let now_ms = Arc::new(AtomicU64::new(1_000));
        let registries = Registries::simulated(TimeSource::Virtual(Arc::clone(&now_ms)), Arc::new(Dials));
        let site = format!("[site.\":0\"]\ncompress = false\nlimit = {limit}\n");
        let content = "x".repeat(50_000);
        let files = [("file.txt", &*content)];
        let server = TestServer::with(registries, "trusted_proxies = [\"unix\"]\n", &site, &files);
        let limited = Limited { server, now_ms };
        // The file is loaded from the disk once.
        let mut client = limited.download("192.0.2.250");
        client.run_until(|client| !client.received().is_empty());
        limited
    }

    /// Starts a download for a client with this address.
    fn download(&self, address: &str) -> TestClient {
        let mut client = self.server.connect();
        let request = format!("GET /file.txt HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {address}\r\n\r\n");
        client.peer.send(request.as_bytes());
        client.settle();
        client
    }

    fn pass(&self, seconds: u32, clients: &mut [&mut TestClient]) {
        for _ in 0..seconds * TICKS_PER_SECOND {
            self.now_ms
                .fetch_add(u64::from(1_000 / TICKS_PER_SECOND), Ordering::SeqCst);
            self.server.worker.tick();
            for client in &mut *clients {
                client.settle();
            }
        }
    }
}

/// Returns the number of bytes of the body that a client has received.
fn received(client: &TestClient) -> usize {
    let bytes = client.peer.received();
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    head.map_or(0, |at| bytes.len() - at - 4)
}

#[test]
fn the_downloads_of_one_client_share_its_bandwidth() {
    for (limit, key) in [
        ("{ bandwidth = \"2000B/s\", key = \"{client.ip}\" }", "the client"),
        (
            "[{ bandwidth = \"2000B/s\", key = \"{client.ip}\" }, { bandwidth = \"100KiB/s\", key = \"all\" }]",
            "the client and the site",
        ),
    ] {
        let limited = Limited::new(limit);
        // The first two addresses belong to one IPv6 network of 64 bits.
        let mut one = limited.download("2001:db8::1");
        let mut two = limited.download("2001:db8::2");
        let mut other = limited.download("192.0.2.1");
        limited.pass(10, &mut [&mut one, &mut two, &mut other]);
        let [one_got, two_got, other_got] = [&one, &two, &other].map(received);
        // A client has the bandwidth of one second in reserve.
        let (least, most) = (RATE * 10 * 9 / 10, RATE * 11);
        assert!(
            (least..=most).contains(&(one_got + two_got)),
            "{key}: {one_got}, {two_got}"
        );
        assert!((least..=most).contains(&other_got), "{key}: {other_got}");
        assert!(one_got.min(two_got) >= least * 2 / 5, "{key}: {one_got}, {two_got}");
        // When one download ends, the other has the whole bandwidth.
        drop(two);
        limited.pass(5, &mut [&mut one]);
        let further = received(&one) - one_got;
        assert!((RATE * 4..=RATE * 6).contains(&further), "{key}: {further}");
    }
}

#[test]
fn each_response_can_have_a_bandwidth_beside_that_of_its_client() {
    let limited = Limited::new(
        "[{ bandwidth = \"1024B/s\" }, \
          { bandwidth = \"10000B/s\", key = \"{client.ip}\", exempt = \"192.0.2.7\" }]",
    );
    let mut one = limited.download("192.0.2.1");
    let mut exempt = limited.download("192.0.2.7");
    limited.pass(8, &mut [&mut one, &mut exempt]);
    for client in [&one, &exempt] {
        let got = received(client);
        assert!((1_024 * 7..=1_024 * 9).contains(&got), "{got}");
    }
    // All clients together have one bandwidth if the key is a text without placeholders.
    let limited = Limited::new("{ bandwidth = \"2000B/s\", key = \"all\" }");
    let mut one = limited.download("192.0.2.1");
    let mut two = limited.download("192.0.2.2");
    limited.pass(8, &mut [&mut one, &mut two]);
    let got = received(&one) + received(&two);
    assert!((RATE * 7..=RATE * 9).contains(&got), "{got}");
}
