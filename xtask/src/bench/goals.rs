//! What RockNet promises, as figures: each goal reads the results and says how far it is reached.

use super::report::Results;

/// One promise: a figure that must not exceed its limit.
pub struct Goal {
    pub text: &'static str,
    pub limit: f64,
    /// The figure reached; nothing when its row was not run.
    pub reached: fn(&Results) -> Option<f64>,
}

const US: &str = "rocknet";

const fn goal(text: &'static str, limit: f64, reached: fn(&Results) -> Option<f64>) -> Goal {
    Goal { text, limit, reached }
}

pub const GOALS: &[Goal] = &[
    goal("keep-alive, × floor", 1.05, |results| results.ratio("keepalive", US)),
    goal("keep-alive, × H2O", 1.0, |results| beside(results, "keepalive", "h2o")),
    goal("pipelined, × floor", 1.3, |results| results.ratio("pipelined", US)),
    goal("404, × nginx", 1.0, |results| beside(results, "missing", "nginx")),
    goal("10 KB file, × nginx", 1.0, |results| {
        beside(results, "file-10k", "nginx")
    }),
    goal("40 KB file, × nginx", 1.0, |results| {
        beside(results, "file-40k", "nginx")
    }),
    goal("80 KB file, × nginx", 1.0, |results| {
        beside(results, "file-80k", "nginx")
    }),
    goal("1 MB file, × nginx", 1.0, |results| {
        beside(results, "file-1m", "nginx")
    }),
    goal("1 GB file, × nginx", 1.0, |results| {
        beside(results, "file-1g", "nginx")
    }),
    // 10,000 connections within 10 % of 500.
    goal("requests/s of 500 connections, × those of 10,000", 1.11, |results| {
        Some(results.rate("connections-500", US)? / results.rate("connections-10k", US)?)
    }),
    goal("access log, µs a request", 0.4, |results| {
        Some(results.us("access-log", "rocknet, access log")? - results.us("access-log", US)?)
    }),
    // "Independent of the number of sites" within what one core and caches of this size can tell apart.
    goal("10,000 sites, × one site", 1.05, |results| {
        Some(results.us("sites", "rocknet, 10000 sites")? / results.us("sites", "rocknet, 1 site")?)
    }),
    goal("ab, 500 at once: requests/s of Apache, × ours", 1.0, |results| {
        apache(results, "ab-500")
    }),
    goal("ab, 10 KB: requests/s of Apache, × ours", 1.0, |results| {
        apache(results, "ab-10k")
    }),
    goal("ab, 40 KB: requests/s of Apache, × ours", 1.0, |results| {
        apache(results, "ab-40k")
    }),
    goal("ab, 80 KB: requests/s of Apache, × ours", 1.0, |results| {
        apache(results, "ab-80k")
    }),
    goal("first answer, ms", 50.0, |results| results.figure("start", US, 0)),
    goal("resident after it, MiB", 8.0, |results| results.figure("start", US, 1)),
    goal("memory of an idle connection, bytes", 1024.0, |results| {
        results.figure("idle", US, 0)
    }),
    goal("system calls per request", 3.05, |results| {
        results.figure("system-calls", US, 0)
    }),
];

/// Our CPU time per request as a ratio to a peer's in the same row.
fn beside(results: &Results, row: &str, peer: &str) -> Option<f64> {
    Some(results.us(row, US)? / results.us(row, peer)?)
}

fn apache(results: &Results, row: &str) -> Option<f64> {
    Some(results.rate(row, "apache")? / results.rate(row, US)?)
}
