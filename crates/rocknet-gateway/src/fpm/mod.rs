//! PHP: a script is found as a file is, and run by an application server that is told of it by FastCGI.
//!
//! ```text
//! Exchange and Script ─▶ gateway/variables.rs ─▶ gateway/conversation.rs ⇄ php-fpm ─▶ Response
//! ```

mod cure;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::{Host, Php};
use rocknet_proto::cgi::StatusLine;
use rocknet_proto::fastcgi::{self, Params};

use crate::gateway::backend::{self, Backend};
use crate::gateway::complaints::Complaints;
use crate::gateway::conversation::Conversation;
use crate::gateway::request::BackendRequest;
use crate::gateway::trouble::Trouble;
use crate::gateway::variables::{self, Answerer};
use crate::gateway::{Backends, answer};
use crate::php::CONNECT_TIMEOUT;
use rocknet_files::script::Script;
use rocknet_files::serve;
use rocknet_files::tree::Tree;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::response::Response;
use rocknet_handler::services::Services;
use rocknet_handler::{Handler, HandlerFuture};

/// Connections at rest to one php-fpm: as many as a busy second leaves behind. Each holds a process, but gives it back to
/// whoever wants a new connection, and is closed when nobody has used it for a second.
const MAX_IDLE: usize = 32;

/// Returns the backend that runs the scripts of a route.
pub fn backend(php: &Php, backends: &Backends) -> Arc<Backend> {
    backends.of(&match php {
        Php::External(host) => backend::Place {
            host: host.clone(),
            own: None,
        },
        Php::Managed { version, socket } => backend::Place {
            host: Host::Unix(socket.clone()),
            own: Some(*version),
        },
    })
}

/// Runs the scripts of a tree; other paths lead to its files.
pub struct PhpHandler {
    tree: Arc<Tree>,
    backend: Arc<Backend>,
}

impl PhpHandler {
    pub fn new(tree: Arc<Tree>, backend: Arc<Backend>) -> PhpHandler {
        PhpHandler { tree, backend }
    }
}

impl Handler for PhpHandler {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        let (tree, backend) = (Arc::clone(&self.tree), Arc::clone(&self.backend));
        Box::pin(async move {
            serve::leave_files(&mut exchange);
            let script = match serve::script(&tree, &exchange).await {
                Ok(script) => script,
                Err(answer) => return answer,
            };
            let (services, route) = (Rc::clone(&exchange.services), Arc::clone(&exchange.route));
            match try_answer(&services, &backend, &script, exchange, &route.label.site).await {
                Ok(response) => response,
                Err(trouble) => cure::tell(&trouble, &backend, &script.name, &route.label),
            }
            .into()
        })
    }

    fn buffers_request_body(&self) -> bool {
        true
    }

    fn supports_accel_redirect(&self) -> bool {
        true
    }
}

async fn try_answer(
    services: &Rc<Services>,
    backend: &Arc<Backend>,
    script: &Script,
    exchange: Exchange,
    site: &str,
) -> Result<Response, Trouble> {
    let mut received = BackendRequest::receive(exchange).await?;
    let (content, length) = (received.take_body(), received.body_length);
    let (view, place) = (received.exchange.request.view(), received.place());
    let records = || {
        let mut records = Vec::with_capacity(RECORDS);
        fastcgi::begin(&mut records, true);
        let mut params = Params::new(&mut records);
        let written = variables::write(&mut params, &view, Answerer::Script(script), &place, length);
        written.map_err(Trouble::Request)?;
        params.finish();
        Ok(records)
    };
    let mut written = records()?;

    let ticks = received.response_ticks();
    let deadline = services.wheel.deadline();
    deadline.set(ticks);

    // php-fpm may close a kept connection at any moment, so it carries only requests that may be sent again.
    let repeatable = received.is_repeatable();
    let complaints = || Complaints::new("PHP", site, &script.name);
    if let Some(connected) = repeatable.then(|| backend.kept()).flatten() {
        let conversation = Conversation::by_records(services, connected, std::mem::take(&mut written), complaints());
        let conversation = conversation.kept_by(backend, MAX_IDLE);
        match conversation.hold(RequestBody::empty(), &deadline, ticks).await {
            Err(Trouble::Unheard) => written = records()?,
            conversation => return answer::response(conversation?, view.method, StatusLine::Refused),
        }
    }
    let connected = backend.connect(services, CONNECT_TIMEOUT, true).await?;
    let conversation = Conversation::by_records(services, connected, written, complaints()).kept_by(backend, MAX_IDLE);
    let conversation = conversation.hold(content, &deadline, ticks).await?;
    answer::response(conversation, view.method, StatusLine::Refused)
}

/// The usual size of a request with its variables.
const RECORDS: usize = 2048;
