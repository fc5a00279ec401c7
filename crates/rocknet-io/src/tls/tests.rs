//! TLS over a link in memory: any split of the bytes gives the same conversation.

mod hello;
mod opened;

use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::{Buffers, Greeted, Greeting, Tls};
use crate::link::Link;
use crate::queue::{COPY_BELOW, SendQueue, SharedBytes};
use crate::sim::{self, Peer, Sim};
use crate::wheel::Wheel;

const NAME: &str = "a.test";
/// Times that each side may speak until a ClientHello is there: once is enough, as all that came is taken at once.
const ROUNDS: usize = 10;

struct Parties {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

fn parties(version: &'static SupportedProtocolVersion) -> Parties {
    parties_with(version, aws_lc_rs::default_provider())
}

/// `provider`: what the server can do; the client can do all.
fn parties_with(version: &'static SupportedProtocolVersion, provider: CryptoProvider) -> Parties {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"x/1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let mut client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"x/1".to_vec()];
    Parties {
        server: Arc::new(server),
        client: Arc::new(client),
    }
}

/// Both sides of a conversation, and how the bytes between them are cut.
struct Talk {
    client: ClientConnection,
    peer: Peer,
    /// Most bytes that arrive at once.
    split: usize,
    heard: Vec<u8>,
    /// Lengths of the records of content that came.
    records: Vec<usize>,
}

impl Talk {
    fn new(parties: &Parties, split: usize) -> (Talk, Greeting<Sim>) {
        let (link, peer) = sim::pipe();
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let name = ServerName::try_from(NAME).unwrap();
        let talk = Talk {
            client: ClientConnection::new(Arc::clone(&parties.client), name).unwrap(),
            peer,
            split,
            heard: Vec::new(),
            records: Vec::new(),
        };
        (talk, Greeting::new(link, &Buffers::new(&wheel)))
    }

    /// Takes to each side what the other has said.
    fn carry(&mut self) -> Result<(), rustls::Error> {
        let mut said = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut said).unwrap();
        }
        for part in said.chunks(self.split) {
            self.peer.say(part);
        }
        let heard = self.peer.take_heard();
        self.note_records(&heard);
        let mut rest = &heard[..];
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            self.client.process_new_packets()?;
            let mut room = vec![0; 64 * 1024];
            while let Ok(got) = self.client.reader().read(&mut room) {
                if got == 0 {
                    break;
                }
                self.heard.extend_from_slice(&room[..got]);
            }
        }
        Ok(())
    }

    fn note_records(&mut self, mut heard: &[u8]) {
        while let [23, 3, 3, high, low, rest @ ..] = heard {
            let length = usize::from(*high) << 8 | usize::from(*low);
            self.records.push(length);
            heard = rest.get(length..).unwrap_or_default();
        }
    }
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Runs a greeting and a handshake to their ends.
fn shake(talk: &mut Talk, mut greeting: Greeting<Sim>, config: &Arc<ServerConfig>) -> Tls<Sim> {
    let greeted = (0..ROUNDS).find_map(|_| {
        talk.carry().unwrap();
        match greeting.poll(&mut context()) {
            Poll::Ready(greeted) => Some(greeted.unwrap()),
            Poll::Pending => None,
        }
    });
    assert_eq!(greeted, Some(Greeted::Tls));
    let hello = greeting.hello().unwrap();
    assert_eq!(hello.server_name(), Some(NAME));
    let mut tls = greeting.accept(Arc::clone(config)).unwrap();
    loop {
        match tls.poll_handshake(&mut context()) {
            Poll::Ready(done) => break done.unwrap(),
            Poll::Pending => talk.carry().unwrap(),
        }
    }
    assert_eq!(tls.agreed().alpn, Some(&b"x/1"[..]));
    tls
}

/// Receives so many bytes into a buffer of that size.
fn hear(talk: &mut Talk, tls: &mut Tls<Sim>, count: usize, room: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
    while all.len() < count {
        match tls.poll_recv(&mut context(), &mut buffer) {
            Poll::Ready(received) => {
                let received = received.unwrap();
                assert!(!received.is_empty(), "ended after {} of {count}", all.len());
                all.extend_from_slice(&received);
            }
            Poll::Pending => talk.carry().unwrap(),
        }
    }
    all
}

fn say(talk: &mut Talk, tls: &mut Tls<Sim>, queue: &mut SendQueue) {
    while tls.poll_send(&mut context(), queue).map(Result::unwrap).is_pending() {
        talk.carry().unwrap();
        talk.peer.take(100_000);
    }
    talk.peer.take_all();
    talk.carry().unwrap();
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A queue of every kind of segment, and what is in it.
fn mixed(large: usize) -> (SendQueue, Vec<u8>) {
    let (mut queue, mut expected) = (SendQueue::default(), b"head".to_vec());
    queue.buffer().extend_from_slice(b"head");
    let content = pattern(large);
    let shared: SharedBytes = Rc::new(content.clone());
    queue.push_shared(&shared, 1, large - 1);
    expected.extend_from_slice(&content[1..large - 1]);
    queue.push_owned(Bytes::from(content.clone()));
    expected.extend_from_slice(&content);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    queue.push_file(Arc::new(file), 7, large as u64 - 7);
    expected.extend_from_slice(&content[7..]);
    queue.buffer().extend_from_slice(b"tail");
    expected.extend_from_slice(b"tail");
    (queue, expected)
}

#[test]
fn any_split_gives_the_same_conversation() {
    for version in [&TLS13, &TLS12] {
        let parties = parties(version);
        for (split, room, large) in [
            (1, 7, COPY_BELOW + 2),
            (5, 64 * 1024, COPY_BELOW + 2),
            (1000, 100, 100_000),
            (usize::MAX, 64 * 1024, 3_000_000),
        ] {
            let (mut talk, greeting) = Talk::new(&parties, split);
            let mut tls = shake(&mut talk, greeting, &parties.server);
            for length in [1, 300, 40_000] {
                let content = pattern(length);
                talk.client.writer().write_all(&content).unwrap();
                assert!(
                    hear(&mut talk, &mut tls, length, room) == content,
                    "{length} in {split}"
                );
            }
            let (mut queue, expected) = mixed(large);
            talk.peer.take(10_000);
            say(&mut talk, &mut tls, &mut queue);
            assert!(talk.heard == expected, "{large} out, {split}");
            tls.finish();
            assert!(talk.carry().is_ok());
            let mut rest = [0; 1];
            assert_eq!(talk.client.reader().read(&mut rest).unwrap(), 0, "the end was told");
        }
    }
}

#[test]
fn records_begin_small_in_a_long_answer_and_one_holds_a_short_one() {
    let parties = parties(&TLS13);
    let (mut talk, greeting) = Talk::new(&parties, usize::MAX);
    let mut tls = shake(&mut talk, greeting, &parties.server);
    talk.carry().unwrap();
    for (length, expected) in [
        (13, vec![13]),
        (10_000, vec![10_000]),
        (20_000, vec![4_229, 4_229, 11_542]),
    ] {
        talk.records.clear();
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(&pattern(length));
        say(&mut talk, &mut tls, &mut queue);
        let plain: Vec<usize> = talk.records.iter().map(|record| record - 17).collect();
        assert_eq!(plain, expected);
    }
    let (mut queue, _) = mixed(1 << 20);
    talk.records.clear();
    say(&mut talk, &mut tls, &mut queue);
    assert_eq!(talk.records.first(), Some(&(4_229 + 17)));
    assert!(talk.records.iter().filter(|record| **record == 16_384 + 17).count() > 100);
}

#[test]
fn an_idle_connection_keeps_nothing_but_its_keys() {
    let parties = parties(&TLS13);
    let (mut talk, greeting) = Talk::new(&parties, usize::MAX);
    let mut tls = shake(&mut talk, greeting, &parties.server);
    talk.client.writer().write_all(b"request").unwrap();
    hear(&mut talk, &mut tls, 7, 100);
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(b"answer");
    say(&mut talk, &mut tls, &mut queue);
    assert!(tls.poll_recv(&mut context(), &mut [0; 10]).is_pending());
    assert_eq!((tls.held.capacity(), tls.unread.capacity()), (0, 0));
    assert!(tls.backlog.is_none());
}

/// The end of the session finds no room: it is not kept for a link that takes nothing more.
#[test]
fn what_did_not_leave_before_the_end_is_dropped() {
    let parties = parties(&TLS13);
    let (mut talk, greeting) = Talk::new(&parties, usize::MAX);
    let mut tls = shake(&mut talk, greeting, &parties.server);
    talk.carry().unwrap();
    talk.peer.take(0);
    tls.shut_down().unwrap();
    talk.peer.refuse(io::ErrorKind::BrokenPipe);
    assert_eq!(tls.in_flight(), 0);
    assert!(tls.poll_recv(&mut context(), &mut [0; 10]).is_pending());
    talk.client.writer().write_all(b"late").unwrap();
    // The answer to this has no way to leave either.
    talk.client.refresh_traffic_keys().unwrap();
    talk.client.writer().write_all(b"r").unwrap();
    assert_eq!(hear(&mut talk, &mut tls, 5, 100), b"later");
}

#[test]
fn what_is_not_tls_is_given_back_and_what_is_broken_ends() {
    let parties = parties(&TLS13);
    let (talk, mut greeting) = Talk::new(&parties, usize::MAX);
    talk.peer.say(b"GET / HTTP/1.1\r\n");
    assert!(matches!(greeting.poll(&mut context()), Poll::Ready(Ok(Greeted::Plain))));
    assert!(greeting.looks_like_text(20));
    assert_eq!(greeting.into_plain().1, b"GET / HTTP/1.1\r\n");

    // A record that was changed on its way: an alert, and no plain text.
    let (mut talk, greeting) = Talk::new(&parties, usize::MAX);
    let mut tls = shake(&mut talk, greeting, &parties.server);
    talk.client.writer().write_all(b"request").unwrap();
    let mut said = Vec::new();
    talk.client.write_tls(&mut said).unwrap();
    *said.last_mut().unwrap() ^= 1;
    talk.peer.say(&said);
    let received = tls
        .poll_recv(&mut context(), &mut [0; 100])
        .map(|received| received.map(drop));
    assert!(matches!(received, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidData));
    assert!(talk.carry().is_err(), "the client was told by an alert");
    // After it nothing more is sent.
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(b"answer");
    assert!(matches!(tls.poll_send(&mut context(), &mut queue), Poll::Ready(Err(_))));
    // What follows is read no further: rustls would make a second alert for it.
    let mut said = vec![23, 3, 3, 0, 20];
    said.extend_from_slice(&[0; 20]);
    for _ in 0..3 {
        talk.peer.say(&said);
        let mut room = [0; 100];
        let received = tls.poll_recv(&mut context(), &mut room);
        assert!(matches!(received, Poll::Ready(Err(_))));
    }
}
