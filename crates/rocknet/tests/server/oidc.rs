//! Login by OpenID Connect (`auth = { oidc = "…" }`), with a provider whose tokens the tests falsify.

mod provider;

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
        let response = server.fetch(&format!("GET {target}"), &[PAGE, &self.field()]);
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
fn falsified_tokens_are_refused() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    for (name, value, status) in [
        ("nonce", json!("other"), 400),
        ("nonce", Value::Null, 400),
        ("iss", json!("http://other.test"), 502),
        ("aud", json!("other"), 502),
        ("aud", json!(["app", "other"]), 502),
        ("azp", json!("other"), 502),
        ("exp", json!(now - 100), 502),
        ("iat", json!(now + 1000), 502),
        ("sub", Value::Null, 502),
        ("email_verified", json!(false), 302),
    ] {
        provider.claim(name, value);
        let mut browser = Browser::default();
        let response = browser.log_in(&server, &provider, "/");
        assert_eq!(response.status, status, "{name}: {}", response.text);
        assert_eq!(browser.0.len(), usize::from(status == 302), "{name}");
        assert_eq!(
            browser.open(&server, "/a.txt").status,
            if status == 302 { 200 } else { 302 },
            "{name}"
        );
        provider.state().claims.clear();
    }
    for algorithm in ["none", "HS256", "RS256"] {
        provider.state().algorithm = algorithm;
        let mut browser = Browser::default();
        assert_eq!(browser.log_in(&server, &provider, "/").status, 502, "{algorithm}");
        assert_eq!(browser.0.len(), 0, "{algorithm}");
    }
}

#[test]
fn new_keys_of_the_provider_are_found() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 302);
    // A key with the same identifier does not verify. A signature that fails causes no request.
    provider.state().replace_key(false);
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 502);
    assert_eq!(provider.requests("/keys"), 1);
    // An unknown identifier does, but at most one in some seconds, which is why the tokens are tried several times.
    provider.state().replace_key(true);
    let deadline = std::time::Instant::now() + super::support::DEADLINE;
    while Browser::default().log_in(&server, &provider, "/").status != 302 {
        assert!(std::time::Instant::now() < deadline, "the new key is never used");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(provider.requests("/keys"), 2);
}

#[test]
fn callbacks_are_accepted_once_from_their_own_browser() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let mut browser = Browser::default();
    let callback = browser.begin(&server, &provider, "/");
    let (before, state) = callback.split_once("state=").expect("a state");
    // Another browser, another state, none, a repeated one, and a state of another login of the same browser.
    let mut other = browser.clone();
    let second = other.begin(&server, &provider, "/");
    let (_, second) = second.split_once("state=").expect("a state");
    let mixed = format!("{before}state={}{}", &state[..8], &second[8..]);
    for (mut from, target) in [
        (Browser::default(), callback.clone()),
        (browser.clone(), format!("{before}state=other-state-of-someone")),
        (browser.clone(), format!("{before}state=")),
        (browser.clone(), before.trim_end_matches('&').to_owned()),
        (browser.clone(), format!("{callback}&state={state}")),
        (other.clone(), mixed),
    ] {
        let response = from.open(&server, &target);
        assert_eq!(response.status, 400, "{target}");
        assert_eq!(from.open(&server, "/a.txt").status, 302, "{target}");
    }
    assert_eq!(provider.requests("/token"), 0);
    let mut replayed = browser.clone();
    assert_eq!(browser.open(&server, &callback).status, 302);
    assert_eq!(browser.open(&server, "/a.txt").status, 200);
    // The callback again: without the cookie of the login, and with a copy of it.
    assert_eq!(browser.open(&server, &callback).status, 400);
    assert_eq!(replayed.open(&server, &callback).status, 400);
    assert_eq!(provider.requests("/token"), 1);
    // The provider refuses a code.
    let mut third = Browser::default();
    let callback = third
        .begin(&server, &provider, "/")
        .replace("code=code-", "code=other-");
    assert_eq!(third.open(&server, &callback).status, 400);
    assert_eq!(server.server().registries().bans.worst_clients().len(), 1);
    // The user declines.
    let mut third = Browser::default();
    let callback = third.begin(&server, &provider, "/");
    let (path, query) = callback.split_once("?code=").expect("a code");
    let (_, state) = query.split_once('&').expect("a state");
    assert_eq!(
        third
            .open(&server, &format!("{path}?error=access_denied&{state}"))
            .status,
        403
    );
    assert_eq!(server.fetch(&format!("POST {path}"), &[]).status, 405);
}

#[test]
fn cookies_of_others_and_falsified_ones_are_refused() {
    let provider = Provider::start();
    let auth = auth(&provider.issuer(), "");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{auth}\n\
         [site.\"other.test\"]\nlisten = \"127.0.0.1:0\"\ntls = \"off\"\nroot = \"www\"\n{auth}\n"
    );
    let server = Running::start(folder(), &text);
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    let (name, value) = browser.0[0].clone();
    assert_eq!(browser.open(&server, "/a.txt").status, 200);
    let (_, text) = value.split_once('.').expect("a number of pieces");
    let last = if text.ends_with('A') { "B" } else { "A" };
    for falsified in [
        String::new(),
        "1.".to_owned(),
        format!("1.{}", &text[..text.len() - 4]),
        format!("1.{}{last}{}", &text[..40], &text[41..]),
        format!("2.{text}"),
        format!("1.{text}A"),
        format!(
            "1.{}",
            base64url(b"{\"s\":\"1\",\"u\":\"root\",\"g\":[],\"c\":1,\"l\":1}")
        ),
    ] {
        let cookie = format!("Cookie: {name}={falsified}");
        assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401, "{falsified}");
    }
    // The session of one site at another, under its own name and under the name that the other site uses.
    let others = server.fetch("GET /a.txt", &[PAGE, "Host: other.test"]);
    let (_, cookie) = others
        .fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        .expect("a cookie");
    let kind = cookie
        .trim_start_matches("rocknet-login-")
        .split('-')
        .next()
        .expect("a name");
    assert!(!name.ends_with(kind), "both sites have the cookie {name}");
    for cookie in [browser.field(), format!("Cookie: rocknet-session-{kind}={value}")] {
        assert_eq!(
            server.fetch("GET /a.txt", &[&cookie, "Host: other.test"]).status,
            401,
            "{cookie}"
        );
    }
    // Without TLS, a cookie for TLS is not read.
    let cookie = format!("Cookie: __Host-{name}={value}");
    assert_eq!(server.fetch("GET /a.txt", &[&cookie]).status, 401);
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
fn claims_are_completed_by_the_userinfo_endpoint() {
    let provider = Provider::start();
    let upstream = Upstream::responding_with(ok("x"));
    let server = start(&provider, ", groups_claim = \"realm.roles\"", &upstream.key());
    provider.state().userinfo = json!({ "sub": "user-1", "realm": { "roles": ["r1", "r,2"] } });
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    browser.open(&server, "/");
    assert_eq!(upstream.last().field("Remote-Groups"), Some("r1"));
    provider.state().userinfo = json!({ "sub": "user-2", "realm": { "roles": ["admins"] } });
    assert_eq!(Browser::default().log_in(&server, &provider, "/").status, 502);
}

#[test]
fn sessions_of_many_groups_are_split_or_refused() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let groups = |count: usize| {
        json!(
            (0..count)
                .map(|number| format!("group-{number:040}"))
                .collect::<Vec<_>>()
        )
    };
    provider.claim("groups", groups(100));
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    assert_eq!((browser.0.len(), browser.open(&server, "/a.txt").status), (2, 200));
    provider.claim("groups", groups(250));
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 500);
    assert_eq!((browser.0.len(), browser.open(&server, "/a.txt").status), (0, 302));
}

#[test]
fn a_logout_is_asked_for_by_the_site_itself() {
    let provider = Provider::start();
    let end = format!("{}/end", provider.issuer());
    provider
        .state()
        .metadata
        .insert("end_session_endpoint".to_owned(), json!(end));
    let server = start(&provider, ", logout = \"/bye\", after_logout = \"https://a.test/\"", "");
    let mut browser = Browser::default();
    browser.log_in(&server, &provider, "/");
    let known = browser.clone();
    let check = |line: &str, fields: &[&str], status: u16, is_over: bool| {
        let mut browser = known.clone();
        let cookie = browser.field();
        let mut fields = fields.to_vec();
        fields.push(&cookie);
        let response = server.fetch(line, &fields);
        browser.store(&response.fields);
        assert_eq!(
            (response.status, browser.0.is_empty()),
            (status, is_over),
            "{line} {fields:?}"
        );
        response
    };
    let (own, page) = (
        "Sec-Fetch-Site: same-origin",
        ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    );
    let response = check("GET /bye", &[own, page[0], page[1]], 303, true);
    let expected = format!("{end}?client_id=app&post_logout_redirect_uri=https%3A%2F%2Fa.test%2F");
    assert_eq!(response.field("Location"), Some(&*expected));
    check("GET /bye", &["Sec-Fetch-Site: none", page[0], page[1]], 303, true);
    // An image, a script, a frame, and a page ahead of time.
    for fields in [
        &[own][..],
        &[own, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        &[own, "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"],
        &[own, page[0], "Sec-Fetch-Dest: iframe"],
        &[own, page[0], page[1], "Sec-Purpose: prefetch"],
    ] {
        check("GET /bye", fields, 200, false);
    }
    for from in ["cross-site", "same-site"] {
        let field = format!("Sec-Fetch-Site: {from}");
        assert!(
            check("GET /bye", &[&field], 200, false)
                .text()
                .contains("<form method=post>")
        );
        check("POST /bye", &[&field, "Origin: http://localhost"], 403, false);
    }
    check("GET /bye", &[], 200, false);
    check("POST /bye", &[], 403, false);
    check("POST /bye", &["Origin: http://evil.test"], 403, false);
    check("POST /bye", &["Origin: null"], 403, false);
    check("POST /bye", &["Origin: http://localhost"], 303, true);
    check("POST /bye", &["Sec-Fetch-Site: same-origin"], 303, true);
}

#[test]
fn redirects_stay_at_the_site() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    for target in ["//evil.test/", "/\\evil.test", "/a?//evil.test", "/%2Fevil.test"] {
        let mut browser = Browser::default();
        let response = browser.log_in(&server, &provider, target);
        let expected = format!("http://localhost{target}");
        assert_eq!(
            (response.status, response.field("Location")),
            (302, Some(&*expected)),
            "{target}"
        );
    }
    let long = format!("/{}", "x".repeat(2_000));
    let response = Browser::default().log_in(&server, &provider, &long);
    assert_eq!(response.field("Location"), Some("http://localhost/"));
}

#[test]
fn logins_in_several_windows_are_bounded() {
    let provider = Provider::start();
    let server = start(&provider, "", "");
    let mut browser = Browser::default();
    let callbacks: Vec<_> = (0..4).map(|_| browser.begin(&server, &provider, "/")).collect();
    assert_eq!(browser.0.len(), 4);
    // Further ones replace some of these, also if they begin at the same time.
    let mut many = browser.clone();
    many.begin(&server, &provider, "/");
    assert_eq!(many.0.len(), 4);
    let mut many = Browser::default();
    for _ in 0..20 {
        let mut parallel = Browser::default();
        parallel.begin(&server, &provider, "/");
        many.0.retain(|(name, _)| *name != parallel.0[0].0);
        many.0.append(&mut parallel.0);
    }
    assert!(many.0.len() <= 4, "{} cookies", many.0.len());
    for callback in callbacks {
        assert_eq!(browser.open(&server, &callback).status, 302);
    }
    assert_eq!(browser.0.len(), 1);
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

#[test]
fn responses_are_not_shared_between_users() {
    let provider = Provider::start();
    let upstream = Upstream::start(|request, stream| {
        let user = request.field("Remote-User").unwrap_or("nobody");
        let length = user.len();
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: {length}\r\n\r\n");
        super::support::upstream::write_to(stream, head + user);
        super::support::upstream::Next::Keep
    });
    let server = start(&provider, "", &format!("{}\ncache = true", upstream.key()));
    for user in ["user-1", "user-2", "user-1"] {
        provider.claim("sub", json!(user));
        provider.state().userinfo = json!({ "sub": user });
        let mut browser = Browser::default();
        browser.log_in(&server, &provider, "/");
        assert_eq!(browser.open(&server, "/").text, user);
    }
}

#[test]
fn renewed_sessions_are_kept_out_of_shared_caches_until_they_expire() {
    let (provider, upstream) = (
        Provider::start(),
        Upstream::responding_with(
            "HTTP/1.1 200 OK\r\nCache-Control: public, s-maxage=60\r\nCDN-Cache-Control: max-age=9\r\nContent-Length: 1\r\n\r\nx",
        ),
    );
    let keys = format!(
        "headers = {{ Cache-Control = \"public, max-age=60\" }}\n[site.default.route.\"/app/*\"]\n{}\nheaders = {{ }}",
        upstream.key()
    );
    let server = start(&provider, ", idle = \"10s\"", &keys);
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&server, &provider, "/").status, 302);
    let known = browser.clone();
    let (begun, mut renewed) = (std::time::Instant::now(), None);
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    for (target, status) in [("/a.txt", 200), ("/app/x", 200), ("/missing", 404)] {
        let mut browser = known.clone();
        let response = browser.open(&server, target);
        assert_eq!(response.status, status, "{target}");
        assert!(response.field("Set-Cookie").is_some(), "{target}");
        assert_eq!(response.field("Cache-Control"), Some("private, no-cache"), "{target}");
        assert_eq!(response.field("CDN-Cache-Control"), None, "{target}");
        let again = browser.open(&server, target);
        assert_eq!(again.field("Set-Cookie"), None, "{target}");
        assert_ne!(again.field("Cache-Control"), Some("private, no-cache"), "{target}");
        renewed = Some(browser);
    }
    // The cookie before the renewal expires first.
    let mut renewed = renewed.expect("a browser");
    for seconds in [7, 12] {
        std::thread::sleep(std::time::Duration::from_secs(seconds).saturating_sub(begun.elapsed()));
        assert_eq!(renewed.open(&server, "/a.txt").status, 200, "{seconds}");
    }
    assert_eq!(browser.open(&server, "/a.txt").status, 302);
}
