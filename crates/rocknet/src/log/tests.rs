//! The logger as a whole: real files, pipes and devices, one thread behind them.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rocknet_config::model::{AccessFormat, AccessLog, Level, Log, LogTarget, Rotate};
use rustix::fs::{Mode, OFlags};

use super::errors::{Events, parse_level};
use super::{AccessWriter, Logger, Record, SinkId};

/// Far more than anything here takes: it ends a test that would hang.
const LIMIT: Duration = Duration::from_secs(20);

const NO_ROTATION: Rotate = Rotate {
    size: None,
    age: None,
    keep: 3,
};

struct Bench {
    folder: tempfile::TempDir,
    logger: Logger,
}

impl Bench {
    fn new(rotate: Rotate) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let logger = Logger::start(&log(folder.path(), rotate)).expect("starts");
        Bench { folder, logger }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn sink(&self, name: &str) -> SinkId {
        let target = LogTarget::File(self.path(name));
        self.logger
            .sink(&target, AccessFormat::Common)
            .expect("opens")
            .expect("is not off")
    }

    fn settle(&self) {
        assert!(self.logger.settle(LIMIT), "the thread does not answer");
    }
}

fn log(folder: &Path, rotate: Rotate) -> Log {
    let errors = LogTarget::File(folder.join("error.log"));
    Log {
        level: Level::Info,
        errors,
        access: AccessLog::default(),
        rotate,
    }
}

/// A record that bears `number` in its last column.
fn record(number: u64) -> Record<'static> {
    Record {
        client: "10.0.0.1",
        user: None,
        method: b"GET",
        target: b"/",
        version: "HTTP/1.1",
        status: 200,
        content_bytes: number + 1,
        referer: None,
        user_agent: None,
        host: b"h",
        duration_us: None,
    }
}

/// Writes records numbered from `from` and hands them over.
fn write(writer: &mut AccessWriter, sink: SinkId, from: u64, count: u64) {
    for number in from..from + count {
        writer.record(sink, &record(number));
    }
    writer.flush();
}

/// The numbers of whole lines; a torn or foreign line fails the test.
fn numbers(text: &str) -> Vec<u64> {
    text.lines()
        .map(|line| {
            assert!(line.starts_with("10.0.0.1 - - ["), "{line:?}");
            let number = line.rsplit(' ').next().expect("a last column");
            number.parse::<u64>().expect("a number") - 1
        })
        .collect()
}

fn count_to(count: u64) -> Vec<u64> {
    (0..count).collect()
}

#[test]
fn lines_arrive_in_order() {
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    for part in 0..10 {
        write(&mut writer, sink, part * 1000, 1000);
    }
    bench.settle();
    assert_eq!(numbers(&bench.read("a.log")), count_to(10_000));
    assert_eq!((bench.logger.drops(), bench.read("error.log").as_str()), (0, ""));
}

#[test]
fn a_target_is_opened_once_and_off_is_nowhere() {
    let bench = Bench::new(NO_ROTATION);
    let target = LogTarget::File(bench.path("a.log"));
    let sink = |format| bench.logger.sink(&target, format).expect("opens").expect("is not off");
    assert_eq!(sink(AccessFormat::Json), sink(AccessFormat::Json));
    let (text, json) = (sink(AccessFormat::Common), sink(AccessFormat::Json));
    assert_eq!(text.destination, json.destination);
    let mut writer = bench.logger.writer();
    write(&mut writer, text, 0, 1);
    write(&mut writer, json, 1, 1);
    bench.settle();
    let lines = bench.read("a.log");
    assert!(lines.starts_with("10.0.0.1") && lines.lines().nth(1).is_some_and(|line| line.starts_with("{\"time\"")));
    assert_eq!(
        bench
            .logger
            .sink(&LogTarget::Off, AccessFormat::Json)
            .expect("nothing to open"),
        None
    );
}

#[test]
fn a_log_that_cannot_be_opened_names_its_path() {
    let bench = Bench::new(NO_ROTATION);
    let error = bench
        .logger
        .sink(&LogTarget::File(bench.path("none/a.log")), AccessFormat::Common)
        .expect_err("no folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        format!("{}: no such file or directory", bench.path("none/a.log").display())
    );
}

#[test]
fn many_writers_lose_and_mix_nothing() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 2_000;
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    std::thread::scope(|scope| {
        for worker in 0..WRITERS {
            let mut writer = bench.logger.writer();
            scope.spawn(move || write(&mut writer, sink, worker * EACH, EACH));
        }
    });
    bench.settle();
    let mut found = numbers(&bench.read("a.log"));
    found.sort_unstable();
    assert_eq!(found, count_to(WRITERS * EACH));
    assert_eq!(bench.logger.drops(), 0);
}

#[test]
fn a_dropped_writer_hands_its_lines_over() {
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 1);
    writer.record(sink, &record(1));
    drop(writer);
    bench.settle();
    assert_eq!(numbers(&bench.read("a.log")), [0, 1]);
}

#[test]
fn rotation_by_size_keeps_every_line_of_the_youngest() {
    let bench = Bench::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 2,
    });
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    // Ten lines are some 700 bytes: every second handover begins a new file.
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        bench.settle();
    }
    for (name, expected) in [
        ("a.log", 30..40),
        ("a.log.1", 20..30),
        ("a.log.2", 10..20),
        ("a.log.3", 0..0),
    ] {
        assert_eq!(numbers(&bench.read(name)), expected.collect::<Vec<u64>>(), "{name}");
    }
}

#[test]
fn a_rotation_that_fails_loses_nothing_and_is_told() {
    let bench = Bench::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 1,
    });
    // A folder in the way of the old log's name.
    fs::create_dir_all(bench.path("a.log.1/x")).expect("makes a folder");
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        bench.settle();
    }
    assert_eq!(numbers(&bench.read("a.log")), count_to(40));
    bench.settle();
    assert_eq!(
        bench.read("error.log").matches("not rotated, grows on").count(),
        1,
        "{}",
        bench.read("error.log")
    );
}

#[test]
fn reopen_follows_a_rename() {
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 10);
    bench.settle();
    fs::rename(bench.path("a.log"), bench.path("old.log")).expect("renames");
    write(&mut writer, sink, 10, 10);
    bench.settle();
    bench.logger.reopen();
    write(&mut writer, sink, 20, 10);
    bench.settle();
    assert_eq!(numbers(&bench.read("old.log")), count_to(20));
    assert_eq!(numbers(&bench.read("a.log")), (20..30).collect::<Vec<u64>>());
}

#[test]
fn a_reopen_that_fails_keeps_the_old_file_and_is_told() {
    let bench = Bench::new(NO_ROTATION);
    fs::create_dir(bench.path("logs")).expect("makes a folder");
    let sink = bench.sink("logs/a.log");
    let mut writer = bench.logger.writer();
    fs::rename(bench.path("logs"), bench.path("moved")).expect("renames");
    bench.logger.reopen();
    write(&mut writer, sink, 0, 5);
    bench.settle();
    assert_eq!(numbers(&bench.read("moved/a.log")), count_to(5));
    assert!(
        bench.read("error.log").contains("not reopened"),
        "{}",
        bench.read("error.log")
    );
}

#[test]
fn a_full_disk_is_told_once_and_recovers() {
    const MORE_THAN_IS_HELD: u64 = 40_000;
    let bench = Bench::new(NO_ROTATION);
    symlink("/dev/full", bench.path("a.log")).expect("links");
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    for part in 0..10 {
        let count = MORE_THAN_IS_HELD / 10;
        write(&mut writer, sink, part * count, count);
        bench.settle();
    }
    let drops = bench.logger.drops();
    assert!(drops > 0 && drops < MORE_THAN_IS_HELD, "{drops}");
    let told = bench.read("error.log");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.contains("a.log: ") && told.trim_end().ends_with(": no space left on device"),
        "{told}"
    );

    fs::remove_file(bench.path("a.log")).expect("removes");
    bench.logger.reopen();
    write(&mut writer, sink, MORE_THAN_IS_HELD, 10);
    bench.settle();
    let found = numbers(&bench.read("a.log"));
    let held = MORE_THAN_IS_HELD - drops;
    assert_eq!(
        found,
        (0..held)
            .chain(MORE_THAN_IS_HELD..MORE_THAN_IS_HELD + 10)
            .collect::<Vec<u64>>()
    );
    assert_eq!(bench.logger.drops(), drops, "nothing more is lost");
    assert!(bench.logger.flush_and_stop(LIMIT));
    let told = bench.read("error.log");
    assert!(
        told.lines().count() == 2 && told.contains(&format!("{drops} lines lost since ")),
        "{told}"
    );
}

#[test]
fn a_full_disk_under_one_log_leaves_the_others_alone() {
    let bench = Bench::new(NO_ROTATION);
    symlink("/dev/full", bench.path("full.log")).expect("links");
    let (full, good) = (bench.sink("full.log"), bench.sink("good.log"));
    let mut writer = bench.logger.writer();
    for part in 0..40 {
        write(&mut writer, full, 0, 1000);
        write(&mut writer, good, part * 10, 10);
        bench.settle();
    }
    assert!(bench.logger.drops() > 0);
    assert_eq!(numbers(&bench.read("good.log")), count_to(400));
}

fn make_fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("makes a pipe");
}

fn open_reader(path: &Path) -> fs::File {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .expect("opens the pipe")
}

#[test]
fn a_pipe_nobody_opened_holds_and_then_counts() {
    let bench = Bench::new(NO_ROTATION);
    make_fifo(&bench.path("pipe"));
    let sink = bench.sink("pipe");
    let mut writer = bench.logger.writer();
    for part in 0..40 {
        write(&mut writer, sink, part * 1000, 1000);
        bench.settle();
    }
    assert!(bench.logger.drops() > 0);
    assert!(
        bench.read("error.log").contains("nobody reads the pipe"),
        "{}",
        bench.read("error.log")
    );
    assert!(
        !bench.logger.flush_and_stop(Duration::ZERO),
        "what is held is lost at the end"
    );
    assert_eq!(bench.logger.drops(), 40_000);
}

#[test]
fn a_slow_pipe_never_stalls_a_worker_and_is_read_whole_lines() {
    const LINES: u64 = 200_000;
    let bench = Bench::new(NO_ROTATION);
    make_fifo(&bench.path("pipe"));
    let mut reader = open_reader(&bench.path("pipe"));
    let (sink, good) = (bench.sink("pipe"), bench.sink("good.log"));
    let mut writer = bench.logger.writer();
    let start = Instant::now();
    write(&mut writer, sink, 0, LINES);
    assert!(start.elapsed() < LIMIT, "writing to memory takes milliseconds");
    write(&mut writer, good, 0, 10);
    bench.settle();
    assert_eq!(numbers(&bench.read("good.log")), count_to(10), "another log goes on");
    assert!(bench.logger.drops() > 0);

    // The reader wakes up: what was held comes out, each line whole, in order, without a gap inside a run.
    let mut text = Vec::new();
    let start = Instant::now();
    while LINES - bench.logger.drops() > text.iter().filter(|byte| **byte == b'\n').count() as u64 {
        assert!(start.elapsed() < LIMIT, "the held lines do not come");
        let mut part = [0; 65_536];
        match reader.read(&mut part) {
            Ok(count) => text.extend_from_slice(&part[..count]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    let found = numbers(&String::from_utf8(text).expect("ASCII"));
    assert!(found.is_sorted_by(|a, b| a < b));
    assert_eq!(found.len() as u64, LINES - bench.logger.drops());
}

#[test]
fn a_reader_that_leaves_and_returns_sees_whole_lines() {
    let bench = Bench::new(NO_ROTATION);
    make_fifo(&bench.path("pipe"));
    let first = open_reader(&bench.path("pipe"));
    let sink = bench.sink("pipe");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 3_000);
    bench.settle();
    // The pipe is full, most likely amid a line; its content goes with its reader.
    drop(first);
    write(&mut writer, sink, 3_000, 10);
    bench.settle();
    let mut second = open_reader(&bench.path("pipe"));
    bench.logger.reopen();
    bench.settle();
    let mut text = vec![0; 30_000];
    let count = second.read(&mut text).expect("there are lines");
    text.truncate(count);
    let whole = text.iter().rposition(|byte| *byte == b'\n').expect("a line");
    let found = numbers(std::str::from_utf8(&text[..whole]).expect("ASCII"));
    assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1), "{found:?}");
}

#[test]
fn stop_writes_what_there_is() {
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 5_000);
    assert!(bench.logger.flush_and_stop(LIMIT));
    assert_eq!(numbers(&bench.read("a.log")), count_to(5_000));
    write(&mut writer, sink, 0, 7);
    assert_eq!(bench.logger.drops(), 7, "too late is counted");
    assert!(bench.logger.flush_and_stop(LIMIT), "a second stop finds nothing to do");
}

#[test]
fn reconfigure_moves_the_error_log_and_keeps_the_rest() {
    let bench = Bench::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    let say = |text: &'static str| {
        tracing::subscriber::with_default(
            Events {
                logger: bench.logger.clone(),
            },
            || tracing::info!("{text}"),
        );
        bench.settle();
    };
    say("before");
    let other = LogTarget::File(bench.path("other.log"));
    let log = Log {
        errors: other,
        ..log(bench.folder.path(), NO_ROTATION)
    };
    bench.logger.reconfigure(&log).expect("opens");
    say("after");
    assert_eq!(bench.sink("a.log"), sink);
    write(&mut writer, sink, 0, 5);
    bench.settle();
    assert!(
        bench.read("error.log").trim_end().ends_with("INFO  before") && bench.read("error.log").lines().count() == 1
    );
    assert!(
        bench.read("other.log").trim_end().ends_with("INFO  after") && bench.read("other.log").lines().count() == 1
    );
    assert_eq!(numbers(&bench.read("a.log")), count_to(5));

    let bad = Log {
        errors: LogTarget::File(bench.path("none/x")),
        ..log
    };
    assert!(bench.logger.reconfigure(&bad).is_err());
    say("still");
    assert_eq!(
        bench.read("other.log").lines().count(),
        2,
        "a bad configuration changes nothing"
    );
}

#[test]
fn error_lines_and_levels() {
    let bench = Bench::new(NO_ROTATION);
    bench.logger.shared.is_heard.store(true, Ordering::Relaxed);
    tracing::subscriber::with_default(
        Events {
            logger: bench.logger.clone(),
        },
        || {
            for level in [Level::Warn, Level::Debug, Level::Error] {
                bench.logger.set_level(level);
                tracing::error!(path = "/a\nb", status = 404_u16, "no file: {}", "x\r\ny");
                tracing::warn!(name = %"plain", error = &io::Error::other("bad\x1B[1m") as &dyn std::error::Error, "careful");
                tracing::debug!(list = ?["a", "b"], "details");
                tracing::trace!("never");
            }
        },
    );
    bench.settle();
    let text = bench.read("error.log");
    let found: Vec<&str> = text.lines().map(|line| &line[30..]).collect();
    let error = r#"ERROR no file: x\x0D\x0Ay path="/a\x0Ab" status=404"#;
    let warn = r#"WARN  careful name=plain error="bad\x1B[1m""#;
    let debug = format!(r#"DEBUG details list="[\"a\", \"b\"]" from={}"#, module_path!());
    assert_eq!(found, [error, warn, error, warn, &debug, error]);
}

#[test]
fn level_names() {
    for (name, level) in [
        ("error", Some(Level::Error)),
        ("WARN", Some(Level::Warn)),
        (" info ", Some(Level::Info)),
        ("debug", Some(Level::Debug)),
        ("trace", Some(Level::Trace)),
        ("loud", None),
        ("", None),
    ] {
        assert_eq!(parse_level(name), level, "{name:?}");
    }
}

#[test]
fn a_flood_of_errors_is_bounded_and_counted() {
    let bench = Bench::new(NO_ROTATION);
    let long = "x".repeat(7_000);
    const EVENTS: u64 = 2_000;
    tracing::subscriber::with_default(
        Events {
            logger: bench.logger.clone(),
        },
        || {
            for _ in 0..EVENTS {
                tracing::error!("{long}");
            }
        },
    );
    assert!(bench.logger.flush_and_stop(LIMIT));
    let text = bench.read("error.log");
    let written = text.lines().filter(|line| line.ends_with('x')).count() as u64;
    assert_eq!(written + bench.logger.drops(), EVENTS);
    let told = text.contains("more errors at once");
    assert_eq!(told, bench.logger.drops() > 0);
}
