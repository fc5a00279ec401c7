//! Services of a real server, as the worker queries and instructs them: at its socket, and at its address with each of
//! its tokens.

#[path = "machine/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod machine;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::thread;

use machine::WorkerLink;
use rocknet_control::UpstreamState;
use rocknet_control::api::Permission;
use rocknet_gui::elsewhere::{Elsewhere, ServerPlace};
use rocknet_gui::job::{Absence, Job, Query, Report, ServiceJob};
use tempfile::TempDir;

/// A server with a website that forwards requests, and a worker that is connected to its socket.
struct Machine {
    folder: TempDir,
    server: Child,
    port: u16,
    admin: u16,
    upstream: String,
    worker: WorkerLink,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts a server that replies to each request with an empty response, and returns its address.
fn upstream() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    format!("http://{address}")
}

impl Machine {
    /// Returns `None`, and records a skip, if the server is not built.
    fn start() -> Option<Machine> {
        let program = machine::program()?;
        let folder = tempfile::tempdir().unwrap();
        let (port, admin, upstream) = (free_port(), free_port(), upstream());
        let config = folder.path().join("rocknet.toml");
        let text = format!(
            "[server]\nmode = \"dev\"\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n\
             [site.\"app.localhost\"]\nlisten = \"http://127.0.0.1:{port}\"\nproxy = \"{upstream}\"\n"
        );
        fs::write(&config, text).unwrap();
        let server = machine::start_server(&program, &config);
        let worker = WorkerLink::start(machine::options(&program, &config));
        let machine = Machine {
            folder,
            server,
            port,
            admin,
            upstream,
            worker,
        };
        machine.wait("the worker is connected", |report| {
            matches!(report, Report::Polled(_)).then_some(())
        });
        Some(machine)
    }

    fn send(&self, job: Job) {
        self.worker.send(job);
    }

    fn wait<T>(&self, what: &str, take: impl FnMut(&Report) -> Option<T>) -> T {
        self.worker.wait(what, take)
    }

    fn get(&self) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        let host = format!("app.localhost:{}", self.port);
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn use_token(&self, token: &str) {
        self.send(Job::UseServer(Elsewhere {
            place: ServerPlace::Address,
            address: format!("127.0.0.1:{}", self.admin),
            token: token.to_owned(),
            ..Elsewhere::default()
        }));
    }

    fn token(&self, name: &str) -> String {
        let file: PathBuf = self.folder.path().join("state/admin").join(name);
        fs::read_to_string(file).unwrap().trim().to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn other_servers_are_measured_and_taken_out_of_service() {
    let Some(machine) = Machine::start() else { return };
    assert!(machine.get().starts_with("HTTP/1.1 200"), "{}", machine.get());
    machine.send(Job::Query(Query::Upstreams));
    let report = machine.wait("the servers are listed", |report| match report {
        Report::Upstreams(result) => Some(result.clone().unwrap()),
        _ => None,
    });
    let address = report.list[0].address.clone();
    assert_eq!(
        (address.as_str(), report.list[0].state),
        (&*machine.upstream, UpstreamState::Up)
    );
    let times = report.times[&address];
    assert!(times.count >= 1 && times.seconds > 0.0, "{times:?}");

    machine.send(Job::Query(Query::Uses));
    let uses = machine.wait("their websites are found", |report| match report {
        Report::Uses(result) => Some(result.clone().unwrap()),
        _ => None,
    });
    assert_eq!((&*uses[0].site, &uses[0].servers[0]), ("app.localhost", &address));
    // The second query has the same result, from memory.
    machine.send(Job::Query(Query::Uses));
    let again = machine.wait("they are reported again", |report| match report {
        Report::Uses(result) => Some(result.clone().unwrap()),
        _ => None,
    });
    assert_eq!(again, uses);

    machine.send(Job::Service(ServiceJob::Drain(address.clone(), true)));
    let report = machine.wait("the list is queried again", |report| match report {
        Report::Upstreams(result) => Some(result.clone().unwrap()),
        _ => None,
    });
    assert_eq!(report.list[0].state, UpstreamState::Drained);
    let outcome = machine.wait("the outcome is reported", |report| match report {
        Report::Served(ServiceJob::Drain(own, true), result) => Some((own.clone(), result.is_ok())),
        _ => None,
    });
    assert_eq!(outcome, (address, true));

    machine.send(Job::Query(Query::Php));
    let php = machine.wait("PHP is listed", |report| match report {
        Report::Php(result) => Some(result.clone().unwrap()),
        _ => None,
    });
    assert_eq!((php.pools.len(), php.missing), (0, Some(Vec::new())));
    machine.send(Job::Query(Query::Trust));
    machine.wait("trust stores are listed", |report| match report {
        Report::Trust(result) => Some(result.clone().unwrap()),
        _ => None,
    });
}

#[test]
fn tokens_permit_what_they_are_for() {
    let Some(machine) = Machine::start() else { return };
    let connected = |report: &Report| matches!(report, Report::Polled(_)).then_some(());
    machine.use_token("wrong");
    machine.wait("the wrong token is refused", |report| {
        matches!(report, Report::Absent(Absence::WrongToken(_))).then_some(())
    });
    let file = machine.folder.path().join("settings/server.toml");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    machine.use_token(&machine.token("read-token"));
    machine.wait("the read token permits reading only", |report| {
        matches!(report, Report::Permission(Permission::Read)).then_some(())
    });
    machine.wait("the read token is accepted", connected);
    machine.send(Job::Query(Query::Upstreams));
    machine.wait("it shows the servers", |report| {
        matches!(report, Report::Upstreams(Ok(_))).then_some(())
    });
    machine.send(Job::Query(Query::History));
    machine.wait("it does not show the history", |report| {
        matches!(report, Report::Denied(Query::History)).then_some(())
    });
    machine.send(Job::FollowLogs);
    machine.wait("it does not show the logs", |report| {
        matches!(report, Report::LogsRefused(None)).then_some(())
    });
    machine.send(Job::Reload);
    machine.wait("it changes nothing", |report| {
        matches!(report, Report::NotPermitted).then_some(())
    });

    machine.use_token(&machine.token("token"));
    machine.wait("the full token permits everything", |report| {
        matches!(report, Report::Permission(Permission::Full)).then_some(())
    });
    machine.wait("the full token is accepted", connected);
    machine.send(Job::FollowLogs);
    let line = machine.wait("lines of the log arrive", |report| match report {
        Report::Log(lines) => Some(lines[0].line.clone()),
        _ => None,
    });
    assert!(!line.is_empty());
    machine.send(Job::Reload);
    machine.wait("it reloads the configuration", |report| {
        matches!(report, Report::Done(_)).then_some(())
    });
}
