//! Rules with `resolved`: refuse a request because of the file that it leads to, such as the index of a folder.
//!
//! ```toml
//! [[site."example.com".rule]]
//! path = "*.php"      # with `resolved`, also refuses `/shop/`, whose index is `/shop/index.php`
//! respond = 403
//! resolved = true
//! ```

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Existence;
use rocknet_handler::guard::{Admitted, Check, Guard, GuardContext};
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::facts::{self, Facts};
use super::rules;
use crate::exchange::Client;
use crate::fixed;
use crate::response::Response;
use crate::routing::{FileRules, LookupError, RequestFacts, RuleOutcome};
use crate::worker::Worker;

/// Applies the rules to the file at `path`, a decoded path of the site.
///
/// # Errors
///
/// Returns the response of the rule that applies.
pub(super) async fn enter(worker: &Worker, context: &RequestContext, path: &str) -> Result<(), Box<Response>> {
    let snapshot = &context.config.snapshot;
    let site = context.site.and_then(|number| snapshot.sites.get(number as usize));
    let Some(routes) = site.map(|site| site.routes(context.is_secure)) else {
        return Ok(());
    };
    let Some(rules) = routes.file_rules.as_ref().filter(|rules| rules.concern(path)) else {
        return Ok(());
    };
    // Rules cannot be applied without these, so the request is refused.
    let (Some(client), Some(request), Some(route)) = (context.client, &context.request, &context.route) else {
        return Err(Box::new(fixed::error(Status::FORBIDDEN)));
    };
    let request = Rc::clone(request);
    let (peer, _) = context.peer_and_handshake(client);
    // The loop ends, because each lookup adds a path, and the rules have a limited number of paths.
    let mut known = Vec::new();
    loop {
        let unknown = {
            let view = request.view();
            let facts = Facts::new(&context.config, routes, &view, peer, context.is_secure).with_known(&known);
            match rules.apply(&view, path, &facts) {
                RuleOutcome::NeedsLookup(unknown) => unknown,
                RuleOutcome::Respond { status, body } => {
                    let values = context.guard_values(worker, client, &view);
                    return Err(Box::new(rules::response(status, body.as_ref(), &values, route)));
                }
                _ => return Ok(()),
            }
        };
        known.push(facts::look_up(worker, facts::tree(routes, &unknown).cloned(), unknown).await);
    }
}

/// Applies the rules to each beginning of a path that can be the path of the CGI program: for `/cgi-bin/a/b/c`, these
/// are `/cgi-bin`, `/cgi-bin/a` and `/cgi-bin/a/b`. The program is looked up later. The rules were already applied to
/// the whole path.
///
/// # Errors
///
/// Returns the response of the rule that applies.
pub(super) async fn enter_programs(worker: &Worker, context: &RequestContext, path: &str) -> Result<(), Box<Response>> {
    let site = context
        .site
        .and_then(|number| context.config.snapshot.sites.get(number as usize));
    if site.is_none_or(|site| site.routes(context.is_secure).file_rules.is_none()) {
        return Ok(());
    }
    let mut bytes = 0;
    for (end, _) in path.match_indices('/').skip(1) {
        bytes += end;
        if bytes > MAX_PROGRAM_BYTES {
            return Err(Box::new(fixed::error(Status::FORBIDDEN)));
        }
        enter(worker, context, &path[..end]).await?;
    }
    Ok(())
}

/// Maximum number of bytes in all beginnings of one path that are compared with rules. A path of 8 KiB with segments of
/// one letter has thousands of beginnings, and each would be compared with every regular expression.
const MAX_PROGRAM_BYTES: usize = 64 << 10;

/// Admits requests for an entry of the worker cache, unless a rule applies to its file.
pub(super) struct FileGuard {
    rules: Arc<FileRules>,
    /// Decoded path of the file.
    file: Box<str>,
    is_secure: bool,
}

impl FileGuard {
    /// Returns the guard of a file; `None` if no rule can apply to it.
    pub fn of(rules: Option<&Arc<FileRules>>, file: &str, is_secure: bool) -> Option<Arc<dyn Guard>> {
        let rules = rules.filter(|rules| rules.concern(file))?;
        Some(Arc::new(FileGuard {
            rules: Arc::clone(rules),
            file: file.into(),
            is_secure,
        }))
    }

    fn admits(&self, context: &GuardContext<'_>) -> bool {
        let facts = CachedFacts {
            client: context.client,
            is_secure: self.is_secure,
        };
        self.rules.apply(context.request, &self.file, &facts) == RuleOutcome::Untouched
    }
}

impl Guard for FileGuard {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        Check::Decided(match self.admits(context) {
            true => Ok(Admitted::default()),
            false => Err(Box::new(fixed::error(Status::FORBIDDEN))),
        })
    }

    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        // `Some(None)` admits without a user. After `None`, [`enter`] responds.
        self.admits(context).then_some(None)
    }
}

/// Data of a request for a cached entry. It never waits for the disk: a rule that needs a lookup does not admit the
/// request, so the slow path applies it.
struct CachedFacts {
    client: Client,
    is_secure: bool,
}

impl RequestFacts for CachedFacts {
    fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn client(&self) -> Option<IpAddr> {
        match self.client {
            Client::Ip { address, .. } => Some(address),
            Client::Local => None,
        }
    }

    fn existence(&self, _path: &str) -> Result<Existence, LookupError> {
        Err(LookupError::WouldBlock)
    }
}
