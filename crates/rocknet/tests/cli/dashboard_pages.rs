//! Addresses of the dashboard in a browser: unknown addresses, requests without a session, and links on other sites.

use crate::dashboard_client::{ACCEPT_PAGE, DASHBOARD_CONFIG, DashboardClient, FROM_OTHER_SITE};

/// Addresses that are not pages.
const UNKNOWN: [&str; 7] = [
    "/nothing",
    "/websites/",
    "/websites/none?name=a",
    "/index.html",
    "/assets/0/none.js",
    "/events",
    "/apiary",
];

#[test]
fn an_unknown_address_has_a_page_in_browsers() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    for path in UNKNOWN {
        let page = client.page(path);
        assert_eq!(page.status, 404, "{path}: {}", page.body);
        assert!(
            page.head.contains("\r\nContent-Type: text/html; charset=utf-8\r\n")
                && page.head.contains("\r\nContent-Security-Policy: default-src 'none'; "),
            "{path}: {}",
            page.head
        );
        // The page has the navigation of the dashboard.
        assert!(
            page.body.contains("<nav aria-label=\"Views\">")
                && page.body.contains("there is no page with this address"),
            "{path}: {}",
            page.body
        );
        let signed_out = client.send("GET", path, ACCEPT_PAGE, "");
        assert_eq!((signed_out.status, signed_out.location()), (303, "/login"), "{path}");
        // Programs get JSON. The status is 429 after many requests without a token.
        let program = client.send("GET", path, "Accept: application/json\r\n", "");
        assert!(
            matches!(program.status, 401 | 404 | 429) && program.body.starts_with("{\"error\":"),
            "{path}: {}",
            program.body
        );
    }
    // The API has no pages, even in a browser.
    for path in ["/api/none", "/api/status", "/api", "/metrics"] {
        let reply = client.send("GET", path, ACCEPT_PAGE, "");
        assert!(
            matches!(reply.status, 401 | 429) && reply.body.starts_with("{\"error\":"),
            "{path}: {}",
            reply.body
        );
    }
    let hostile = client.page("/%3Cscript%3Ealert(1)%3C/script%3E");
    assert!(
        hostile.status == 404 && !hostile.body.contains("<script>"),
        "{}",
        hostile.body
    );
}

#[test]
fn a_method_that_a_page_does_not_support_has_a_page_in_browsers() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let page = client.page("/logout");
    assert!(
        page.status == 405 && page.head.contains("\r\nAllow: POST\r\n") && page.body.contains("<nav aria-label"),
        "{}",
        page.body
    );
    let signed_out = client.send("GET", "/logout", ACCEPT_PAGE, "");
    assert_eq!((signed_out.status, signed_out.location()), (303, "/login"));
    let program = client.send("GET", "/logout", "", "");
    assert!(
        program.status == 405 && program.body.starts_with('{'),
        "{}",
        program.body
    );
}

#[test]
fn pages_let_browsers_send_their_origin_with_forms() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    for path in ["/", "/maintenance", "/websites/add"] {
        let head = client.page(path).head;
        assert!(head.contains("\r\nReferrer-Policy: same-origin\r\n"), "{path}: {head}");
    }
}

#[test]
fn a_link_on_another_site_opens_a_page() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let arrive = |method: &str, path: &str, fields: &str| {
        let fields = format!("{ACCEPT_PAGE}{fields}");
        client.send(method, path, &fields, "")
    };
    let cookie = &client.cookie;
    for path in ["/", "/logs", "/websites/edit?name=default", "/nothing"] {
        let expected = if path == "/nothing" { 404 } else { 200 };
        for site in ["cross-site", "same-site"] {
            // A browser sends the cookie along with a link of another port of this machine, which is the same site.
            let fields = format!("{cookie}{}", FROM_OTHER_SITE.replace("cross-site", site));
            assert_eq!(arrive("GET", path, &fields).status, expected, "{path} {site}");
            assert_eq!(arrive("HEAD", path, &fields).status, expected, "{path} {site}");
        }
        // A browser sends no cookie with a link of another site. The response is then a page that loads the same
        // address again, and the browser sends the cookie with this second request.
        let first = arrive("GET", path, FROM_OTHER_SITE);
        let separator = if path.contains('?') { '&' } else { '?' };
        let again = format!("{path}{separator}from=link");
        assert_eq!(first.status, 200, "{path}: {}", first.body);
        let shown = again.replace('&', "&#38;");
        let refresh = format!("<meta http-equiv=\"refresh\" content=\"0;url={shown}\">");
        assert!(
            first.body.contains(&refresh) && first.body.contains(&format!("href=\"{shown}\"")),
            "{path}: {}",
            first.body
        );
        assert!(!first.head.contains("Set-Cookie"), "{}", first.head);
        assert_eq!(arrive("GET", &again, cookie).status, expected, "{again}");
        // The second request is redirected to the sign-in if there is no session, which prevents a loop.
        for fields in ["Sec-Fetch-Site: same-origin\r\n", FROM_OTHER_SITE] {
            let last = arrive("GET", &again, fields);
            assert_eq!((last.status, last.location()), (303, "/login"), "{again}");
        }
    }
    assert_eq!(arrive("GET", "/login", FROM_OTHER_SITE).status, 200);
    // No page links or redirects to another host.
    for path in ["//a.test/", "/\\a.test/", "/.//a.test", "//"] {
        let reply = arrive("GET", path, FROM_OTHER_SITE);
        assert!(
            !reply.body.contains("url=//") && !reply.body.contains("url=/\\"),
            "{path}: {}",
            reply.body
        );
    }
}

#[test]
fn other_requests_of_other_sites_are_rejected() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let cookie = &client.cookie;
    let frame = FROM_OTHER_SITE.replace("document", "iframe");
    let script = FROM_OTHER_SITE.replace("navigate", "no-cors");
    let no_destination = FROM_OTHER_SITE.replace("Sec-Fetch-Dest: document\r\n", "");
    let twice = format!("{FROM_OTHER_SITE}Sec-Fetch-Dest: iframe\r\n");
    let other = format!("{FROM_OTHER_SITE}Origin: http://a.test\r\n");
    let link = FROM_OTHER_SITE.to_owned();
    let send = |method: &str, path: &str, fields: &str, body: &str| {
        let fields = format!("{cookie}{ACCEPT_PAGE}{fields}");
        client.send(method, path, &fields, body)
    };
    for path in ["/", "/logs", "/login", "/nothing"] {
        for fields in [&frame, &script, &no_destination, &twice, &other] {
            assert_eq!(send("GET", path, fields, "").status, 403, "{path} {fields}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            assert_eq!(send(method, path, &link, "").status, 403, "{method} {path}");
        }
    }
    let form = format!("{link}Content-Type: application/x-www-form-urlencoded\r\n");
    let edit = "/websites/edit?name=default";
    assert_eq!(send("POST", edit, &form, "do=save").status, 403);
    // A link on another site reaches neither the API nor the scripts and events of the pages.
    for path in [
        "/api/status",
        "/api/config",
        "/api/logs",
        "/metrics",
        "/api/openapi.json",
    ] {
        assert_eq!(send("GET", path, &link, "").status, 403, "{path}");
    }
    for path in ["/events", "/assets/0/dashboard.js"] {
        assert_eq!(client.send("GET", path, &link, "").status, 403, "{path}");
    }
    // An address that the user typed does not count as a request from another site.
    let typed = format!("{cookie}{ACCEPT_PAGE}{link}").replace("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: none");
    assert_eq!(client.send("GET", "/", &typed, "").status, 200);
}
