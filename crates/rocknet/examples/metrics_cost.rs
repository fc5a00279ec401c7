//! Measures the CPU time of the metrics of one ready response, and prints it in microseconds: with one route, whose
//! counters stay in the nearest cache of the processor, and with many routes in random order, whose counters do not.
//!
//! `cargo run --release --example metrics_cost`; `cargo xtask bench --only metrics` runs it as a row of the bench.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use rocknet::metrics::{CountedResponse, LocalCounters, Metrics, RouteLabel, RouteLabels};
use rocknet_io::usage::cpu_time;
use rocknet_proto::status::Status;

/// Responses that are counted in one measurement: enough for a tenth of a second. A debug build only shows that the
/// program works.
const RESPONSES: u32 = if cfg!(debug_assertions) { 200_000 } else { 20_000_000 };
/// Measurements, of which the median is printed.
const MEASUREMENTS: usize = 9;
/// Routes of the second measurement: as many as have counters of their own, 3.4 MB in all.
const MANY_ROUTES: u32 = 2000;

fn main() -> ExitCode {
    let labels = Arc::new(RouteLabels::default());
    let metrics = Metrics::default();
    let counters = LocalCounters::new(metrics.register(), Arc::clone(&labels));
    let numbers: Vec<u32> = (0..MANY_ROUTES)
        .map(|at| {
            let label = RouteLabel {
                site: "example.com".into(),
                route: format!("/{at}").into(),
            };
            labels.number(&label)
        })
        .collect();
    // Opens the counters, as the first response of each route does.
    for &number in &numbers {
        counters.count(number, response(1));
    }
    let one = measure(&counters, &numbers[..1]);
    let many = measure(&counters, &numbers);
    println!("{one:.4} {many:.4}");
    // Without the sum, the compiler could leave out the work.
    let counted = metrics.sum(|worker| worker.responses[1].get());
    if counted >= u64::from(RESPONSES) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the microseconds of one response, less those of the loop itself.
fn measure(counters: &LocalCounters, numbers: &[u32]) -> f64 {
    let count = |number, duration| counters.count(number, response(duration));
    let mut costs: Vec<f64> = (0..MEASUREMENTS)
        .map(|_| {
            let empty = time(numbers, |number, duration| {
                black_box((number, duration));
            });
            time(numbers, count) - empty
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[MEASUREMENTS / 2].max(0.0)
}

/// Returns the microseconds of one call, with routes in random order and durations from 1 µs to 1 ms.
fn time(numbers: &[u32], call: impl Fn(u32, u64)) -> f64 {
    let before = cpu_time();
    // A linear congruential generator is random enough to defeat prefetching, and costs one multiplication.
    let mut random: u32 = 1;
    for _ in 0..RESPONSES {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = (u64::from(random) * numbers.len() as u64) >> 32;
        call(numbers[at as usize], u64::from(random >> 22) + 1);
    }
    (cpu_time() - before).as_secs_f64() * 1e6 / f64::from(RESPONSES)
}

fn response(duration_us: u64) -> CountedResponse {
    black_box(CountedResponse {
        status: Status::OK,
        sent_bytes: 13,
        received_bytes: 0,
        duration_us: Some(duration_us),
    })
}
