//! Prometheus scrapes the built server with a token, promtool checks the metrics, and the queries of the Grafana
//! dashboard must be valid.

use super::server::{TestServer, url};
use crate::command::{command, output, output_alone};
use crate::{Failure, repository};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Requests before the scrape.
const REQUESTS: u64 = 7;
/// Timeout for an event: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which events without a notification are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Series that is compared. Scrapes of the control API do not change it.
const SERIES: &str = "rocknet_route_responses_total{site=\"default\",route=\"/*\",class=\"2xx\"}";
/// Variables of the dashboard, the longest names first, and their values for a query.
const VARIABLES: [(&str, &str); 4] = [
    ("$__rate_interval", "1m"),
    ("$instance", ".*"),
    ("$site", ".*"),
    ("$job", ".*"),
];

pub fn run(program: &Path) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let folder = home.path();
    fs::create_dir(folder.join("www"))?;
    fs::write(folder.join("www/index.html"), "hello")?;
    fs::write(
        folder.join("rocknet.toml"),
        "[server]\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[log]\nerrors = \"./error.log\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
    )?;
    let server = TestServer::start(program, &["run"], folder)?;
    for _ in 0..REQUESTS {
        output(command("curl").args(["-sSf", "--max-time", "20"]).arg(server.url("/")))?;
    }
    let api = wait("the address of the control API", || {
        let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        let line = log.lines().find(|line| line.contains("control API listens at"));
        Ok(line
            .and_then(url)
            .map(|url| url.trim_end_matches([',', '/']).to_owned()))
    })?;
    let token = folder.join("state/admin/read-token");
    check_format(&api, &token)?;

    let host = api.trim_start_matches("http://");
    let scrape = format!(
        "scrape_configs:\n- job_name: rocknet\n  scrape_interval: 1s\n  authorization:\n    credentials_file: {}\n  \
         static_configs:\n  - targets: ['{host}']\n",
        token.display()
    );
    let configuration = folder.join("prometheus.yml");
    fs::write(&configuration, scrape)?;
    output(command("promtool").args(["check", "config"]).arg(&configuration))?;
    let prometheus = Prometheus::start(folder)?;
    wait("a successful scrape", || {
        let targets = prometheus.get("targets", "state", "active")?;
        let target = &targets["activeTargets"][0];
        match target["health"].as_str() {
            Some("down") => Err(format!("the target is down: {}", target["lastError"]).into()),
            health => Ok((health == Some("up")).then_some(())),
        }
    })?;
    let shown = sample(&metrics(&api, &token, "application/openmetrics-text")?, SERIES)?;
    if shown != REQUESTS as f64 {
        return Err(format!("{SERIES} is {shown} after {REQUESTS} requests").into());
    }
    let found = wait("the series in a query", || prometheus.query(SERIES))?;
    let queried = found[0]["value"][1].as_str().and_then(|value| value.parse().ok());
    if queried != Some(shown) {
        return Err(format!("a query returns {found}, and /metrics shows {shown}").into());
    }
    let queries = queries_of_dashboard()?;
    for query in &queries {
        prometheus.query(query).map_err(|wrong| format!("{query}: {wrong}"))?;
    }
    println!(
        "the target is up, {SERIES} is {shown}, and {} queries of the dashboard are valid",
        queries.len()
    );
    Ok(())
}

/// Checks the metrics with promtool, which reads only the older text format.
fn check_format(api: &str, token: &Path) -> Result<(), Failure> {
    let text = metrics(api, token, "text/plain")?;
    let mut promtool = command("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = promtool.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let checked = promtool.wait_with_output()?;
    if !checked.status.success() {
        let complaints = String::from_utf8_lossy(&checked.stderr).into_owned();
        return Err(format!("promtool check metrics: {complaints}").into());
    }
    Ok(())
}

/// Returns the metrics in the format that `accept` requests.
fn metrics(api: &str, token: &Path, accept: &str) -> Result<String, Failure> {
    let token = fs::read_to_string(token)?;
    let mut curl = command("curl");
    curl.args(["-sSf", "--max-time", "20", "-H"])
        .arg(format!("Authorization: Bearer {}", token.trim()))
        .args(["-H", &format!("Accept: {accept}"), &format!("{api}/metrics")]);
    output_alone(&mut curl)
}

/// Returns the value of a series in the text of the metrics.
fn sample(text: &str, series: &str) -> Result<f64, Failure> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.ok_or_else(|| format!("{series} is missing in {text}").into())
}

/// Returns the queries of the panels, with values for the variables.
fn queries_of_dashboard() -> Result<Vec<String>, Failure> {
    let text = fs::read_to_string(repository::root().join("packaging/grafana/rocknet.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.filter_map(|target| target["expr"].as_str());
    let filled = |query: &str| {
        let mut query = query.to_owned();
        for (name, value) in VARIABLES {
            query = query.replace(name, value);
        }
        query
    };
    Ok(queries.map(filled).collect())
}

/// Calls `found` until it returns a value.
fn wait<T>(what: &str, mut found: impl FnMut() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = found()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(format!("waited in vain for {what}").into());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// A running Prometheus, killed when dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts Prometheus with `prometheus.yml` in `folder`, on a port chosen by the kernel, which its log contains.
    fn start(folder: &Path) -> Result<Prometheus, Failure> {
        let mut child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let (line, lines) = channel();
        if let Some(log) = child.stderr.take() {
            thread::spawn(move || {
                // The log is read to the end, because a full pipe would block Prometheus.
                for read in BufReader::new(log).lines().map_while(Result::ok) {
                    let _ = line.send(read);
                }
            });
        }
        let mut prometheus = Prometheus {
            child,
            address: String::new(),
        };
        let deadline = Instant::now() + TIMEOUT;
        while prometheus.address.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines.recv_timeout(left).map_err(|_| "Prometheus logged no address")?;
            let address = line
                .contains("Listening on")
                .then(|| line.split("address=").nth(1))
                .flatten();
            prometheus.address = address.unwrap_or_default().trim().to_owned();
        }
        Ok(prometheus)
    }

    /// Returns the result of a query; `None` if it has no series.
    fn query(&self, query: &str) -> Result<Option<Value>, Failure> {
        let result = self.get("query", "query", query)?["result"].take();
        let is_empty = result.as_array().is_some_and(Vec::is_empty);
        Ok((!is_empty).then_some(result))
    }

    /// Returns the data of a reply of the API.
    fn get(&self, kind: &str, name: &str, value: &str) -> Result<Value, Failure> {
        let mut curl = command("curl");
        curl.args(["-sS", "--max-time", "20", "-G", "--data-urlencode"])
            .arg(format!("{name}={value}"))
            .arg(format!("http://{}/api/v1/{kind}", self.address));
        let mut reply: Value = serde_json::from_str(&output_alone(&mut curl)?)?;
        if reply["status"] != "success" {
            return Err(reply["error"].to_string().into());
        }
        Ok(reply["data"].take())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
