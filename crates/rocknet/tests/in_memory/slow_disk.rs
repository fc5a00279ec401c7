//! A disk that hangs: timeouts of responses and of error pages, and the warnings about them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, mpsc};

use rocknet::blocking::Job;
use rocknet_config::model::Priority;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::GET;
use crate::test_server::TestServer;

/// Jobs that occupy every thread of the pool. They stand for lookups on a disk that hangs, until they are dropped.
struct HungDisk {
    _release: mpsc::Sender<()>,
    _jobs: Vec<Job<()>>,
}

impl HungDisk {
    fn of(server: &TestServer) -> HungDisk {
        let pool = &server.worker.shared.pool;
        let (release, hung) = mpsc::channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        let jobs = (0..pool.stats().threads).map(|_| {
            let hung = Arc::clone(&hung);
            pool.spawn(Priority::High, move || drop(hung.lock().map(|hung| hung.recv())))
        });
        HungDisk {
            _jobs: jobs.collect(),
            _release: release,
        }
    }
}

/// Messages that a thread logs.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().expect("no panic").push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_hanging_disk_times_out() {
    let server = TestServer::new("answer_timeout = \"10s\"");
    let _disk = HungDisk::of(&server);
    let messages = Messages::default();
    let _logged = tracing::subscriber::set_default(messages.clone());
    let mut client = server.connect();
    client.peer.send(GET.as_bytes());
    client.settle();
    // Nine seconds, with four ticks in each.
    server.pass(9 * 4);
    client.settle();
    assert_eq!(client.received(), "");
    server.pass(2 * 4);
    client.settle();
    let received = client.received();
    assert!(received.starts_with("HTTP/1.1 503 "), "{received}");
    assert!(received.contains("Connection: close"), "{received}");
    assert_eq!(
        messages.all(),
        ["a response, or its next piece, was not ready within limits.answer_timeout; the request failed"]
    );
}

#[test]
fn an_error_page_that_is_late_is_replaced_by_the_plain_one() {
    let site = "[site.\":0\"]\nrule = [{ path = \"/gone\", respond = 410 }]\nerrors = { 410 = \"/small.txt\" }\n";
    let server = TestServer::of("", site, &[]);
    let _disk = HungDisk::of(&server);
    let messages = Messages::default();
    let _logged = tracing::subscriber::set_default(messages.clone());
    let mut client = server.connect();
    client.peer.send(b"GET /gone HTTP/1.1\r\nHost: h\r\n\r\n");
    client.settle();
    assert_eq!(client.received(), "");
    // Three seconds, with four ticks in each.
    server.pass(3 * 4);
    client.settle();
    let received = client.received();
    assert!(received.starts_with("HTTP/1.1 410 "), "{received}");
    assert_eq!(
        messages.all(),
        [
            "a response, or its next piece, was not ready within the two seconds for an error page; the client got the \
          server's plain page instead of the site's error page"
        ]
    );
}
