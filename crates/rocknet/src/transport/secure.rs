//! Opening a connection under TLS: the greeting, the choice of a site, the handshake, and then a protocol.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::runtime::spawn;
use rocknet_io::tls::{Greeted, Greeting, Tls};
use rocknet_io::wheel::Deadline;
use rocknet_proto::status::Status;
use rustls::ServerConfig;

use crate::certificates::{ACME_PROTOCOL, Answer, HTTP_2, Trust};
use crate::exchange::{Client, Secure};
use crate::pages;
use crate::protocol::{h1, h2};
use crate::worker::{OpenConnection, Worker};

/// RFC 8446 §6.2: the server does not know that name, or has nothing to show for it.
const UNRECOGNIZED_NAME: u8 = 112;
/// RFC 8446 §6: what came was no handshake.
const UNEXPECTED_MESSAGE: u8 = 10;
/// Longest method that a request in the clear may begin with, to be answered in the clear.
const LONGEST_METHOD: usize = 20;
/// After the answer in the clear so much is read, so that closing does not reset what is on its way.
const DRAIN_BOUND: usize = 64 * 1024;

/// A connection whose handshake is not over.
pub struct Opening<L> {
    greeting: Greeting<L>,
    open: OpenConnection,
    deadline: Deadline,
    client: Client,
    local: Option<IpAddr>,
}

/// What was chosen for a client.
struct Chosen {
    settings: Arc<ServerConfig>,
    /// `None`: it came for the answer to a challenge.
    trust: Option<Arc<Trust>>,
    /// What the client calls the server.
    name: Option<Box<str>>,
}

impl<L: Link + Unpin + 'static> Opening<L> {
    pub fn new(worker: &Rc<Worker>, link: L, client: Client, local: Option<IpAddr>) -> Opening<L> {
        let deadline = worker.wheel.deadline();
        // Hard, however many bytes trickle in: as the time for a head is.
        deadline.set(worker.view().ticks.header);
        Opening {
            greeting: Greeting::new(link, worker.tls_buffers()),
            open: OpenConnection::new(worker),
            deadline,
            client,
            local,
        }
    }

    /// Until a protocol takes over, or the connection ends.
    pub async fn run(self) {
        let client = self.client;
        if let Err(error) = self.open().await {
            tracing::debug!(%client, "a handshake failed: {error}");
        }
    }

    async fn open(mut self) -> io::Result<()> {
        let worker = Rc::clone(self.open.worker());
        let (greeting, deadline) = (&mut self.greeting, &self.deadline);
        let greeted = poll_fn(|context| match greeting.poll(context) {
            // Whoever has not begun when the server stops need not.
            Poll::Pending if worker.is_stopping() && greeting.is_silent() => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            greeted => greeted,
        });
        if greeted.await? == Greeted::Plain {
            return self.answer_in_the_clear().await;
        }
        let Some(chosen) = self.choose(&worker) else {
            self.greeting.refuse(UNRECOGNIZED_NAME);
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no certificate for the name that was asked for",
            ));
        };
        in_time(self.deadline.within(worker.handshakes.pass()).await)?;
        let Opening {
            greeting,
            open,
            deadline,
            client,
            local,
        } = self;
        let mut tls = greeting.accept(chosen.settings)?;
        in_time(deadline.within(poll_fn(|context| tls.poll_handshake(context))).await)??;
        drop(deadline);
        match chosen.trust {
            Some(trust) => {
                let secure = Rc::new(Secure::new(trust, &tls.agreed(), chosen.name));
                serve(open, tls, client, local, secure);
            }
            // It has seen what it came for.
            None => tls.finish(),
        }
        Ok(())
    }

    /// The configuration for what the client asks for.
    fn choose(&self, worker: &Worker) -> Option<Chosen> {
        let keeper = &worker.shared.keeper;
        let hello = self.greeting.hello()?;
        let name = hello.server_name().map(str::to_ascii_lowercase);
        if hello
            .alpn()
            .is_some_and(|mut all| all.any(|name| name == ACME_PROTOCOL))
        {
            let key = keeper.shelf.answer(&name?)?;
            let mut settings = ServerConfig::clone(&keeper.challenge);
            settings.cert_resolver = Arc::new(Answer(key));
            return Some(Chosen {
                settings: Arc::new(settings),
                trust: None,
                name: None,
            });
        }
        let view = worker.view();
        let (site, is_own) = view.site_of_name(self.local, name.as_deref())?;
        let secure = view.snapshot.sites.get(site as usize)?.secure.as_ref()?;
        Some(Chosen {
            settings: secure.settings(&keeper.shelf, name.as_deref().filter(|_| is_own))?,
            trust: Some(Arc::clone(&secure.trust)),
            name: name.map(Into::into),
        })
    }

    /// Somebody wrote http:// where https:// is spoken: he is told so in his own words. Anything else gets an alert.
    async fn answer_in_the_clear(mut self) -> io::Result<()> {
        let worker = Rc::clone(self.open.worker());
        if !self.greeting.looks_like_text(LONGEST_METHOD) {
            self.greeting.refuse(UNEXPECTED_MESSAGE);
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (mut link, _) = self.greeting.into_plain();
        let mut answer = plain_answer(&worker);
        let sent = self
            .deadline
            .within(poll_fn(|context| link.poll_send(context, &mut answer)));
        in_time(sent.await)??;
        link.shut_down()?;
        worker.counters.answered(Status::BAD_REQUEST);
        self.deadline.set(worker.view().ticks.linger);
        let mut dropped = 0;
        let drain = poll_fn(|context| {
            loop {
                let mut room = [0; 4096];
                match link.poll_recv(context, &mut room) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(bytes)) if !bytes.is_empty() && dropped < DRAIN_BOUND => dropped += bytes.len(),
                    Poll::Ready(_) => return Poll::Ready(()),
                }
            }
        });
        in_time(self.deadline.within(drain).await)
    }
}

/// Goes on with the protocol that was agreed on: one place to choose it.
fn serve<L: Link + Unpin + 'static>(
    open: OpenConnection,
    tls: Tls<L>,
    client: Client,
    local: Option<IpAddr>,
    secure: Rc<Secure>,
) {
    let local = local.map(Box::new);
    // Tasks of their own: this one is larger than the connection it becomes.
    if tls.agreed().alpn == Some(HTTP_2) {
        spawn(h2::Connection::take_over(open, tls, client, local, Vec::new()).secured(secure));
    } else {
        spawn(h1::Connection::take_over(open, tls, client, local, Vec::new()).secured(secure));
    }
}

/// The error that stands for a deadline that is past.
fn in_time<T>(found: Option<T>) -> io::Result<T> {
    found.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn plain_answer(worker: &Worker) -> SendQueue {
    const HINT: &str = "This port speaks HTTPS, and the request came in the clear: write https:// before the address.";
    let (status, mut page) = (Status::BAD_REQUEST, Vec::new());
    pages::error::render(status.code(), status.reason(), Some(HINT), &mut page);
    let mut answer = SendQueue::default();
    let head = format!(
        "HTTP/1.1 {} {}\r\nDate: {}\r\nServer: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        status.code(),
        status.reason(),
        String::from_utf8_lossy(&worker.clock.date()),
        crate::filter::headers::SERVER,
        pages::CONTENT_TYPE,
        page.len(),
    );
    answer.buffer().extend_from_slice(head.as_bytes());
    answer.buffer().extend_from_slice(&page);
    answer
}
