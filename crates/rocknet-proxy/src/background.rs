//! Background thread that resolves the names of upstreams and runs their health checks.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rocknet_config::model::{Health, Host, Resolve};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};
use tracing::Level;

use crate::health_check::{self, CheckError};
use crate::health_state::{HealthState, Thresholds};
use crate::ttl;
use crate::upstream::{Resolution, Upstream};
use rocknet_handler::background::Background;
use rocknet_handler::port_exhaustion;
use rocknet_log::throttle::Cause;

/// Interval of lookups for a name whose TTL is not known, for example because the name is in `/etc/hosts`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum lookup interval by TTL, so that a TTL of zero does not cause permanent queries.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum lookup interval by TTL, so that a change of the address is noticed even if the TTL was long.
const MAX_INTERVAL: Duration = Duration::from_secs(300);
/// Maximum interval of lookups after a failure. An upstream that starts together with this server usually has an
/// address a moment later.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout of one lookup. The system resolver may query three name servers for up to ten seconds each.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of concurrent lookups. Each lookup occupies a thread.
const MAX_LOOKUPS: usize = 16;

/// Recurring task for one upstream. It ends when no configuration uses the upstream any more.
enum WatchTask {
    /// Looks up the name of the upstream. The other values are the name, the port, and when to repeat the lookup.
    Resolve(Weak<Upstream>, String, u16, Resolve),
    /// Sends health checks to the upstream.
    Check(Weak<Upstream>, Health),
}

/// Thread that resolves and checks the upstreams of one server.
pub struct BackgroundTasks(Background<WatchTask>);

impl Default for BackgroundTasks {
    fn default() -> BackgroundTasks {
        BackgroundTasks(Background::new("rn-upstreams", MAX_LOOKUPS, |task| Box::pin(run(task))))
    }
}

impl BackgroundTasks {
    /// Starts the tasks of an upstream. The number of tasks is bounded by the number of upstreams in the
    /// configurations.
    pub fn watch(&self, upstream: &Arc<Upstream>, host: &Host, health: Option<&Health>, resolve: Resolve) {
        let mut tasks = Vec::new();
        if let Host::Name(name, port) = host {
            tasks.push(WatchTask::Resolve(
                Arc::downgrade(upstream),
                name.clone(),
                *port,
                resolve,
            ));
        }
        if let Some(health) = health {
            tasks.push(WatchTask::Check(Arc::downgrade(upstream), health.clone()));
        }
        for task in tasks {
            if !self.0.send(task) {
                // This affects only names. An upstream with an address is used without health checks.
                upstream.set_resolution(Resolution::Failed("cannot start the thread for lookups".into()));
            }
        }
    }

    /// Ends all lookups and checks. Returns true if the thread ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.0.stop(deadline)
    }
}

async fn run(mut tasks: UnboundedReceiver<WatchTask>) {
    while let Some(task) = tasks.recv().await {
        match task {
            WatchTask::Resolve(upstream, name, port, resolve) => {
                drop(tokio::spawn(resolve_repeatedly(upstream, name, port, resolve)));
            }
            WatchTask::Check(upstream, health) => drop(tokio::spawn(check_repeatedly(upstream, health))),
        }
    }
}

async fn resolve_repeatedly(upstream: Weak<Upstream>, name: String, port: u16, resolve: Resolve) {
    let mut is_logged = false;
    while upstream.strong_count() > 0 {
        let resolution = match timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name.as_str(), port))).await {
            Ok(Ok(addresses)) => Resolution::Resolved(addresses.collect()),
            Ok(Err(error)) => Resolution::Failed(error.to_string().into()),
            Err(_) => Resolution::Failed("the lookup timed out".into()),
        };
        let resolution = match resolution {
            Resolution::Resolved(addresses) if addresses.is_empty() => {
                Resolution::Failed("the name has no address".into())
            }
            resolution => resolution,
        };
        let is_resolved = matches!(resolution, Resolution::Resolved(_));
        if let Resolution::Failed(error) = &resolution
            && !is_logged
        {
            tracing::warn!(upstream = %name, "cannot resolve the name; RockNet tries again every few seconds: {error}");
        }
        is_logged = !is_resolved;
        match upstream.upgrade() {
            Some(upstream) => upstream.set_resolution(resolution),
            None => return,
        }
        let pause = match (is_resolved, resolve) {
            (true, Resolve::Ttl) => interval(ttl::lookup(&name).await),
            (true, Resolve::Every(interval)) => interval,
            (false, Resolve::Ttl) => RETRY_INTERVAL,
            (false, Resolve::Every(interval)) => interval.min(RETRY_INTERVAL),
        };
        sleep(pause).await;
    }
}

/// Returns the time until the next lookup of a name. `seconds` is the TTL of the name, or `None` if it is not known.
fn interval(seconds: Option<u32>) -> Duration {
    match seconds {
        Some(seconds) => Duration::from_secs(seconds.into()).clamp(MIN_INTERVAL, MAX_INTERVAL),
        None => DEFAULT_INTERVAL,
    }
}

async fn check_repeatedly(upstream: Weak<Upstream>, health: Health) {
    let mut state = HealthState::default();
    let thresholds = Thresholds {
        rise: health.rise,
        fall: health.fall,
    };
    loop {
        let Some(checked) = upstream.upgrade() else { return };
        let result = timeout(health.timeout, health_check::check(&checked, &health)).await;
        let reason = match result {
            Ok(Ok(())) => None,
            Ok(Err(CheckError::Upstream(reason))) => Some(reason),
            // The health state is kept. Otherwise all upstreams would become unhealthy if this machine ran out of local
            // ports.
            Ok(Err(CheckError::NoLocalPort)) => {
                let cause = Cause {
                    level: Level::WARN,
                    what: "a health check found no local port",
                    site: "",
                    subject: &checked.name,
                };
                if cause.may_be_logged() {
                    tracing::warn!(upstream = %checked.name, "cannot be checked: {}", port_exhaustion::HINT);
                }
                drop(checked);
                sleep(health.interval).await;
                continue;
            }
            Err(_) => Some("no response in time".to_owned()),
        };
        // `Some(true)`: the upstream becomes unhealthy. `Some(false)`: it becomes healthy.
        match (state.record(reason.is_none(), thresholds), reason) {
            (Some(true), Some(reason)) => {
                tracing::warn!(upstream = %checked.name, "failed its health checks and is out of rotation: {reason}");
                checked.set_unhealthy(true);
            }
            (Some(false), _) => {
                tracing::info!(upstream = %checked.name, "passes its health checks and is back in rotation");
                checked.set_unhealthy(false);
            }
            _ => {}
        }
        // Dropped before the pause, so that this task does not keep an upstream that no configuration uses any more.
        drop(checked);
        sleep(health.interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_intervals_are_bounded() {
        for (seconds, expected) in [
            (None, 10),
            (Some(0), 1),
            (Some(1), 1),
            (Some(60), 60),
            (Some(300), 300),
            (Some(u32::MAX), 300),
        ] {
            assert_eq!(interval(seconds), Duration::from_secs(expected), "{seconds:?}");
        }
    }
}
