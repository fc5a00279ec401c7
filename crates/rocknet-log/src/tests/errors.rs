//! Tests of the error log: its lines, levels and limits, and its move to another file.

use std::io;
use std::sync::atomic::Ordering;

use rocknet_config::model::{Level, Log, LogTarget};

use super::super::errors::{LevelChoice, TracingSubscriber};
use super::{LIMIT, NO_ROTATION, TestLog, count_to, log, numbers, write};

#[test]
fn reconfigure_moves_the_error_log_and_keeps_the_rest() {
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    let log_line = |text: &'static str| {
        tracing::subscriber::with_default(
            TracingSubscriber {
                logger: test_log.logger.clone(),
            },
            || tracing::info!("{text}"),
        );
        test_log.sync();
    };
    log_line("before");
    let other = LogTarget::File(test_log.path("other.log"));
    let log = Log {
        errors: other,
        ..log(test_log.folder.path(), NO_ROTATION)
    };
    test_log.logger.reconfigure(&log).expect("opens");
    log_line("after");
    assert_eq!(test_log.sink("a.log"), sink);
    write(&mut writer, sink, 0, 5);
    test_log.sync();
    assert!(
        test_log.read("error.log").trim_end().ends_with("INFO  before")
            && test_log.read("error.log").lines().count() == 1
    );
    assert!(
        test_log.read("other.log").trim_end().ends_with("INFO  after")
            && test_log.read("other.log").lines().count() == 1
    );
    assert_eq!(numbers(&test_log.read("a.log")), count_to(5));

    let bad = Log {
        errors: LogTarget::File(test_log.path("none/x")),
        ..log
    };
    assert!(test_log.logger.reconfigure(&bad).is_err());
    log_line("still");
    assert_eq!(
        test_log.read("other.log").lines().count(),
        2,
        "a bad configuration changes nothing"
    );
}

#[test]
fn error_lines_are_filtered_by_level() {
    let test_log = TestLog::new(NO_ROTATION);
    // With this setting, each change of the level renews the interest that `tracing` has cached for the call sites.
    test_log.logger.shared.is_global.store(true, Ordering::Relaxed);
    tracing::subscriber::with_default(
        TracingSubscriber {
            logger: test_log.logger.clone(),
        },
        || {
            for level in [Level::Warn, Level::Debug, Level::Error] {
                test_log.logger.set_level(level);
                tracing::error!(path = "/a\nb", status = 404_u16, "no file: {}", "x\r\ny");
                tracing::warn!(name = %"plain", error = &io::Error::other("bad\x1B[1m") as &dyn std::error::Error, "careful");
                tracing::debug!(list = ?["a", "b"], "details");
                tracing::trace!("never");
            }
        },
    );
    test_log.sync();
    let text = test_log.read("error.log");
    // The time stamp and the space after it have 30 bytes.
    let found: Vec<&str> = text.lines().map(|line| &line[30..]).collect();
    let error = r#"ERROR no file: x\x0D\x0Ay path="/a\x0Ab" status=404"#;
    let warn = r#"WARN  careful name=plain error="bad\x1B[1m""#;
    let debug = format!(r#"DEBUG details list="[\"a\", \"b\"]" from={}"#, module_path!());
    assert_eq!(found, [error, warn, error, warn, &debug, error]);
}

#[test]
fn the_variable_overrides_the_configuration() {
    // Value of the variable, and the choice that results from it. The configured level is `warn`.
    for (variable, level, is_fixed, unknown) in [
        (None, Level::Warn, false, None),
        (Some(""), Level::Warn, false, None),
        (Some("error"), Level::Error, true, None),
        (Some("warn"), Level::Warn, true, None),
        (Some("INFO"), Level::Info, true, None),
        (Some(" debug "), Level::Debug, true, None),
        (Some("trace"), Level::Trace, true, None),
        (Some("loud"), Level::Warn, false, Some("loud")),
    ] {
        assert_eq!(
            LevelChoice::new(variable, Level::Warn),
            LevelChoice {
                level,
                is_fixed,
                unknown
            },
            "{variable:?}"
        );
    }
}

#[test]
fn a_reload_keeps_a_fixed_level() {
    // The configuration has the level `info`. If `is_fixed` is true, `debug` stands for the level of `ROCKNET_LOG`.
    for (is_fixed, expected) in [(false, Level::Info), (true, Level::Debug)] {
        let test_log = TestLog::new(NO_ROTATION);
        test_log.logger.shared.level_is_fixed.store(is_fixed, Ordering::Relaxed);
        test_log.logger.set_level(Level::Debug);
        test_log
            .logger
            .reconfigure(&log(test_log.folder.path(), NO_ROTATION))
            .expect("opens");
        assert_eq!(test_log.logger.shared.levels.general(), expected);
    }
}

#[test]
fn a_flood_of_errors_is_bounded_and_counted() {
    let test_log = TestLog::new(NO_ROTATION);
    let long = "x".repeat(7_000);
    const EVENTS: u64 = 2_000;
    tracing::subscriber::with_default(
        TracingSubscriber {
            logger: test_log.logger.clone(),
        },
        || {
            for _ in 0..EVENTS {
                tracing::error!("{long}");
            }
        },
    );
    assert!(test_log.logger.flush_and_stop(LIMIT));
    let text = test_log.read("error.log");
    let written = text.lines().filter(|line| line.ends_with('x')).count() as u64;
    assert_eq!(written + test_log.logger.drops(), EVENTS);
    let is_reported = text.contains("errors were logged faster");
    assert_eq!(is_reported, test_log.logger.drops() > 0);
}

#[test]
fn a_line_logged_before_a_follower_is_among_its_recent_lines() {
    let test_log = TestLog::new(NO_ROTATION);
    test_log.sync();
    // The thread is not woken for the line, so it finds the line and the follower in the inbox at the same time.
    assert!(test_log.logger.shared.push_error(b"before\n", None));
    let mut receiver = test_log.logger.follow(None);
    test_log.sync();
    let recent = receiver.try_recv().expect("the recent lines");
    assert_eq!(recent.bytes(), b"before\n");
    assert!(receiver.try_recv().is_err());
}
