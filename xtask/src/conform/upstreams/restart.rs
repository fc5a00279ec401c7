//! Restarts under load. With one upstream, only requests while it is down may fail; with two, restarted in turn, none
//! may.

use super::environment::Environment;
use super::load::{ClientLoad, FailedRequest};
use super::upstream::UpstreamKind;
use crate::Failure;
use std::time::Instant;

/// A site without TLS, which the load can use.
const SITE: &str = "[site.\":0\"]\n";
/// Good responses before and after each restart: enough that every connection has been replaced.
const MIN_RESPONSES: usize = 300;
/// Failed requests to wait for while the upstream is down.
const MIN_FAILED: usize = 20;

/// Restarts a single upstream. Only requests while it is down may fail, and only with 502.
pub fn alone(environment: &Environment<'_>, kind: &'static UpstreamKind) -> Result<(), Failure> {
    let mut upstream = environment.upstream(kind, "alone")?;
    let server = environment.serve(SITE, &[&upstream])?;
    let load = ClientLoad::start(server.port()?);
    load.wait_for_successes(MIN_RESPONSES)?;
    let away = Instant::now();
    upstream.stop()?;
    load.wait_for_failures(MIN_FAILED)?;
    upstream.restart()?;
    let back = Instant::now();
    load.wait_for_successes(MIN_RESPONSES)?;
    let (good, failed) = load.finish()?;
    let missed = failed.len();
    let wrong = |request: &&FailedRequest| request.what != "502" || request.ended < away || request.sent > back;
    failure(kind, failed.iter().filter(wrong)).map_err(|wrong| format!("{wrong}\n{}", environment.errors()))?;
    println!(
        "{} restarted: {good} responses, {missed} times 502 while it was down",
        kind.name
    );
    Ok(())
}

/// Restarts two upstreams in turn. One is always up, so no request may fail.
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
