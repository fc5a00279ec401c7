//! Error log: formats events of `tracing` as lines, which the log thread writes.

use std::collections::BTreeMap;
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

/// Environment variable that overrides the level of the configuration, for servers whose configuration cannot be
/// changed.
pub const LEVEL_VARIABLE: &str = "ROCKNET_LOG";

/// Handle for the level of the error log.
#[derive(Clone)]
pub struct ErrorLog {
    logger: Logger,
}

/// Installs the error log of `logger` as the `tracing` subscriber of the process. This works once per process: the
/// handle of a second call affects the level of its own logger only.
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
            "{LEVEL_VARIABLE} must be one of error, warn, info, debug, trace; this value is ignored"
        );
    }
    ErrorLog { logger: logger.clone() }
}

/// Level of the error log at start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LevelChoice<'a> {
    pub(super) level: Level,
    /// True if a reload keeps the level.
    pub(super) is_fixed: bool,
    /// Value of the environment variable, if it is not a valid level.
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
    /// Returns the current level of modules without a level of their own.
    pub fn level(&self) -> Level {
        self.logger.shared.levels.general()
    }

    /// Returns the levels of the modules that have their own.
    pub fn module_levels(&self) -> BTreeMap<String, Level> {
        self.logger.shared.levels.modules()
    }

    /// Changes the level immediately, for all threads and all modules without a level of their own.
    pub fn set_level(&self, level: Level) {
        self.logger.shared.levels.set_general(level);
        self.logger.renew_interest();
    }

    /// Changes the level of a module, such as `rocknet_proxy::background`, and of the modules in it, until
    /// [`Logger::reconfigure`]. Returns false if too many modules have a level of their own.
    pub fn set_module_level(&self, module: &str, level: Level) -> bool {
        let is_set = self.logger.shared.levels.set_module(module, level);
        self.logger.renew_interest();
        is_set
    }

    /// Removes the level of a module. The level of a module that contains it, or else the general one, applies again.
    /// Returns false if the module has no level of its own.
    pub fn remove_module_level(&self, module: &str) -> bool {
        let is_removed = self.logger.shared.levels.remove_module(module);
        self.logger.renew_interest();
        is_removed
    }
}

/// Returns the level with this name, in upper or lower case; `None` if there is no such level.
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

/// `tracing` subscriber of the error log. RockNet uses no spans, and spans of other crates are ignored.
pub(super) struct TracingSubscriber {
    pub(super) logger: Logger,
}

impl Subscriber for TracingSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.logger.shared.is_enabled(level_of(metadata), metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.logger.shared.levels.most_verbose() {
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
        if !shared.is_enabled(level, event.metadata().target()) {
            // The level has changed since the call site checked it.
            return;
        }
        let colour = shared.errors_have_colour.load(Ordering::Relaxed);
        let mut text = EventText {
            message: String::new(),
            fields: Vec::new(),
            colour,
            value: String::new(),
            site: None,
        };
        event.record(&mut text);
        if matches!(level, Level::Debug | Level::Trace) {
            line::field(&mut text.fields, colour, "from", event.metadata().target());
        }
        // 128 bytes are enough for the time, the level and the colours.
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
            // The log thread has ended, so write the line to standard error, unless that would block.
            let _ = Output::open(&OutputTarget::Stderr).and_then(|mut stderr| stderr.write(&bytes));
        } else {
            self.logger.push_error(&bytes, text.site.as_deref());
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

/// Collects the message and the fields of an event.
struct EventText {
    message: String,
    fields: Vec<u8>,
    colour: bool,
    /// Value of the last recorded field, not escaped. The allocation is reused.
    value: String,
    /// Value of the field `site`; `None` if the event has no such field, or an empty one.
    site: Option<String>,
}

impl EventText {
    /// Adds the message, or a field with its name.
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Errors are ignored: writing to memory does not fail, and a failing `Debug` only leaves its text incomplete.
        if field.name() == "message" {
            let _ = self.message.write_fmt(value);
        } else {
            self.value.clear();
            let _ = self.value.write_fmt(value);
            line::field(&mut self.fields, self.colour, field.name(), &self.value);
            if field.name() == "site" && !self.value.is_empty() {
                self.site = Some(self.value.clone());
            }
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
