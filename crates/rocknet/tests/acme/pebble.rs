//! Starts Pebble and its DNS server for one test, on a loopback address that no other test uses.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_config::model::{Acme, AcmeCa, Challenge};

/// Time limit of any step, long enough for a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Port at which Pebble validates HTTP-01 challenges.
pub const HTTP_PORT: u16 = 5002;
/// Port at which Pebble validates TLS-ALPN-01 challenges.
pub const TLS_PORT: u16 = 5001;

/// A running CA with its DNS server. Both are killed when the value is dropped.
pub struct Pebble {
    folder: tempfile::TempDir,
    ip: Ipv4Addr,
    programs: Vec<Child>,
}

/// Behaviour of a CA.
#[derive(Clone, Copy, Default)]
pub struct CaBehaviour {
    /// Rejects a fifth of all nonces, as a CA may at any time.
    pub rejects_nonces: bool,
}

impl Pebble {
    pub fn start() -> Pebble {
        Pebble::with(CaBehaviour::default())
    }

    pub fn with(behaviour: CaBehaviour) -> Pebble {
        let ip = own_address();
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed([ip.to_string()]).unwrap();
        // Pebble reads its certificate file a second time after it has started to listen, and exits if the file is
        // half-written. Tests therefore append further roots to a copy, `root.pem`.
        fs::write(folder.path().join("certificate.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("root.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let config = serde_json::json!({ "pebble": {
            "listenAddress": format!("{ip}:14000"),
            "managementListenAddress": format!("{ip}:15000"),
            "certificate": folder.path().join("certificate.pem"),
            "privateKey": folder.path().join("key.pem"),
            "httpPort": HTTP_PORT,
            "tlsPort": TLS_PORT,
            "domainBlocklist": ["blocked.example.com"],
            "retryAfter": { "authz": 1, "order": 1 },
            "profiles": { "default": { "description": "ninety days", "validityPeriod": 90 * 86_400 } },
        }});
        fs::write(folder.path().join("pebble.json"), config.to_string()).unwrap();
        let dns = format!("{ip}:8053");
        let mut pebble = Pebble {
            folder,
            ip,
            programs: Vec::new(),
        };
        let management = format!("{ip}:8055");
        let address = ip.to_string();
        // Empty values turn off the rest of this program: IPv6 addresses, responses to challenges, and DNS over HTTPS.
        let arguments = [
            "-defaultIPv4",
            &address,
            "-defaultIPv6",
            "",
            "-dnsserver",
            &dns,
            "-management",
            &management,
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
            "-doh",
            "",
        ];
        pebble.run("pebble-challtestsrv", &arguments, &[], "Starting management server");
        let file = pebble.folder.path().join("pebble.json");
        let nonces = if behaviour.rejects_nonces { "20" } else { "0" };
        // By default Pebble sleeps for a random time before it validates a challenge.
        let environment = [("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", nonces)];
        let arguments = ["-config", file.to_str().unwrap(), "-dnsserver", &dns];
        pebble.run("pebble", &arguments, &environment, "ACME directory available at");
        pebble.wait_for(14000);
        pebble.wait_for(8055);
        pebble
    }

    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    pub fn ca(&self) -> AcmeCa {
        AcmeCa {
            url: format!("https://{}:14000/dir", self.ip),
            binding: None,
        }
    }

    /// Path of the file with the roots that the ACME client trusts. Tests may append other roots.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Returns settings with only this CA and these challenge types.
    pub fn settings(&self, challenges: &[Challenge]) -> Acme {
        Acme {
            email: Some("ann@example.com".to_owned()),
            cas: vec![self.ca()],
            ca_root: Some(self.root()),
            challenges: challenges.to_vec(),
            dns: None,
            ask: None,
        }
    }

    /// Starts a program, and waits until a line of its output contains `ready`.
    fn run(&mut self, program: &str, arguments: &[&str], environment: &[(&str, &str)], ready: &str) {
        let mut command = Command::new(tool(program));
        command.args(arguments).envs(environment.iter().copied());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let sender = sender.clone();
            thread::spawn(move || {
                // The pipe is also read after `run` has returned, because a full pipe would block the program.
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        self.programs.push(child);
        let (deadline, mut output) = (Instant::now() + TIMEOUT, Vec::new());
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(ready) => return,
                Ok(line) => output.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{program} did not start:\n{}", output.join("\n"))
                }
            }
        }
    }

    /// Waits until the port accepts connections, because the programs report that they listen shortly before they do.
    fn wait_for(&self, port: u16) {
        until(|| TcpStream::connect((self.ip, port)).is_ok());
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Changes a record of the DNS server at `ip`. `what`: path in the management API of the server, such as `set-txt`.
/// `body`: request body in JSON.
pub fn change_record(ip: Ipv4Addr, what: &str, body: &str) {
    let mut stream = TcpStream::connect((ip, 8055)).unwrap();
    let head = format!(
        "POST /{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{what} {body}: {response}");
}

/// Polls until a condition holds.
pub fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "the awaited condition did not hold in time");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a loopback address that no other test uses, so that all of its ports are free. All of 127.0.0.0/8 belongs to
/// this machine. The two bytes in the middle depend on the test process, and the last byte on the call.
pub fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    Ipv4Addr::new(127, 64 + (process >> 8 & 0x3f) as u8, process as u8, number)
}

/// Path of a program that `cargo xtask test` installs.
fn tool(program: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_rocknet"));
    let target = built.parent().and_then(Path::parent).unwrap();
    let file = target.join("tools/bin").join(program);
    assert!(
        file.is_file(),
        "{} is missing: `cargo xtask test` builds it, or type\n  GOBIN={} go install github.com/letsencrypt/pebble/v2/cmd/{program}@latest",
        file.display(),
        target.join("tools/bin").display()
    );
    file
}
