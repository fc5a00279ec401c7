//! Measures the latency of a high-priority route while a low-priority route is flooded.

use std::thread;
use std::time::Duration;

use super::counted::start_one;
use super::lane::Lane;
use super::load::{Count, Load, Target};
use super::run::Run;
use super::table::{Table, table};
use super::timed::median;
use crate::Failure;

/// Load on the high-priority route.
const PROBE: Load = Load::wrk(2);
/// Load on the low-priority route, which keeps every thread busy.
const FLOOD: Load = Load::wrk(32);
/// Number of rounds per lane. The median is reported.
const ROUNDS: usize = 3;
/// Time for the flood to build up.
const WARM_UP: Duration = Duration::from_millis(500);

/// Measures the 99th percentile of a route's latency with and without a flood on another route. Both routes need
/// threads of the worker pool.
pub fn listings(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "Listings of two folders of 1,000 files, each generated for every request: two clients request one of them, \
                alone and while 32 request the other; medians of three rounds.";
    flooded(run, lanes, note)
}

/// Measures the same as [`listings`] for two routes that wait for one upstream.
pub fn queue(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "Two routes are proxied to one upstream that takes 2 ms for a response and gets eight requests at once: \
                two clients request one of them, alone and while 32 request the other; medians of three rounds.";
    flooded(run, lanes, note)
}

fn flooded(run: &Run, lanes: &[Lane], note: &'static str) -> Result<Table, Failure> {
    let rounds = if run.quick { 1 } else { ROUNDS };
    let columns = [
        "p99 alone, ms",
        "p99 in the flood, ms",
        "in the flood ÷ alone",
        "flood, responses/s",
    ];
    Ok(table(lanes, &columns, note, |lane| {
        let started = start_one(run, lane, &[])?;
        let measure = |load: &Load, folder: &str| -> Result<Count, Failure> {
            let url = format!("http://127.0.0.1:{}/{folder}/", started.port);
            let target = Target {
                url: &url,
                host: None,
                content: None,
                length: None,
            };
            let count = load.run(&target, &started.scratch, run.quick)?;
            match count.failures + count.refused {
                0 => Ok(count),
                failed => Err(format!("{failed} requests for {url} failed").into()),
            }
        };
        let p99 = |count: Count| count.p99_ms.ok_or("no latency in wrk's output");
        let (mut alone, mut flooded, mut flood) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(p99(measure(&PROBE, "high")?)?);
            let (probe, low) = thread::scope(|scope| {
                // The flood starts before the measurement and runs twice as long.
                let low = scope.spawn(|| {
                    [measure(&FLOOD, "low"), measure(&FLOOD, "low")].map(|all| all.map_err(|e| e.to_string()))
                });
                thread::sleep(WARM_UP);
                (measure(&PROBE, "high"), low.join())
            });
            flooded.push(p99(probe?)?);
            for count in low.map_err(|_| "the flood panicked")? {
                let count = count?;
                flood.push(count.requests / count.seconds);
            }
        }
        let (alone, flooded) = (median(&alone), median(&flooded));
        Ok(vec![alone, flooded, flooded / alone, median(&flood)])
    }))
}
