//! The handler of static files, and the lookup of scripts for PHP.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use crate::cache::WorkerCache;
use crate::cache::l1::CachedEntry;
use crate::entry::Found;
use crate::script::Script;
use crate::tree::Tree;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::fixed;
use rocknet_handler::response::Response;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput};

/// Path that no file can have, because names with a colon are not looked up. It is looked up in place of the path of a
/// request that must not lead to a file.
pub const NO_FILE_PATH: &str = "/:";

/// Responds with the file at a path of a tree.
pub struct FileHandler(Arc<Tree>);

impl FileHandler {
    /// Creates a handler for the files of a tree.
    pub fn new(tree: Arc<Tree>) -> FileHandler {
        FileHandler(tree)
    }
}

impl Handler for FileHandler {
    fn handle_now(&self, exchange: &ExchangeRef<'_>) -> Option<Response> {
        match exchange.request.method {
            Method::Get | Method::Head => None,
            Method::Options => Some(fixed::options()),
            _ => Some(fixed::method_not_allowed()),
        }
    }

    fn may_take_long(&self) -> bool {
        false
    }

    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        let tree = Arc::clone(&self.0);
        Box::pin(async move {
            if !exchange.is_file_path {
                exchange.path = NO_FILE_PATH.into();
            }
            match find(&tree, &exchange).await {
                Some(cached) => HandlerOutput::Cached(cached),
                None => fixed::error(Status::SERVICE_UNAVAILABLE).into(),
            }
        })
    }
}

/// Looks up the path of an exchange in the file cache or on disk; `None` if the server is overloaded.
async fn find(tree: &Arc<Tree>, exchange: &Exchange) -> Option<Rc<CachedEntry>> {
    let cache = exchange.services.get::<WorkerCache>()?;
    let (tree, path) = (Arc::clone(tree), Arc::from(&*exchange.path));
    cache
        .look_up(exchange.cache_key, exchange.request.view().path, tree, path)
        .await
}

/// Sets the path of an exchange to the path under which its script is looked up, which [`script_path`] returns.
pub fn set_script_lookup_path(exchange: &mut Exchange) {
    if script_path(&exchange.path, exchange.is_file_path) == NO_FILE_PATH {
        exchange.path = NO_FILE_PATH.into();
    }
}

/// Returns the path under which a script is looked up. It is [`NO_FILE_PATH`] if no file can have the path as sent, but
/// a file can have its normalized form. For example, no file can have the path `/a%2Fb/../c` because of the encoded
/// slash, but its normalized form is `/c`.
///
/// All other paths are returned unchanged. They include paths that no file can have in either form, such as
/// `/index.php/Special:Search` with its colon, because such a path may begin with the path of a script.
///
/// `path`: decoded and normalized path of a request. `is_file_path`: true if a file can have the path that was sent.
pub fn script_path(path: &str, is_file_path: bool) -> &str {
    // If `from_decoded` fails, no file can have the normalized path either, so it cannot lead to another file.
    match is_file_path || SafePath::from_decoded(path).is_err() {
        true => path,
        false => NO_FILE_PATH,
    }
}

/// Finds the script for a request.
///
/// # Errors
///
/// Returns the response if the path does not lead to a script, or the server is overloaded.
pub async fn find_script(tree: &Arc<Tree>, exchange: &Exchange) -> Result<Arc<Script>, HandlerOutput> {
    let services = &exchange.services;
    let raw = exchange.request.view().path;
    let cache = services.get::<WorkerCache>();
    let cached_script =
        cache.and_then(|cache| cache.cached_script(exchange.cache_key, raw, services.clock.uptime_ms()));
    if let Some(script) = cached_script {
        return Ok(script);
    }
    let Some(cached) = find(tree, exchange).await else {
        return Err(fixed::error(Status::SERVICE_UNAVAILABLE).into());
    };
    if let Found::Script(script) = &cached.entry.found {
        return Ok(Arc::clone(script));
    }
    Err(match exchange.request.view().method {
        Method::Get | Method::Head => HandlerOutput::Cached(cached),
        Method::Options => fixed::options().into(),
        // The body is empty, so that the site's error page replaces it.
        _ => Response::new(Status::METHOD_NOT_ALLOWED)
            .with("Allow", fixed::FILE_METHODS)
            .into(),
    })
}
