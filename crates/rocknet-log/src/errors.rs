//! The error log: what the code says through `tracing`, as lines that the logger thread writes.

use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering;

use rocknet_config::model::{Level, Log};
use tracing::field::{Field, Visit};
use tracing::metadata::LevelFilter;
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

use super::output::{Output, OutputTarget};
use super::shared::unix_ms;
use super::{Logger, line};

/// The level from here overrides the configuration's, for a server whose file one cannot or will not change.
const LEVEL_VARIABLE: &str = "ROCKNET_LOG";

/// The handle on the error log's level.
#[derive(Clone)]
pub struct ErrorLog {
    logger: Logger,
}

/// Sends what `tracing` hears in this process to the error log of `logger`. Once per process: a second call gets a handle
/// whose level acts on its own logger only.
pub fn init_errors(log: &Log, logger: &Logger) -> ErrorLog {
    let variable = std::env::var_os(LEVEL_VARIABLE).map(|value| value.to_string_lossy().into_owned());
    let choice = LevelChoice::new(variable.as_deref(), log.level);
    let _ = tracing::subscriber::set_global_default(TracingSubscriber { logger: logger.clone() });
    logger.shared.level_is_fixed.store(choice.is_fixed, Ordering::Relaxed);
    logger.shared.is_global.store(true, Ordering::Relaxed);
    logger.set_level(choice.level);
    if let Some(value) = choice.unknown {
        tracing::warn!(
            value,
            "{LEVEL_VARIABLE} is none of error, warn, info, debug, trace: not used"
        );
    }
    ErrorLog { logger: logger.clone() }
}

/// Which level applies at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LevelChoice<'a> {
    pub(super) level: Level,
    /// Whether a reload leaves it alone.
    pub(super) is_fixed: bool,
    /// What the variable holds instead of a level.
    pub(super) unknown: Option<&'a str>,
}

impl<'a> LevelChoice<'a> {
    pub(super) fn new(variable: Option<&'a str>, configured: Level) -> LevelChoice<'a> {
        let variable = variable.filter(|value| !value.trim().is_empty());
        match (variable, variable.and_then(parse_level)) {
            (_, Some(level)) => LevelChoice {
                level,
                is_fixed: true,
                unknown: None,
            },
            (unknown, None) => LevelChoice {
                level: configured,
                is_fixed: false,
                unknown,
            },
        }
    }
}

impl ErrorLog {
    pub fn level(&self) -> Level {
        self.logger.shared.level()
    }

    /// Acts at once, on all threads.
    pub fn set_level(&self, level: Level) {
        self.logger.set_level(level);
    }
}

fn parse_level(name: &str) -> Option<Level> {
    [
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("info", Level::Info),
        ("debug", Level::Debug),
        ("trace", Level::Trace),
    ]
    .into_iter()
    .find(|(known, _)| known.eq_ignore_ascii_case(name.trim()))
    .map(|(_, level)| level)
}

/// What `tracing` reports to. Spans are not used in RockNet, and those of other crates leave no trace.
pub(super) struct TracingSubscriber {
    pub(super) logger: Logger,
}

impl Subscriber for TracingSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.logger.shared.is_enabled(level_of(metadata))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.logger.shared.level() {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let shared = &self.logger.shared;
        let level = level_of(event.metadata());
        if !shared.is_enabled(level) {
            // Its call site was asked before the level changed.
            return;
        }
        let colour = shared.errors_have_colour.load(Ordering::Relaxed);
        let mut text = EventText {
            message: String::new(),
            fields: Vec::new(),
            colour,
            value: String::new(),
        };
        event.record(&mut text);
        if matches!(level, Level::Debug | Level::Trace) {
            line::field(&mut text.fields, colour, "from", event.metadata().target());
        }
        let mut bytes = Vec::with_capacity(128 + text.message.len() + text.fields.len());
        line::render(
            &mut bytes,
            &shared.zone,
            unix_ms(),
            colour,
            level,
            &text.message,
            &text.fields,
        );
        if shared.stopped.load(Ordering::Acquire) {
            // The thread has gone: last words go where a person may see them, if that takes them without waiting.
            let _ = Output::open(&OutputTarget::Stderr).and_then(|mut stderr| stderr.write(&bytes));
        } else {
            self.logger.push_error(&bytes);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn level_of(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// Gathers an event's message and fields.
struct EventText {
    message: String,
    fields: Vec<u8>,
    colour: bool,
    /// The value at hand, unescaped.
    value: String,
}

impl EventText {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // A `Debug` that fails leaves its text short; memory does not fail.
        if field.name() == "message" {
            let _ = self.message.write_fmt(value);
        } else {
            self.value.clear();
            let _ = self.value.write_fmt(value);
            line::field(&mut self.fields, self.colour, field.name(), &self.value);
        }
    }
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, format_args!("{value}"));
    }
}
