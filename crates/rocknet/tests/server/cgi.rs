//! CGI programs: which files are run, their variables and output, and when they are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

use super::access::{auth, basic};
use super::support::client::request;
use super::support::http2::Http2;
use super::support::{DEADLINE, Folder, Running};

/// Start of a shell script that prints the head of a text response.
const SHELL: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n";

fn folder() -> Folder {
    let script = |text: &str| format!("{SHELL}{text}");
    let (env, cat, pid, fds) = (
        script("env | sort; pwd"),
        script("cat"),
        script("echo $$; sleep 1000 & echo $!; sleep 1000"),
        "#!/usr/bin/env python3\nimport os\nprint('Content-Type: text/plain\\n')\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd')))\n".to_owned(),
    );
    let folder = Folder::with(&[
        ("www/index.html", "home"),
        ("www/cgi-bin/env.sh", &env),
        ("www/cgi-bin/sub/env.sh", &env),
        ("www/cgi-bin/cat.sh", &cat),
        ("www/cgi-bin/pid.sh", &pid),
        ("www/cgi-bin/fds.py", &fds),
        ("www/cgi-bin/data.txt", "not to be seen"),
        ("www/cgi-bin/.hidden.sh", &env),
        (
            "www/cgi-bin/nph-x.sh",
            "#!/bin/sh\nprintf 'HTTP/1.1 200 OK\\r\\n\\r\\nnph'\n",
        ),
        (
            "www/cgi-bin/status.sh",
            "#!/bin/sh\nprintf 'Status: 418 Tea\\nX-A: b\\nConnection: close\\n\\ntea'\n",
        ),
        ("www/cgi-bin/away.sh", "#!/bin/sh\nprintf 'Location: /there\\n\\n'\n"),
        ("www/cgi-bin/silent.sh", "#!/bin/sh\necho trouble >&2\nexit 3\n"),
        ("www/cgi-bin/no-interpreter", "#!/nothing/here\n"),
        ("www/cgi-bin/slow-head.sh", "#!/bin/sh\nsleep 1000\n"),
        ("www/cgi-bin/large.sh", &script("head -c 30000000 /dev/zero")),
        ("www/cgi-bin/deaf.sh", &script("exec <&-; echo deaf")),
        (
            "www/cgi-bin/file.sh",
            "#!/bin/sh\nprintf 'X-Accel-Redirect: /index.html\\n\\n'\n",
        ),
        (
            "www/cgi-bin/p.py",
            "#!/usr/bin/env python3\nimport os, sys\nprint('Content-Type: text/plain\\n')\nprint('python', os.environ['QUERY_STRING'], len(sys.stdin.read()))\n",
        ),
        (
            "www/cgi-bin/p.pl",
            "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\nperl $ENV{PATH_INFO}\\n\";\n",
        ),
        ("outside.sh", &env),
    ]);
    for name in fs::read_dir(folder.path("www/cgi-bin")).expect("a folder").flatten() {
        let mode = if name.file_name() == "data.txt" { 0o644 } else { 0o755 };
        fs::set_permissions(name.path(), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    for (name, mode) in [("", 0o755), ("www/cgi-bin/sub/env.sh", 0o755), ("outside.sh", 0o755)] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    folder.link("www/cgi-bin/out.sh", folder.path("outside.sh"));
    folder
}

/// Keys of a site with programs. `fallback` names a file in their folder, which must not be served.
const CGI: &str = "cgi = \"/cgi-bin\"\nlimits = { answer_timeout = \"2s\" }\nfallback = \"/cgi-bin/data.txt\"";

/// Waits until a process has exited. Returns false if it still runs at the deadline.
fn has_exited(pid: Pid) -> bool {
    let deadline = Instant::now() + DEADLINE;
    while test_kill_process(pid).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    test_kill_process(pid).is_err()
}

#[test]
fn only_programs_are_run() {
    let server = Running::site(folder(), CGI);
    let mut client = server.connect();
    for (path, status, fields, content) in [
        (
            "/cgi-bin/env.sh",
            200,
            &["Content-Type: text/plain"][..],
            "SCRIPT_NAME=/cgi-bin/env.sh\n",
        ),
        ("/cgi-bin/env.sh/more/x%20y?q=1", 200, &[], "PATH_INFO=/more/x y\n"),
        ("/cgi-bin/env.sh/Special:x", 200, &[], "PATH_INFO=/Special:x\n"),
        ("/cgi-bin/sub/env.sh/", 200, &[], "PATH_INFO=/\n"),
        ("/x/../cgi-bin//env.sh", 200, &[], "SCRIPT_NAME=/cgi-bin/env.sh\n"),
        ("/cgi-bin/p.py?a=b", 200, &[], "python a=b 0\n"),
        ("/cgi-bin/p.pl/info", 200, &[], "perl /info\n"),
        ("/cgi-bin/status.sh", 418, &["X-A: b", "!Connection"], "tea"),
        ("/cgi-bin/away.sh", 302, &["Location: /there"], ""),
        (
            "/cgi-bin/file.sh",
            200,
            &["Content-Type: text/html; charset=utf-8"],
            "home",
        ),
        ("/cgi-bin/deaf.sh", 200, &[], "deaf"),
        ("/cgi-bin/nph-x.sh", 502, &[], ""),
        ("/cgi-bin/silent.sh", 502, &[], ""),
        ("/cgi-bin/no-interpreter", 502, &[], ""),
        ("/cgi-bin/data.txt", 403, &[], ""),
        ("/cgi-bin/data.txt/x", 403, &[], ""),
        ("/cgi-bin/.hidden.sh", 404, &[], ""),
        ("/cgi-bin/out.sh", 404, &[], ""),
        ("/cgi-bin/../../outside.sh", 400, &[], ""),
        ("/cgi-bin/..%2f..%2foutside.sh", 404, &[], ""),
        ("/cgi-bin/", 404, &[], ""),
        ("/cgi-bin/sub", 404, &[], ""),
        ("/cgi-bin/none.sh", 404, &[], ""),
        ("/", 200, &[], "home"),
        // Files in the program folder are not served as a fallback either.
        ("/no/such/page", 403, &[], ""),
    ] {
        let response = client.get(path);
        response.expect(path, status, fields);
        assert!(response.text().contains(content), "{path}: {response:?}");
        assert!(
            !response.text().contains("not to be seen") && !response.text().contains("#!"),
            "{path}: {response:?}"
        );
        if response.field("Connection") == Some("close") {
            client = server.connect();
        }
    }
}

#[test]
fn a_program_gets_only_the_variables_of_its_request() {
    let server = Running::site(folder(), CGI);
    let fields = [
        "Proxy: http://evil",
        "Authorization: Basic x",
        "X-A: 1",
        "X_A: 2",
        "Content-Type: a/b",
    ];
    let text = server.fetch("GET /cgi-bin/sub/env.sh?a=b;c", &fields).text();
    let www = server.folder.path("www").canonicalize().expect("a root");
    let expected = [
        "CONTENT_TYPE=a/b".to_owned(),
        format!("DOCUMENT_ROOT={}", www.display()),
        "GATEWAY_INTERFACE=CGI/1.1".to_owned(),
        "HTTP_X_A=1".to_owned(),
        "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
        "QUERY_STRING=a=b;c".to_owned(),
        "REQUEST_METHOD=GET".to_owned(),
        format!("SCRIPT_FILENAME={}/cgi-bin/sub/env.sh", www.display()),
        // The output of `pwd`: a program starts in its own folder.
        format!("{}/cgi-bin/sub", www.display()),
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    for name in ["HTTP_PROXY=", "AUTHORIZATION", "HOME=", "CARGO", "PATH_INFO"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    // The program has three pipes, and a descriptor that it opened itself to list its descriptors.
    let text = server.get("/cgi-bin/fds.py").text();
    assert_eq!(text, "[0, 1, 2, 3]\n");
}

#[test]
fn programs_get_passwords_only_if_configured_and_not_verified() {
    let keys = format!(
        "cgi = {{ folder = \"/cgi-bin\", authorization = true }}\n[site.default.route.\"/cgi-bin/sub/*\"]\n{}",
        auth()
    );
    let server = Running::site(folder(), &keys);
    let fields = ["Authorization: Bearer token", "Proxy-Authorization: Basic x"];
    let text = server.fetch("GET /cgi-bin/env.sh", &fields).text();
    assert!(text.contains("HTTP_AUTHORIZATION=Bearer token\n"), "{text}");
    assert!(!text.contains("PROXY_AUTHORIZATION"), "{text}");
    let text = server
        .fetch("GET /cgi-bin/sub/env.sh", &[&basic("bob", "secret")])
        .text();
    assert!(text.contains("REMOTE_USER=bob\n"), "{text}");
    assert!(!text.contains("AUTHORIZATION"), "{text}");
}

#[test]
fn bodies_stream_both_ways() {
    let server = Running::site(folder(), CGI);
    let mut client = server.connect();
    client.send(request("POST /cgi-bin/p.py", &["Content-Length: 5000000"]));
    client.send(vec![b'x'; 5_000_000]);
    assert_eq!(client.response().text(), "python  5000000\n");
    client.send(request("POST /cgi-bin/cat.sh", &["Transfer-Encoding: chunked"]) + "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "hello");
    assert_eq!(client.get("/cgi-bin/large.sh").body.len(), 30_000_000);
}

#[test]
fn a_program_is_killed_at_a_disconnect_or_timeout() {
    let server = Running::site(folder(), CGI);
    // The program prints the pid of its shell and of a program that the shell has started.
    let mut client = server.connect();
    client.send(request("GET /cgi-bin/pid.sh", &[]));
    client.head();
    let mut text = String::new();
    // Numbers above 9 are pids; smaller ones are chunk sizes.
    let pids = |text: &str| -> Vec<Pid> {
        let words = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n')?.parse().ok());
        words.filter(|pid| *pid > 9).filter_map(Pid::from_raw).collect()
    };
    while pids(&text).len() < 2 {
        text.push_str(&String::from_utf8_lossy(&client.bytes(1)));
    }
    let pids = pids(&text);
    assert_eq!(pids.len(), 2, "{text}");
    drop(client);
    for pid in pids {
        assert!(has_exited(pid), "{pid:?} still runs");
    }
    let begun = Instant::now();
    assert_eq!(server.get("/cgi-bin/slow-head.sh").status, 504);
    // `answer_timeout` is two seconds. Half of it rules out that the response has another reason.
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn programs_get_the_same_requests_over_http2() {
    let server = Running::start(
        folder(),
        &format!(
            "[server]\nh2c = true\nworkers = 1\n{}",
            super::support::running::site(CGI)
        ),
    );
    let mut client = Http2::to(server.address());
    for _ in 0..3 {
        let response = client.get("/cgi-bin/p.py?x");
        assert_eq!(response.status, 200);
        assert_eq!(response.content[..], b"python x 0\n"[..]);
    }
}

/// Each limit is tested with a program just within it and a program beyond it.
#[test]
fn each_folder_has_the_limits_of_its_table() {
    let folder = folder();
    let bytes = |count: usize| format!("{SHELL}head -c {count} /dev/zero");
    // The head that `SHELL` prints has 28 bytes.
    for (name, text) in [
        ("fits.sh", bytes(4096 - 28)),
        ("beyond.sh", bytes(4096 - 27)),
        ("quick.sh", format!("{SHELL}sleep 0.1; echo done")),
        ("long.sh", format!("{SHELL}echo begun; sleep 1000")),
    ] {
        let path = folder.path(&format!("www/cgi-bin/{name}"));
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let table = "cgi = { folder = \"/cgi-bin\", programs = 1, queue = \"500ms\", time = \"2s\", output = \"4KiB\", \
                 params = { LANG = \"C.UTF-8\", SERVER_SOFTWARE = \"mine\", HTTP_X_A = \"\", PATH = \"\" } }";
    let server = Running::site(folder, table);

    let text = server.fetch("GET /cgi-bin/env.sh", &["X-A: 1", "X-B: 2"]).text();
    for line in ["LANG=C.UTF-8", "SERVER_SOFTWARE=mine", "HTTP_X_B=2"] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert_eq!(text.matches("SERVER_SOFTWARE=").count(), 1, "{text}");
    assert!(
        !text.contains("HTTP_X_A=") && !text.contains("/usr/local/bin"),
        "{text}"
    );

    assert_eq!(server.get("/cgi-bin/fits.sh").body.len(), 4096 - 28);
    let mut client = server.connect();
    client.send(request("GET /cgi-bin/beyond.sh", &["Connection: close"]));
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "a cut response looks complete");

    assert_eq!(server.get("/cgi-bin/quick.sh").text(), "done\n");
    // The only slot is in use until its program is killed.
    let begun = Instant::now();
    let mut client = server.connect();
    client.send(request("GET /cgi-bin/long.sh", &["Connection: close"]));
    client.head();
    server.get("/cgi-bin/quick.sh").expect("no slot", 503, &[]);
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "a cut response looks complete");
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(server.get("/cgi-bin/quick.sh").text(), "done\n");
}

/// The wait for a slot does not shorten the time that a program has for its response.
#[test]
fn the_timeout_of_a_response_begins_after_the_queue() {
    let folder = folder();
    // The first program sends a piece every 0.2 s and holds the only slot for longer than `answer_timeout`.
    let steps = "for step in 1 2 3 4 5 6 7 8; do echo $step; sleep 0.2; done";
    for (name, text) in [
        ("slow.sh", format!("{SHELL}{steps}")),
        ("next.sh", format!("{SHELL}echo done")),
    ] {
        let path = folder.path(&format!("www/cgi-bin/{name}"));
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let table = "cgi = { folder = \"/cgi-bin\", programs = 1, queue = \"30s\" }\nlimits = { answer_timeout = \"1s\" }";
    let server = Running::site(folder, table);
    let mut client = server.connect();
    client.send(request("GET /cgi-bin/slow.sh", &["Connection: close"]));
    client.head();
    assert_eq!(server.get("/cgi-bin/next.sh").text(), "done\n");
}

/// A background process keeps the output of its program open for far longer than the response takes.
#[test]
fn a_response_ends_with_its_program_although_a_child_keeps_its_output_open() {
    let folder = folder();
    let child = "sleep 1000 & echo $!";
    let program = |head: &str, rest: &str| format!("#!/bin/sh\nprintf '{head}'\n{rest}");
    let text = "Content-Type: text/plain\\r\\n";
    for (name, text) in [
        ("child.sh", program(&format!("{text}\\r\\n"), child)),
        // The program itself ends after its child is started, with more output than the pipe holds.
        (
            "large-child.sh",
            program(&format!("{text}\\r\\n"), "sleep 1000 & head -c 300000 /dev/zero"),
        ),
        (
            "length-child.sh",
            program(
                &format!("{text}Content-Length: 3\\r\\n\\r\\n"),
                "printf abc; sleep 1000 &",
            ),
        ),
        // The child writes the announced body later than the time without output that ends other responses.
        (
            "late-child.sh",
            program(
                &format!("{text}Content-Length: 3\\r\\n\\r\\n"),
                "(sleep 2; printf abc; sleep 1000) &",
            ),
        ),
        // The child of a pipeline writes on while the program has ended.
        (
            "writing-child.sh",
            program(
                &format!("{text}\\r\\n"),
                "(for n in 1 2 3 4 5; do sleep 0.4; echo $n; done; sleep 1000) &",
            ),
        ),
        (
            "headless-child.sh",
            program("Content-Type: text/plain", "sleep 1000 & echo $! >&2"),
        ),
    ] {
        let path = folder.path(&format!("www/cgi-bin/{name}"));
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    // Longer than the deadline of the client, so that a response at this timeout fails the test.
    let server = Running::site(folder, "cgi = \"/cgi-bin\"\nlimits = { answer_timeout = \"10m\" }");
    let mut client = server.connect();
    let child = client.get("/cgi-bin/child.sh");
    child.expect("a child", 200, &["Content-Type: text/plain"]);
    let child = child
        .text()
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("the pid of the child");
    assert!(test_kill_process(child).is_ok(), "background processes may run on");
    assert_eq!(client.get("/cgi-bin/large-child.sh").body.len(), 300_000);
    assert_eq!(client.get("/cgi-bin/length-child.sh").text(), "abc");
    assert_eq!(client.get("/cgi-bin/late-child.sh").text(), "abc");
    assert_eq!(client.get("/cgi-bin/writing-child.sh").text(), "1\n2\n3\n4\n5\n");
    client.get("/cgi-bin/headless-child.sh").expect("no head", 502, &[]);
    drop(server);
    assert!(has_exited(child), "background processes end with the server");
}

/// The programs run on with an open output after the last byte of their response.
#[test]
fn a_program_may_end_by_itself_after_its_complete_response() {
    let folder = folder();
    let head = "Content-Type: text/plain\\r\\nContent-Length";
    for (name, output) in [
        ("body", format!("{head}: 3\\r\\n\\r\\nabc")),
        ("empty", format!("{head}: 0\\r\\n\\r\\n")),
        ("more", format!("{head}: 3\\r\\n\\r\\nabc\\r\\n")),
    ] {
        let path = folder.path(&format!("www/cgi-bin/{name}.sh"));
        let done = folder.path(&format!("{name}.done"));
        let rest = format!("sleep 1\necho done >'{}'\n", done.display());
        fs::write(&path, format!("#!/bin/sh\nprintf '{output}'\n{rest}")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o777)).expect("a mode");
    let done = ["body", "empty", "more"].map(|name| folder.path(&format!("{name}.done")));
    let server = Running::site(folder, CGI);
    let mut client = server.connect();
    assert_eq!(client.get("/cgi-bin/body.sh").text(), "abc");
    assert_eq!(client.get("/cgi-bin/empty.sh").text(), "");
    assert_eq!(client.get("/cgi-bin/more.sh").text(), "abc");
    let deadline = Instant::now() + DEADLINE;
    for file in done {
        while !file.exists() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(file.exists(), "{} is missing: its program was killed", file.display());
    }
}

/// A background process keeps the output open, and never writes the rest of the announced body.
#[test]
fn a_response_that_lacks_announced_bytes_is_cut() {
    let folder = folder();
    let path = folder.path("www/cgi-bin/short-child.sh");
    let head = "Content-Type: text/plain\\r\\nContent-Length: 3\\r\\n\\r\\n";
    fs::write(&path, format!("#!/bin/sh\nprintf '{head}a'\nsleep 1000 &\n")).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    // The time in the queue is not added to the time for a piece of the response.
    let cgi = "cgi = { folder = \"/cgi-bin\", queue = \"2m\" }";
    let server = Running::site(folder, &format!("{cgi}\nlimits = {{ answer_timeout = \"2s\" }}"));
    let mut client = server.connect();
    client.send(request("GET /cgi-bin/short-child.sh", &[]));
    assert!(client.head().contains("Content-Length: 3\r\n"));
    assert_eq!(client.rest(), b"a");
}

over_http3! {
    each_folder_has_the_limits_of_its_table,
    only_programs_are_run,
    a_program_gets_only_the_variables_of_its_request,
    bodies_stream_both_ways,
    a_program_is_killed_at_a_disconnect_or_timeout,
}

#[test]
fn resolved_rules_apply_to_programs_with_a_path_after_them() {
    let keys = format!("{CGI}\nrule = [{{ path = \"*/env.sh\", respond = 403, resolved = true }}]");
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    // A path with too many slashes is refused, because each of its beginnings can be the program.
    let long = format!("/cgi-bin/cat.sh{}", "/x".repeat(400));
    for (path, status) in [
        ("/cgi-bin/cat.sh/x/y", 200),
        ("/cgi-bin/env.sh", 403),
        ("/cgi-bin/env.sh/x/y", 403),
        ("/cgi-bin/sub/env.sh/x", 403),
        (&*long, 403),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
}
