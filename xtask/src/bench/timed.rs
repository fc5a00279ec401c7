//! Measures a row under load: all its servers run at the same time, each is loaded in turn in every round, and the
//! medians of the rounds are reported.

use super::content;
use super::cores::SERVER_CORE;
use super::lane::Lane;
use super::load::{Count, Target};
use super::measure::{Memory, Meter, holds, memory_kib, softirq_thread};
use super::programs::Deployment;
use super::row::{Page, Timed};
use super::run::Run;
use super::server::{ServerProcess, free_port};
use super::upstreams::Upstreams;
use crate::Failure;
use serde::Serialize;
use std::path::PathBuf;

/// Result of a row for one lane.
#[derive(Clone, Serialize)]
pub struct Measured {
    pub name: String,
    /// Reason for missing figures.
    pub absent: Option<String>,
    /// Median CPU time per request (or per MiB, in a row that counts bytes), in microseconds.
    pub us: f64,
    /// Ratio to the row's first server in the same round: median, minimum and maximum.
    pub ratio: f64,
    pub ratio_min: f64,
    pub ratio_max: f64,
    /// Median requests (or MiB) per second.
    pub rate: f64,
    /// Median CPU time of the server per second of load: 1 if the server kept its core busy.
    pub busy: f64,
    /// Median 99th percentile of the latency in milliseconds; `None` if the load generator reports none.
    pub p99_ms: Option<f64>,
    pub failures: u64,
    /// Reason why a round was repeated, if it was.
    pub retried: Option<String>,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

/// A lane whose server is running.
struct Contender {
    lane: Lane,
    port: u16,
    scratch: PathBuf,
    server: ServerProcess,
    _upstreams: Upstreams,
    samples: Vec<Sample>,
    retried: Option<String>,
    /// Reason why the lane is no longer measured.
    failure: Option<String>,
}

/// Figures of one server in one round.
struct Sample {
    us: f64,
    rate: f64,
    busy: f64,
    p99_ms: Option<f64>,
    failures: u64,
}

pub fn run(run: &Run, work: &Timed, lanes: &[Lane]) -> Result<Vec<Measured>, Failure> {
    let mut absent = Vec::new();
    let mut contenders = Vec::new();
    for lane in lanes {
        let started = if work.load.connections() > lane.server.connections {
            Err(format!(
                "the server's configuration permits {} connections",
                lane.server.connections
            )
            .into())
        } else {
            start(run, work, *lane)
        };
        match started {
            Ok(contender) => contenders.push(contender),
            Err(reason) => absent.push(Measured::absent(lane.name, reason.to_string())),
        }
    }
    let softirq = softirq_thread(SERVER_CORE);
    for round in 0..=run.rounds {
        for contender in &mut contenders {
            if contender.failure.is_some() {
                continue;
            }
            let sample = match measure_or_retry(run, work, contender, softirq) {
                Ok(sample) => sample,
                // If a server breaks under this load, its line shows the reason, and the other servers are still
                // measured. A broken floor fails the row, because the ratios need it.
                Err(reason) if !contender.lane.server.is_floor() => {
                    eprintln!("{} in round {round}: {reason}", contender.lane.name);
                    contender.failure = Some(reason.to_string());
                    continue;
                }
                Err(reason) => return Err(format!("{} in round {round}: {reason}", contender.lane.name).into()),
            };
            // The first round is a warm-up: it fills caches, and servers grow their pools.
            if round > 0 {
                contender.samples.push(sample);
            }
        }
    }
    let first: Vec<f64> = contenders
        .iter()
        .find(|contender| contender.failure.is_none())
        .map_or(Vec::new(), |first| first.samples.iter().map(|s| s.us).collect());
    let figures = |contender: &Contender| match &contender.failure {
        Some(reason) => Measured::absent(contender.lane.name, reason.clone()),
        None => contender.figures(&first),
    };
    let measured: Vec<Measured> = contenders.iter().map(figures).chain(absent).collect();
    for lane in &measured {
        lane.print(work.load.counts_bytes());
    }
    Ok(measured)
}

fn start(run: &Run, work: &Timed, lane: Lane) -> Result<Contender, Failure> {
    let scratch = run.site.scratch(lane.name)?;
    run.site.file(work.page)?;
    let upstreams = Upstreams::start(&run.site, lane.variant, work.page)?;
    let port = free_port()?;
    let setting = Deployment {
        port,
        site: &run.site,
        scratch: &scratch,
        page: work.page,
        variant: lane.variant,
        scheme: lane.scheme,
        version: lane.version,
        upstreams: &upstreams.ports,
    };
    let launch = lane.server.configure(&setting)?;
    let mut server = ServerProcess::start(&lane, &launch, &[], &scratch)?;
    let path = format!("/{}", content::name(work.page));
    let response = server.first_response(&lane, port, &path, &scratch)?;
    // A server must not get good figures for wrong responses. Floors are exempt, because they send the same response to
    // every request.
    let length = content::length(work.page);
    let right =
        content::statuses(work.page).contains(&response.status) && (length.is_none() || response.length == length);
    if !right && !lane.server.is_floor() {
        return Err(format!(
            "responded with status {} and length {:?}",
            response.status, response.length
        )
        .into());
    }
    if let Some(kind) = lane.holds.filter(|kind| !holds(server.pid(), kind)) {
        return Err(format!("has no descriptor {kind} open").into());
    }
    Ok(Contender {
        lane,
        port,
        scratch,
        server,
        _upstreams: upstreams,
        samples: Vec::new(),
        retried: None,
        failure: None,
    })
}

/// Measures a round, and repeats it if the load generator fails by chance. The reason is stored with the figures.
fn measure_or_retry(
    run: &Run,
    work: &Timed,
    contender: &mut Contender,
    softirq: Option<u32>,
) -> Result<Sample, Failure> {
    let mut outcome = measure(run, work, contender, softirq);
    for _ in 0..work.load.retries() {
        let Err(reason) = &outcome else { break };
        eprintln!("{}: a round is repeated: {reason}", contender.lane.name);
        contender.retried = Some(reason.to_string());
        outcome = measure(run, work, contender, softirq);
    }
    outcome
}

fn measure(run: &Run, work: &Timed, contender: &Contender, softirq: Option<u32>) -> Result<Sample, Failure> {
    let scheme = contender.lane.scheme.name();
    let url = format!("{scheme}://127.0.0.1:{}/{}", contender.port, content::name(work.page));
    let host = contender.lane.variant.host();
    let pid = contender.server.pid();
    let mut meter = Meter::new(pid, softirq);
    let content = match work.page {
        Page::Post(_) => Some(run.site.file(work.page)?),
        _ => None,
    };
    let target = Target {
        url: &url,
        host: host.as_deref(),
        content: content.as_deref(),
        length: content::length(work.page),
    };
    let count = work
        .load
        .run_metered(&target, &contender.scratch, run.quick, &mut meter)?;
    let done = if work.load.counts_bytes() {
        count.mebibytes
    } else {
        count.requests
    };
    if done == 0.0 {
        return Err("no request succeeded".into());
    }
    Ok(Sample {
        us: meter.spent_ns as f64 / 1e3 / done,
        rate: done / count.seconds.max(f64::EPSILON),
        busy: meter.spent_ns as f64 / 1e9 / meter.seconds,
        p99_ms: count.p99_ms,
        failures: failures(&count, work.page == Page::Missing && !contender.lane.server.is_floor()),
    })
}

/// Counts failures: broken connections, and every response with a wrong status.
fn failures(count: &Count, refusal_is_right: bool) -> u64 {
    let wrong = if refusal_is_right {
        (count.requests as u64).abs_diff(count.refused)
    } else {
        count.refused
    };
    count.failures + wrong
}

impl Contender {
    fn figures(&self, first: &[f64]) -> Measured {
        let all = |value: fn(&Sample) -> f64| self.samples.iter().map(value).collect::<Vec<f64>>();
        let ratios: Vec<f64> = self
            .samples
            .iter()
            .zip(first)
            .map(|(sample, first)| sample.us / first)
            .collect();
        let p99s: Vec<f64> = self.samples.iter().filter_map(|sample| sample.p99_ms).collect();
        Measured {
            name: self.lane.name.into(),
            absent: None,
            us: median(&all(|sample| sample.us)),
            ratio: median(&ratios),
            ratio_min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratio_max: ratios.iter().copied().fold(0.0, f64::max),
            rate: median(&all(|sample| sample.rate)),
            busy: median(&all(|sample| sample.busy)),
            p99_ms: (!p99s.is_empty()).then(|| median(&p99s)),
            failures: self.samples.iter().map(|sample| sample.failures).sum(),
            retried: self.retried.clone(),
            peak_kib: memory_kib(self.server.pid(), Memory::Peak),
        }
    }
}

impl Measured {
    pub fn absent(name: &str, reason: String) -> Self {
        let nothing = f64::NAN;
        Self {
            name: name.into(),
            absent: Some(reason),
            us: nothing,
            ratio: nothing,
            ratio_min: nothing,
            ratio_max: nothing,
            rate: nothing,
            busy: nothing,
            p99_ms: None,
            failures: 0,
            retried: None,
            peak_kib: 0,
        }
    }

    fn print(&self, bytes: bool) {
        let (name, unit) = (&self.name, if bytes { "MiB" } else { "req" });
        if let Some(reason) = &self.absent {
            println!("{name:24} absent: {reason}");
            return;
        }
        let p99 = self.p99_ms.map_or(String::new(), |p99| format!("{p99:.2} ms"));
        println!(
            "{name:24} {:9.3} µs/{unit}  ×{:<7.3} ({:.3}–{:.3}) {:10.0} {unit}/s  busy {:3.0} %  p99 {p99:10} {:6} failed  {:7.1} MiB",
            self.us,
            self.ratio,
            self.ratio_min,
            self.ratio_max,
            self.rate,
            self.busy * 100.0,
            self.failures,
            self.peak_kib as f64 / 1024.0
        );
    }
}

/// Returns the middle value, or the mean of the two in the middle; NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        for (values, expected) in [
            (vec![3.0], 3.0),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![4.0, 1.0, 2.0, 9.0], 3.0),
        ] {
            assert_eq!(median(&values), expected, "{values:?}");
        }
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn responses_with_a_wrong_status_are_failures() {
        let count = |requests, refused| Count {
            requests,
            refused,
            failures: 1,
            ..Count::default()
        };
        assert_eq!(failures(&count(10.0, 0), false), 1);
        assert_eq!(failures(&count(10.0, 4), false), 5);
        assert_eq!(failures(&count(10.0, 10), true), 1);
        assert_eq!(failures(&count(10.0, 3), true), 8);
    }
}
