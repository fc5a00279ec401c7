//! Parses a line of the access log in JSON, and formats it for reading.

use rocknet_control::text;
use serde::Deserialize;

/// Maximum length of host and target in characters.
const MAX_TARGET: usize = 300;

/// Members of a line of the access log that are shown.
#[derive(Deserialize)]
struct AccessLine {
    #[serde(default)]
    time: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    target: String,
    host: String,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    duration_us: Option<u64>,
}

/// Request in the access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// Host in lower case; empty if the request had none.
    pub host: String,
    /// Status of the response.
    pub status: u16,
    /// Time, status, method, address, duration and client.
    pub shown: String,
}

/// Maximum length of a host with its port, in characters. A longer one is that of no website.
const MAX_HOST: usize = 260;

impl RequestLine {
    /// Parses a line. Returns `None` if the line has another format.
    pub fn parse(line: &str) -> Option<RequestLine> {
        let line: AccessLine = serde_json::from_str(line).ok()?;
        // `2026-11-28T19:30:39+00:00`: only the time of day is shown.
        let time = line.time.get(11..19).unwrap_or(&line.time);
        let duration = line.duration_us.map_or("–".to_owned(), text::short_duration);
        let target = text::sanitized(&format!("{}{}", line.host, line.target), MAX_TARGET);
        let (method, client) = (text::sanitized(&line.method, 20), text::sanitized(&line.client, 60));
        Some(RequestLine {
            shown: format!("{time}  {}  {method} {target}  {duration}  {client}", line.status)
                .trim_end()
                .to_owned(),
            host: text::sanitized(&line.host.to_lowercase(), MAX_HOST),
            status: line.status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shown_in_one_short_line() {
        let line = r#"{"time":"2026-11-28T19:30:39+00:00","client":"127.0.0.1","user":null,"method":"GET",
            "target":"/x\u001b[2J","host":"App.localhost:18080","status":200,"duration_us":15893}"#;
        let request = RequestLine::parse(line).unwrap();
        assert_eq!(
            request.shown,
            "19:30:39  200  GET App.localhost:18080/x?[2J  15.8 ms  127.0.0.1"
        );
        assert_eq!((&*request.host, request.status), ("app.localhost:18080", 200));
        let short = RequestLine::parse(r#"{"host":"","status":400}"#).unwrap();
        assert_eq!(short.shown, "  400     –");
        for line in ["127.0.0.1 - - [x] \"GET /\" 200 -", "{\"status\":1}", ""] {
            assert_eq!(RequestLine::parse(line), None);
        }
    }
}
