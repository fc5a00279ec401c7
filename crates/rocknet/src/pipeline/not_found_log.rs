//! Logs the 404 responses that no other part of the server logs: missing files, `internal` routes, and sites that serve
//! nothing.
//!
//! [`log_file`] is called once for each response that sends a cached file, plain or compressed. A 404 is thus logged
//! regardless of whether its entry was in the cache or was just looked up on disk. Status and log level are checked
//! before anything else is done: without a line to log, the call costs at most two comparisons.

use rocknet_config::model::Mode;
use rocknet_proto::status::Status;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::context::RequestContext;
use crate::endpoint::Endpoint;
use crate::files::cache::l1::CachedEntry;
use crate::files::failure_log;
use crate::log::throttle::Cause;

/// Reason of a 404 that is not about a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum NotFoundReason {
    /// The route is `internal`: its files are sent only if an application names them.
    Internal,
    /// No key of the route or its site serves requests.
    ServesNothing,
}

impl NotFoundReason {
    fn text(self) -> &'static str {
        match self {
            NotFoundReason::Internal => "the route is `internal`: only applications may name its files",
            NotFoundReason::ServesNothing => "nothing is served here: set `root`, or another key that serves requests",
        }
    }
}

/// Logs a 404 for a file, from the cache or after a lookup.
#[inline]
pub(super) fn log_file(cached: &CachedEntry, status: Status) {
    if status == Status::NOT_FOUND && Level::INFO <= LevelFilter::current() {
        log_path(cached);
    }
}

#[cold]
fn log_path(cached: &CachedEntry) {
    failure_log::not_found(&cached.tree, &cached.path);
}

/// Logs a 404 for an `internal` route or a site that serves nothing, at most once a second for each site and reason.
/// The level is debug, or info in `dev` mode. Other 404 responses are not logged here.
#[cold]
pub(super) fn log_route(context: &RequestContext, endpoint: &Endpoint, path: &str) {
    let reason = if endpoint.route.internal {
        NotFoundReason::Internal
    } else if endpoint.entry.is_not_found() {
        NotFoundReason::ServesNothing
    } else {
        return;
    };
    let is_dev = context.config.snapshot.config.server.mode == Mode::Dev;
    let cause = Cause {
        level: if is_dev { Level::INFO } else { Level::DEBUG },
        what: reason.text(),
        site: context.site_name(),
        subject: "",
    };
    if !cause.may_be_logged() {
        return;
    }
    let (site, text) = (context.site_name(), reason.text());
    if is_dev {
        tracing::info!(%site, path, "404 Not Found: {text}");
    } else {
        tracing::debug!(%site, path, "404 Not Found: {text}");
    }
}
