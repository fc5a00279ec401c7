//! Programs of other projects that the checks run: oauth2-proxy, and the providers mockoidc and oidc-provider.

use super::browser::LoginBrowser;
use crate::command::{command, output_alone};
use crate::conform::session::{PageResponse, Session};
use crate::tools::{self, Tool};
use crate::{Failure, repository};
use serde::Deserialize;
use serde_json::json;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Authorization service of forward authentication.
pub const OAUTH2_PROXY: Tool = tools::OAUTH2_PROXY;
/// Version of the npm package oidc-provider, and an older one for versions of Node below [`NODE_MAJOR`], such as that
/// of Debian 12.
const NODE_PROVIDER_VERSIONS: [&str; 2] = ["9.13.3", "8.8.1"];
/// Least major version of Node that the newer version works with.
const NODE_MAJOR: u32 = 20;
/// Timeout for a line of output: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Passes the socket on the standard input as systemd does: as descriptor 3. The shell becomes the program.
const ACTIVATE: &str = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";

/// Address of a provider, and the client that it knows.
#[derive(Deserialize, Clone)]
pub struct ProviderClient {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: String,
}

/// A user of a provider.
#[derive(Clone, Copy)]
pub struct User {
    pub name: &'static str,
    pub groups: &'static [&'static str],
}

/// User with the group `staff`.
pub const ANN: User = User {
    name: "ann",
    groups: &["staff", "b"],
};
/// User without that group.
pub const BOB: User = User {
    name: "bob",
    groups: &["guests"],
};

/// Provider of OpenID Connect.
pub trait Provider {
    fn client(&self) -> &ProviderClient;

    /// Claim `name` of a user; empty if the provider has none.
    fn full_name(&self, user: User) -> String;

    /// Returns true if the provider ends its session at a logout.
    fn has_logout(&self) -> bool;

    /// Logs a user in at the provider. `location`: target of the redirect to the provider. Returns the URL of the
    /// callback.
    fn log_in(&self, browser: &LoginBrowser, location: &str, user: User) -> Result<String, Failure>;

    /// Declines a login. Returns the URL of the callback; `None` if the provider has no such page.
    fn decline(&self, browser: &LoginBrowser, location: &str) -> Result<Option<String>, Failure>;
}

/// A program with a pipe for its input and lines of output, killed when dropped.
struct LineProgram {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl LineProgram {
    fn start(command: &mut Command) -> Result<LineProgram, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no input of the provider")?;
        let output = child.stdout.take().ok_or("no output of the provider")?;
        let (line, lines) = channel();
        thread::spawn(move || {
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
        Ok(LineProgram { child, input, lines })
    }

    fn line(&self) -> Result<String, Failure> {
        let line = self.lines.recv_timeout(TIMEOUT);
        Ok(line.map_err(|_| "the provider printed no line")?)
    }
}

impl Drop for LineProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of `provider/`: mockoidc, and an application that responds with the request.
pub struct MockProvider {
    program: RefCell<LineProgram>,
    client: ProviderClient,
    /// URL of the application.
    pub url: String,
}

impl MockProvider {
    /// Builds and starts the program.
    pub fn start() -> Result<MockProvider, Failure> {
        let built = tools::go_program("auth-provider", "xtask/src/conform/auth/provider")?;
        let program = LineProgram::start(&mut command(built))?;
        let line = program.line()?;
        let value: serde_json::Value = serde_json::from_str(&line)?;
        Ok(MockProvider {
            client: serde_json::from_value(value.clone())?,
            url: value["application"].as_str().ok_or("no application")?.to_owned(),
            program: RefCell::new(program),
        })
    }
}

impl Provider for MockProvider {
    fn client(&self) -> &ProviderClient {
        &self.client
    }

    fn full_name(&self, _user: User) -> String {
        String::new()
    }

    fn has_logout(&self) -> bool {
        false
    }

    // mockoidc has no pages: each login authenticates the next user of a queue.
    fn log_in(&self, browser: &LoginBrowser, location: &str, user: User) -> Result<String, Failure> {
        let queued = json!({
            "Subject": format!("id-of-{}", user.name),
            "Email": format!("{}@a.test", user.name),
            "EmailVerified": true,
            "PreferredUsername": user.name,
            "Groups": user.groups,
        });
        let program = &mut *self.program.borrow_mut();
        writeln!(program.input, "{queued}")?;
        program.line()?;
        browser.follow(location, |_, page| Err(page.wrong("mockoidc does not redirect")))
    }

    fn decline(&self, _browser: &LoginBrowser, _location: &str) -> Result<Option<String>, Failure> {
        Ok(None)
    }
}

/// The provider of the npm package oidc-provider.
pub struct NodeProvider {
    pub version: &'static str,
    _program: LineProgram,
    client: ProviderClient,
}

impl NodeProvider {
    /// Installs and starts the provider. Its client has these URLs.
    pub fn start(callback: &str, after_logout: &str) -> Result<NodeProvider, Failure> {
        let printed = output_alone(command("node").arg("--version"))?;
        let major = printed.trim_start_matches('v').split('.').next();
        let major: u32 = major.and_then(|major| major.parse().ok()).unwrap_or_default();
        let version = NODE_PROVIDER_VERSIONS[usize::from(major < NODE_MAJOR)];
        let main = tools::npm_file("oidc-provider", version, "lib/index.js")?;
        let script = repository::root().join("xtask/src/conform/auth/oidc-provider.mjs");
        let mut node = command("node");
        node.arg("--no-warnings").arg(script).arg(main);
        node.args([callback, after_logout]);
        let program = LineProgram::start(&mut node)?;
        Ok(NodeProvider {
            version,
            client: serde_json::from_str(&program.line()?)?,
            _program: program,
        })
    }
}

impl Provider for NodeProvider {
    fn client(&self) -> &ProviderClient {
        &self.client
    }

    fn full_name(&self, user: User) -> String {
        format!("{} Ä", user.name)
    }

    fn has_logout(&self) -> bool {
        true
    }

    fn log_in(&self, browser: &LoginBrowser, location: &str, user: User) -> Result<String, Failure> {
        // The first page asks for the user, and the second one for the consent. Both have a form to their own URL.
        browser.follow(location, |session: &Session, page: &PageResponse| {
            let prompt = page.field("prompt")?;
            session.post(
                &page.url,
                &[("prompt", &prompt), ("login", user.name), ("password", "x")],
            )
        })
    }

    fn decline(&self, browser: &LoginBrowser, location: &str) -> Result<Option<String>, Failure> {
        let abort = |session: &Session, page: &PageResponse| session.get(&format!("{}/abort", page.url));
        browser.follow(location, abort).map(Some)
    }
}

/// A running oauth2-proxy, killed when dropped.
pub struct OAuth2Proxy {
    child: Child,
    /// URL without a path.
    pub url: String,
}

impl OAuth2Proxy {
    /// Builds oauth2-proxy and starts it on a port that the kernel chooses. It admits users with a group.
    /// `redirect_url`: its callback at the site. `log`: file for its log.
    pub fn start(
        provider: &ProviderClient,
        redirect_url: &str,
        group: &str,
        log: &Path,
    ) -> Result<OAuth2Proxy, Failure> {
        let program = OAUTH2_PROXY.path()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let log = std::fs::File::create(log)?;
        let child = Command::new("sh")
            .args(["-c", ACTIVATE])
            .arg(program)
            .args(["--http-address=fd:3", "--reverse-proxy", "--trusted-proxy-ip=127.0.0.1"])
            .args([
                "--upstream=static://202",
                "--set-xauthrequest",
                "--skip-provider-button",
            ])
            .args([
                "--provider=oidc",
                "--code-challenge-method=S256",
                "--scope=openid email profile groups",
            ])
            .args(["--email-domain=*", "--cookie-secret=0123456789abcdef0123456789abcdef"])
            .arg(format!("--oidc-issuer-url={}", provider.issuer))
            .arg(format!("--client-id={}", provider.client_id))
            .arg(format!("--client-secret={}", provider.client_secret))
            .arg(format!("--redirect-url={redirect_url}"))
            .arg(format!("--allowed-group={group}"))
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .spawn()?;
        Ok(OAuth2Proxy {
            child,
            url: format!("http://127.0.0.1:{port}"),
        })
    }

    /// Ends the program. Its port refuses connections then.
    pub fn stop(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for OAuth2Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
