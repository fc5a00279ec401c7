//! Requests of the control API that inspect the machine and the configuration: `doctor`, `explain`, `site`, a
//! visit to a site and the state of the configuration files. A thread carries them out, because they wait for disks or
//! for the site.

use std::collections::BTreeMap;
use std::thread;

use rocknet::inventory;
use rocknet::server::Server;
use rocknet_control::api::{ApiError, Reply, Request};
use rocknet_control::doctor::DoctorCheck;

use super::config_state::StateCache;
use super::doctor::{self, Running, ServedAddresses};
use super::event::ControlRequest;
use super::launch::ConfigSource;
use super::loaded_files::LoadedRevisions;
use super::{Failure, explain, site_detail, site_visit};

/// Returns true for the requests that [`start`] carries out.
pub fn is_inspection(request: &Request) -> bool {
    matches!(
        request,
        Request::Doctor | Request::Explain(_) | Request::Site(_) | Request::VisitSite(_) | Request::ConfigState
    )
}

/// Starts the thread that carries out a request and replies to it. `loaded` and `states` are the revisions of the
/// loaded files, and the last comparison with the files on disk. If the thread cannot be started, the client gets an
/// error.
pub fn start(
    request: ControlRequest,
    server: &Server,
    source: &ConfigSource,
    (loaded, states): (&LoadedRevisions, &StateCache),
) {
    let loaded = match &request.request {
        Request::ConfigState => loaded.all(),
        _ => BTreeMap::new(),
    };
    let states = states.clone();
    let snapshot = server.snapshot();
    // The summary of the site is made here, because the thread cannot use the server.
    let summary = match &request.request {
        Request::Site(wanted) | Request::VisitSite(wanted) => {
            server.sites().into_iter().find(|site| site.name == wanted.name)
        }
        _ => None,
    };
    let running = match &request.request {
        Request::Doctor => Running {
            addresses: ServedAddresses::new(&server.status().sockets),
            pid: None,
            certificates: Some(inventory::certificates(server)),
        },
        _ => Running::default(),
    };
    let sockets = match &request.request {
        Request::VisitSite(_) => server.status().sockets,
        _ => Vec::new(),
    };
    let file = match source {
        ConfigSource::File(file) => Some(file.clone()),
        ConfigSource::ServedFolder | ConfigSource::WelcomePage => None,
    };
    let inspect = move || {
        let reply = match &request.request {
            Request::Explain(wanted) => explain::explained(&snapshot.config, &wanted.url)
                .map(|explanation| Reply::Explanation(Box::new(explanation)))
                .map_err(|failure| match failure {
                    Failure::Usage(message) => ApiError::new(400, message),
                    Failure::Failed(message) => ApiError::new(404, message),
                    Failure::Configuration(_) | Failure::Reported(_) => ApiError::new(500, "the URL was not explained"),
                }),
            Request::Site(wanted) => {
                let site = snapshot.config.sites.iter().find(|site| site.name == wanted.name);
                match (site, summary) {
                    (Some(site), Some(summary)) => Ok(Reply::Site(Box::new(site_detail::of_site(site, summary)))),
                    (None, Some(summary)) if summary.disabled => {
                        let name = summary.name;
                        let message = format!(
                            "site {name} is disabled, so none of its settings is in effect: `rocknet config \
                             enable-site {name}` enables it"
                        );
                        Err(ApiError::new(409, message))
                    }
                    _ => Err(ApiError::new(404, "there is no site with this name")),
                }
            }
            Request::VisitSite(_) => match summary {
                Some(site) => Ok(Reply::SiteVisit(site_visit::visit(&site, &sockets))),
                None => Err(ApiError::new(404, "there is no site with this name")),
            },
            Request::ConfigState => match &file {
                Some(file) => {
                    let state = states.state(file, loaded, &snapshot.config);
                    state.map(|state| Reply::ConfigState(Box::new(state)))
                }
                None => Err(ApiError::new(404, "this server has no configuration file")),
            },
            // Only `Request::Doctor` remains, because `is_inspection` is true for the request.
            _ => {
                let checks = doctor::checks(file.as_deref(), &running);
                Ok(Reply::Doctor(checks.iter().map(DoctorCheck::from).collect()))
            }
        };
        request.reply(reply);
    };
    let started = thread::Builder::new().name("rn-inspection".to_owned()).spawn(inspect);
    if let Err(error) = started {
        // The request was dropped with the closure, so its client gets an error.
        tracing::warn!("cannot start the thread of a request of the control API: {error}");
    }
}
