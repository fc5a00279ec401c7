//! Command line of the load generator.

use crate::qpack;
use std::net::SocketAddr;
use std::time::Duration;

pub const USAGE: &str = "\
usage: h3-load [OPTION]... https://ADDRESS:PORT/PATH
  -c N             connections (1)
  -m N             concurrent requests on each connection (1)
  --seconds N      duration (3)
  --requests N     stop after this many requests instead
  --warm-up N      seconds of load before the measurement (0)
  --length N       expected length of the response bodies
  --first PATH     path that each connection requests first, before the load (that of the URL)
  --host NAME      server name and authority (localhost)
  --handshakes K   a connection for each request, K is full or resumed
  --garbage N      datagrams per second that belong to no connection, sent beside the measured load
  --idle           open the connections, send one request on each, and do nothing
  --sockets N      UDP sockets that the connections share (one for each, at most 256)
  --timeout N      seconds in which all connections have to be open (60)
  --wait           print \"ready\" when all connections are open, and wait for a line or the end of the input

Prints one line of JSON.";

/// Default maximum number of sockets.
const MAX_SOCKETS: u32 = 256;

/// Parameters of a load.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub server: SocketAddr,
    pub host: String,
    /// HEADERS frame of the request.
    pub request: Vec<u8>,
    /// HEADERS frame of the request that each connection sends before the load.
    pub first_request: Vec<u8>,
    pub connections: u32,
    /// Concurrent requests on each connection.
    pub streams: u32,
    pub duration: Duration,
    pub requests: Option<u64>,
    pub warm_up: Duration,
    pub length: Option<u64>,
    /// Datagrams per second that belong to no connection.
    pub garbage: Option<u32>,
    pub mode: Mode,
    pub sockets: u32,
    /// Time in which all connections have to be open.
    pub timeout: Duration,
    pub waits: bool,
}

/// Work of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Requests on open connections.
    Requests,
    /// A connection for each request, with a full handshake or a resumed session.
    Handshakes { resumed: bool },
    /// Open connections without requests.
    Idle,
}

/// Parses the arguments after the name of the program. An error names the wrong argument.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let mut arguments = arguments.into_iter();
    let (mut connections, mut streams, mut seconds, mut warm_up, mut timeout) = (1, 1, 3, 0, 60);
    let (mut requests, mut length, mut sockets, mut url) = (None, None, None, None);
    let (mut mode, mut waits, mut host) = (Mode::Requests, false, "localhost".to_owned());
    let (mut first, mut garbage) = (None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "-c" => connections = number(&argument, &value()?)?,
            "-m" => streams = number(&argument, &value()?)?,
            "--seconds" => seconds = number(&argument, &value()?)?,
            "--requests" => requests = Some(number(&argument, &value()?)?),
            "--warm-up" => warm_up = number(&argument, &value()?)?,
            "--length" => length = Some(number(&argument, &value()?)?),
            "--sockets" => sockets = Some(number(&argument, &value()?)?),
            "--garbage" => garbage = Some(number(&argument, &value()?)?),
            "--first" => first = Some(value()?),
            "--host" => host = value()?,
            "--timeout" => timeout = number(&argument, &value()?)?,
            "--idle" => mode = Mode::Idle,
            "--wait" => waits = true,
            "--handshakes" => {
                mode = match value()?.as_str() {
                    "full" => Mode::Handshakes { resumed: false },
                    "resumed" => Mode::Handshakes { resumed: true },
                    other => return Err(format!("--handshakes: {other:?} is neither full nor resumed")),
                }
            }
            other if other.starts_with('-') => return Err(format!("unknown option {other}")),
            _ if url.is_none() => url = Some(argument),
            other => return Err(format!("a second URL {other}")),
        }
    }
    let url = url.ok_or("no URL")?;
    let wrong = || format!("{url:?} is not https://ADDRESS:PORT/PATH");
    let (address, path) = url
        .strip_prefix("https://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(wrong)?;
    let server: SocketAddr = address.parse().map_err(|_| wrong())?;
    let path = format!("/{path}");
    let first = first.as_ref().unwrap_or(&path);
    let too_long = "the host or a path is too long";
    let request = qpack::get(&host, &path).ok_or(too_long)?;
    let first_request = qpack::get(&host, first).ok_or(too_long)?;
    if connections == 0 || streams == 0 || sockets == Some(0) {
        return Err("connections, requests and sockets must be at least 1".into());
    }
    Ok(Options {
        server,
        host,
        request,
        first_request,
        connections,
        streams,
        duration: Duration::from_secs(seconds),
        requests,
        warm_up: Duration::from_secs(warm_up),
        length,
        garbage,
        mode,
        sockets: sockets.unwrap_or(MAX_SOCKETS).min(connections),
        timeout: Duration::from_secs(timeout),
        waits,
    })
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: {value:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options =
            parsed("-c 16 https://127.0.0.1:443/x -m 32 --seconds 1 --wait --first /y --length 13").expect("options");
        assert_eq!((options.connections, options.streams, options.sockets), (16, 32, 16));
        assert_eq!(
            (options.length, options.waits, options.mode),
            (Some(13), true, Mode::Requests)
        );
        assert_eq!(options.server, "127.0.0.1:443".parse().expect("an address"));
        assert!(options.request.ends_with(b"/x") && options.first_request.ends_with(b"/y"));
        let resumed = parsed("--handshakes resumed -c 5000 https://127.0.0.1:1/").expect("options");
        assert_eq!(
            (resumed.mode, resumed.sockets),
            (Mode::Handshakes { resumed: true }, MAX_SOCKETS)
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (line, expected) in [
            ("", "no URL"),
            ("-c", "-c needs a value"),
            ("-c x", "-c: \"x\" is not a number"),
            ("-z", "unknown option -z"),
            (
                "--handshakes half",
                "--handshakes: \"half\" is neither full nor resumed",
            ),
            ("http://a/", "\"http://a/\" is not https://ADDRESS:PORT/PATH"),
            (
                "-c 0 https://127.0.0.1:1/",
                "connections, requests and sockets must be at least 1",
            ),
            ("https://127.0.0.1:1/ b", "a second URL b"),
        ] {
            assert_eq!(parsed(line).expect_err(line), expected);
        }
    }
}
