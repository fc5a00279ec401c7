//! Tests of php-fpm and php-cgi processes: failures, restarts and requests.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

use rocknet_proto::fastcgi::{self, Params};

use super::*;

/// Maximum wait for an event or a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Creates the process of pool 1 with this program, and the receiver of its events.
fn process(folder: &Path, sapi: Sapi, program: PathBuf) -> (FpmProcess, Receiver<PhpEvent>) {
    let (sender, events) = channel();
    let installed = Installed {
        major: 8,
        minor: 2,
        sapi,
        program,
    };
    let pool = Pool {
        program: PhpProgram::Found(installed),
        user: None,
        settings: rocknet_config::model::PhpSettings::default(),
        dev: false,
        body_size: 1 << 20,
        drain_timeout: TIMEOUT,
    };
    (FpmProcess::new(1, pool, folder, sender, Arc::default()), events)
}

#[test]
fn the_last_lines_of_stderr_are_reported_and_the_process_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("php-fpm8.2");
    let script = "#!/bin/sh\necho \"[x] ERROR: unable to bind\" >&2\necho \"[x] ERROR: FPM initialization failed\" >&2\nexit 78\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut process, events) = self::process(folder.path(), Sapi::Fpm, program);
    // The first failure may be an accident, so requests fail only after the second.
    for is_reported in [false, true] {
        process.tick();
        assert!(matches!(events.recv_timeout(TIMEOUT), Ok(PhpEvent::StderrClosed(1, _))));
        assert!(UnixStream::connect(&process.socket).is_ok());
        process.on_stderr_closed(process.run);
        assert_eq!(process.sockets.failure(&process.socket).is_some(), is_reported);
    }
    assert!(UnixStream::connect(&process.socket).is_err());
    let failure = process.sockets.failure(&process.socket).unwrap();
    let expected = "unable to bind; [x] ERROR: FPM initialization failed";
    assert!(failure.contains(expected) && failure.contains("78"), "{failure}");
    let due = process.due().unwrap();
    assert!(due > Instant::now() && due <= Instant::now() + FIRST_RESTART_DELAY);
    process.end(TIMEOUT, false);
    assert!(process.is_gone());
    assert_eq!(process.sockets.failure(&process.socket), None);
    // A program that cannot be started.
    let (mut none, _events) = self::process(folder.path(), Sapi::Fpm, folder.path().join("none"));
    // Two starts fail; after the second one, the failure is reported.
    none.tick();
    none.tick();
    assert!(
        none.sockets
            .failure(&none.socket)
            .unwrap()
            .contains("cannot be started")
    );
}

#[test]
fn php_cgi_serves_scripts_if_there_is_no_php_fpm() {
    let program = PathBuf::from("/usr/bin/php-cgi8.2");
    assert!(
        program.exists(),
        "php-cgi, which `cargo xtask test` installs (php8.2-cgi)"
    );
    let folder = tempfile::tempdir().unwrap();
    // The folder and the script are readable by all, because PHP runs as another account if the test runs as root.
    for path in [folder.path().to_owned(), folder.path().join("a.php")] {
        if !path.exists() {
            std::fs::write(
                &path,
                "<?php echo ini_get('post_max_size'), getenv('HTTP_A'); error_log('oh');",
            )
            .unwrap();
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (mut process, events) = self::process(folder.path(), Sapi::Cgi, program);
    process.tick();
    let mut request = Vec::new();
    fastcgi::begin(&mut request, false);
    let mut params = Params::new(&mut request);
    let script = folder.path().join("a.php");
    for (name, value) in [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_FILENAME", script.to_str().unwrap()),
        // Without this variable, php-cgi refuses the request.
        ("REDIRECT_STATUS", "200"),
        ("HTTP_A", "!"),
    ] {
        params.push(name.as_bytes(), value.as_bytes()).unwrap();
    }
    params.finish();
    fastcgi::stdin_end(&mut request);
    let mut stream = UnixStream::connect(&process.socket).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&request).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let (mut records, mut at, mut out, mut err) = (fastcgi::ResponseReader::new(), 0, Vec::new(), Vec::new());
    while at < bytes.len() {
        let received = records.receive(&bytes[at..]).unwrap();
        match received.event {
            fastcgi::RecordEvent::Stdout(range) => out.extend_from_slice(&bytes[at..][range]),
            fastcgi::RecordEvent::Stderr(range) => err.extend_from_slice(&bytes[at..][range]),
            fastcgi::RecordEvent::End(_) | fastcgi::RecordEvent::More => {}
        }
        at += received.consumed;
    }
    assert!(out.ends_with(b"\r\n\r\n1048576!"), "{}", String::from_utf8_lossy(&out));
    assert!(
        err.starts_with(b"PHP message: oh") || err.starts_with(b"oh"),
        "{}",
        String::from_utf8_lossy(&err)
    );
    process.end(TIMEOUT, true);
    while !process.is_gone() {
        process.tick();
        thread::sleep(POLL_INTERVAL);
    }
    // All processes that held its standard error have ended.
    assert!(matches!(events.recv_timeout(TIMEOUT), Ok(PhpEvent::StderrClosed(1, _))));
    assert!(UnixStream::connect(&process.socket).is_err());
}

#[test]
fn restart_delays_grow_to_a_bound() {
    let seen: Vec<u128> = [0, 1, 2, 3, 7, 8, 9, u32::MAX]
        .map(|n| restart_delay(n).as_millis())
        .into();
    assert_eq!(seen, [0, 250, 500, 1000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn a_start_leaves_a_running_process_alone_and_starts_a_halted_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("php-fpm8.2");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut process, _events) = self::process(folder.path(), Sapi::Fpm, program);
    process.tick();
    let first = process.sockets.progress(&process.socket);
    assert!(first.pid.is_some());
    process.resume();
    process.tick();
    assert_eq!(process.sockets.progress(&process.socket).pid, first.pid);
    // The supervisor handles both events before it starts processes.
    process.halt();
    process.resume();
    process.tick();
    let second = process.sockets.progress(&process.socket);
    assert!(second.pid.is_some() && second.pid != first.pid, "{:?}", second.pid);
    assert_eq!((second.starts, process.sockets.failure(&process.socket)), (2, None));
    process.end(TIMEOUT, false);
}
