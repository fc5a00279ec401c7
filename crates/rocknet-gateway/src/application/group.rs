//! The applications of one place: which of them a request goes to, and what their answers say of them.

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

/// Applications tried for one request: of two that are down at once, a third is still found.
pub(super) const MAX_TRIES: usize = 3;

/// Where requests of one place go, and how.
pub struct ApplicationGroup {
    pub(super) protocol: Protocol,
    members: Vec<Arc<Backend>>,
    balance: Balance,
    round_robin: AtomicUsize,
    pub(super) rules: Rules,
    pub(super) connect: Duration,
    pub(super) keep: usize,
    /// Its name in paths, without a slash at its end.
    pub(super) mount: Box<str>,
    /// In place of other variables of these names; an empty value takes one away.
    pub(super) params: Vec<(String, String)>,
    /// The folder of the site's files.
    pub(super) root: Option<Box<[u8]>>,
}

impl ApplicationGroup {
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

    /// Ticks in which there is an answer, or an error instead.
    pub fn timeout_ticks(&self, wheel: &Wheel, answer_timeout: Duration) -> u32 {
        let tries = self.members.len().min(MAX_TRIES) as u32;
        wheel.ticks(self.connect * tries + answer_timeout)
    }

    /// The one that a request goes to, of those that were not tried for it.
    pub(super) fn choose(&self, tried: &[usize], now_ms: u64, draw: impl FnMut() -> u64) -> usize {
        if self.members.len() == 1 {
            return 0;
        }
        let candidate = |(index, member): (usize, &Arc<Backend>)| Candidate {
            index,
            load: member.load(),
            weight: 1.0,
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
            // Better one that failed a while ago than none.
            all = untried().map(candidate).collect();
        }
        let turn = || self.round_robin.fetch_add(1, Ordering::Relaxed);
        let chosen = match self.balance {
            Balance::RoundRobin => balance::round_robin(&all, turn()),
            Balance::LeastConn => balance::least_loaded(&all, turn()),
            _ => balance::random_two(&all, draw),
        };
        chosen.unwrap_or_default()
    }

    /// What came of asking one.
    pub(super) fn record_result(&self, number: usize, now_ms: u64, error: Option<&BackendError>) {
        // One that nobody can stand in for is asked in any case.
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
