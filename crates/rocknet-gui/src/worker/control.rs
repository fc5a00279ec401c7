//! Starting, stopping and restarting the server, and the ways in which this computer can do so.

use rocknet_control::api::{Done, Request};

use super::Worker;
use super::connection::SYSTEM_CONFIG;
use super::ports;
use super::units::{FoundUnit, UnitFailure, UnitVerb};
use crate::job::{Absence, Report, StartFailure, Trouble};
use crate::ways::{NoRestart, Starter, UnitKind, Ways};

impl Worker {
    /// Looks for the ways to start and stop a server, if it has started or ended since the last look.
    pub(super) fn find_ways(&mut self) {
        let status = self.server.as_ref().map(|server| &server.status);
        let pid = match (&status, &self.absence) {
            (Some(status), _) => status.pid,
            // A unit whose server hangs can be restarted.
            (None, Some(Absence::NoReply(_))) => self.last_pid,
            (None, _) => 0,
        };
        if self.looked_for.replace(pid) == Some(pid) {
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let found = self.systemd.units();
        let is_system = |(unit, _): &FoundUnit| unit.kind == UnitKind::System && unit.is_active;
        if is_first && pid == 0 && found.iter().any(is_system) {
            // The unit was started by an earlier window, or with the computer.
            self.places.use_system(true);
        }
        // The process of another computer may have the same number as one of this computer.
        let is_here = pid != 0 && !self.places.is_elsewhere();
        let running = found.iter().find(|(_, main)| is_here && *main == pid);
        let running_unit = running.map(|(unit, _)| unit.kind);
        let own = self.places.config().and_then(|file| file.canonicalize().ok());
        let served = status.and_then(|status| status.config_file.as_ref()?.canonicalize().ok());
        let ways = Ways {
            // A server at a named socket may be elsewhere, and then no unit of this machine runs it.
            units: found
                .into_iter()
                .map(|(unit, _)| unit)
                .filter(|unit| !self.places.is_named() || running_unit == Some(unit.kind))
                .collect(),
            running_unit,
            has_own_config: own.is_some(),
            serves_own_config: own.is_some() && own == served,
        };
        if ways != self.ways {
            self.ways = ways.clone();
            (self.report)(Report::Ways(ways));
        }
    }

    pub(super) fn start(&mut self, starter: Starter) {
        if self.server.is_some() {
            return;
        }
        (self.report)(Report::Starting);
        self.last_starter = starter;
        self.places.use_system(starter == Starter::Unit(UnitKind::System));
        let started = match starter {
            Starter::Unit(kind) => self.systemd.instruct(kind, UnitVerb::Start).and_then(|()| {
                let replied = self.launcher.wait_for_reply(&self.places);
                replied.map(|()| None).map_err(UnitFailure::Failed)
            }),
            Starter::Program => self.launcher.start(&self.places).map_err(UnitFailure::Failed),
        };
        match started {
            Ok(moved) => {
                self.poll(true);
                (self.report)(Report::Started(moved));
                if self.launcher.take_first() {
                    (self.report)(Report::FirstStart);
                }
            }
            Err(failure) => {
                // The next poll may find that the server is stopped, which is known already.
                self.absence = self.places.connect().err();
                let failure = match (failure, starter) {
                    (UnitFailure::Failed(failure), Starter::Unit(kind)) if failure.lines.is_empty() => {
                        UnitFailure::Failed(self.with_held_port(kind, failure))
                    }
                    // No port is offered for the unit of the system, whose configuration only root may change.
                    (UnitFailure::Failed(failure), Starter::Unit(UnitKind::User)) => {
                        UnitFailure::Failed(self.launcher.offer_port(&self.places, failure))
                    }
                    (failure, _) => failure,
                };
                (self.report)(match failure {
                    UnitFailure::Refused(command) => Report::Refused(command),
                    UnitFailure::Failed(failure) => Report::StartFailed(failure),
                });
            }
        }
    }

    /// Adds the reason to the failure of a unit whose journal this account cannot read, if another program holds a port
    /// of the unit's configuration.
    fn with_held_port(&self, kind: UnitKind, failure: StartFailure) -> StartFailure {
        let config = match kind {
            UnitKind::System => Some(SYSTEM_CONFIG.into()),
            UnitKind::User => self.places.config(),
        };
        let held = self.services.machine.local_servers();
        let ports = config.map_or(Vec::new(), |config| ports::of_config(&config));
        match ports.into_iter().find(|port| held.contains_key(port)) {
            Some(port) => StartFailure {
                reason: Trouble::PortHeld(port),
                ..failure
            },
            None => failure,
        }
    }

    /// Starts the server with another port in the configuration of the user.
    pub(super) fn start_at(&mut self, from: u16, to: u16) {
        // While a server runs, the configuration is changed by requests only.
        if self.server.is_some() {
            return;
        }
        match self.launcher.move_port(&self.places, from, to) {
            Ok(()) => self.start(self.last_starter),
            Err(failure) => (self.report)(Report::StartFailed(failure)),
        }
    }

    /// Stops the server, and waits until it has ended. Returns false if it goes on, which is reported.
    pub(super) fn stop(&mut self) -> bool {
        self.refresh_ways();
        // Without polkit, systemd does not permit to stop the unit, but the control API does.
        let unit = self.ways.running_unit.filter(|_| self.ways.no_restart().is_none());
        if let Some(kind) = unit {
            if let Err(failure) = self.systemd.instruct(kind, UnitVerb::Stop) {
                self.stay(failure);
                return false;
            }
        } else if let Err(error) = self.call::<Done>(&Request::Stop) {
            self.look_again();
            (self.report)(match error.status {
                403 => Report::NotPermitted,
                _ => Report::Failed(error.error.into()),
            });
            return false;
        }
        self.server = None;
        if self.places.is_elsewhere() {
            // SSH accepts connections even after the end of the server, so the next poll finds out.
            self.absence = None;
            return true;
        }
        let has_ended = self.launcher.wait_for_end(&self.places);
        self.look_again();
        match &self.server {
            Some(server) if !has_ended => (self.report)(Report::StillStopping(server.status.connections_open)),
            _ => return true,
        }
        false
    }

    pub(super) fn restart(&mut self) {
        self.refresh_ways();
        match (self.ways.no_restart(), self.ways.running_unit) {
            (None, Some(kind)) => {
                let restarted = self.systemd.instruct(kind, UnitVerb::Restart).and_then(|()| {
                    self.server = None;
                    let replied = self.launcher.wait_for_reply(&self.places);
                    replied.map_err(UnitFailure::Failed)
                });
                match restarted {
                    Ok(()) => {
                        self.poll(true);
                        (self.report)(Report::Started(None));
                    }
                    Err(failure) => self.stay(failure),
                }
            }
            (None, None) => {
                if self.stop() {
                    self.start(Starter::Program);
                }
            }
            (Some(NoRestart::NoPolkit), _) => {
                self.stay(UnitFailure::Refused("sudo systemctl restart rocknet".to_owned()));
            }
            (Some(NoRestart::OtherConfig), _) => {
                self.stay(UnitFailure::Failed(StartFailure {
                    reason: Trouble::OtherConfig,
                    ..StartFailure::default()
                }));
            }
        }
    }

    /// Queries and reports the state, even if it is the same as before.
    fn look_again(&mut self) {
        self.server = None;
        self.absence = None;
        self.poll(true);
    }

    /// Reports that the server was not stopped or restarted, after a query of its state.
    pub(super) fn stay(&mut self, failure: UnitFailure) {
        self.look_again();
        (self.report)(match failure {
            UnitFailure::Refused(command) => Report::Refused(command),
            UnitFailure::Failed(failure) => Report::Failed(failure.reason),
        });
    }

    /// Looks for the ways again: an upgrade of the server or of the system may have changed them.
    pub(super) fn refresh_ways(&mut self) {
        self.looked_for = None;
        self.find_ways();
    }
}

#[cfg(test)]
mod tests;
