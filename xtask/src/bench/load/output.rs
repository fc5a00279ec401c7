//! Parsers for the output of load generators.

use crate::Failure;
use crate::bench::count::Count;
use serde::Deserialize;
use std::collections::HashMap;

pub fn wrk(text: &str) -> Result<Count, Failure> {
    let mut count = Count::default();
    let mut found = false;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [number, "requests", "in", time, read, "read"] = words[..] {
            found = true;
            count.requests = number.parse()?;
            count.seconds = milliseconds(time.trim_end_matches(',')).ok_or("wrk: no time")? / 1e3;
            count.mebibytes = mebibytes(read).ok_or("wrk: no size")?;
        } else if let ["99%", time] = words[..] {
            // wrk prints zero if no response was complete.
            count.p99_ms = milliseconds(time).filter(|time| *time > 0.0);
        } else if line.starts_with("Socket errors:") {
            let numbers = line
                .split(|letter: char| !letter.is_ascii_digit())
                .filter_map(|word| word.parse::<u64>().ok());
            count.failures += numbers.sum::<u64>();
        } else if let Some(number) = line.strip_prefix("Non-2xx or 3xx responses:") {
            count.refused = number.trim().parse()?;
        }
    }
    if found {
        Ok(count)
    } else {
        Err("counted nothing".into())
    }
}

pub fn ab(text: &str) -> Result<Count, Failure> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let requests = field("Complete requests:").ok_or("counted nothing")?;
    Ok(Count {
        requests,
        mebibytes: field("Total transferred:").unwrap_or(0.0) / f64::from(1 << 20),
        seconds: field("Time taken for tests:").unwrap_or(0.0),
        failures: field("Failed requests:").unwrap_or(0.0) as u64,
        refused: field("Non-2xx responses:").unwrap_or(0.0) as u64,
        p99_ms: field("99%"),
    })
}

pub fn h2load(text: &str) -> Result<Count, Failure> {
    let line = |start: &str| text.lines().find_map(|line| line.trim().strip_prefix(start));
    // A server without HTTP/2 would be loaded with HTTP/1.1 and be counted as an HTTP/2 server.
    if let Some(protocol) = line("Application protocol:")
        && !protocol.trim().starts_with("h2")
    {
        return Err(format!("used {} instead of HTTP/2", protocol.trim()).into());
    }
    // `1 total, 2 started, …`: each number precedes its word.
    let number = |line: Option<&str>, word: &str| {
        let part = line?.split(", ").find(|part| part.trim().ends_with(word))?;
        part.split_whitespace().next()?.parse::<f64>().ok()
    };
    let requests = line("requests:");
    let codes = line("status codes:");
    let traffic = line("traffic:").and_then(|line| line.split_once('(')?.1.split(')').next()?.parse::<f64>().ok());
    let seconds = line("finished in").and_then(|line| milliseconds(line.split(',').next()?.trim()));
    let responses = ["2xx", "3xx", "4xx", "5xx"].map(|kind| number(codes, kind).unwrap_or(0.0));
    Ok(Count {
        requests: responses.iter().sum(),
        mebibytes: traffic.unwrap_or(0.0) / f64::from(1 << 20),
        seconds: seconds.ok_or("counted nothing")? / 1e3,
        failures: ["failed", "timeout"]
            .map(|kind| number(requests, kind).unwrap_or(0.0) as u64)
            .iter()
            .sum(),
        refused: (responses[2] + responses[3]) as u64,
        p99_ms: None,
    })
}

/// Parses the JSON of oha.
pub fn oha(text: &str) -> Result<Count, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Report {
        summary: Summary,
        latency_percentiles: HashMap<String, Option<f64>>,
        status_code_distribution: HashMap<String, u64>,
        error_distribution: HashMap<String, u64>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Summary {
        /// Duration in seconds.
        total: f64,
        /// Bytes received.
        total_data: u64,
    }
    /// Error of requests that were in progress at the end of the load.
    const AT_THE_END: &str = "aborted due to deadline";
    let report: Report = serde_json::from_str(text).map_err(|_| "counted nothing")?;
    let responses: u64 = report.status_code_distribution.values().sum();
    let successful = |(status, _): &(&String, &u64)| status.starts_with('2');
    let successes: u64 = report
        .status_code_distribution
        .iter()
        .filter(successful)
        .map(|(_, count)| count)
        .sum();
    let errors = report
        .error_distribution
        .iter()
        .filter(|(error, _)| *error != AT_THE_END);
    Ok(Count {
        requests: responses as f64,
        mebibytes: report.summary.total_data as f64 / f64::from(1 << 20),
        seconds: report.summary.total,
        failures: errors.map(|(_, count)| count).sum(),
        refused: responses - successes,
        p99_ms: report
            .latency_percentiles
            .get("p99")
            .copied()
            .flatten()
            .map(|seconds| seconds * 1e3),
    })
}

/// Parses the output of OpenSSL's s_time: a letter per connection (`r` for a resumed session), then the number of
/// connections.
pub fn s_time(text: &str) -> Result<Count, Failure> {
    let (_, letters_on) = text
        .split_once("starting")
        .ok_or("no first session in s_time's output")?;
    let letters = letters_on.trim_start().lines().next().unwrap_or_default();
    let summary = letters_on.lines().find(|line| line.contains(" real seconds, "));
    let words: Vec<&str> = summary.ok_or("counted nothing")?.split_whitespace().collect();
    let [number, "connections", "in", _, "real", "seconds,", bytes, ..] = words[..] else {
        return Err("counted nothing".into());
    };
    let requests: f64 = number.parse()?;
    let bytes: f64 = bytes.parse()?;
    Ok(Count {
        requests,
        mebibytes: requests * bytes / f64::from(1 << 20),
        // A full handshake instead of a resumed one counts as a failure.
        failures: letters.chars().filter(|letter| *letter != 'r').count() as u64,
        ..Count::default()
    })
}

/// Parses wrk's times: `870.00us`, `1.20ms`, `3.00s`, `1.50m`.
fn milliseconds(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    let factor = match &text[split..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        _ => return None,
    };
    Some(number * factor)
}

/// Parses wrk's sizes in steps of 1024: `512.00B`, `1.50KB`, `35.20MB`, `9.81GB`.
fn mebibytes(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    let step = 1024.0;
    let factor = match &text[split..] {
        "B" => 1.0 / step / step,
        "KB" => 1.0 / step,
        "MB" => 1.0,
        "GB" => step,
        "TB" => step * step,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oha_counts_responses_by_their_status() {
        let text = r#"{"summary": {"successRate": 1.0, "total": 31.5, "totalData": 2097152, "requestsPerSec": 1.0},
            "latencyPercentiles": {"p50": 0.001, "p99": 0.0025, "p99.99": null},
            "statusCodeDistribution": {"200": 90, "204": 8, "503": 2},
            "errorDistribution": {"aborted due to deadline": 16, "timed out": 3}}"#;
        let expected = Count {
            requests: 100.0,
            mebibytes: 2.0,
            seconds: 31.5,
            failures: 3,
            refused: 2,
            p99_ms: Some(2.5),
        };
        assert_eq!(oha(text).expect("figures"), expected);
        assert!(oha("error: no server").is_err());
    }

    const WRK: &str = "\
Running 3s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   409.60us  120.00us   3.50ms   90.12%
    Req/Sec   150.20k     5.10k  160.00k    80.00%
  Latency Distribution
     50%  400.00us
     99%    1.25ms
  448000 requests in 3.00s, 1.50GB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 7
Requests/sec: 149333.33
Transfer/sec:    512.00MB
";
    const AB: &str = "\
Concurrency Level:      10
Time taken for tests:   4.000 seconds
Complete requests:      100000
Failed requests:        2
   (Connect: 0, Receive: 1, Length: 0, Exceptions: 1)
Non-2xx responses:      5
Total transferred:      2097152 bytes
Requests per second:    25000.00 [#/sec] (mean)
  50%      1
  99%      3
 100%      9 (longest request)
";

    #[test]
    fn s_time_output_is_parsed() {
        let text = "\n\nNow timing with session id reuse.\nstarting\nrr*r\n\n4 connections in 0.32s; 12.5 connections/user sec, bytes read 1048576\n4 connections in 2 real seconds, 262144 bytes read per connection\n";
        let expected = Count {
            requests: 4.0,
            mebibytes: 1.0,
            failures: 1,
            ..Count::default()
        };
        assert_eq!(s_time(text).unwrap(), expected);
        for broken in ["", "ERROR\nUnable to get connection\n", "starting\nrr\n"] {
            assert!(s_time(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn wrk_output_is_parsed() {
        let expected = Count {
            requests: 448_000.0,
            mebibytes: 1536.0,
            seconds: 3.0,
            failures: 10,
            refused: 7,
            p99_ms: Some(1.25),
        };
        assert_eq!(wrk(WRK).unwrap(), expected);
        assert!(wrk("unable to connect").is_err());
    }

    #[test]
    fn ab_output_is_parsed() {
        let expected = Count {
            requests: 100_000.0,
            mebibytes: 2.0,
            seconds: 4.0,
            failures: 2,
            refused: 5,
            p99_ms: Some(3.0),
        };
        assert_eq!(ab(AB).unwrap(), expected);
        assert!(ab("apr_socket_connect(): Connection refused").is_err());
    }

    #[test]
    fn h2load_output_is_parsed() {
        const H2LOAD: &str = "\
Application protocol: h2
finished in 3.01s, 100500.33 req/s, 15.36MB/s
requests: 301532 total, 302044 started, 301532 done, 301501 succeeded, 31 failed, 0 errored, 2 timeout
status codes: 301001 2xx, 500 3xx, 31 4xx, 0 5xx
traffic: 46.07MB (48310832) total, 3.46MB (3631896) headers (space savings 90.30%), 3.74MB (3919916) data
                     min         max         mean         sd        +/- sd
time for request:      100us      9.31ms      1.22ms       452us    76.99%
";
        let expected = Count {
            requests: 301_532.0,
            mebibytes: 48_310_832.0 / 1_048_576.0,
            seconds: 3.01,
            failures: 33,
            refused: 31,
            p99_ms: None,
        };
        assert_eq!(h2load(H2LOAD).unwrap(), expected);
        assert!(h2load("connection refused").is_err());
        assert!(h2load(&H2LOAD.replace("protocol: h2", "protocol: http/1.1")).is_err());
    }

    #[test]
    fn times_and_sizes_are_converted_by_their_units() {
        for (text, expected) in [
            ("870.00us", 0.87),
            ("1.20ms", 1.2),
            ("3.00s", 3000.0),
            ("1.50m", 90_000.0),
        ] {
            assert!((milliseconds(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        for (text, expected) in [("1024.00KB", 1.0), ("2.00MB", 2.0), ("1.00GB", 1024.0)] {
            assert!((mebibytes(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        assert_eq!((milliseconds("fast"), mebibytes("9.0QB")), (None, None));
    }
}
