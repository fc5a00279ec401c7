//! Restarts upstreams under load. With one upstream, requests may fail only while it is down. With two upstreams that
//! are restarted in turn, no request may fail.

use super::environment::Environment;
use super::load::{ClientLoad, FailedRequest};
use super::upstream::UpstreamKind;
use crate::Failure;
use std::time::Instant;

/// Site without TLS, because the clients of the load do not support TLS.
const SITE: &str = "[site.\":0\"]\n";
/// Number of good responses to wait for before and after each restart: enough that every connection was replaced.
const MIN_RESPONSES: usize = 300;
/// Number of failed requests to wait for while the upstream is down.
const MIN_FAILED: usize = 20;

/// Restarts a single upstream. Requests may fail only while it is down, and only with 502.
pub fn alone(environment: &Environment<'_>, kind: &'static UpstreamKind) -> Result<(), Failure> {
    let mut upstream = environment.upstream(kind, "alone")?;
    let server = environment.serve(SITE, &[&upstream])?;
    let load = ClientLoad::start(server.port()?);
    load.wait_for_successes(MIN_RESPONSES)?;
    let stopped_at = Instant::now();
    upstream.stop()?;
    load.wait_for_failures(MIN_FAILED)?;
    upstream.restart()?;
    let restarted_at = Instant::now();
    load.wait_for_successes(MIN_RESPONSES)?;
    let (good, failed) = load.finish()?;
    let rejected = failed.len();
    let wrong =
        |request: &&FailedRequest| request.what != "502" || request.ended < stopped_at || request.sent > restarted_at;
    failure(kind, failed.iter().filter(wrong)).map_err(|wrong| format!("{wrong}\n{}", environment.errors()))?;
    println!(
        "{} restarted: {good} responses, {rejected} responses with 502 while it was down",
        kind.name
    );
    Ok(())
}

/// Restarts two upstreams in turn. One upstream is always running, so no request may fail.
pub fn in_turn(environment: &Environment<'_>, kind: &'static UpstreamKind) -> Result<(), Failure> {
    let mut upstreams = [
        environment.upstream(kind, "first")?,
        environment.upstream(kind, "second")?,
    ];
    let server = environment.serve(SITE, &[&upstreams[0], &upstreams[1]])?;
    let load = ClientLoad::start(server.port()?);
    for upstream in &mut upstreams {
        load.wait_for_successes(MIN_RESPONSES)?;
        upstream.stop()?;
        load.wait_for_successes(MIN_RESPONSES)?;
        upstream.restart()?;
    }
    load.wait_for_successes(MIN_RESPONSES)?;
    let (good, failed) = load.finish()?;
    failure(kind, failed.iter()).map_err(|wrong| format!("{wrong}\n{}", environment.errors()))?;
    println!("two of {} restarted in turn: {good} responses, no failures", kind.name);
    Ok(())
}

/// Returns an error that lists the unexpected failures, if there are any.
fn failure<'a>(kind: &UpstreamKind, wrong: impl Iterator<Item = &'a FailedRequest>) -> Result<(), Failure> {
    let wrong: Vec<_> = wrong
        .map(|request| format!("{} after {:?}", request.what, request.ended - request.sent))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} unexpected failures with {}: {}",
        wrong.len(),
        kind.name,
        wrong.join(", ")
    )
    .into())
}
