//! PHP by FastCGI: a request goes to an application server, and what it answers comes back, both bit by bit.
//!
//! ```text
//! Exchange ─▶ variables.rs ─▶ conversation.rs ⇄ records ⇄ socket.rs    one of backend.rs, kept open or new
//!                                   │
//!                 Response ◀─ answer.rs: status and fields, and the content as it comes
//! ```

pub(in crate::handler) mod answer;
pub(in crate::handler) mod backend;
pub(in crate::handler) mod complaints;
pub(in crate::handler) mod conversation;
pub mod script;
pub(in crate::handler) mod socket;
pub(in crate::handler) mod trouble;
pub(in crate::handler) mod variables;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::fastcgi::{self, Params};
use rocknet_proto::fields::Known;
use rocknet_proto::method::Method;

use self::complaints::Complaints;
use self::conversation::{Conversation, Source};
use self::trouble::Trouble;
use self::variables::Place;
use crate::exchange::{Exchange, RequestContent};
use crate::response::Response;
use crate::worker::Worker;

pub(in crate::handler) use self::backend::within;
pub use self::backend::{Backend, rest, tick};
pub use self::script::Script;

/// Content that comes in chunks is collected before it is passed on: PHP wants to know its length first. So much of it is
/// taken, a form but no upload, because all of it is held.
const MAX_UNMEASURED: usize = 64 * 1024;

/// What of the site PHP and its troubles have to do with.
pub struct Around {
    pub site: Box<str>,
    /// Whether error pages may say what the operator has to do.
    pub dev: bool,
}

/// Has `script` run for a request.
pub async fn answer(
    worker: Rc<Worker>,
    backend: Arc<Backend>,
    script: Arc<Script>,
    exchange: Exchange,
    around: Around,
) -> Response {
    match try_answer(&worker, &backend, &script, exchange, &around.site).await {
        Ok(response) => response,
        Err(trouble) => trouble.tell(&backend, &around),
    }
}

async fn try_answer(
    worker: &Rc<Worker>,
    backend: &Arc<Backend>,
    script: &Script,
    exchange: Exchange,
    site: &str,
) -> Result<Response, Trouble> {
    let Exchange {
        request,
        mut content,
        client,
        secure,
        scope,
        ..
    } = exchange;
    let view = request.view();
    let announced = view.fields.get(Known::ContentLength);
    let (source, length) = match announced {
        Some(_) => (Source::Client(content), None),
        None => {
            let content = collect(&mut content).await?;
            let length = (!content.is_empty()).then_some(content.len());
            (Source::Here(content), length)
        }
    };
    let mut records = Vec::with_capacity(RECORDS);
    fastcgi::begin(&mut records, true);
    let place = Place {
        site,
        address: &worker.address,
        client,
        secure: secure.as_deref(),
    };
    let mut params = Params::new(&mut records);
    variables::write(&mut params, &view, script, &place, length).map_err(Trouble::Request)?;
    params.finish();

    // The time of the client ends here. A tick less than the protocol waits for an answer: it would say 503.
    let ticks = worker.wheel.ticks(scope.answer_timeout).saturating_sub(1);
    let deadline = worker.wheel.deadline();
    deadline.set(ticks);

    // One that was kept open may be closed by the other side at any moment. Whether a request came through then, nobody
    // can tell, so it carries only what may be sent again.
    let repeatable = matches!(view.method, Method::Get | Method::Head) && announced.is_none() && length.is_none();
    if let Some(connected) = repeatable.then(|| backend.kept()).flatten() {
        let complaints = Complaints::new("PHP", site, &script.name);
        let conversation = Conversation::by_records(backend, connected, records.clone(), complaints);
        match conversation.hold(Source::Here(Vec::new()), &deadline, ticks).await {
            Err(Trouble::Unheard) => {}
            conversation => return answer::response(conversation?, view.method),
        }
    }
    let connected = backend.connect(&worker.wheel).await?;
    let complaints = Complaints::new("PHP", site, &script.name);
    let conversation = Conversation::by_records(backend, connected, records, complaints);
    answer::response(conversation.hold(source, &deadline, ticks).await?, view.method)
}

/// The usual size of a request with its variables.
const RECORDS: usize = 2048;

pub(in crate::handler) async fn collect(content: &mut RequestContent) -> Result<Vec<u8>, Trouble> {
    let mut all = Vec::new();
    while let Some(chunk) = content.chunk().await.map_err(Trouble::Content)? {
        if all.len() + chunk.len() > MAX_UNMEASURED {
            return Err(Trouble::Unmeasured);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}
