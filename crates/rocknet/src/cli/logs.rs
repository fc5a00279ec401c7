//! `rocknet logs`: shows the log lines of a running server.

use std::cell::Cell;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::api::{Level, Request};
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};
use rocknet_control::{ClientError, Status};

use super::output::try_print;
use super::remote::{Target, parse_level};
use super::{Failure, print_warning};

/// Show recent lines of the error log of the running server, and follow its logs
///
/// Following goes on after an upgrade, and ends when the server stops.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Go on with new lines of the error log and of the access logs that are switched on
    #[arg(short, long)]
    follow: bool,
    /// Show lines of one kind of log only
    #[arg(long, value_enum, value_name = "LOG")]
    only: Option<Only>,
    /// Show lines of the error log of this severity or above: error, warn, info, debug or trace
    #[arg(long, value_parser = parse_level)]
    level: Option<Level>,
    /// Show requests to this site, and messages that name it
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Show lines that contain this text
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Print a JSON object for each line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Only {
    /// The error log
    Error,
    /// The access logs
    Access,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let request = Request::Logs(LogFilter {
        follow: options.follow,
        kind: options.only.map(|only| match only {
            Only::Error => LogKind::Error,
            Only::Access => LogKind::Access,
        }),
        level: options.level,
        site: options.site.clone(),
        contains: options.contains.clone(),
    });
    let is_closed = Cell::new(false);
    let show = |event: LogEvent| {
        if event.lost > 0 {
            print_warning(format_args!("lines lost, because they came too fast: {}", event.lost));
        }
        let printed = if options.json {
            let json = serde_json::to_string(&event).map_err(|error| ClientError::Invalid(error.to_string()))?;
            try_print(format_args!("{json}\n"))
        } else {
            try_print(format_args!("{}\n", event.line))
        };
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        is_closed.set(printed.as_ref().is_err_and(is_broken));
        printed.map_err(ClientError::Io)
    };
    // Process ID of the server, used only to find its successor while following.
    let mut process = if options.follow { process(&options.target)? } else { 0 };
    loop {
        let streamed = options.target.stream(&request, show);
        if is_closed.get() {
            // The reader of the output has closed its pipe (`rocknet logs -f | head`).
            return Ok(());
        }
        streamed?;
        if !options.follow {
            return Ok(());
        }
        // The stream ends when the process begins to stop, which may be before it stops serving the socket. After an
        // upgrade, another process serves the same socket.
        process = successor(&options.target, process)?;
    }
}

/// Returns the process ID of the server.
fn process(target: &Target) -> Result<u32, Failure> {
    Ok(target.call::<Status>(&Request::Status)?.pid)
}

/// Waits for the process that has taken over from the process `old`, and returns its ID.
///
/// # Errors
///
/// Fails if no server listens at the socket any more, or if the old process still serves it after [`END_TIMEOUT`].
fn successor(target: &Target, old: u32) -> Result<u32, Failure> {
    let deadline = Instant::now() + END_TIMEOUT;
    while Instant::now() < deadline {
        match process(target) {
            Ok(process) if process != old => return Ok(process),
            Ok(_) => thread::sleep(POLL_INTERVAL),
            Err(_) => return Err(Failure::Failed("the server has stopped".to_owned())),
        }
    }
    Err(Failure::Failed(
        "the server has ended the stream of log lines".to_owned(),
    ))
}

/// Maximum time after the end of a stream until the process that sent it no longer serves the socket. A stop takes
/// about `limits.shutdown` at most, by default 10 s.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which the process ID of the server is queried.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
