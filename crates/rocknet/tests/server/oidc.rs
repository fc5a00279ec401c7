//! Login by OpenID Connect (`auth = { oidc = "…" }`), with a provider whose tokens the tests falsify.

mod applications;
mod behind_proxy;
mod callbacks;
mod cookies;
mod counters;
mod lifetimes;
mod provider;
mod sessions;
mod tokens;

use serde_json::{Value, json};

use self::provider::{CLIENT, Provider, base64url};
use super::access::{AnyResponse, SERVER, fetch};
use super::support::refusing_port::RefusingPort;
use super::support::upstream::{Upstream, ok};
use super::support::{Folder, Running};

over_http3! {
    a_user_logs_in_and_is_known_to_applications,
    only_pages_are_redirected,
}

/// Field of a browser that opens a page.
const PAGE: &str = "Accept: text/html,*/*;q=0.8";

fn folder() -> Folder {
    Folder::with(&[("www/index.html", "home"), ("www/a.txt", "text a")])
}

/// Returns the key `auth` with more settings.
fn auth(provider: &str, more: &str) -> String {
    let (id, secret) = CLIENT;
    format!("auth = {{ oidc = \"{provider}\", client_id = \"{id}\", client_secret = \"{secret}\"{more} }}")
}

fn start_at(provider: &str, more: &str, keys: &str) -> Running {
    let auth = auth(provider, more);
    let text = format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{auth}\n{keys}\n");
    Running::start(folder(), &text)
}

fn start(provider: &Provider, more: &str, keys: &str) -> Running {
    start_at(&provider.issuer(), more, keys)
}

/// A browser with cookies.
#[derive(Default, Clone)]
struct Browser(Vec<(String, String)>);

impl Browser {
    /// Stores the cookies of a response.
    fn store(&mut self, fields: &[(String, String)]) {
        let cookies = fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, cookie) in cookies {
            for attribute in ["; Path=/", "; HttpOnly", "; SameSite=Lax"] {
                assert!(cookie.contains(attribute), "{cookie}");
            }
            assert_eq!(cookie.starts_with("__Host-"), cookie.ends_with("; Secure"), "{cookie}");
            let (pair, attributes) = cookie.split_once(';').expect("attributes");
            let (name, value) = pair.split_once('=').expect("a value");
            self.0.retain(|(own, _)| own != name);
            if !attributes.contains("Max-Age=0") {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Returns the `Cookie` field.
    fn field(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("Cookie: {}", pairs.join("; "))
    }

    fn open(&mut self, server: &Running, target: &str) -> AnyResponse {
        self.open_with(server, target, &[])
    }

    /// Opens a page with more fields in the request.
    fn open_with(&mut self, server: &Running, target: &str, fields: &[&str]) -> AnyResponse {
        let cookie = self.field();
        let response = server.fetch(&format!("GET {target}"), &[&[PAGE, &cookie], fields].concat());
        self.store(&response.fields);
        AnyResponse {
            status: response.status,
            text: response.text(),
            fields: response.fields,
        }
    }

    /// Opens a page that redirects to the provider, and returns the target of the callback.
    fn begin(&mut self, server: &Running, provider: &Provider, target: &str) -> String {
        let response = self.open(server, target);
        assert_eq!(response.status, 302, "{}", response.text);
        assert_eq!(response.field("Cache-Control"), Some("no-store"));
        provider.log_in(response.field("Location").expect("a location"))
    }

    /// Logs in, and returns the response to the callback.
    fn log_in(&mut self, server: &Running, provider: &Provider, target: &str) -> AnyResponse {
        let callback = self.begin(server, provider, target);
        self.open(server, &callback)
    }
}

#[test]
fn a_user_logs_in_and_is_known_to_applications() {
    let (provider, upstream) = (Provider::start(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\nheaders = {{ \"X-User\" = \"{{user}}\" }}", upstream.key());
    let server = start(&provider, "", &keys);
    let mut browser = Browser::default();
    let response = browser.log_in(&server, &provider, "/app?x=1&y=//evil.test");
    assert_eq!(response.status, 302, "{}", response.text);
    let location = response.field("Location").expect("a location");
    let (scheme, rest) = location.split_once("://").expect("a URL");
    assert_eq!(rest, "localhost/app?x=1&y=//evil.test");
    assert_eq!(response.field("Referrer-Policy"), Some("no-referrer"));
    assert_eq!(browser.0.len(), 1, "the cookie of the login is left: {:?}", browser.0);
    assert_eq!(
        browser.0[0].0.starts_with("__Host-"),
        scheme == "https",
        "{:?}",
        browser.0
    );
    let cookie = browser.field();
    assert!(!cookie.contains("user-1") && !cookie.contains("ann"), "{cookie}");
    let forged = [
        "Remote-User: root",
        "remote_groups: admins",
        "Remote-Name: root",
        "X-Other: 1",
    ];
    let mut fields = forged.to_vec();
    fields.push(&cookie);
    let check_sent = || {
        let sent = upstream.last();
        assert_eq!(
            (sent.field("Remote-User"), sent.field("Remote-Groups")),
            (Some("user-1"), Some("staff,b"))
        );
        assert_eq!(
            (sent.field("Remote-Name"), sent.field("Remote-Email")),
            (Some("Ann Ä"), Some("ann@a.test"))
        );
        assert_eq!((sent.field("remote_groups"), sent.field("X-Other")), (None, Some("1")));
    };
    let response = server.fetch("GET /page", &fields);
    assert_eq!((response.status, response.field("X-User")), (200, Some("user-1")));
    check_sent();
    // These connections are without TLS.
    if scheme == "http" {
        for response in fetch(&server, "POST /form", &fields, "the body") {
            assert_eq!((response.status, &*response.text), (200, "x"));
            assert_eq!(response.field("X-User"), Some("user-1"));
            check_sent();
        }
    }
    // Metadata and keys are fetched once.
    Browser::default().log_in(&server, &provider, "/");
    assert_eq!(provider.requests("/.well-known/openid-configuration"), 1);
    assert_eq!((provider.requests("/keys"), provider.requests("/token")), (1, 2));
}

#[test]
fn only_pages_are_redirected() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    for (line, fields, status) in [
        ("GET /a.txt", &[PAGE][..], 302),
        ("GET /a.txt", &["Sec-Fetch-Mode: navigate"], 302),
        (
            "GET /a.txt",
            &["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
            302,
        ),
        (
            "GET /a.txt",
            &["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
            401,
        ),
        (
            "GET /a.txt",
            &["Sec-Fetch-Mode: navigate", "Sec-Purpose: prefetch;prerender"],
            401,
        ),
        ("GET /a.txt", &[], 401),
        ("GET /a.txt", &["Accept: */*"], 401),
        ("GET /a.txt", &[PAGE, "Sec-Fetch-Mode: cors"], 401),
        ("GET /a.txt", &[PAGE, "Sec-Fetch-Mode: no-cors"], 401),
        ("POST /a.txt", &[PAGE], 401),
        ("HEAD /a.txt", &[PAGE], 401),
        ("GET /missing", &[], 401),
    ] {
        for response in fetch(&server, line, fields, "") {
            assert_eq!(response.status, status, "{line} {fields:?}");
            assert_eq!(response.field("Cache-Control"), Some("no-store"));
            assert_eq!(response.field("WWW-Authenticate").is_some(), status == 401);
            assert_eq!(response.field("Location").is_some(), status == 302);
        }
    }
}

#[test]
fn nothing_is_open_without_the_provider() {
    let closed = RefusingPort::new();
    let server = start_at(&format!("http://{}", closed.address()), "", "");
    for path in ["/a.txt", "/missing"] {
        assert_eq!(server.fetch(&format!("GET {path}"), &[PAGE]).status, 502, "{path}");
    }
    let silent = Upstream::raw(|stream| {
        let mut room = [0; 4096];
        while std::io::Read::read(&mut &stream, &mut room).is_ok_and(|got| got > 0) {}
    });
    let server = start_at(&silent.url(), ", timeout = \"100ms\"", "");
    assert_eq!(server.fetch("GET /a.txt", &[PAGE]).status, 504);
    for response in ["junk\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"] {
        let server = start_at(&Upstream::responding_with(response).url(), "", "");
        assert_eq!(server.fetch("GET /a.txt", &[PAGE]).status, 502, "{response}");
    }
    let large = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}",
        " ".repeat(300_000)
    );
    let server = start_at(&Upstream::responding_with(large).url(), "", "");
    assert_eq!(server.fetch("GET /a.txt", &[PAGE]).status, 502);
    // Another issuer.
    let provider = Provider::start();
    provider.state().issuer = Some(format!("{}/", provider.issuer()));
    let server = start(&provider, "", "");
    assert_eq!(server.fetch("GET /a.txt", &[PAGE]).status, 502);
    // A provider that fails after the login began. Sessions continue.
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let mut known = Browser::default();
    known.log_in(&server, &provider, "/");
    let mut browser = Browser::default();
    let callback = browser.begin(&server, &provider, "/");
    provider.state().status = 500;
    assert_eq!(browser.open(&server, &callback).status, 502);
    assert_eq!((browser.0.len(), browser.open(&server, "/a.txt").status), (0, 302));
    assert_eq!(known.open(&server, "/a.txt").status, 200);
}

#[test]
fn rules_decide_who_may_enter() {
    let provider = Provider::start();
    let auth = auth(&provider.issuer(), ", user_claim = \"email\", emails = \"@A.test\"");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nerrors = {{ 403 = \"/a.txt\" }}\n{auth}\n\
         [site.default.route.\"/admin/*\"]\nauth = {{ oidc = true, groups = [\"admins\"] }}\n\
         [site.default.route.\"/ann/*\"]\nauth = {{ oidc = true, users = [\"ann@a.test\"] }}\n\
         [site.default.route.\"/open/*\"]\nauth = false\n"
    );
    let server = Running::start(folder(), &text);
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/admin/x");
    let mut check = |target: &str, status: u16| {
        let response = browser.open(&server, target);
        assert_eq!(response.status, status, "{target}");
        response.text
    };
    // One session for all routes, and no second login for a user without the group.
    assert_eq!(check("/admin/x", 403), "text a");
    check("/admin%2Fx", 403);
    check("/ann/x", 404);
    check("/a.txt", 200);
    check("/open/x", 404);
    provider.claim("groups", json!(["admins"]));
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    assert_eq!(browser.open(&server, "/admin/x").status, 404);
    for (claim, value) in [("email", json!("ann@b.test")), ("email_verified", json!(false))] {
        provider.claim(claim, value);
        let mut browser = Browser::default();
        let status = browser.log_in(&server, &provider, "/").status;
        assert_eq!(
            (status, browser.open(&server, "/a.txt").status),
            match claim {
                "email" => (302, 403),
                // The name of the user would be an address that is not verified.
                _ => (403, 302),
            }
        );
    }
}

#[test]
fn an_address_can_suffice_without_a_login() {
    let (provider, upstream) = (Provider::start(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\nallow = \"127.0.0.0/8\"\nsatisfy = \"any\"", upstream.key());
    let server = start(&provider, "", &keys);
    assert_eq!(server.fetch("GET /", &["Remote-User: root"]).status, 200);
    assert_eq!(upstream.last().field("Remote-User"), None);
    let server = start(&provider, "", "deny = \"127.0.0.0/8\"");
    assert_eq!(server.fetch("GET /", &[PAGE]).status, 403);
    assert_eq!(provider.upstream.all().len(), 0);
}

#[test]
fn open_routes_pass_no_forged_identity() {
    let (provider, upstream) = (Provider::start(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\n[site.default.route.\"/open\"]\nauth = false", upstream.key());
    let server = start(&provider, "", &keys);
    for response in fetch(&server, "GET /open", &["Remote-User: root", "remote_email: root"], "") {
        assert_eq!(response.status, 200);
        let sent = upstream.last();
        assert_eq!((sent.field("Remote-User"), sent.field("remote_email")), (None, None));
    }
}
