//! Downloads large files, each once, and discards the data. Load generators would keep whole responses in memory.

use super::client::{Client, Response};
use super::lane::Lane;
use super::load::Count;
use super::row::MIB;
use crate::Failure;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A finished download, complete or not.
struct Download {
    response: io::Result<Response>,
    took: Duration,
}

/// Downloads `1.bin` to `count.bin` in `folder` over `connections` concurrent connections.
pub fn each_once(lane: &Lane, port: u16, folder: &str, connections: u32, count: u64) -> Result<Count, Failure> {
    let next = AtomicU64::new(1);
    let begin = Instant::now();
    let all: Vec<Download> = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| download(lane, port, folder, &next, count)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    if all.len() as u64 != count {
        return Err("a download thread panicked".into());
    }
    Ok(counted(&all, begin.elapsed()))
}

/// Downloads one file after another on one thread until all are done.
fn download(lane: &Lane, port: u16, folder: &str, next: &AtomicU64, count: u64) -> Vec<Download> {
    let mut finished = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > count {
            return finished;
        }
        let begin = Instant::now();
        // Each file gets a new connection, whose cost is negligible for files of this size.
        let response =
            Client::connect(lane, port, &format!("/{folder}/{number}.bin")).and_then(|mut client| client.get());
        let took = begin.elapsed();
        finished.push(Download { response, took });
    }
}

fn counted(all: &[Download], took: Duration) -> Count {
    let responses = || all.iter().filter_map(|download| download.response.as_ref().ok());
    let right = || responses().filter(|response| response.status == 200);
    let bytes: u64 = right().filter_map(|response| response.length).sum();
    let mut times: Vec<f64> = all.iter().map(|download| download.took.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    // The percentile by nearest rank. With fewer than a hundred downloads it is the slowest one.
    let rank = (all.len() * 99).div_ceil(100);
    Count {
        requests: all.len() as f64,
        mebibytes: bytes as f64 / MIB as f64,
        seconds: took.as_secs_f64(),
        failures: (all.len() - responses().count()) as u64,
        refused: (responses().count() - right().count()) as u64,
        p99_ms: rank.checked_sub(1).map(|at| times[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_refusals_are_counted_separately() {
        let download = |response, took| Download {
            response,
            took: Duration::from_millis(took),
        };
        let response = |status| {
            Ok(Response {
                status,
                length: Some(3 * MIB),
            })
        };
        let all = [
            download(response(200), 20),
            download(response(404), 1),
            download(Err(io::ErrorKind::UnexpectedEof.into()), 50),
            download(response(200), 30),
        ];
        let count = counted(&all, Duration::from_secs(2));
        let expected = Count {
            requests: 4.0,
            mebibytes: 6.0,
            seconds: 2.0,
            failures: 1,
            refused: 1,
            p99_ms: Some(50.0),
        };
        assert_eq!(count, expected);
        assert_eq!(counted(&[], Duration::ZERO).p99_ms, None);
    }
}
