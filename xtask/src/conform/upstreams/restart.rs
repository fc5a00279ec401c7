//! Restarts under load: of a server alone, where only those fail whom nobody is there to answer; and of two in turn, where
//! nobody does.

use super::environment::Environment;
use super::load::{ClientLoad, FailedRequest};
use super::upstream::UpstreamKind;
use crate::Failure;
use std::time::Instant;

/// A site in the clear, which the load can ask.
const SITE: &str = "[site.\":0\"]\n";
/// Good answers before and after each restart: enough for every connection to have come and gone.
const MIN_RESPONSES: usize = 300;
/// Answers that tell that nobody is there, before somebody is again.
const MIN_FAILED: usize = 20;

/// Everything outside the time in which it was away is answered by it; everything inside by it or by 502.
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
        "{} restarted: {good} answers, {missed} times 502 while it was away",
        kind.name
    );
    Ok(())
}

/// One of two is always there, so nothing fails.
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
    println!("two of {} restarted in turn: {good} answers, nothing failed", kind.name);
    Ok(())
}

/// A failure that names what should not have happened.
fn failure<'a>(kind: &UpstreamKind, wrong: impl Iterator<Item = &'a FailedRequest>) -> Result<(), Failure> {
    let wrong: Vec<_> = wrong
        .map(|request| format!("{} after {:?}", request.what, request.ended - request.sent))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} requests failed in vain at {}: {}",
        wrong.len(),
        kind.name,
        wrong.join(", ")
    )
    .into())
}
