//! Instructions and repeated queries about services: other servers, PHP, trust stores and databases.

use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::api::{ApiError, Done, Request};
use rocknet_control::ban::BannedAddress;
use rocknet_control::php::PhpPoolName;
use rocknet_control::upstream::UpstreamAddress;

use super::Worker;
use super::connection::{STOPPED, ServerLink};
use super::services::{self, UsesQuery};
use crate::job::{Query, Report, ServiceJob};

/// Time for which a long query is carried out before other jobs.
const SLICE: Duration = Duration::from_millis(50);

impl Worker {
    /// Sends the query that is watched, if it is due.
    pub(super) fn repeat_query(&mut self, now: Instant) {
        if let Some(query) = self.services.due(now) {
            self.query_service(query, false);
        }
    }

    /// Passes on the reports of threads that have waited for a program or a folder.
    pub(super) fn report_ended(&mut self) {
        while let Some(report) = self.services.next_ended() {
            (self.report)(report);
        }
    }

    /// Carries out a query about services. `is_first`: false for a repetition, which leaves out what takes long, and
    /// reports nothing while there is no server.
    pub(super) fn query_service(&mut self, query: Query, is_first: bool) {
        let at = self.began.elapsed();
        let report = match query {
            Query::Databases => Report::Databases(self.services.machine.databases()),
            // The browsers of this computer say nothing about the trust in the local CA of another computer.
            Query::Trust if self.places.is_elsewhere() => Report::Trust(Ok(Vec::new())),
            Query::Trust => return self.begin_trust_look(),
            _ if self.server.is_none() && !is_first => return,
            Query::Upstreams => self.with_server(query, Report::Upstreams, |server| {
                services::upstreams(&mut server.client, at)
            }),
            Query::Bans => self.with_server(query, Report::Bans, |server| services::bans(&mut server.client)),
            Query::Php | Query::PhpPools => {
                let with_checks = is_first && query == Query::Php;
                let machine = self.services.machine.clone();
                self.with_server(query, Report::Php, |server| {
                    services::php(&mut server.client, &machine, with_checks)
                })
            }
            Query::Uses => return self.begin_uses(),
            _ => return,
        };
        (self.report)(report);
    }

    /// Begins to query which websites use PHP and other servers. The result of an earlier query is reported if the
    /// server has not been reloaded since.
    fn begin_uses(&mut self) {
        let Some(server) = &self.server else {
            return (self.report)(Report::Uses(Err(STOPPED.to_owned())));
        };
        let version = (server.status.pid, server.status.reloads);
        match &self.services.known_uses {
            Some((known, uses)) if *known == version => (self.report)(Report::Uses(Ok(uses.clone()))),
            _ => self.services.uses = Some(UsesQuery::new(&server.sites)),
        }
    }

    /// Continues the query of the websites for a short time. Returns true if there is more to do.
    pub(super) fn continue_uses(&mut self) -> bool {
        let Some(mut query) = self.services.uses.take() else {
            return false;
        };
        let Some(server) = &mut self.server else {
            return false;
        };
        let version = (server.status.pid, server.status.reloads);
        let result = match server
            .query_status()
            .and_then(|_| query.step(&mut server.client, Instant::now() + SLICE))
        {
            Ok(None) => {
                self.services.uses = Some(query);
                return true;
            }
            Ok(Some(uses)) => {
                self.services.known_uses = Some((version, uses.clone()));
                Ok(uses)
            }
            Err(error) => Err(self.error(error)),
        };
        (self.report)(match result {
            Ok(uses) => Report::Uses(Ok(uses)),
            Err(ApiError { status: 403, .. }) => Report::Denied(Query::Uses),
            Err(error) => Report::Uses(Err(error.error)),
        });
        false
    }

    /// Runs a query of the server, and returns its report.
    fn with_server<T>(
        &mut self,
        query: Query,
        report: impl FnOnce(Result<T, String>) -> Report,
        run: impl FnOnce(&mut ServerLink) -> Result<T, rocknet_control::ClientError>,
    ) -> Report {
        let Some(server) = &mut self.server else {
            return report(Err(STOPPED.to_owned()));
        };
        match server.query_status().and_then(|_| run(server)) {
            Ok(reply) => report(Ok(reply)),
            Err(error) => match self.error(error) {
                ApiError { status: 403, .. } => Report::Denied(query),
                error => report(Err(error.error)),
            },
        }
    }

    /// Carries out an instruction about a service, and queries the new state.
    pub(super) fn serve(&mut self, job: ServiceJob) {
        let (request, query) = match &job {
            ServiceJob::Drain(address, drains) => {
                let address = UpstreamAddress {
                    address: address.clone(),
                };
                let request = match drains {
                    true => Request::DrainUpstream(address),
                    false => Request::EnableUpstream(address),
                };
                (request, Some(Query::Upstreams))
            }
            ServiceJob::Ban(ban) => (Request::AddBan(ban.clone()), Some(Query::Bans)),
            ServiceJob::LiftBan(address) => {
                let address = address.clone();
                (Request::LiftBan(BannedAddress { address }), Some(Query::Bans))
            }
            ServiceJob::DropResponses(purge) => (Request::PurgeResponses(purge.clone()), None),
            ServiceJob::RestartPhp(name) => {
                let name = name.clone();
                (Request::RestartPhpPool(PhpPoolName { name }), Some(Query::Php))
            }
            ServiceJob::StartPhp(name) => {
                let name = name.clone();
                (Request::StartPhpPool(PhpPoolName { name }), Some(Query::Php))
            }
            ServiceJob::StopPhp(name) => {
                let name = name.clone();
                (Request::StopPhpPool(PhpPoolName { name }), Some(Query::Php))
            }
            ServiceJob::Database(unit, action) => {
                let (machine, unit, action) = (self.services.machine.clone(), unit.clone(), *action);
                let ended = self.services.ended();
                thread::spawn(move || {
                    let result = machine.control(&unit, action).map(|()| String::new());
                    // The receiver is gone only if the program ends.
                    let _ = ended.send(Report::Served(job, result));
                    let _ = ended.send(Report::Databases(machine.databases()));
                });
                return;
            }
        };
        let result = self.call::<Done>(&request);
        if matches!(&result, Err(error) if error.status == 403) {
            return (self.report)(Report::NotPermitted);
        }
        let result = result.map(|done| done.message).map_err(|error| error.error.into());
        if let Some(query) = query {
            self.query_service(query, false);
        }
        (self.report)(Report::Served(job, result));
    }
}
