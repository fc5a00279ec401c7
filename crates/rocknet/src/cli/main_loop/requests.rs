//! Carries out requests of the control API in the main loop.

use std::time::Duration;

use rocknet::inventory;
use rocknet::server::Server;
use rocknet_control::api::{ApiError, LogLevelChange, OPEN_API, Reply, Request};
use rocknet_control::ban::NewBan;
use rocknet_control::config::Saved;
use rocknet_control::{Status, text};

use super::super::config_api::ConfigApi;
use super::super::launch::ConfigSource;
use super::super::log_level;
use super::{MainLoop, done};

impl MainLoop {
    /// Carries out a request of the control API.
    pub(super) fn reply(&self, request: &Request, server: &Server) -> Result<Reply, ApiError> {
        match request {
            Request::Status => Ok(Reply::Status(Box::new(Status {
                config_file: match &self.source {
                    ConfigSource::File(file) => Some(file.clone()),
                    ConfigSource::ServedFolder | ConfigSource::WelcomePage => None,
                },
                backend: server.backend().backend.to_string(),
                sandbox: self.start_settings.sandbox.to_string(),
                capabilities: self.start_settings.capabilities.clone(),
                ..server.status()
            }))),
            Request::Sites => Ok(Reply::Sites(server.sites())),
            Request::Routes => Ok(Reply::Routes(inventory::routes(server))),
            Request::Reload => self
                .reload(server)
                .map(|reloaded| Reply::Done(reloaded.into()))
                .map_err(|error| ApiError {
                    details: error.findings,
                    ..ApiError::new(422, error.message)
                }),
            // Not reached: the API serves these requests without the main loop.
            Request::Logs(_) | Request::DashboardLink | Request::Permission => {
                Err(ApiError::new(500, "the API has to serve this request"))
            }
            Request::OpenApi => Ok(Reply::OpenApi(OPEN_API)),
            // Not reached: `run` starts a thread for these requests.
            Request::Doctor | Request::Explain(_) | Request::Site(_) | Request::VisitSite(_) | Request::ConfigState => {
                Err(ApiError::new(500, "the request was not started"))
            }
            // Not reached: `run` handles these requests, because they end the server.
            Request::Stop | Request::Upgrade(_) => Err(ApiError::new(500, "the main loop has to handle this request")),
            Request::Metrics => Ok(Reply::Metrics(inventory::metrics(server))),
            Request::LogLevel => self.log_level(None),
            Request::SetLogLevel(level) => self.log_level(Some(level)),
            Request::Config(name) => {
                let text = self.config(server)?.text(name.file.as_deref())?;
                Ok(Reply::Config(Box::new(text)))
            }
            Request::SiteForm(site) => {
                let form = self.config(server)?.site_form(&site.name)?;
                Ok(Reply::SiteForm(Box::new(form)))
            }
            Request::ServerForm => {
                let form = self.config(server)?.server_form()?;
                Ok(Reply::ServerForm(Box::new(form)))
            }
            Request::CheckConfig(candidate) => self.config(server)?.check(candidate).map(Reply::Checked),
            Request::CheckEdits(edits) => self.config(server)?.check_edits(edits).map(Reply::Checked),
            Request::ReplaceConfig(replacement) => self.save(server, |config| config.replace(replacement)),
            Request::EditConfig(edits) => self.save(server, |config| config.edit(edits)),
            Request::ConfigHistory => self.config(server)?.changes().map(Reply::ConfigHistory),
            Request::UndoConfig(undo) => self.save(server, |config| config.undo(undo)),
            Request::Certificates => Ok(Reply::Certificates(inventory::certificates(server))),
            Request::Upstreams => Ok(Reply::Upstreams(inventory::upstreams(server))),
            Request::DrainUpstream(upstream) => set_drained(server, &upstream.address, true),
            Request::EnableUpstream(upstream) => set_drained(server, &upstream.address, false),
            Request::PhpPools => Ok(Reply::PhpPools(inventory::php_pools(server))),
            Request::RestartPhpPool(pool) => php_done(
                server.php().restart(&pool.name),
                "PHP is restarting; the old processes complete their requests",
            ),
            Request::StartPhpPool(pool) => php_done(server.php().start(&pool.name), "PHP is starting"),
            Request::StopPhpPool(pool) => php_done(
                server.php().halt(&pool.name),
                "PHP is stopping; its processes complete their requests",
            ),
            Request::PurgeFileCache => {
                if !server.purge_file_cache() {
                    return Err(ApiError::new(503, "the file cache is busy; it will be emptied later"));
                }
                Ok(done("the file cache is empty"))
            }
            Request::Bans => Ok(Reply::Bans(Box::new(server.registries().bans.list()))),
            Request::Offenders => Ok(Reply::Offenders(server.registries().bans.worst_clients())),
            Request::AddBan(ban) => add_ban(server, ban),
            Request::LiftBan(banned) => match server.registries().bans.lift(&banned.address) {
                Ok((address, true)) => Ok(done(&format!("the ban of {address} was lifted"))),
                Ok((address, false)) => Err(ApiError::new(404, format!("{address} is not banned"))),
                Err(error) => Err(ApiError::new(400, error)),
            },
            Request::PurgeResponses(purge) => {
                let dropped = server
                    .purge_responses(purge)
                    .map_err(|error| ApiError::new(400, error))?;
                let note = match server.record_purges() {
                    true => "",
                    false => {
                        "; on disk the purge is not recorded yet, so it would be lost if the server was killed now"
                    }
                };
                Ok(done(&format!("stored responses of {dropped} URLs were dropped{note}")))
            }
        }
    }

    fn config<'s>(&'s self, server: &'s Server) -> Result<ConfigApi<'s>, ApiError> {
        ConfigApi::new(server, &self.source, &self.start_settings, &self.loaded, &self.state)
    }

    /// Changes the configuration and loads the change. The service manager is notified as for a reload.
    fn save(
        &self,
        server: &Server,
        change: impl FnOnce(&ConfigApi<'_>) -> Result<Saved, ApiError>,
    ) -> Result<Reply, ApiError> {
        let config = self.config(server)?;
        self.as_reload(server, || change(&config)).map(Reply::Saved)
    }

    /// Changes the level of the error log if a change is given, and returns the current levels.
    fn log_level(&self, change: Option<&LogLevelChange>) -> Result<Reply, ApiError> {
        let log = self
            .error_log
            .as_ref()
            .ok_or_else(|| ApiError::new(500, "the server has no error log"))?;
        if let Some(change) = change {
            log_level::change(log, change)?;
        }
        Ok(Reply::LogLevel(log_level::levels(log)))
    }
}

/// Bans a client or network.
fn add_ban(server: &Server, ban: &NewBan) -> Result<Reply, ApiError> {
    let time = ban.seconds.map(Duration::from_secs);
    let added = server.registries().bans.add(&ban.address, time, &ban.reason);
    let (address, until) = added.map_err(|error| ApiError::new(400, error))?;
    let until = match until {
        Some(until) => format!("until {}", text::http_date(until)),
        None => "until the ban is lifted".to_owned(),
    };
    Ok(done(&format!("{address} is banned {until}")))
}

/// Returns the reply to a request that starts, stops or restarts the pools of PHP with a name. `pools`: number of pools
/// with this name.
fn php_done(pools: usize, message: &str) -> Result<Reply, ApiError> {
    match pools {
        0 => Err(ApiError::new(404, "there is no pool of PHP with this name")),
        _ => Ok(done(message)),
    }
}

/// Drains the upstreams with an address, or ends the drain if `is_drained` is false. The scheme may be left out.
fn set_drained(server: &Server, address: &str, is_drained: bool) -> Result<Reply, ApiError> {
    let upstreams = &server.registries().upstreams;
    let candidates = [
        address.to_owned(),
        format!("http://{address}"),
        format!("https://{address}"),
    ];
    let found = candidates
        .into_iter()
        .find(|candidate| upstreams.set_drained(candidate, is_drained));
    let Some(address) = found else {
        return Err(ApiError::new(404, unknown_upstream(server)));
    };
    let what = if is_drained { "is drained" } else { "gets requests" };
    tracing::info!(upstream = address, "{what} by request of an operator");
    Ok(done(&format!("{address} {what}")))
}

/// Returns the error message for an unknown upstream address, which names some of the known addresses.
fn unknown_upstream(server: &Server) -> String {
    let mut known: Vec<String> = inventory::upstreams(server)
        .into_iter()
        .map(|upstream| upstream.address)
        .collect();
    known.dedup();
    let more = if known.len() > MAX_NAMED_UPSTREAMS { ", …" } else { "" };
    known.truncate(MAX_NAMED_UPSTREAMS);
    match &known[..] {
        [] => "there is no upstream with this address, because the server has none".to_owned(),
        known => format!(
            "there is no upstream with this address; there are {}{more}",
            known.join(", ")
        ),
    }
}

/// Maximum number of upstreams that an error names.
const MAX_NAMED_UPSTREAMS: usize = 10;
