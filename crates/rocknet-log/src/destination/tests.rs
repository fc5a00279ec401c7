//! Tests of one log with simulated times and failures: rotation by age, retries, limits, and reports.

use std::fs;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);
/// No limit on the held bytes, apart from the log's own.
const ROOM: usize = usize::MAX;
/// Settings that never rotate a log.
const NEVER: Rotate = Rotate {
    size: None,
    age: None,
    keep: 2,
};
const DAILY: Rotate = Rotate {
    size: None,
    age: Some(DAY),
    keep: 2,
};

struct TestLog {
    folder: tempfile::TempDir,
    start: Now,
    destination: Destination,
}

impl TestLog {
    fn new() -> TestLog {
        let folder = tempfile::tempdir().expect("a folder");
        let start = Now {
            instant: Instant::now(),
            unix_ms: 0,
        };
        let target = OutputTarget::File(folder.path().join("a.log"));
        let output = Output::open(&target).expect("opens");
        let destination = Destination::new(target, Some(output), start);
        TestLog {
            folder,
            start,
            destination,
        }
    }

    /// Returns a log on a disk that is full until `mend` is called.
    fn full() -> TestLog {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/dev/full", folder.path().join("a.log")).expect("links");
        let start = Now {
            instant: Instant::now(),
            unix_ms: 0,
        };
        let destination = Destination::new(OutputTarget::File(folder.path().join("a.log")), None, start);
        TestLog {
            folder,
            start,
            destination,
        }
    }

    /// Removes the link to the full disk, and reopens the log as a new file, `seconds` after the start of the test.
    fn mend(&mut self, seconds: u64) {
        fs::remove_file(self.folder.path().join("a.log")).expect("removes");
        self.destination.reopen(&NEVER, self.at(seconds)).expect("reopens");
    }

    /// Returns the time `seconds` after the start of the test.
    fn at(&self, seconds: u64) -> Now {
        let later = Duration::from_secs(seconds);
        Now {
            instant: self.start.instant + later,
            unix_ms: seconds * 1000,
        }
    }

    /// Writes a line, `seconds` after the start of the test.
    fn push(&mut self, line: &str, rotate: &Rotate, seconds: u64) {
        let now = self.at(seconds);
        self.destination.push(line.as_bytes(), 1, ROOM, rotate, now);
    }

    /// Returns the pending report without the name of the log. Times appear as `T`, followed by the seconds.
    fn take_report(&mut self) -> Option<(bool, String)> {
        let target = format!("log {}: ", self.folder.path().join("a.log").display());
        let (is_bad, text) = self.destination.take_report(|unix_ms| format!("T{}", unix_ms / 1000))?;
        Some((is_bad, text.strip_prefix(&target).expect("the log is named").to_owned()))
    }

    /// Returns the contents of the log and of its rotated files, from the newest to the oldest.
    fn files(&self) -> Vec<String> {
        ["a.log", "a.log.1", "a.log.2", "a.log.3"]
            .iter()
            .filter_map(|name| fs::read_to_string(self.folder.path().join(name)).ok())
            .collect()
    }
}

#[test]
fn a_log_is_rotated_by_age() {
    let mut log = TestLog::new();
    let day = DAY.as_secs();
    log.push("a\n", &DAILY, 0);
    // The file is some microseconds old when it is opened, so the rotation is due slightly earlier.
    let due = log.destination.due(&DAILY).expect("an age is set");
    assert!(due <= log.start.instant + DAY);
    log.destination.upkeep(&DAILY, log.at(day - 60));
    assert_eq!(log.files(), ["a\n"]);
    log.destination.upkeep(&DAILY, log.at(day));
    assert_eq!(log.files(), ["", "a\n"], "without a new line too");
    log.destination.upkeep(&DAILY, log.at(2 * day));
    assert_eq!(log.files(), ["", "a\n"], "an empty log is not rotated");
    log.push("b\n", &DAILY, 2 * day + 1);
    log.push("c\n", &DAILY, 3 * day + 2);
    assert_eq!(log.files(), ["c\n", "b\n", "a\n"]);
    log.push("d\n", &DAILY, 4 * day + 4);
    assert_eq!(log.files(), ["d\n", "c\n", "b\n"]);
}

#[test]
fn a_log_rotated_by_another_program_is_only_reopened() {
    let mut log = TestLog::new();
    let small = Rotate {
        size: Some(4),
        age: None,
        keep: 2,
    };
    log.push("aaa\n", &small, 0);
    fs::rename(log.folder.path().join("a.log"), log.folder.path().join("a.log.1")).expect("renames");
    fs::write(log.folder.path().join("a.log"), "theirs\n").expect("writes");
    log.push("bbb\n", &small, 0);
    assert_eq!(log.files(), ["theirs\nbbb\n", "aaa\n"]);
}

#[test]
fn keep_zero_keeps_no_old_file() {
    let mut log = TestLog::new();
    let none = Rotate {
        size: Some(4),
        age: None,
        keep: 0,
    };
    log.push("aaa\n", &none, 0);
    log.push("bbb\n", &none, 0);
    assert_eq!(log.files(), ["bbb\n"]);
}

#[test]
fn an_idle_log_that_is_no_longer_named_is_closed_and_reopens() {
    let mut log = TestLog::new();
    log.push("a\n", &NEVER, 0);
    assert_eq!(log.destination.due(&NEVER), None, "nothing to wait for");
    log.destination.set_in_use(false);
    let close = CLOSE_AFTER.as_secs();
    assert_eq!(log.destination.due(&NEVER), Some(log.at(close).instant));
    log.destination.upkeep(&NEVER, log.at(close - 1));
    assert!(log.destination.output.is_some());
    log.destination.upkeep(&NEVER, log.at(close));
    assert!(log.destination.output.is_none() && log.destination.due(&NEVER).is_none());
    log.push("b\n", &NEVER, close + 1);
    assert_eq!(log.files(), ["a\nb\n"]);
}

#[test]
fn a_failed_log_is_retried_once_a_second_and_reported() {
    let mut log = TestLog::full();
    log.push("a\n", &NEVER, 1);
    assert_eq!(log.destination.due(&NEVER), Some(log.at(2).instant));
    assert_eq!(
        log.take_report(),
        Some((
            true,
            "cannot be written, and its lines have been held since T1: no space left on device".to_owned()
        ))
    );
    log.push("b\n", &NEVER, 1);
    assert_eq!((log.take_report(), log.destination.held_lines()), (None, 2));
    log.destination.upkeep(&NEVER, log.at(2));
    assert_eq!(log.destination.due(&NEVER), Some(log.at(3).instant));
    let long = "x".repeat(HELD_MAX) + "\n";
    log.push(&long, &NEVER, 2);
    assert_eq!(log.destination.take_dropped(), 1);
    assert_eq!(
        log.take_report(),
        Some((true, "1 line lost since T1: no space left on device".to_owned()))
    );
    log.mend(3);
    assert_eq!(log.files(), ["a\nb\n"]);
    assert_eq!(
        log.take_report(),
        Some((false, "recovered, 1 line lost since T1".to_owned()))
    );
    assert_eq!((log.take_report(), log.destination.due(&NEVER)), (None, None));
}

#[test]
fn lines_held_for_a_failed_log_are_bounded() {
    for (size, dropped) in [(HELD_MAX, 0), (HELD_MAX + 1, 1)] {
        let mut log = TestLog::full();
        log.push(&("x".repeat(size - 1) + "\n"), &NEVER, 1);
        assert_eq!(log.destination.take_dropped(), dropped, "{size} bytes");
        // One more byte fits only if the first line was dropped.
        log.push("\n", &NEVER, 1);
        assert_eq!(log.destination.take_dropped(), 1 - dropped, "one byte after {size}");
    }
}

#[test]
fn a_failure_that_ends_before_it_is_reported_is_not_reported() {
    let mut log = TestLog::full();
    log.push("a\n", &NEVER, 1);
    log.mend(1);
    assert_eq!((log.take_report(), log.files()), (None, vec!["a\n".to_owned()]));
    log.destination.count_lost(3, "reasons", log.at(2));
    assert_eq!(
        log.take_report(),
        Some((true, "3 lines lost since T2: reasons".to_owned()))
    );
    assert_eq!(log.take_report(), None);
}

#[test]
fn the_limit_for_all_logs_is_kept() {
    let mut log = TestLog::full();
    let now = log.at(0);
    // Each line has two bytes. `room` limits the bytes held after it.
    for (room, dropped) in [(4, 0), (4, 0), (4, 1), (5, 1), (6, 0)] {
        log.destination.push(b"a\n", 1, room, &NEVER, now);
        assert_eq!(log.destination.take_dropped(), dropped, "{room}");
    }
}

#[test]
fn line_start_follows_the_last_newline() {
    for (bytes, start) in [("", 0), ("ab", 0), ("a\n", 2), ("a\nb", 2), ("a\nb\nc", 4)] {
        assert_eq!(line_start(bytes.as_bytes()), start, "{bytes:?}");
    }
}
