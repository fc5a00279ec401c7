//! The control socket: its path, its permissions, and the server that a command addresses.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use super::{SITE, home, json, success};
use crate::program::{ProgramFolder, ProgramOutput};

#[test]
fn the_socket_is_found_by_the_configuration_and_by_the_option() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let socket = dir.path().join("run/other.sock");
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"run/other.sock\"\n{SITE}"));
    let server = dir.serve_by(&["env", "-u", "ROCKNET_SOCKET"], &["run"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o660, 0o750));
    let id = server.id();
    let shows = |output: ProgramOutput| assert!(success(output).contains(&format!("process {id}\n")));
    shows(dir.run(&["status", "--socket", socket.to_str().unwrap()]));
    shows(dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status"]));
    shows(dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status", "-c", "rocknet.toml"]));
    // `dir.run` sets the variable `ROCKNET_SOCKET`, which takes precedence, to a path where nothing listens.
    let missing = dir.run(&["status"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.err.contains("no server is running: nothing listens at "),
        "{}",
        missing.err
    );
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"off\"\n{SITE}"));
    let off = dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status"]);
    assert!(off.err.contains("the control socket is switched off"), "{}", off.err);
}

#[test]
fn a_second_server_with_the_same_socket_serves_without_it() {
    let dir = home();
    let first = dir.serve(&["run"]);
    let second = dir.serve(&["run"]);
    second.logged("the control API is not available at ");
    assert!(second.get("/").contains("home"));
    let status = success(dir.run(&["status"]));
    assert!(status.contains(&format!("process {}\n", first.id())), "{status}");
    second.signal(Signal::TERM);
    assert_eq!(second.wait(), Some(0));
    success(dir.run(&["status"]));
}

#[test]
fn a_command_does_not_address_another_server() {
    let dir = home();
    dir.write("other.toml", SITE);
    let server = dir.serve(&["run"]);
    for command in ["stop", "reload", "status"] {
        let refused = dir.run(&[command, "-c", "other.toml"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("rocknet.toml, not /"), "{}", refused.err);
        let missing = dir.run(&[command, "-c", "missing.toml"]);
        assert_eq!(missing.code, Some(78), "{missing:?}");
        assert!(missing.err.contains("missing.toml"), "{}", missing.err);
    }
    let status = json(&success(dir.run(&["status", "--json"])));
    let file = dir.path().canonicalize().unwrap().join("rocknet.toml");
    assert_eq!(status["config_file"], file.to_str().unwrap());
    assert!(server.get("/").contains("home"));
}

#[test]
fn a_reload_reports_that_the_addresses_of_the_api_stay() {
    let dir = home();
    let server = dir.serve(&["run"]);
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"off\"\n{SITE}"));
    let reload = dir.run(&["reload"]);
    let message = "`admin.socket`: the new value takes effect after a restart";
    assert!(reload.code == Some(0) && reload.err.contains(message), "{reload:?}");
    server.logged(message);
}

#[test]
fn an_address_that_is_in_use_does_not_affect_the_socket() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!("[server]\nstate = \"state\"\n[admin]\nlisten = \"{address}\"\n{SITE}");
    dir.write("rocknet.toml", &text);
    let server = dir.serve(&["run"]);
    server.logged(&format!("the control API is not available at {address}: "));
    success(dir.run(&["status"]));
}

#[test]
fn the_socket_of_a_killed_server_is_replaced() {
    let dir = home();
    let first = dir.serve(&["run"]);
    first.signal(Signal::KILL);
    first.wait();
    assert!(dir.path().join("control.sock").exists());
    assert!(dir.run(&["status"]).err.contains("no server is running"));
    let second = dir.serve(&["run"]);
    assert!(success(dir.run(&["status"])).contains(&format!("process {}\n", second.id())));
}
