//! Restarts under load: of a server alone, where only those fail whom nobody is there to answer; and of two in turn, where
//! nobody does.

use super::load::{Load, Trouble};
use super::place::Place;
use super::upstream::Kind;
use crate::Failure;
use std::time::Instant;

/// A site in the clear, which the load can ask.
const SITE: &str = "[site.\":0\"]\n";
/// Good answers before and after each restart: enough for every connection to have come and gone.
const ENOUGH: usize = 300;
/// Answers that tell that nobody is there, before somebody is again.
const MISSED: usize = 20;

/// Everything outside the time in which it was away is answered by it; everything inside by it or by 502.
pub fn alone(place: &Place<'_>, kind: &'static Kind) -> Result<(), Failure> {
    let mut upstream = place.upstream(kind, "alone")?;
    let server = place.serve(SITE, &[&upstream])?;
    let load = Load::start(server.port()?);
    load.wait_good(ENOUGH)?;
    let away = Instant::now();
    upstream.stop()?;
    load.wait_bad(MISSED)?;
    upstream.start_again()?;
    let back = Instant::now();
    load.wait_good(ENOUGH)?;
    let (good, troubles) = load.finish()?;
    let missed = troubles.len();
    let wrong = |trouble: &&Trouble| trouble.what != "502" || trouble.answered < away || trouble.asked > back;
    told(kind, troubles.iter().filter(wrong)).map_err(|wrong| format!("{wrong}\n{}", place.errors()))?;
    println!(
        "{} restarted: {good} answers, {missed} times 502 while it was away",
        kind.name
    );
    Ok(())
}

/// One of two is always there, so nothing fails.
pub fn in_turn(place: &Place<'_>, kind: &'static Kind) -> Result<(), Failure> {
    let mut upstreams = [place.upstream(kind, "first")?, place.upstream(kind, "second")?];
    let server = place.serve(SITE, &[&upstreams[0], &upstreams[1]])?;
    let load = Load::start(server.port()?);
    for upstream in &mut upstreams {
        load.wait_good(ENOUGH)?;
        upstream.stop()?;
        load.wait_good(ENOUGH)?;
        upstream.start_again()?;
    }
    load.wait_good(ENOUGH)?;
    let (good, troubles) = load.finish()?;
    told(kind, troubles.iter()).map_err(|wrong| format!("{wrong}\n{}", place.errors()))?;
    println!("two of {} restarted in turn: {good} answers, nothing failed", kind.name);
    Ok(())
}

/// A failure that names what should not have happened.
fn told<'a>(kind: &Kind, wrong: impl Iterator<Item = &'a Trouble>) -> Result<(), Failure> {
    let wrong: Vec<_> = wrong
        .map(|trouble| format!("{} after {:?}", trouble.what, trouble.answered - trouble.asked))
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
