//! Draws the load of a server on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use rocknet_control::ban::OffenderSummary;
use rocknet_control::status::{ProtocolConnections, Protocols};
use rocknet_control::{Status, UpstreamSummary, text};

use super::sample::{Latency, Sample, SampleHistory};

/// Maximum number of characters of a name.
const MAX_NAME: usize = 40;
/// Height of a chart with its border, in terminal rows.
const CHART_ROWS: u16 = 5;

/// Draws one update.
pub fn draw(frame: &mut Frame<'_>, status: &Status, history: &SampleHistory, upstreams: &[UpstreamSummary]) {
    let Some(sample) = history.last() else { return };
    // The border and the heading of a table take 3 rows. The maximum heights leave space for the table of routes.
    let upstream_rows = match upstreams.len() {
        0 => 0,
        count => u16::try_from(count).unwrap_or(u16::MAX).saturating_add(3).min(10),
    };
    let site_rows = u16::try_from(sample.sites.len())
        .unwrap_or(u16::MAX)
        .saturating_add(3)
        .min(10);
    let client_rows = match sample.worst_clients.len() {
        0 => 0,
        count => u16::try_from(count).unwrap_or(u16::MAX).saturating_add(3).min(8),
    };
    let summary = summary(status, sample);
    let [head, charts, sites, routes, clients, upstream_area, foot] = Layout::vertical([
        Constraint::Length(u16::try_from(summary.len()).unwrap_or(u16::MAX)),
        Constraint::Length(CHART_ROWS),
        Constraint::Length(site_rows),
        // The table of routes gets the rows that are left.
        Constraint::Min(4),
        Constraint::Length(client_rows),
        Constraint::Length(upstream_rows),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(summary), head);
    draw_charts(frame, charts, history, sample);
    frame.render_widget(site_table(sample), sites);
    frame.render_widget(route_table(sample), routes);
    frame.render_widget(client_table(&sample.worst_clients), clients);
    frame.render_widget(upstream_table(upstreams), upstream_area);
    frame.render_widget(Paragraph::new("q: end").dim(), foot);
}

fn summary<'t>(status: &Status, sample: &Sample) -> Vec<Line<'t>> {
    let version = text::sanitized(&status.version, MAX_NAME);
    let refused = match sample.refused_per_second {
        0.0 => String::new(),
        refused => format!("; {refused:.1} requests/s refused by limits"),
    };
    let mut lines = vec![
        Line::from(format!(
            "RockNet {version}, process {}, up for {}",
            status.pid,
            text::duration(status.uptime_s)
        ))
        .bold(),
        Line::from(format!(
            "{} requests in all, {} per second sent, {:.1} server errors per second",
            text::count(status.requests),
            text::bytes(sample.bytes_per_second as u64),
            sample.server_errors_per_second
        )),
        Line::from(format!(
            "{} connections: {}{refused}",
            text::count(sample.connections_open),
            versions(sample)
        )),
    ];
    let cache = &status.response_cache;
    if cache.requests() > 0 {
        let hits = sample
            .cache_hit_ratio
            .map_or("–".to_owned(), |ratio| format!("{:.1} %", 100.0 * ratio));
        lines.push(Line::from(format!(
            "response cache: {hits} of {:.0} requests/s, {} in memory",
            sample.cached_requests_per_second,
            text::bytes(cache.bytes)
        )));
    }
    lines
}

/// Returns the open connections by version of HTTP.
fn versions(sample: &Sample) -> String {
    let Protocols { http1, http2, http3 } = sample.protocols;
    let open = |connections: ProtocolConnections| text::count(connections.open);
    format!("HTTP/1 {}, HTTP/2 {}, HTTP/3 {}", open(http1), open(http2), open(http3))
}

/// Returns the median and the 99th percentile as text; dashes for an interval without a response.
fn percentiles(latency: Latency) -> [String; 2] {
    [latency.p50_us, latency.p99_us].map(|time| time.map_or("–".to_owned(), text::short_duration))
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, history: &SampleHistory, sample: &Sample) {
    let quarters = Layout::horizontal([Constraint::Fill(1); 4]).areas::<4>(area);
    let memory = text::bytes(sample.memory_bytes);
    let [p50, p99] = percentiles(sample.latency);
    let titles = [
        format!("{:.0} requests/s", sample.requests_per_second),
        format!("{p50}, 99 % {p99}"),
        format!("CPU {:.0} %", sample.cpu_percent),
        format!("memory {memory}"),
    ];
    let values: [fn(&Sample) -> f64; 4] = [
        |sample| sample.requests_per_second,
        |sample| sample.latency.p99_us.unwrap_or(0) as f64,
        |sample| sample.cpu_percent,
        |sample| sample.memory_bytes as f64,
    ];
    for ((area, title), value) in quarters.into_iter().zip(titles).zip(values) {
        // The border takes 2 columns.
        let columns = usize::from(area.width.saturating_sub(2));
        let chart = Sparkline::default()
            .block(Block::bordered().title(title))
            .data(history.values(columns, value))
            .style(Style::new().cyan());
        frame.render_widget(chart, area);
    }
}

fn site_table<'t>(sample: &Sample) -> Table<'t> {
    let rows = sample.sites.iter().map(|site| {
        let [p50, p99] = percentiles(site.latency);
        let name = text::sanitized(&site.site, MAX_NAME);
        Row::new([name, format!("{:.0}", site.responses_per_second), p50, p99])
    });
    load_table(rows.collect(), "site", "busiest sites")
}

fn route_table<'t>(sample: &Sample) -> Table<'t> {
    let rows = sample.routes.iter().map(|route| {
        let [p50, p99] = percentiles(route.latency);
        let name = format!(
            "{} {}",
            text::sanitized(&route.site, MAX_NAME),
            text::sanitized(&route.route, MAX_NAME)
        );
        Row::new([name, format!("{:.0}", route.responses_per_second), p50, p99])
    });
    load_table(rows.collect(), "route", "busiest routes")
}

/// Returns a table of names with responses per second and response times.
fn load_table<'t>(rows: Vec<Row<'t>>, name: &'static str, title: &'static str) -> Table<'t> {
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(10),
    ];
    let head = Row::new([name, "responses/s", "median", "99 %"]).bold();
    Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title(title))
}

/// Returns a table of the clients with the most offences.
fn client_table<'t>(clients: &[OffenderSummary]) -> Table<'t> {
    let rows = clients.iter().map(|client| {
        let counts = [client.refused, client.not_found, client.logins, client.handshakes].map(text::count);
        let state = if client.is_banned { "banned" } else { "" };
        let address = text::sanitized(&client.address, MAX_NAME);
        Row::new([vec![address], counts.to_vec(), vec![state.to_owned()]].concat())
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(14),
        Constraint::Length(18),
        Constraint::Length(7),
    ];
    let head = Row::new([
        "client",
        "refused",
        "not found",
        "failed logins",
        "failed handshakes",
        "",
    ])
    .bold();
    Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title("worst clients"))
}

fn upstream_table<'t>(upstreams: &[UpstreamSummary]) -> Table<'t> {
    let rows = upstreams.iter().map(|upstream| {
        Row::new([
            text::sanitized(&upstream.address, MAX_NAME),
            upstream.state.name().to_owned(),
            text::count(upstream.in_flight),
        ])
    });
    let widths = [Constraint::Fill(1), Constraint::Length(10), Constraint::Length(12)];
    let head = Row::new(["upstream", "state", "in progress"]).bold();
    Table::new(rows, widths)
        .header(head)
        .block(Block::bordered().title("upstreams"))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use rocknet_control::UpstreamState;
    use rocknet_control::status::ResponseCache;

    use super::super::sample::{RouteSample, SiteSample};
    use super::*;

    /// Returns the text of a terminal of this size.
    fn drawn(width: u16, height: u16) -> String {
        let mut history = SampleHistory::default();
        let latency = Latency {
            p50_us: Some(90),
            p99_us: Some(12_000),
        };
        history.push(Sample {
            requests_per_second: 1_234.4,
            bytes_per_second: 2_048.0,
            server_errors_per_second: 0.5,
            refused_per_second: 20.25,
            cached_requests_per_second: 800.4,
            cache_hit_ratio: Some(0.9875),
            cpu_percent: 37.0,
            memory_bytes: 15 << 20,
            latency,
            connections_open: 12,
            protocols: Protocols {
                http2: ProtocolConnections { open: 3, total: 4 },
                ..Protocols::default()
            },
            sites: vec![SiteSample {
                site: "a\u{1b}.test".into(),
                responses_per_second: 1_000.0,
                latency,
            }],
            routes: vec![RouteSample {
                site: "b.test".into(),
                route: "/api\u{1b}/*".into(),
                responses_per_second: 700.0,
                latency: Latency::default(),
            }],
            worst_clients: vec![OffenderSummary {
                address: "198.51.100.7".into(),
                refused: 4_321,
                is_banned: true,
                ..OffenderSummary::default()
            }],
        });
        let status = Status {
            version: "0.1.0".into(),
            pid: 7,
            uptime_s: 61,
            requests: 5_000,
            response_cache: ResponseCache {
                hits: 4_000,
                bytes: 12 << 20,
                ..ResponseCache::default()
            },
            ..Status::default()
        };
        let upstream = UpstreamSummary {
            address: "http://10.0.0.1:80".into(),
            state: UpstreamState::Drained,
            in_flight: 2,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, &status, &history, &[upstream]))
            .unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_shown() {
        let shown = drawn(100, 30);
        for part in [
            "RockNet 0.1.0, process 7, up for 1 min 1 s",
            "12 connections: HTTP/1 0, HTTP/2 3, HTTP/3 0; 20.2 requests/s refused by limits",
            "5,000 requests in all, 2.0 KiB per second sent, 0.5 server errors per second",
            "response cache: 98.8 % of 800 requests/s, 12.0 MiB in memory",
            "1234 requests/s",
            "CPU 37 %",
            "memory 15.0 MiB",
            "a?.test",
            "90 µs, 99 % 12.0 ms",
            "b.test /api?/*",
            "12.0 ms",
            "198.51.100.7",
            "4,321",
            "banned",
            "http://10.0.0.1:80",
            "drained",
            "q: end",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }

    #[test]
    fn terminals_of_every_size_are_drawn() {
        for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 100)] {
            drawn(width, height);
        }
    }
}
