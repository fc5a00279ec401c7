//! Log lines about requests that were refused before anything answered them: site, path, reason and what to do.

use rocknet_proto::status::Status;
use tracing::Level;

use super::facts::Facts;
use crate::exchange::Client;
use crate::log::throttle::Cause;
use crate::worker::{View, Worker};

/// Logs a refusal at info: one line a second for each site and reason, as any client can cause them. `path`: empty where
/// what came has none.
#[cold]
pub fn log(view: &View, client: &Client, facts: &Facts, path: &[u8], status: Status, reason: &'static str) {
    let site = facts.site.and_then(|number| view.snapshot.sites.get(number as usize));
    let site = site.map_or("", |site| site.name.as_str());
    let cause = Cause {
        level: Level::INFO,
        what: status.reason(),
        site,
        subject: reason,
    };
    if !cause.may_be_logged() {
        return;
    }
    let request = facts.request.as_ref().map(|request| request.view());
    let path = match &request {
        Some(request) if path.is_empty() => request.path,
        _ => path,
    };
    let path = String::from_utf8_lossy(path);
    let help = help(status);
    tracing::info!(site, %path, %client, help, "{} {}: {reason}", status.code(), status.reason());
}

fn help(status: Status) -> &'static str {
    match status {
        Status::CONTENT_TOO_LARGE => "raise `body_size` of the site or of [limits], if such requests are wanted",
        Status::URI_TOO_LONG => "raise `target_size` of [limits], if such requests are wanted",
        Status::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "raise `header_size` or `header_fields` of [limits], if such requests are wanted"
        }
        Status::BAD_REQUEST => "the client, or a proxy before this server, does not keep to HTTP",
        _ => "",
    }
}

/// Logs at warn that an answer was not made in time. A disk that hangs is met by every request for it.
#[cold]
pub fn log_overdue(worker: &Worker, view: &View, facts: Option<&Facts>) {
    let site = facts.and_then(|facts| view.snapshot.sites.get(facts.site? as usize));
    let site = site.map_or("", |site| site.name.as_str());
    let address = worker.address.to_string();
    let cause = Cause {
        level: Level::WARN,
        what: "an answer was not made in time",
        site,
        subject: &address,
    };
    if cause.may_be_logged() {
        tracing::warn!(site, %address, "an answer was not made in time (limits.answer_timeout)");
    }
}
