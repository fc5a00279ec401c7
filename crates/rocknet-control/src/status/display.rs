//! The state as text for a terminal.

use std::fmt;

use super::{IntervalLoad, LimitedRequests, MAX_SHOWN, Protocols, ResponseCache, Responses, SiteDurations, Status};
use crate::text;

/// Writes a line with a name and a value for each property. A property with several values has a line for each value,
/// with the name in the first line. Each line ends with a newline.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { cache, responses, .. } = self;
        let mut row = |name: &str, value: String| writeln!(f, "{name:NAME_WIDTH$}{value}");
        let version = text::sanitized(&self.version, MAX_SHOWN);
        row(
            "RockNet",
            format!("{version}, {} mode, process {}", self.mode.name(), self.pid),
        )?;
        row("up for", text::duration(self.uptime_s))?;
        if self.memory_bytes > 0 {
            let cpu = text::short_duration(self.cpu_ms.saturating_mul(1000));
            row(
                "resources",
                format!("{} of memory, {cpu} of CPU time", text::bytes(self.memory_bytes)),
            )?;
        }
        let mut workers = format!(
            "{} {}",
            self.workers,
            if self.workers == 1 { "thread" } else { "threads" }
        );
        if self.worker_restarts > 0 {
            workers += &format!(", restarts after failures: {}", text::count(self.worker_restarts));
        }
        row("workers", workers)?;
        for (index, listener) in self.listeners.iter().enumerate() {
            row(
                if index == 0 { "listening" } else { "" },
                text::sanitized(listener, MAX_SHOWN),
            )?;
        }
        let (open, total) = (text::count(self.connections_open), text::count(self.connections_total));
        row("connections", format!("{open} open, {total} in all"))?;
        let Protocols { http1, http2, http3 } = self.protocols;
        let versions = [("HTTP/1", http1), ("HTTP/2", http2), ("HTTP/3", http3)];
        let used = versions.iter().filter(|(_, connections)| connections.total > 0);
        for (index, (name, connections)) in used.enumerate() {
            let (open, total) = (text::count(connections.open), text::count(connections.total));
            row(
                if index == 0 { "versions" } else { "" },
                format!("{name}: {open} open, {total} in all"),
            )?;
        }
        if !self.http3_ports.is_empty() {
            let ports: Vec<_> = self.http3_ports.iter().take(PORTS_SHOWN).map(u16::to_string).collect();
            let more = if self.http3_ports.len() > PORTS_SHOWN {
                ", …"
            } else {
                ""
            };
            // Includes connections during their handshake and without a request, unlike the row of the version HTTP/3.
            let open = text::count(self.http3_open);
            row("HTTP/3", format!("{open} open, UDP {}{more}", ports.join(", ")))?;
        }
        if self.bans > 0 {
            row("banned", format!("{} clients and networks", text::count(self.bans)))?;
        }
        if self.tunnels_open > 0 {
            row("tunnels", format!("{} open", text::count(self.tunnels_open)))?;
        }
        row("requests", text::count(self.requests))?;
        for (index, load) in self.load.iter().enumerate() {
            row(if index == 0 { "load" } else { "" }, load.to_string())?;
        }
        let Responses {
            successful,
            redirection,
            client_error,
            server_error,
        } = responses;
        let classes = [
            ("2xx", successful),
            ("3xx", redirection),
            ("4xx", client_error),
            ("5xx", server_error),
        ];
        row(
            "responses",
            classes
                .map(|(class, number)| format!("{class} {}", text::count(*number)))
                .join(", "),
        )?;
        if self.limited != LimitedRequests::default() {
            let [refused, delayed] = [self.limited.refused, self.limited.delayed].map(text::count);
            row("limits", format!("{refused} requests refused, {delayed} delayed"))?;
        }
        if self.auth_errors > 0 {
            let errors = text::count(self.auth_errors);
            let failures = format!("{errors} failures of authorization services and login providers");
            row("auth", failures)?;
        }
        row("sent", text::bytes(self.bytes_sent))?;
        for (index, durations) in self.durations.iter().take(DURATIONS_SHOWN).enumerate() {
            let SiteDurations {
                site, p50_us, p99_us, ..
            } = durations;
            let (site, p50, p99) = (
                text::sanitized(site, MAX_SHOWN),
                text::short_duration(*p50_us),
                text::short_duration(*p99_us),
            );
            row(
                if index == 0 { "durations" } else { "" },
                format!("{site}: 50 % within {p50}, 99 % within {p99}"),
            )?;
        }
        let (entries, share) = (
            text::count(cache.entries),
            text::share(cache.hits, cache.hits.saturating_add(cache.misses)),
        );
        row(
            "cache",
            format!("{entries} files, {}, {share} hits", text::bytes(cache.bytes)),
        )?;
        if self.response_cache != ResponseCache::default() {
            let [stored, requests] = stored_responses(&self.response_cache);
            row("stored", stored)?;
            row("", requests)?;
        }
        if !self.sandbox.is_empty() {
            row("sandbox", text::sanitized(&self.sandbox, MAX_SHOWN))?;
        }
        if !self.capabilities.is_empty() {
            row("rights", text::sanitized(&self.capabilities, MAX_SHOWN))?;
        }
        row("reloads", text::count(self.reloads))?;
        if self.log_drops > 0 {
            row(
                "log",
                format!(
                    "{} records lost: the disk or pipe is too slow, or full",
                    text::count(self.log_drops)
                ),
            )?;
        }
        if let Some(error) = &self.last_reload_error {
            write!(
                f,
                "the last reload changed nothing:\n{}",
                text::indented(error, ERROR_INDENT)
            )?;
        }
        Ok(())
    }
}

/// Returns a line about the stored responses, and one about the requests to routes with a response cache.
fn stored_responses(cache: &ResponseCache) -> [String; 2] {
    let mut stored = format!(
        "responses of {} URLs, {}",
        text::count(cache.addresses),
        text::bytes(cache.bytes)
    );
    if let Some(disk) = cache.disk {
        stored += &format!(
            " in memory; {} responses, {} on disk",
            text::count(disk.responses),
            text::bytes(disk.bytes)
        );
    }
    let share = text::share(cache.served(), cache.requests());
    let [hits, stale, collapsed] = [cache.hits, cache.stale, cache.collapsed].map(text::count);
    let [misses, bypassed] = [cache.misses, cache.bypassed].map(text::count);
    let requests = format!(
        "{share} hits: {hits} fresh, {stale} stale, {collapsed} shared; {misses} forwarded, {bypassed} bypassed"
    );
    [stored, requests]
}

/// Writes one line without a newline: `12.3 requests/s in the last 10 s: 50 % within 80 µs, 99 % within 1.2 ms`.
impl fmt::Display for IntervalLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.interval_ms.saturating_add(500) / 1000;
        let interval = text::duration(seconds.max(1));
        write!(f, "{:.1} requests/s in the last {interval}", self.requests_per_second)?;
        if let (Some(p50), Some(p99)) = (self.p50_us, self.p99_us) {
            let (p50, p99) = (text::short_duration(p50), text::short_duration(p99));
            write!(f, ": 50 % within {p50}, 99 % within {p99}")?;
        }
        Ok(())
    }
}

/// Maximum number of sites whose response times are shown, so that the output of `status` fits on a terminal.
const DURATIONS_SHOWN: usize = 8;

/// Width of the name column in characters: the longest name and two spaces.
const NAME_WIDTH: usize = 13;

/// Number of spaces before each line of an error.
const ERROR_INDENT: usize = 2;

/// Maximum number of UDP ports that are shown.
const PORTS_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::{Cache, Mode, ProtocolConnections, ResponseCacheDisk};
    use super::*;

    /// Returns a status with a value for most properties.
    fn sample() -> Status {
        Status {
            version: "0.1.0".into(),
            pid: 4711,
            uptime_s: 93_784,
            cpu_ms: 1_500,
            memory_bytes: 3 << 20,
            mode: Mode::Dev,
            config_file: Some("/etc/rocknet/rocknet.toml".into()),
            backend: "epoll".into(),
            sandbox: "programs are limited (seccomp)".into(),
            capabilities: "CAP_NET_BIND_SERVICE".into(),
            listeners: vec!["http://0.0.0.0:80".into(), "http://[::]:80".into()],
            sockets: Vec::new(),
            workers: 8,
            worker_restarts: 0,
            connections_open: 12,
            connections_total: 1_234,
            protocols: Protocols {
                http1: ProtocolConnections { open: 9, total: 1_200 },
                http2: ProtocolConnections::default(),
                http3: ProtocolConnections { open: 2, total: 30 },
            },
            http3_ports: vec![443, 8443],
            http3_open: 2,
            tunnels_open: 0,
            requests: 1_234_567,
            load: vec![
                IntervalLoad {
                    interval_ms: 12_300,
                    requests_per_second: 1234.56,
                    p50_us: Some(80),
                    p99_us: Some(1_234),
                    ..IntervalLoad::default()
                },
                IntervalLoad {
                    interval_ms: 60_000,
                    ..IntervalLoad::default()
                },
            ],
            bytes_sent: 5_368_709_120,
            responses: Responses {
                successful: 1_200_000,
                redirection: 30_000,
                client_error: 4_560,
                server_error: 7,
            },
            durations: vec![
                SiteDurations {
                    site: "a.test".into(),
                    responses: 1_234_000,
                    p50_us: 1,
                    p99_us: 12_287,
                },
                SiteDurations {
                    site: "b.test".into(),
                    responses: 567,
                    p50_us: 106_495,
                    p99_us: 1_572_863,
                },
            ],
            limited: LimitedRequests::default(),
            auth_errors: 0,
            bans: 0,
            duration_counts: vec![1, 2],
            cache: Cache {
                entries: 42,
                bytes: 1_572_864,
                hits: 900,
                misses: 100,
            },
            response_cache: ResponseCache {
                addresses: 1_234,
                bytes: 12 << 20,
                disk: None,
                hits: 97_000,
                ready_hits: 90_000,
                stale: 400,
                collapsed: 100,
                misses: 2_500,
                bypassed: 12,
                hit_ratio: Some(0.975),
            },
            log_drops: 0,
            reloads: 3,
            snapshots: 1,
            last_reload_error: None,
        }
    }

    #[test]
    fn a_terminal_shows_aligned_lines() {
        let expected = "\
RockNet      0.1.0, dev mode, process 4711
up for       1 d 2 h
resources    3.0 MiB of memory, 1.5 s of CPU time
workers      8 threads
listening    http://0.0.0.0:80
             http://[::]:80
connections  12 open, 1,234 in all
versions     HTTP/1: 9 open, 1,200 in all
             HTTP/3: 2 open, 30 in all
HTTP/3       2 open, UDP 443, 8443
requests     1,234,567
load         1234.6 requests/s in the last 12 s: 50 % within 80 µs, 99 % within 1.2 ms
             0.0 requests/s in the last 1 min
responses    2xx 1,200,000, 3xx 30,000, 4xx 4,560, 5xx 7
sent         5.0 GiB
durations    a.test: 50 % within 1 µs, 99 % within 12.2 ms
             b.test: 50 % within 106.4 ms, 99 % within 1.5 s
cache        42 files, 1.5 MiB, 90.0 % hits
stored       responses of 1,234 URLs, 12.0 MiB
             97.5 % hits: 97,000 fresh, 400 stale, 100 shared; 2,500 forwarded, 12 bypassed
sandbox      programs are limited (seccomp)
rights       CAP_NET_BIND_SERVICE
reloads      3
";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn problems_are_shown_only_if_there_are_any() {
        let status = Status {
            workers: 1,
            worker_restarts: 3,
            tunnels_open: 1_000,
            limited: LimitedRequests {
                refused: 2_000,
                delayed: 3,
            },
            auth_errors: 1_001,
            log_drops: 1_000,
            last_reload_error: Some("rocknet.toml:3:1: unknown key `rot`\n  \u{1b}[31mdid you mean `root`?".into()),
            ..sample()
        };
        let shown = status.to_string();
        for line in [
            "workers      1 thread, restarts after failures: 3\n",
            "tunnels      1,000 open\n",
            "limits       2,000 requests refused, 3 delayed\n",
            "auth         1,001 failures of authorization services and login providers\n",
            "log          1,000 records lost: the disk or pipe is too slow, or full\n",
            "the last reload changed nothing:\n  rocknet.toml:3:1: unknown key `rot`\n    ?[31mdid you mean `root`?\n",
        ] {
            assert!(shown.contains(line), "{line:?} in {shown}");
        }
        assert!(!shown.contains('\u{1b}'));
        let nothing = Status::default().to_string();
        assert!(nothing.contains("cache        0 files, 0 B, – hits\n"), "{nothing}");
        assert!(!nothing.contains("log") && !nothing.contains("last reload") && !nothing.contains("stored"));
        let disk = ResponseCacheDisk {
            responses: 5_678,
            bytes: 3 << 30,
            hits: 1,
        };
        let on_disk = Status {
            response_cache: ResponseCache {
                disk: Some(disk),
                ..ResponseCache::default()
            },
            ..Status::default()
        };
        let expected = "stored       responses of 0 URLs, 0 B in memory; 5,678 responses, 3.0 GiB on disk\n             – hits: 0 fresh, 0 stale, 0 shared; 0 forwarded, 0 bypassed\n";
        assert!(on_disk.to_string().contains(expected), "{on_disk}");
    }

    #[test]
    fn extreme_values_are_shown() {
        let cache = Cache {
            entries: u64::MAX,
            bytes: u64::MAX,
            hits: u64::MAX,
            misses: u64::MAX,
        };
        let shown = Status {
            cache,
            uptime_s: u64::MAX,
            bytes_sent: u64::MAX,
            ..sample()
        }
        .to_string();
        assert!(shown.contains("16.0 EiB"), "{shown}");
    }

    #[test]
    fn a_status_is_serialized() {
        let status = Status {
            last_reload_error: Some("x".into()),
            ..sample()
        };
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["mode"], "dev");
        assert_eq!(json["responses"]["4xx"], 4_560);
        assert_eq!(json["cache"]["hits"], 900);
        assert_eq!(json["response_cache"]["hit_ratio"], 0.975);
        assert_eq!(json["response_cache"]["disk"], serde_json::Value::Null);
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
        // A status from a server of another version has missing and unknown fields.
        let other: Status = serde_json::from_str(r#"{"pid": 7, "responses": {"2xx": 1}, "moons": 2}"#).unwrap();
        let expected = Status {
            pid: 7,
            responses: Responses {
                successful: 1,
                ..Responses::default()
            },
            ..Status::default()
        };
        assert_eq!(other, expected);
    }
}
