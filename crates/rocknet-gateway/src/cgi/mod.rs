//! Handler of CGI programs (RFC 3875): runs a program for each request and returns its output as the response.
//!
//! ```text
//! Exchange ─▶ script.rs: finds the program ─▶ process.rs: starts the program in its own process group
//!                                                │   └─▶ reaper.rs: waits for its end, or kills it at its time limit
//!                                                └─▶ gateway/exchange.rs ─▶ Response
//! ```

mod error;
mod permits;
mod process;
mod processes;
mod programs;
mod reaper;
mod script;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::wheel::Wheel;
use rocknet_proto::cgi::{StatusLine, VariableError};
use rocknet_proto::status::Status;

use self::error::CgiError;
use self::process::{CgiCommand, StartedProgram};
use crate::gateway::backend::BackendConnection;
use crate::gateway::error::BackendError;
use crate::gateway::exchange::BackendExchange;
use crate::gateway::request::BackendRequest;
use crate::gateway::response::build_response;
use crate::gateway::socket::Socket;
use crate::gateway::stderr::StderrLog;
use crate::gateway::variables::{self, VariableSink, VariableSource};
use rocknet_files::tree::Tree;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::{Handler, HandlerFuture};

pub use self::permits::ProgramPermit;
pub use self::processes::Processes;
pub use self::programs::Programs;

/// Environment variables of a program.
struct Environment {
    variables: Vec<(OsString, OsString)>,
    /// True if the header field `Authorization` is passed.
    passes_authorization: bool,
}

impl Environment {
    /// Replaces variables with the variables of the same name from the configuration. An empty value removes the
    /// variable.
    fn with_params(mut self, params: &[(String, String)]) -> Vec<(OsString, OsString)> {
        self.variables
            .retain(|(name, _)| params.iter().all(|(own, _)| name != own.as_str()));
        let added = params.iter().filter(|(_, value)| !value.is_empty());
        self.variables
            .extend(added.map(|(name, value)| (name.into(), value.into())));
        self.variables
    }
}

impl VariableSink for Environment {
    fn put(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        // By default, passwords are not passed, because other processes can read the environment of a program (RFC 3875
        // §4.1.18). Those of a proxy are never meant for a program.
        let is_passed = match name {
            b"HTTP_AUTHORIZATION" => self.passes_authorization,
            b"HTTP_PROXY_AUTHORIZATION" => false,
            _ => true,
        };
        if is_passed {
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            self.variables.push((text(name), text(value)));
        }
        Ok(())
    }
}

/// Handler that runs the programs of a tree.
pub struct CgiHandler {
    tree: Arc<Tree>,
    programs: Arc<Programs>,
}

impl CgiHandler {
    /// Creates a handler for the programs of the tree.
    pub fn new(tree: Arc<Tree>, programs: Programs) -> CgiHandler {
        CgiHandler {
            tree,
            programs: Arc::new(programs),
        }
    }
}

impl Handler for CgiHandler {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let (tree, programs) = (Arc::clone(&self.tree), Arc::clone(&self.programs));
        Box::pin(async move {
            let (services, route, path) = (
                Rc::clone(&exchange.services),
                Arc::clone(&exchange.route),
                exchange.path.clone(),
            );
            let mut script = None;
            match try_handle(&services, tree, &programs, exchange, &route.label.site, &mut script).await {
                Ok(response) => response,
                Err(error) => error.response(script.as_deref(), &path, &route.label),
            }
            .into()
        })
    }

    fn buffers_request_body(&self) -> bool {
        true
    }

    /// Adds the time in the queue to `answer_timeout`, which begins after it.
    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        wheel.ticks(self.programs.queue_timeout + route.answer_timeout)
    }

    fn timeout_limits(&self) -> &'static str {
        "limits.answer_timeout after cgi.queue"
    }

    fn supports_accel_redirect(&self) -> bool {
        true
    }
}

/// Returns the file of the program that a path leads to. Blocks on the disk.
///
/// # Errors
///
/// Returns the status of the response if there is no program, or if it is not executable.
pub fn program(tree: &Tree, path: &str) -> Result<PathBuf, Status> {
    let found = script::find(tree, path).map_err(|error| match error {
        CgiError::Status(status) => status,
        CgiError::NotExecutable(_) => Status::FORBIDDEN,
        CgiError::Start(_) | CgiError::Backend(_) => Status::BAD_GATEWAY,
    })?;
    Ok(OsString::from_vec(found.file()).into())
}

/// Runs the program and returns its response. Sets `script` to the path of the program once it is found.
async fn try_handle(
    services: &Rc<Services>,
    tree: Arc<Tree>,
    programs: &Programs,
    exchange: Exchange,
    site: &str,
    script: &mut Option<String>,
) -> Result<Response, CgiError> {
    let (path, priority) = (exchange.path.clone(), exchange.route.priority);
    let found = {
        let job = services.pool.spawn(priority, move || script::find(&tree, &path));
        job.await.map_err(|_| CgiError::Status(Status::SERVICE_UNAVAILABLE))??
    };
    *script = Some(found.name.to_string());
    let mut received = BackendRequest::receive(exchange).await?;
    let (body, length) = (received.take_body(), received.body_length);
    let (view, context) = (received.exchange.request.view(), received.context());
    let mut environment = Environment {
        variables: vec![("PATH".into(), PATH.into())],
        passes_authorization: programs.passes_authorization,
    };
    let source = VariableSource::Script(&found);
    variables::write(&mut environment, &view, source, &context, length).map_err(BackendError::Request)?;

    let ticks = received.response_ticks();
    let deadline = services.wheel.deadline();
    deadline.set(services.wheel.ticks(programs.queue_timeout));
    let permit = match deadline.within(programs.acquire()).await {
        Some(permit) => permit?,
        None => return Err(BackendError::Full.into()),
    };
    deadline.set(ticks);
    let stderr_log = StderrLog::new("CGI", site, &found.name);
    let command = CgiCommand {
        file: OsString::from_vec(found.file()).into(),
        environment: environment.with_params(&programs.params),
        user: programs.user.clone(),
        time_limit: programs.time_limit,
        permit,
        processes: Arc::clone(&programs.processes),
    };
    let job = services.pool.spawn(priority, move || command.spawn());
    let started = job.await.map_err(|_| CgiError::Status(Status::SERVICE_UNAVAILABLE))?;
    let program = started.and_then(StartedProgram::attach).map_err(CgiError::Start)?;
    let connection = BackendConnection {
        socket: Socket::Program(Box::new(program)),
        is_new: true,
        pending: None,
        // The permit counts the program. The reaper holds the permit until the program has ended, which may be later
        // than the end of the exchange.
        in_flight: None,
    };
    let backend_exchange = BackendExchange::plain(services, connection, Vec::new(), programs.max_output, stderr_log);
    let backend_exchange = backend_exchange.run_until_head(body, &deadline, ticks).await?;
    Ok(build_response(backend_exchange, view.method, StatusLine::Refused)?)
}

/// `PATH` of programs, independent of the environment of the server.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
