//! The applications of one route: selects one for each request and records its result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rocknet_config::model::{self, Balance, Protocol};
use rocknet_io::wheel::Wheel;

use crate::gateway::Backends;
use crate::gateway::backend::{Backend, BackendAddress};
use crate::gateway::error::BackendError;
use rocknet_handler::balance::{self, Candidate};
use rocknet_handler::breaker::Rules;

/// Maximum number of applications tried for one request. With three tries, two failed applications are tolerated.
pub(super) const MAX_TRIES: usize = 3;

/// The applications of one route, with the settings of its requests.
pub struct ApplicationGroup {
    pub(super) protocol: Protocol,
    members: Vec<Arc<Backend>>,
    balance: Balance,
    /// Number of selections by round robin or by least load so far, which determines the next application.
    round_robin: AtomicUsize,
    /// Rules of the circuit breaker.
    pub(super) rules: Rules,
    /// Timeout for connecting to an application.
    pub(super) connect: Duration,
    /// Maximum number of idle connections to each application; 0 for SCGI and uwsgi, which cannot reuse connections.
    pub(super) keep: usize,
    /// Path prefix of the application, without a trailing slash; empty if it is the whole site.
    pub(super) mount: Box<str>,
    /// Variables that replace variables of the same name. An empty value removes the variable.
    pub(super) params: Vec<(String, String)>,
    /// Document root of the site, if it has one.
    pub(super) root: Option<Box<[u8]>>,
}

impl ApplicationGroup {
    /// Creates the group of a configured application. `root`: document root of the site.
    pub fn new(model: &model::Application, root: Option<&Path>, backends: &Backends) -> ApplicationGroup {
        let member = |host: &model::Host| {
            backends.backend(&BackendAddress {
                host: host.clone(),
                own_php: None,
            })
        };
        ApplicationGroup {
            protocol: model.protocol,
            members: model.to.iter().map(member).collect(),
            balance: model.balance.clone(),
            round_robin: AtomicUsize::new(0),
            rules: Rules {
                fails: model.fails,
                window_ms: u64::try_from(model.fail_time.as_millis()).unwrap_or(u64::MAX),
            },
            connect: model.connect,
            keep: model.keep,
            mount: model.mount.as_str().into(),
            params: model.params.clone().into_iter().collect(),
            root: root.map(|root| root.as_os_str().as_encoded_bytes().into()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    pub(super) fn member(&self, number: usize) -> &Arc<Backend> {
        &self.members[number]
    }

    /// Returns the number of ticks after which a request has a response or an error: all tries to connect, and then
    /// `answer_timeout`, the timeout of the response.
    pub fn timeout_ticks(&self, wheel: &Wheel, answer_timeout: Duration) -> u32 {
        let tries = self.members.len().min(MAX_TRIES) as u32;
        wheel.ticks(self.connect * tries + answer_timeout)
    }

    /// Selects an application for a request and returns its number. Applications in `tried` are excluded, and at least
    /// one must be left. `now_ms` is the uptime in milliseconds, and `draw` returns random numbers.
    pub(super) fn choose(&self, tried: &[usize], now_ms: u64, draw: impl FnMut() -> u64) -> usize {
        if self.members.len() == 1 {
            return 0;
        }
        let candidate = |(index, member): (usize, &Arc<Backend>)| Candidate {
            index,
            load: member.load(),
            weight: 1.0,
            // Not used, because no balance selects an application by key.
            name_hash: 0,
        };
        let untried = || {
            self.members
                .iter()
                .enumerate()
                .filter(|(number, _)| !tried.contains(number))
        };
        let mut all: Vec<Candidate> = untried()
            .filter(|(_, member)| member.admits(now_ms))
            .map(candidate)
            .collect();
        if all.is_empty() {
            // All are out of rotation. A request to one of them may still succeed.
            all = untried().map(candidate).collect();
        }
        let count_selection = || self.round_robin.fetch_add(1, Ordering::Relaxed);
        let chosen = match self.balance {
            Balance::RoundRobin => balance::round_robin(&all, count_selection()),
            Balance::LeastConn => balance::least_loaded(&all, count_selection()),
            _ => balance::random_two(&all, draw),
        };
        // There is always a candidate, because the caller leaves at least one application untried.
        chosen.unwrap_or_default()
    }

    /// Records the result of a request to the application with this number. `error`: its error; `None` if a response
    /// has begun. `now_ms` is the uptime in milliseconds.
    pub(super) fn record_result(&self, number: usize, now_ms: u64, error: Option<&BackendError>) {
        // A single application gets every request in any case, so its failures are not counted.
        if self.members.len() == 1 {
            return;
        }
        match error {
            None => self.members[number].succeeded(),
            Some(error) if !error.is_backend_error() => {}
            Some(_) => self.members[number].failed(now_ms, self.rules),
        }
    }
}
