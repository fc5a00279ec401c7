//! Tests of the counters of all workers.

use std::time::Duration;

use rocknet_proto::status::Status;

use super::local::{MAX_UPSTREAMS, OTHER_UPSTREAMS};
use super::*;

#[test]
fn ended_workers_are_counted_and_merged() {
    let metrics = Metrics::default();
    let live_worker = metrics.register();
    live_worker.count_response(Status::OK);
    for _ in 0..100 {
        let worker = metrics.register();
        worker.connections_total.add(2);
        worker.count_response(Status::NOT_FOUND);
    }
    assert_eq!(metrics.sum(|worker| worker.connections_total.get()), 200);
    assert_eq!(metrics.sum(|worker| worker.requests.get()), 101);
    assert_eq!(metrics.sum(|worker| worker.responses[3].get()), 100);
    // One worker is live. The last one has ended, and its counters are merged when the next worker is registered.
    assert!(metrics.lock().live.len() <= 2);
}

#[test]
fn responses_are_counted_by_route_on_each_worker() {
    let (metrics, labels) = (Metrics::default(), Arc::<RouteLabels>::default());
    let route = labels.number(&RouteLabel {
        site: "a".into(),
        route: "/api/*".into(),
    });
    let response = |status, duration_us| CountedResponse {
        status,
        sent_bytes: 10,
        received_bytes: 3,
        duration_us,
    };
    for _ in 0..2 {
        let worker = LocalCounters::new(metrics.register(), Arc::clone(&labels));
        worker.count(route, response(Status::OK, Some(100)));
        worker.count(route, response(Status::NOT_FOUND, Some(50)));
        worker.count(OTHER, response(Status::SWITCHING_PROTOCOLS, None));
    }
    let routes = metrics.routes();
    let counted = &routes[&route];
    assert_eq!(counted.responses.each_ref().map(Counter::get), [0, 2, 0, 2, 0]);
    assert_eq!((counted.sent_bytes.get(), counted.received_bytes.get()), (40, 12));
    assert_eq!((counted.durations.count(), counted.durations.sum_us()), (4, 300));
    let other = &routes[&OTHER];
    assert_eq!((other.responses[0].get(), other.durations.count()), (2, 0));
    assert_eq!(metrics.sum(|worker| worker.requests.get()), 6);
}

#[test]
fn upstreams_beyond_the_bound_share_a_histogram() {
    let metrics = Metrics::default();
    let worker = LocalCounters::new(metrics.register(), Arc::default());
    for at in 0..MAX_UPSTREAMS + 5 {
        worker.count_upstream(&format!("http://u:{at}").into(), Duration::from_micros(7));
    }
    let upstreams = metrics.upstreams();
    assert_eq!(upstreams.len(), MAX_UPSTREAMS + 1);
    assert_eq!(upstreams[OTHER_UPSTREAMS].count(), 5);
    assert_eq!(upstreams["http://u:3"].sum_us(), 7);
}

#[test]
fn the_load_of_an_interval_is_the_difference_of_two_samples() {
    let metrics = Metrics::default();
    let worker = LocalCounters::new(metrics.register(), Arc::default());
    let count = |status, duration_us| {
        worker.count(
            OTHER,
            CountedResponse {
                status,
                sent_bytes: 10,
                received_bytes: 0,
                duration_us: Some(duration_us),
            },
        );
    };
    (0..50).for_each(|_| count(Status::OK, 100_000));
    let before = metrics.load_sample();
    (0..99).for_each(|_| count(Status::OK, 5));
    count(Status::INTERNAL_SERVER_ERROR, 7);
    let now = LoadSample {
        at: before.at + Duration::from_secs(10),
        ..metrics.load_sample()
    };
    let load = interval_load(&before, &now);
    assert_eq!(
        (
            load.interval_ms,
            load.requests_per_second,
            load.server_errors_per_second
        ),
        (10_000, 10.0, 0.1)
    );
    assert_eq!((load.p50_us, load.p90_us, load.p99_us), (Some(5), Some(5), Some(5)));
    let none = interval_load(&now, &now);
    assert_eq!((none.requests_per_second, none.p50_us), (0.0, None));
    // Without samples, the interval begins with the start.
    let [since_start] = &metrics.recent_load()[..] else {
        panic!("one interval");
    };
    // The end of the bucket that contains 100,000 µs.
    assert_eq!(since_start.p99_us, Some(106_495));
}
