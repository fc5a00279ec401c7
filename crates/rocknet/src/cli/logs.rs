//! `rocknet logs`: shows the log lines of a running server.

use std::io;

use rocknet_control::ClientError;
use rocknet_control::api::{Level, Request};
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};

use super::output::try_print;
use super::remote::{Target, parse_level};
use super::{Failure, print_warning};

/// Show recent lines of the error log of the running server, and follow its logs
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
        contains: options.contains.clone(),
    });
    let mut is_closed = false;
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
        is_closed = printed
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        printed.map_err(ClientError::Io)
    };
    let streamed = options.target.stream(&request, show);
    if is_closed {
        // The reader of the output has seen enough (`rocknet logs -f | head`).
        return Ok(());
    }
    streamed?;
    if options.follow {
        // The stream ends when the server stops, or at once if too many programs follow the logs already.
        return Err(Failure::Failed(
            "the server has stopped, or too many programs follow its logs".to_owned(),
        ));
    }
    Ok(())
}
