//! Handler of PHP scripts: finds the script as it would find a file, and runs it in php-fpm over FastCGI.
//!
//! ```text
//! Exchange and Script ─▶ gateway/variables.rs ─▶ gateway/exchange.rs ⇄ php-fpm ─▶ Response
//! ```

mod hint;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::{Host, Php};
use rocknet_proto::cgi::StatusLine;
use rocknet_proto::fastcgi::{self, Params};

use crate::gateway::backend::{Backend, BackendAddress};
use crate::gateway::error::BackendError;
use crate::gateway::exchange::BackendExchange;
use crate::gateway::request::BackendRequest;
use crate::gateway::stderr::StderrLog;
use crate::gateway::variables::{self, VariableSource};
use crate::gateway::{Backends, response::build_response};
use crate::php::CONNECT_TIMEOUT;
use rocknet_files::handler;
use rocknet_files::script::Script;
use rocknet_files::tree::Tree;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::response::Response;
use rocknet_handler::services::Services;
use rocknet_handler::{Handler, HandlerFuture};

/// Maximum number of idle connections to one php-fpm: an estimate of how many are idle at a time under high load. Above
/// it, a connection is closed after its response. An idle connection occupies a process until the connection is closed:
/// after one second, or earlier to free the process for a new connection.
const MAX_IDLE: usize = 32;

/// Returns the back end that runs the scripts of a route.
pub fn backend(php: &Php, backends: &Backends) -> Arc<Backend> {
    backends.backend(&match php {
        Php::External(host) => BackendAddress {
            host: host.clone(),
            own_php: None,
        },
        Php::Managed { version, socket, .. } => BackendAddress {
            host: Host::Unix(socket.clone()),
            own_php: Some(*version),
        },
    })
}

/// Handler that runs the scripts of a tree and serves its other files.
pub struct PhpHandler {
    tree: Arc<Tree>,
    backend: Arc<Backend>,
}

impl PhpHandler {
    /// Creates a handler for the tree, whose scripts run in `backend`.
    pub fn new(tree: Arc<Tree>, backend: Arc<Backend>) -> PhpHandler {
        PhpHandler { tree, backend }
    }
}

impl Handler for PhpHandler {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        let (tree, backend) = (Arc::clone(&self.tree), Arc::clone(&self.backend));
        Box::pin(async move {
            // No file has a path such as `/a%2Fb.php`, and its decoded form must not lead to the script `/a/b.php`.
            handler::set_script_lookup_path(&mut exchange);
            let script = match handler::find_script(&tree, &exchange).await {
                Ok(script) => script,
                Err(response) => return response,
            };
            let (services, route) = (Rc::clone(&exchange.services), Arc::clone(&exchange.route));
            match try_handle(&services, &backend, &script, exchange, &route.label.site).await {
                Ok(response) => response,
                Err(error) => hint::error_response(&error, &backend, &script.name, &route.label),
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

/// Runs the script in php-fpm and returns its response.
async fn try_handle(
    services: &Rc<Services>,
    backend: &Arc<Backend>,
    script: &Script,
    exchange: Exchange,
    site: &str,
) -> Result<Response, BackendError> {
    let mut received = BackendRequest::receive(exchange).await?;
    let (body, length) = (received.take_body(), received.body_length);
    let (view, context) = (received.exchange.request.view(), received.context());
    let records = || {
        let mut records = Vec::with_capacity(RECORDS);
        // `true`: php-fpm keeps the connection open after its response.
        fastcgi::begin(&mut records, true);
        let mut params = Params::new(&mut records);
        let written = variables::write(&mut params, &view, VariableSource::Script(script), &context, length);
        written.map_err(BackendError::Request)?;
        params.finish();
        Ok(records)
    };
    let mut written = records()?;

    let ticks = received.response_ticks();
    let deadline = services.wheel.deadline();
    deadline.set(ticks);

    // php-fpm may close an idle connection at any moment, so only requests that may be repeated use one. Such a request
    // has no body.
    let repeatable = received.is_repeatable();
    let stderr_log = || StderrLog::new("PHP", site, &script.name);
    if let Some(connection) = repeatable.then(|| backend.take_idle()).flatten() {
        let backend_exchange =
            BackendExchange::fastcgi(services, connection, std::mem::take(&mut written), stderr_log());
        let backend_exchange = backend_exchange.keep_alive(backend, MAX_IDLE);
        match backend_exchange
            .run_until_head(RequestBody::empty(), &deadline, ticks)
            .await
        {
            Err(BackendError::StaleConnection) => written = records()?,
            backend_exchange => return build_response(backend_exchange?, view.method, StatusLine::Refused),
        }
    }
    // `true`: there is no other php-fpm to try, so a full or restarting one is tried until the timeout.
    let connection = backend.connect(services, CONNECT_TIMEOUT, true).await?;
    let backend_exchange =
        BackendExchange::fastcgi(services, connection, written, stderr_log()).keep_alive(backend, MAX_IDLE);
    let backend_exchange = backend_exchange.run_until_head(body, &deadline, ticks).await?;
    build_response(backend_exchange, view.method, StatusLine::Refused)
}

/// Initial capacity in bytes for the records of a request: the usual size of its variables.
const RECORDS: usize = 2048;
