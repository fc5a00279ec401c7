//! php-fpm started by RockNet: the version, its user, sharing between sites, restarts after a crash, and reloads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::privileges::{self, User};
use rocknet_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::support::running::site;
use super::support::{DEADLINE, Folder, Running};

/// Returns a folder with scripts that every user can read.
fn folder() -> Folder {
    let folder = Folder::with(&[
        ("www/index.php", "<?php echo 'front ', $_SERVER['REQUEST_URI'];"),
        ("www/uid.php", "<?php echo posix_getuid();"),
        ("www/master.php", "<?php echo posix_getppid();"),
        ("www/pid.php", "<?php echo getmypid();"),
        ("www/version.php", "<?php echo PHP_VERSION;"),
        (
            "www/sizes.php",
            "<?php echo ini_get('post_max_size'), ' ', ini_get('display_errors');",
        ),
        ("www/echo.php", "<?php echo file_get_contents('php://input');"),
        ("www/short.php", "<?php usleep(30000); echo 'slept';"),
        (
            "www/slow.php",
            "<?php echo 'begun '; flush(); ob_flush(); usleep(2500000); echo 'done';",
        ),
    ]);
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(""), open).expect("an open folder");
    folder
}

const SERVER: &str = "[server]\nworkers = 1\nstate = \"state\"\nevents = { wait = \"20ms\", connections = 16 }\n";

fn started(keys: &str) -> Running {
    Running::start(folder(), &format!("{SERVER}{}", site(keys)))
}

/// Requests a script that prints a pid, and returns that pid.
fn pid(server: &Running, path: &str) -> Pid {
    let text = server.get(path).text();
    let number = text.parse().ok();
    number
        .and_then(Pid::from_raw)
        .unwrap_or_else(|| panic!("a number: {text}"))
}

/// Waits until a process has exited. Returns false if it still runs at the deadline.
fn has_exited(pid: Pid) -> bool {
    let deadline = Instant::now() + DEADLINE;
    while test_kill_process(pid).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    test_kill_process(pid).is_err()
}

#[test]
fn the_newest_php_is_found_and_runs_without_privileges() {
    let server = started("php = \"auto\"\nlimits = { body_size = \"3MiB\" }");
    assert_eq!(server.get("/some/where").text(), "front /some/where");
    assert_ne!(server.get("/uid.php").text(), "0");
    // `post_max_size` follows `body_size`, and PHP displays no errors.
    assert_eq!(server.get("/sizes.php").text(), "3145728 ");
    let folders: Vec<_> = fs::read_dir(server.folder.path("state/php"))
        .expect("a folder")
        .flatten()
        .collect();
    assert_eq!(folders.len(), 1);
    assert_eq!(folders[0].metadata().expect("it").permissions().mode() & 0o777, 0o700);
    let master = pid(&server, "/master.php");
    let (server, folder) = server.take();
    assert!(server.stop());
    assert!(has_exited(master));
    assert_eq!(fs::read_dir(folder.path("state/php")).expect("a folder").count(), 0);
}

#[test]
fn sites_share_one_php_fpm_which_is_restarted_when_killed() {
    let version = started("php = \"auto\"").get("/version.php").text();
    let mut parts = version.split('.');
    let version = format!(
        "{}.{}",
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default()
    );
    let server = started(&format!(
        "php = \"auto\"\n[site.default.route.\"/x/*\"]\nfallback = \"/master.php\"\nphp = \"{version}\""
    ));
    let master = pid(&server, "/master.php");
    assert_eq!(pid(&server, "/x/y"), master);
    for _ in 0..2 {
        let (master, process) = (pid(&server, "/master.php"), pid(&server, "/pid.php"));
        kill_process(master, Signal::KILL).expect("it to exist");
        // The child processes of php-fpm exit with it.
        assert!(has_exited(process));
        let next = pid(&server, "/master.php");
        assert!(next != master && is_master(next), "{next:?} after {master:?}");
    }
}

/// The pool is listed with its processes, and an operator restarts it: a request in progress is completed, and the next
/// one is served by a new process.
#[test]
fn pools_are_listed_and_restarted() {
    let server = started("php = \"auto\"");
    let master = pid(&server, "/master.php");
    let php = server.server().php();
    let until = Instant::now() + DEADLINE;
    // The first request has waited in the backlog, so its response may precede the report that php-fpm is ready.
    while !php.report()[0].is_ready {
        assert!(Instant::now() < until, "{:?}", php.report());
        thread::yield_now();
    }
    let pools = php.report();
    let [pool] = &pools[..] else { panic!("{pools:?}") };
    assert!(pool.fault.is_none() && pool.restarts == 0, "{pool:?}");
    assert!(pool.processes >= 2, "{pool:?}");
    // No pool has this name.
    assert_eq!(php.restart("0.1"), 0);
    let mut slow = server.connect();
    slow.send("GET /slow.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(slow.head().starts_with("HTTP/1.1 200"));
    assert_eq!(php.restart(&pool.name), 1);
    while php.report()[0].restarts == 0 {
        assert!(Instant::now() < until);
        thread::yield_now();
    }
    // Idle processes may accept another request until they have received the signal.
    let next = loop {
        let next = pid(&server, "/master.php");
        if next != master {
            break next;
        }
        assert!(Instant::now() < until, "the old php-fpm still responds");
    };
    assert!(is_master(next), "{next:?}");
    assert_eq!(slow.bytes("begun done".len()), b"begun done");
    assert!(has_exited(master));
}

/// A stopped pool completes its request in progress, refuses others at once with the reason, and serves again once it
/// is started. A reload that keeps its settings does not start it.
#[test]
fn a_pool_is_stopped_and_started() {
    let server = started("php = \"auto\"");
    let master = pid(&server, "/master.php");
    let php = server.server().php();
    let until = Instant::now() + DEADLINE;
    let wait = |what: &str, reached: &dyn Fn() -> bool| {
        while !reached() {
            assert!(Instant::now() < until, "{what}: {:?}", php.report());
            thread::sleep(Duration::from_millis(5));
        }
    };
    let name = php.report()[0].name.clone();
    assert_eq!((php.halt("0.1"), php.start("0.1")), (0, 0));
    let mut slow = server.connect();
    slow.send("GET /slow.php HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(slow.head().starts_with("HTTP/1.1 200"));
    // A start of a pool that runs changes nothing.
    assert_eq!(php.start(&name), 1);
    assert_eq!(php.halt(&name), 1);
    wait("the pool is stopped", &|| php.report()[0].is_stopped);
    assert_eq!(slow.bytes("begun done".len()), b"begun done");
    assert!(has_exited(master));
    let pool = php.report().remove(0);
    assert!(!pool.is_ready && pool.processes == 0 && pool.restarts == 0, "{pool:?}");
    let fault = pool.fault.expect("a reason");
    assert!(fault.contains("was stopped by request"), "{fault}");
    let refused = Instant::now();
    assert_eq!(server.get("/pid.php").status, 502);
    // A request that waits for a restart waits for three seconds.
    assert!(refused.elapsed() < Duration::from_secs(2));
    server
        .reload(&format!("{SERVER}{}", site("php = \"auto\"\nindex = [\"none.html\"]")))
        .unwrap();
    assert!(php.report()[0].is_stopped, "{:?}", php.report());
    assert_eq!(php.start(&name), 1);
    let next = pid(&server, "/master.php");
    assert!(next != master && is_master(next), "{next:?}");
    wait("the pool is ready", &|| php.report()[0].is_ready);
    let pool = php.report().remove(0);
    assert!(
        !pool.is_stopped && pool.fault.is_none() && pool.restarts == 1,
        "{pool:?}"
    );
    // `restart` starts a stopped pool too.
    php.halt(&name);
    wait("the pool is stopped again", &|| php.report()[0].is_stopped);
    // A process that is ending may still accept a connection.
    wait("its processes have ended", &|| has_exited(next));
    assert_eq!(php.restart(&name), 1);
    assert!(is_master(pid(&server, "/master.php")));
}

/// Returns true if the process is the master process of a php-fpm.
fn is_master(pid: Pid) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    line.starts_with(b"php-fpm: master")
}

/// Sets the stop flag of the threads of a test when it is dropped, even if the test panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests are sent while php-fpm is killed repeatedly. Requests in progress get a response, and the others wait.
#[test]
fn no_request_is_lost_while_php_fpm_is_killed() {
    let server = started("php = \"auto\"");
    let mut last = pid(&server, "/master.php");
    let is_over = AtomicBool::new(false);
    let fetch = |line: &str, content: &str| {
        let mut requests = 0;
        while !is_over.load(Ordering::Relaxed) {
            let mut client = server.connect();
            let length = format!("Content-Length: {}", content.len());
            client.send(super::support::client::request(line, &[&length]));
            client.send(content);
            let response = client.response();
            assert_eq!(response.status, 200, "{line} after {requests}: {response:?}");
            requests += 1;
        }
        requests
    };
    thread::scope(|scope| {
        let clients = [
            scope.spawn(|| fetch("GET /version.php", "")),
            scope.spawn(|| fetch("POST /echo.php", "content")),
            scope.spawn(|| fetch("GET /short.php", "")),
        ];
        let over = StopOnDrop(&is_over);
        for _ in 0..8 {
            kill_process(last, Signal::KILL).expect("it to exist");
            assert!(has_exited(last));
            // A child of the previous php-fpm can still respond. Its parent is no longer a php-fpm.
            let deadline = Instant::now() + DEADLINE;
            while !is_master(last) {
                assert!(Instant::now() < deadline, "no new master process was started");
                last = pid(&server, "/master.php");
            }
        }
        drop(over);
        for client in clients {
            assert!(client.join().expect("responses") > 8);
        }
    });
}

#[test]
fn a_reload_keeps_replaces_or_stops_php_fpm() {
    let server = started("php = \"auto\"");
    let first = pid(&server, "/master.php");
    let reload = |server_keys: &str, keys: &str| {
        let text = SERVER.replace("workers", &format!("{server_keys}\nworkers"));
        server.reload(&format!("{text}{}", site(keys))).expect("a reload");
    };
    reload("", "php = \"auto\"\nbrowse = true");
    assert_eq!(pid(&server, "/master.php"), first);
    // The old php-fpm completes a request in progress.
    let mut client = server.connect();
    client.send(super::support::client::request("GET /slow.php", &[]));
    // The default of `body_size`, and no display of errors.
    assert_eq!(server.get("/sizes.php").text(), "104857600 ");
    reload("mode = \"dev\"", "php = \"auto\"");
    let second = pid(&server, "/master.php");
    assert_ne!(second, first);
    assert_eq!(server.get("/sizes.php").text(), "104857600 on");
    assert_eq!(client.response().text(), "begun done");
    assert!(has_exited(first));
    reload("", "php = false");
    assert!(has_exited(second));
    assert!(server.get("/uid.php").text().contains("posix_getuid"));
    reload("", "php = \"auto\"");
    assert_ne!(pid(&server, "/master.php"), second);
}

#[test]
fn a_missing_version_is_reported_immediately() {
    let text = SERVER.replace("workers", "mode = \"dev\"\nworkers");
    let server = Running::start(folder(), &format!("{text}{}", site("php = \"1.9\"")));
    let begun = Instant::now();
    let deadline = Instant::now() + DEADLINE;
    let mut response = server.get("/");
    while !response.text().contains("apt install php1.9-fpm") && Instant::now() < deadline {
        response = server.get("/");
    }
    assert_eq!(response.status, 502);
    assert!(response.text().contains("apt install php1.9-fpm"), "{response:?}");
    assert!(begun.elapsed() < DEADLINE);
}

/// Skipped unless the tests run as root, because only root can run scripts as other users.
#[test]
fn each_site_has_its_own_user() {
    let folder = folder();
    let program = folder.path("www/cgi-bin/uid");
    fs::create_dir(folder.path("www/cgi-bin")).expect("a folder");
    fs::write(&program, "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'; id -u\n").expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let keys = "cgi = \"/cgi-bin\"\nphp = \"auto\"\n";
    let text = |one: &str, other: &str| {
        let other = format!("[site.\"b.test\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"www\"\n{keys}{other}\n");
        format!("{SERVER}{}{other}", site(&format!("{keys}{one}")))
    };
    if !privileges::is_root() {
        let refused = Running::try_start(folder, &text("user = \"nobody\"", ""), Vec::new());
        let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            message.contains("only root can run scripts as another user"),
            "{message}"
        );
        return skip(Need::Root, "only root can run scripts as another user");
    }
    let server = Running::start(folder, &text("user = \"daemon\"", "user = \"nobody\""));
    let uids = |host: &str| {
        let host = format!("Host: {host}");
        let fetch = |path: &str| {
            server
                .connect()
                .fetch(&format!("GET {path}"), &[&host])
                .text()
                .trim()
                .to_owned()
        };
        [fetch("/uid.php"), fetch("/cgi-bin/uid")]
    };
    let uid = |name: &str| User::find(name).expect("a user").uid.to_string();
    let (daemon, nobody) = (uid("daemon"), uid("nobody"));
    assert_eq!(uids("a.test"), [daemon.clone(), daemon.clone()]);
    assert_eq!(uids("b.test"), [nobody.clone(), nobody.clone()]);
    for (bad, why) in [
        ("no-such-user", "there is no user `no-such-user`"),
        ("root", "scripts are not run as root"),
    ] {
        let message = server
            .reload(&text(&format!("user = \"{bad}\""), ""))
            .expect_err("refused");
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(uids("a.test"), [daemon.clone(), daemon]);
    server
        .reload(&text("user = \"nobody\"", "user = \"nobody\""))
        .expect("a reload");
    assert_eq!(uids("a.test"), [nobody.clone(), nobody]);
    let masters = ["a.test", "b.test"].map(|host| {
        let host = format!("Host: {host}");
        server.connect().fetch("GET /master.php", &[&host]).text()
    });
    assert_eq!(masters[0], masters[1], "sites of the same user must share a php-fpm");
}
