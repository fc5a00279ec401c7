//! Logins by `auth.oidc` at a provider of another project.

use super::browser::{LoginBrowser, PROGRAM, SITE, falsified};
use super::checks::Checks;
use super::programs::{ANN, BOB, MockProvider, Provider, User};
use crate::Failure;
use crate::conform::server::TestServer;
use crate::conform::session::PageResponse;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Versions of HTTP between the browser and the site.
const VERSIONS: [&str; 2] = ["--http2", "--http1.1"];
/// Beginning of the name of the session cookie, which is bound to the host.
const SESSION: &str = "__Host-rocknet-session-";
/// Shortest value of `idle` that the configuration permits.
const IDLE: Duration = Duration::from_secs(10);
/// Timeout for the end of a session: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two requests of a session that ends.
const POLL: Duration = Duration::from_millis(500);
/// Fields of a client that claims to be another user.
const FORGED: [&str; 4] = [
    "Remote-User: root",
    "remote_groups: admins",
    "Remote-Name: root",
    "Remote-Email: root@a.test",
];
/// Fields that a browser sends with a form of the site itself.
const OWN_FORM: [&str; 6] = [
    "-X",
    "POST",
    "-H",
    "Sec-Fetch-Site: same-origin",
    "-H",
    "Content-Length: 0",
];

/// Returns the URL of the callback, which the provider has to know.
pub fn callback_url() -> String {
    format!("https://{SITE}/.rocknet/oidc/callback")
}

/// Returns the URL to which the browser returns after a logout.
pub fn after_logout_url() -> String {
    format!("https://{SITE}/open/bye")
}

/// The server with a provider.
struct LoginSite<'a> {
    server: TestServer,
    provider: &'a dyn Provider,
    home: tempfile::TempDir,
}

/// Runs the checks with two versions of HTTP.
pub fn run(program: &Path, application: &MockProvider, provider: &dyn Provider) -> Result<Checks, Failure> {
    let site = LoginSite::start(program, application, provider, &provider.client().client_secret)?;
    let mut checks = Checks::default();
    // This session ends while the other checks run.
    let ending = site.browser()?;
    // The session begins during the login. Its cookie has whole seconds, so it may end up to one second earlier.
    let begun = Instant::now();
    site.log_in(&ending, "/short/x", ANN)?;
    ending.copy()?.received("/short/x", &[])?;
    for version in VERSIONS {
        let result = site.check(version, &mut checks);
        result.map_err(|failure| format!("{version}: {failure}\n{}", site.log()))?;
    }
    // The cookie of the copy is renewed, and the other one is not.
    while !ending
        .copy()?
        .open("/short/x")?
        .location
        .starts_with(&provider.client().issuer)
    {
        if begun.elapsed() > TIMEOUT {
            return Err("a session does not end".into());
        }
        thread::sleep(POLL);
    }
    if begun.elapsed() + Duration::from_secs(1) < IDLE {
        return Err(format!("a session ends after {:?}", begun.elapsed()).into());
    }
    ending.received("/", &[])?;
    checks.pass("a session ends after the time in `idle` of a route");
    let site = LoginSite::start(program, application, provider, "another secret")?;
    let browser = site.browser()?;
    let callback = site.begin(&browser, "/", ANN)?;
    let response = browser.open(&callback)?;
    if response.status < 500 {
        return Err(response.wrong("a login with a wrong client secret does not fail"));
    }
    site.is_out(&browser)?;
    checks.pass("with a wrong client secret, no login succeeds");
    Ok(checks)
}

impl<'a> LoginSite<'a> {
    fn start(
        program: &Path,
        application: &MockProvider,
        provider: &'a dyn Provider,
        secret: &str,
    ) -> Result<LoginSite<'a>, Failure> {
        let home = tempfile::tempdir()?;
        let (client, site) = (provider.client(), format!("site.\"{SITE}\""));
        let settings = format!(
            "[server]\nstate = \"state\"\n[log]\nerrors = \"errors.log\"\n\
             [{site}]\nlisten = \"https://127.0.0.1:0\"\ntls = \"local\"\nproxy = \"{}\"\n\
             auth = {{ oidc = \"{}\", client_id = \"{}\", client_secret = \"{secret}\", \
             scopes = [\"openid\", \"profile\", \"email\", \"groups\"], user_claim = \"preferred_username\", \
             after_logout = \"{}\" }}\n\
             [{site}.route.\"/staff/*\"]\nauth = {{ oidc = true, groups = [\"staff\"] }}\n\
             [{site}.route.\"/admin/*\"]\nauth = {{ oidc = true, groups = [\"admins\"] }}\n\
             [{site}.route.\"/short/*\"]\nauth = {{ oidc = true, idle = \"{}s\" }}\n\
             [{site}.route.\"/open/*\"]\nauth = false\n",
            application.url,
            client.issuer,
            client.client_id,
            after_logout_url(),
            IDLE.as_secs(),
        );
        fs::write(home.path().join("rocknet.toml"), settings)?;
        Ok(LoginSite {
            server: TestServer::start(program, &["run"], home.path())?,
            provider,
            home,
        })
    }

    fn browser(&self) -> Result<LoginBrowser, Failure> {
        LoginBrowser::new(&self.server, &self.home.path().join("state"))
    }

    /// Returns the log of the server, for the message about a failure.
    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("errors.log")).unwrap_or_default()
    }

    /// Opens a page without a session. Returns the URL of the callback, once the user has logged in at the provider.
    fn begin(&self, browser: &LoginBrowser, target: &str, user: User) -> Result<String, Failure> {
        let location = self.redirect(browser, target)?.location;
        self.provider.log_in(browser, &location, user)
    }

    /// Opens a page, which has to redirect to the provider.
    fn redirect(&self, browser: &LoginBrowser, target: &str) -> Result<PageResponse, Failure> {
        browser.open(target)?.expect_redirect(&self.provider.client().issuer)
    }

    fn log_in(&self, browser: &LoginBrowser, target: &str, user: User) -> Result<(), Failure> {
        let callback = self.begin(browser, target, user)?;
        browser
            .open(&callback)?
            .expect_redirect(&format!("https://{SITE}{target}"))?;
        Ok(())
    }

    /// Fails if a browser has a session.
    fn is_out(&self, browser: &LoginBrowser) -> Result<(), Failure> {
        browser.request("/", &["-H", PROGRAM])?.expect(401, &[])?;
        self.redirect(browser, "/")?;
        Ok(())
    }

    fn check(&self, version: &'static str, checks: &mut Checks) -> Result<(), Failure> {
        let new = || Ok::<_, Failure>(self.browser()?.with_version(version));
        self.redirect(&new()?, "/a/page?x=1&y=2")?;
        new()?.request("/a/page", &["-H", PROGRAM])?.expect(401, &[])?;
        new()?.received("/open/x", &[])?;
        checks
            .pass("an anonymous browser is redirected to the provider, a program gets 401, and an open route is open");
        let browser = new()?;
        self.log_in(&browser, "/a/page?x=1&y=2", ANN)?;
        checks.pass("a login returns to the page that was requested");
        self.identity(&browser, checks)?;
        browser.received("/staff/x", &[])?;
        browser.open("/admin/x")?.expect(403, &["ann"])?;
        let bob = new()?;
        self.log_in(&bob, "/a/page", BOB)?;
        bob.open("/staff/x")?.expect(403, &["bob"])?;
        bob.open("/admin/x")?.expect(403, &["bob"])?;
        checks.pass("a rule for groups admits a user with the group, and refuses another user with 403");

        let falsifying = browser.copy()?;
        falsifying.change_cookies(SESSION, falsified)?;
        self.is_out(&falsifying)?;
        checks.pass("a falsified session cookie is no session");
        self.callbacks(&new, checks)?;
        self.log_out(&browser, checks)
    }

    /// Checks the requests that the application receives from a browser with a session of Ann.
    fn identity(&self, browser: &LoginBrowser, checks: &mut Checks) -> Result<(), Failure> {
        let cookies = browser.cookies()?;
        let sessions = cookies.iter().filter(|(name, _)| name.starts_with(SESSION)).count();
        if (sessions, cookies.len()) != (1, 1) {
            return Err(format!("the browser has the cookies {cookies:?}").into());
        }
        checks.pass("a login sets one session cookie, which is bound to the host, and deletes that of the login");
        let mut fields = FORGED.to_vec();
        fields.push("Cookie: own=1");
        let received = browser.received("/a/page?x=1&y=2", &fields)?;
        for (field, expected) in [
            ("Remote-User", "ann"),
            ("Remote-Groups", "staff,b"),
            ("Remote-Name", &*self.provider.full_name(ANN)),
            ("Remote-Email", "ann@a.test"),
            ("Remote_groups", ""),
        ] {
            let found = received.field(field);
            if found != expected {
                return Err(format!("the application gets {field} {found:?}").into());
            }
        }
        if received.target != "/a/page?x=1&y=2" || received.field("Cookie").contains("rocknet") {
            return Err(format!(
                "the application gets {} {:?}",
                received.target,
                received.field("Cookie")
            )
            .into());
        }
        let open = browser.received("/open/x", &FORGED)?;
        if !open.field("Remote-User").is_empty() || open.field("Cookie").contains("rocknet") {
            return Err("the application gets an identity at an open route".into());
        }
        checks.pass("the application gets the identity, no forged field, and no session cookie");
        Ok(())
    }

    /// Checks callbacks that do not belong to a login of the browser.
    fn callbacks(&self, new: &dyn Fn() -> Result<LoginBrowser, Failure>, checks: &mut Checks) -> Result<(), Failure> {
        let browser = new()?;
        let callback = self.begin(&browser, "/", ANN)?;
        let other = new()?;
        other.open(&callback)?.expect(400, &[])?;
        self.is_out(&other)?;
        checks.pass("a callback in another browser is refused");
        let falsifying = browser.copy()?;
        falsifying
            .open(&callback.replace("state=", "state=x"))?
            .expect(400, &[])?;
        self.is_out(&falsifying)?;
        checks.pass("a callback with another state is refused");
        let replaying = browser.copy()?;
        browser.open(&callback)?.expect_redirect(&format!("https://{SITE}/"))?;
        replaying.open(&callback)?.expect(400, &[])?;
        self.is_out(&replaying)?;
        checks.pass("a callback is accepted once");
        let unknown = new()?;
        let callback = self.begin(&unknown, "/", ANN)?.replace("code=", "code=x");
        let response = unknown.open(&callback)?;
        if response.status < 400 {
            return Err(response.wrong("a code that the provider does not know is accepted"));
        }
        self.is_out(&unknown)?;
        checks.pass("a code that the provider does not know is refused");
        let declining = new()?;
        let location = self.redirect(&declining, "/")?.location;
        if let Some(callback) = self.provider.decline(&declining, &location)? {
            declining.open(&callback)?.expect(403, &[])?;
            self.is_out(&declining)?;
            checks.pass("a login that the user declines at the provider gets 403");
        }
        Ok(())
    }

    fn log_out(&self, browser: &LoginBrowser, checks: &mut Checks) -> Result<(), Failure> {
        let logout = "/.rocknet/oidc/logout";
        let evil = [
            "-X",
            "POST",
            "-H",
            "Origin: https://evil.test",
            "-H",
            "Content-Length: 0",
        ];
        browser.request(logout, &evil)?.expect(403, &[])?;
        browser.open(logout)?.expect(200, &["Log out?"])?;
        browser.received("/", &[])?;
        checks.pass("another site cannot log users out");
        let response = browser.request(logout, &OWN_FORM)?;
        let expected = match self.provider.has_logout() {
            true => self.provider.client().issuer.clone(),
            false => after_logout_url(),
        };
        if response.status != 303 || !response.location.starts_with(&expected) {
            return Err(response.wrong("the logout does not redirect as it should"));
        }
        if !browser.cookies()?.is_empty() {
            return Err(format!("after the logout, the browser has the cookies {:?}", browser.cookies()?).into());
        }
        self.is_out(browser)?;
        checks.pass("a logout deletes the session cookie, and leads to the provider if that has a page for it");
        Ok(())
    }
}
