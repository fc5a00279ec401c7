//! Forward authentication with oauth2-proxy, which logs users in at mockoidc.

use super::browser::{LoginBrowser, PROGRAM, SITE, falsified};
use super::checks::Checks;
use super::programs::{ANN, BOB, MockProvider, OAuth2Proxy, Provider};
use crate::Failure;
use crate::command::{command, output_alone};
use crate::conform::server::TestServer;
use std::fs;
use std::path::Path;

/// Versions of HTTP between the browser and the site.
const VERSIONS: [&str; 2] = ["--http2", "--http1.1"];
/// Beginning of the names of oauth2-proxy's cookies.
const COOKIE: &str = "_oauth2_proxy";
/// Fields of a client that claims to be another user.
const FORGED: [&str; 4] = [
    "X-Auth-Request-User: root",
    "X_Auth_Request_Email: root@a.test",
    "X-Auth-Request-Groups: admins",
    "X-User: root",
];

/// The server with the authorization service and the application.
struct ForwardSite<'a> {
    server: TestServer,
    service: OAuth2Proxy,
    application: &'a MockProvider,
    home: tempfile::TempDir,
}

/// Runs the checks with two versions of HTTP.
pub fn run(program: &Path) -> Result<Checks, Failure> {
    let application = MockProvider::start()?;
    let mut site = ForwardSite::start(program, &application)?;
    let mut checks = Checks::default();
    for version in VERSIONS {
        let browser = || Ok(LoginBrowser::new(&site.server, &site.home.path().join("state"))?.with_version(version));
        let result = site.check(&browser, &mut checks);
        result.map_err(|failure| format!("{version}: {failure}\n{}", site.log()))?;
    }
    let browser = LoginBrowser::new(&site.server, &site.home.path().join("state"))?;
    site.log_in(&browser, "/")?;
    site.service.stop()?;
    for target in ["/", "/api/x", "/pages/x"] {
        browser.open(target)?.expect(502, &[])?;
    }
    browser.received("/healthz", &[])?;
    checks.pass("without oauth2-proxy, requests get 502, also with a session, and open routes work");
    site.count(&mut checks)?;
    Ok(checks)
}

impl<'a> ForwardSite<'a> {
    fn start(program: &Path, application: &'a MockProvider) -> Result<ForwardSite<'a>, Failure> {
        let home = tempfile::tempdir()?;
        let log = home.path().join("oauth2-proxy.log");
        let callback = format!("https://{SITE}/oauth2/callback");
        let service = OAuth2Proxy::start(application.client(), &callback, "staff", &log)?;
        let fields = "headers = [\"X-Auth-Request-User\", \"X-Auth-Request-Email\", \"X-Auth-Request-Groups\"], \
                      user_field = \"X-Auth-Request-User\"";
        let (url, site) = (&service.url, format!("site.\"{SITE}\""));
        let settings = format!(
            "[server]\nstate = \"state\"\n[log]\nerrors = \"errors.log\"\n\
             [{site}]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\n\
             proxy = {{ to = \"{}\", headers = {{ \"X-User\" = \"{{user}}\" }} }}\n\
             auth = {{ forward = \"{url}/\", {fields} }}\n\
             [{site}.route.\"/oauth2/*\"]\nauth = false\nproxy = \"{url}\"\n\
             [{site}.route.\"/api/*\"]\nauth = {{ forward = \"{url}/oauth2/auth\", {fields} }}\n\
             [{site}.route.\"/pages/*\"]\nauth = {{ forward = \"{url}/oauth2/auth\", {fields}, \
             sign_in = \"/oauth2/start?rd={{target}}\" }}\n\
             [{site}.route.\"/healthz\"]\nauth = false\n",
            application.url
        );
        fs::write(home.path().join("rocknet.toml"), settings)?;
        Ok(ForwardSite {
            server: TestServer::start(program, &["run"], home.path())?,
            service,
            application,
            home,
        })
    }

    /// Returns the logs of both servers, for the message about a failure.
    fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        format!("{}\n{}", read("errors.log"), read("oauth2-proxy.log"))
    }

    /// Opens a page without a session. Returns the URL of the callback, once Ann has logged in at the provider.
    fn begin(&self, browser: &LoginBrowser, target: &str) -> Result<String, Failure> {
        let location = browser
            .open(target)?
            .expect_redirect(&self.application.client().issuer)?
            .location;
        self.application.log_in(browser, &location, ANN)
    }

    fn log_in(&self, browser: &LoginBrowser, target: &str) -> Result<(), Failure> {
        let callback = self.begin(browser, target)?;
        browser
            .open(&callback)?
            .expect_redirect(&format!("https://{SITE}{target}"))?;
        Ok(())
    }

    /// Fails if a browser has a session.
    fn is_out(&self, browser: &LoginBrowser) -> Result<(), Failure> {
        browser.open("/")?.expect_redirect(&self.application.client().issuer)?;
        Ok(())
    }

    fn check(&self, new: &dyn Fn() -> Result<LoginBrowser, Failure>, checks: &mut Checks) -> Result<(), Failure> {
        let browser = new()?;
        browser
            .open("/a/page?x=1")?
            .expect_redirect(&self.application.client().issuer)?;
        browser.request("/a/page", &["-H", PROGRAM])?.expect(401, &[])?;
        browser.request("/api/x", &["-H", PROGRAM])?.expect(401, &[])?;
        checks.pass("an anonymous browser is redirected to the login, and a program gets 401");
        let open = browser.received("/healthz", &FORGED)?;
        is_empty(
            &open.field("X-Auth-Request-User"),
            "X-Auth-Request-User at an open route",
        )?;
        is_empty(
            &open.field("X_auth_request_email"),
            "X_Auth_Request_Email at an open route",
        )?;
        checks.pass("an open route needs no session, and passes no forged field");
        self.log_in(&browser, "/a/page?x=1&y=2")?;
        checks.pass("a login returns to the page that was requested");
        self.identity(&browser, checks)?;

        let paged = new()?;
        paged
            .open("/pages/x?y=1")?
            .expect_redirect(&format!("https://{SITE}/oauth2/start?rd="))?;
        checks.pass("`sign_in` redirects in place of a 401");

        let falsifying = browser.copy()?;
        falsifying.change_cookies(COOKIE, falsified)?;
        self.is_out(&falsifying)?;
        checks.pass("a falsified session cookie is no session");
        let other = new()?;
        let callback = self.begin(&other, "/")?.replace("state=", "state=x");
        let response = other.open(&callback)?;
        if response.status < 400 {
            return Err(response.wrong("a callback with another state is accepted"));
        }
        self.is_out(&other)?;
        checks.pass("a callback with another state is refused");
        let bob = new()?;
        let location = bob.open("/")?.expect_redirect("http://")?.location;
        let callback = self.application.log_in(&bob, &location, BOB)?;
        bob.open(&callback)?.expect(403, &[])?;
        self.is_out(&bob)?;
        checks.pass("a user without the group of `--allowed-group` is refused");
        browser
            .open("/oauth2/sign_out?rd=/healthz")?
            .expect_redirect("/healthz")?;
        self.is_out(&browser)?;
        checks.pass("a logout ends the session");
        Ok(())
    }

    /// Checks the requests that the application receives from a browser with a session of Ann.
    fn identity(&self, browser: &LoginBrowser, checks: &mut Checks) -> Result<(), Failure> {
        for target in ["/a/page?x=1&y=2", "/api/x", "/pages/x"] {
            let received = browser.received(target, &FORGED)?;
            for (field, expected) in [
                ("X-Auth-Request-User", "id-of-ann"),
                ("X-Auth-Request-Email", "ann@a.test"),
                ("X-Auth-Request-Groups", "staff,b"),
                ("X-User", "id-of-ann"),
            ] {
                let found = received.field(field);
                if found != expected {
                    return Err(format!("{target}: the application gets {field} {found:?}").into());
                }
            }
            is_empty(&received.field("X_auth_request_email"), "X_Auth_Request_Email")?;
            if received.target != target {
                return Err(format!("{target}: the application gets {}", received.target).into());
            }
        }
        checks.pass("the application gets the copied fields, and no forged ones");
        let received = browser.received_with("/form", &["--data", "a=1&b=2"])?;
        if (&*received.method, &*received.body) != ("POST", "a=1&b=2") {
            return Err(format!("the application gets {} {:?}", received.method, received.body).into());
        }
        checks.pass("a request body reaches the application, and not the authorization service");
        Ok(())
    }

    /// Checks the metrics.
    fn count(&self, checks: &mut Checks) -> Result<(), Failure> {
        let mut curl = command("curl");
        curl.args(["-sSf", "--max-time", "20", "--unix-socket"]);
        curl.arg(self.home.path().join("state/admin/control.sock"));
        let metrics = output_alone(curl.arg("http://localhost/metrics"))?;
        for outcome in ["allowed", "denied", "redirected", "error"] {
            let sample = format!("rocknet_forward_auth_queries_total{{site=\"{SITE}\",outcome=\"{outcome}\"}} ");
            let value = metrics.lines().find_map(|line| line.strip_prefix(&sample));
            println!("{sample}{value:?}");
            if value.is_none_or(|value| value == "0") {
                return Err(format!("{sample}is missing or 0").into());
            }
        }
        checks.pass("the metrics count allowed, denied, redirected and failed queries");
        Ok(())
    }
}

/// Fails if a field has a value. `what`: the field.
fn is_empty(value: &str, what: &str) -> Result<(), Failure> {
    match value {
        "" => Ok(()),
        value => Err(format!("the application gets {what}: {value:?}").into()),
    }
}
