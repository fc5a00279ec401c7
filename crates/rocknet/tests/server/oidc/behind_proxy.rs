//! Logins behind a proxy that terminates TLS: it reports the scheme and the host that the browser uses.

use super::*;

/// Fields of the proxy.
const REPORTED: [&str; 2] = ["X-Forwarded-Proto: https", "X-Forwarded-Host: app.example.com"];

fn start_behind(provider: &Provider, server: &str) -> Running {
    let auth = auth(&provider.issuer(), "");
    let text = format!("{SERVER}{server}\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{auth}\n");
    Running::start(folder(), &text)
}

const TRUSTED: &str = "trusted_proxies = [\"127.0.0.0/8\"]";

/// Returns the address of the callback in a redirect to the provider.
fn redirect_uri(response: &AnyResponse) -> String {
    let (_, query) = response
        .field("Location")
        .and_then(|location| location.split_once('?'))
        .expect("a query");
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(name, _)| name == "redirect_uri").expect("an address");
    value.into_owned()
}

#[test]
fn a_login_uses_the_scheme_and_the_host_of_the_browser() {
    let provider = Provider::start();
    let server = start_behind(&provider, TRUSTED);
    provider.state().host = "app.example.com";
    let mut browser = Browser::default();
    let response = browser.open_with(&server, "/a.txt?x=1", &REPORTED);
    let address = "https://app.example.com/.rocknet/oidc/callback";
    assert_eq!((response.status, &*redirect_uri(&response)), (302, address));
    assert!(browser.0[0].0.starts_with("__Host-rocknet-login-"), "{:?}", browser.0);
    // The provider gets the same address with the code.
    let callback = provider.log_in(response.field("Location").expect("a location"));
    let response = browser.open_with(&server, &callback, &REPORTED);
    let location = response.field("Location");
    assert_eq!(
        (response.status, location),
        (302, Some("https://app.example.com/a.txt?x=1"))
    );
    // `Browser::store` checks that cookies with this prefix are `Secure`, and no others.
    assert_eq!(browser.0.len(), 1);
    assert!(browser.0[0].0.starts_with("__Host-rocknet-session-"), "{:?}", browser.0);
    assert_eq!(browser.open_with(&server, "/a.txt", &REPORTED).status, 200);
    // A request without TLS does not use the cookie, although an attacker could send it.
    let plain = server.fetch("GET /a.txt", &[PAGE, &browser.field()]);
    assert_eq!(plain.status, 302);
    let cookie = browser.field();
    for (origin, status) in [("http://app.example.com", 403), ("https://app.example.com", 200)] {
        let origin = format!("Origin: {origin}");
        let fields = [REPORTED[0], REPORTED[1], &origin, &cookie];
        let response = server.fetch("POST /.rocknet/oidc/logout", &fields);
        assert_eq!(response.status, status, "{origin}");
        browser.store(&response.fields);
    }
    assert_eq!(browser.0.len(), 0);
}

#[test]
fn only_trusted_proxies_report_the_scheme_and_the_host() {
    let provider = Provider::start();
    let by_forwarded = format!("{TRUSTED}\ntrusted_field = \"forwarded\"");
    let servers = [TRUSTED, "", &by_forwarded].map(|keys| start_behind(&provider, keys));
    for (fields, origins) in [
        (&[][..], ["http://localhost"; 3]),
        (
            &REPORTED,
            ["https://app.example.com", "http://localhost", "http://localhost"],
        ),
        (
            &["X-Forwarded-Proto: HTTPS"],
            ["https://localhost", "http://localhost", "http://localhost"],
        ),
        (
            &["X-Forwarded-Host: App.example.com:8443"],
            ["http://app.example.com:8443", "http://localhost", "http://localhost"],
        ),
        // The client has written all but the last element.
        (
            &["X-Forwarded-Proto: https, http", "X-Forwarded-Host: evil.test, a.test"],
            ["http://a.test", "http://localhost", "http://localhost"],
        ),
        (
            &[
                "X-Forwarded-Proto: http",
                "X-Forwarded-Host: evil.test",
                "X-Forwarded-Proto: https",
                "X-Forwarded-Host: a.test",
            ],
            ["https://a.test", "http://localhost", "http://localhost"],
        ),
        (
            &["Forwarded: for=192.0.2.1;proto=https;host=a.test"],
            ["http://localhost", "http://localhost", "https://a.test"],
        ),
    ] {
        for (server, origin) in servers.iter().zip(origins) {
            let mut browser = Browser::default();
            let response = browser.open_with(server, "/", fields);
            let expected = format!("{origin}/.rocknet/oidc/callback");
            assert_eq!(redirect_uri(&response), expected, "{fields:?}");
            let is_secure = browser.0[0].0.starts_with("__Host-");
            assert_eq!(is_secure, origin.starts_with("https:"), "{fields:?}");
        }
    }
    let unusable = Browser::default().open_with(&servers[0], "/", &["X-Forwarded-Host: a.test/x"]);
    assert_eq!(unusable.status, 400);
}
