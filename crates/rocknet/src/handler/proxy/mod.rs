//! The reverse proxy: a request goes to another server, written anew, and what that answers comes back, both bit by bit.
//!
//! ```text
//! Exchange ─▶ request.rs ─▶ conversation.rs ⇄ connection.rs     kept by pool.rs for each worker, or made by connect.rs
//!               │                 │                  │
//!          forwarded.rs        answer.rs         upstream.rs    one for all workers; names.rs looks its name up
//!                                 │
//!                              Response
//! ```

mod answer;
mod connect;
mod connection;
mod conversation;
mod forwarded;
mod names;
mod pool;
mod request;
mod target;
mod trouble;
mod upstream;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rocknet_config::model::{self, Mode};
use rocknet_io::wheel::{Deadline, Wheel};

use self::conversation::Conversation;
use self::trouble::Trouble;
use self::upstream::Upstream;
use crate::exchange::Exchange;
use crate::response::Response;
use crate::snapshot::Snapshot;
use crate::worker::Worker;

pub use self::pool::Pool;

/// Servers tried for one request: the one it is for, and one more where that was not reached or did not hear it.
const MAX_TRIES: usize = 2;

/// Where requests of one place go.
pub struct Proxy {
    upstreams: Vec<Arc<Upstream>>,
    next: AtomicUsize,
    connect: Duration,
    first_byte: Duration,
    idle: Duration,
}

/// An answer, or the error that stands for one.
pub enum Answered {
    Passed(Response),
    Failed(Response),
}

impl Proxy {
    pub fn new(model: &model::Proxy) -> Proxy {
        Proxy {
            upstreams: model.to.iter().map(Upstream::of).collect(),
            next: AtomicUsize::new(0),
            connect: model.connect,
            first_byte: model.first_byte,
            idle: model.idle,
        }
    }

    /// Ticks in which there is an answer, or its next piece, or an error instead.
    pub fn patience(&self, wheel: &Wheel) -> u32 {
        let tries = self.connect * MAX_TRIES as u32 + self.first_byte;
        // The protocol, which would say 503, is to look after this has.
        wheel.ticks(tries.max(self.idle)).saturating_add(1)
    }

    /// The server for the next request.
    fn choose(&self) -> &Arc<Upstream> {
        let next = match &self.upstreams[..] {
            [only] => return only,
            _ => self.next.fetch_add(1, Ordering::Relaxed),
        };
        &self.upstreams[next % self.upstreams.len()]
    }
}

/// Where a request came in, for the log and for pages.
pub struct Around {
    pub snapshot: Arc<Snapshot>,
    pub site: u32,
}

impl Around {
    fn site(&self) -> &str {
        &self.snapshot.sites[self.site as usize].name
    }

    fn is_dev(&self) -> bool {
        self.snapshot.config.server.mode == Mode::Dev
    }
}

/// Passes a request on and its answer back.
pub async fn answer(worker: Rc<Worker>, proxy: &Proxy, exchange: Exchange, around: &Around) -> Answered {
    let mut upstream = proxy.choose();
    let result = try_answer(&worker, proxy, exchange, around, &mut upstream).await;
    match result {
        Ok(response) => Answered::Passed(response),
        Err(trouble) => Answered::Failed(trouble.tell(upstream, around)),
    }
}

async fn try_answer<'p>(
    worker: &Rc<Worker>,
    proxy: &'p Proxy,
    exchange: Exchange,
    around: &Around,
    upstream: &mut &'p Arc<Upstream>,
) -> Result<Response, Trouble> {
    let trusted = &around.snapshot.config.server.trusted_proxies;
    let sent = request::Sent::new(&exchange, trusted);
    let mut content = Some(exchange.content);
    let deadline = worker.wheel.deadline();
    let mut tries = 1;
    loop {
        // What may have been heard and lost is not said twice, so it takes only a connection that surely stands.
        let kept = worker
            .upstreams
            .take(upstream, sent.is_repeatable(), worker.clock.uptime_ms());
        let connected = match kept {
            Some(connection) => Ok(connection),
            None => connect::connect(worker, upstream, proxy, &deadline).await,
        };
        let trouble = match connected {
            Err(trouble) => trouble,
            Ok(connection) => {
                let times = Times::of(worker, proxy);
                let conversation = Conversation::new(worker, upstream, connection, times);
                match conversation.hold(&sent, &mut content, &deadline).await {
                    Ok(conversation) => return answer::response(conversation, sent.method()),
                    Err(trouble) => trouble,
                }
            }
        };
        let again = match &trouble {
            Trouble::Unreachable(_) | Trouble::Unresolved(_) => proxy.upstreams.len() > 1 && tries < MAX_TRIES,
            // Whatever is at rest there may be closed as well.
            Trouble::Unheard => sent.is_repeatable(),
            _ => false,
        };
        if !again || content.is_none() {
            return Err(trouble);
        }
        if let Trouble::Unheard = trouble {
            worker.upstreams.forget(upstream);
        } else {
            tries += 1;
            trouble.log(upstream, around);
            *upstream = proxy.choose();
        }
    }
}

/// How long a server may take, in ticks of the worker's wheel.
#[derive(Clone, Copy)]
struct Times {
    first_byte: u32,
    idle: u32,
}

impl Times {
    fn of(worker: &Worker, proxy: &Proxy) -> Times {
        Times {
            first_byte: worker.wheel.ticks(proxy.first_byte),
            idle: worker.wheel.ticks(proxy.idle),
        }
    }
}

/// What `future` gives before the deadline; `None`: it is past.
async fn within<F: Future>(deadline: &Deadline, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending if deadline.poll_past(context.waker()) => std::task::Poll::Ready(None),
        std::task::Poll::Pending => std::task::Poll::Pending,
    })
    .await
}
