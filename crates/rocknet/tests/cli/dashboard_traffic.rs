//! The view of the traffic in a browser without scripts: bans, the worst clients, limits, and stored responses.

use rocknet_control::ban::BanList;

use crate::cache_disk::Upstream;
use crate::dashboard_client::{DASHBOARD_CONFIG, DashboardClient};

const TRAFFIC: &str = "/traffic";

/// Beginnings of the notices about instructions that succeeded and failed.
const GOOD: &str = " class=\"notice good\"><p>● ";
const BAD: &str = " class=\"notice bad\"><p>✖ ";

fn bans(client: &DashboardClient) -> BanList {
    serde_json::from_str(&client.dir.run(&["ban", "--json"]).out).expect("a list of bans")
}

/// Returns the value of a row of facts.
fn fact<'p>(page: &'p str, label: &str) -> &'p str {
    let row = format!("<dt>{label}</dt><dd");
    let (_, rest) = page.split_once(&row).unwrap_or_else(|| panic!("{label}: {page}"));
    let (_, rest) = rest.split_once('>').expect("the end of a tag");
    rest.split('<').next().unwrap_or_default()
}

#[test]
fn a_client_is_banned_and_the_ban_is_lifted() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let empty = client.page(TRAFFIC).body;
    assert!(empty.contains("No client is banned."), "{empty}");
    let ban = |address: &str, time: &str, reason: &str| {
        let fields = [("address", address), ("time", time), ("reason", reason), ("do", "ban")];
        client.instruct(TRAFFIC, &fields)
    };
    let page = ban("192.0.2.7", "1h", "<b>scanner");
    assert!(page.starts_with(&format!("{GOOD}192.0.2.7 is banned until ")), "{page}");
    assert!(
        page.contains("<code>192.0.2.7</code>") && page.contains("<td>&#60;b&#62;scanner</td>"),
        "{page}"
    );
    let page = ban("2001:db8::/32", "forever", "");
    assert!(page.starts_with(GOOD) && page.contains("Until it is lifted"), "{page}");
    assert_eq!(fact(&page, "Banned clients and networks"), "2");
    let overview = client.page("/").body;
    assert_eq!(fact(&overview, "<a href=\"/traffic\">Banned clients</a>"), "2");
    let list = bans(&client);
    let banned: Vec<_> = list.bans.iter().map(|ban| &*ban.address).collect();
    assert!(
        banned.contains(&"192.0.2.7") && banned.contains(&"2001:db8::/32"),
        "{banned:?}"
    );
    let scanner = list.bans.iter().find(|ban| ban.address == "192.0.2.7").unwrap();
    assert_eq!(scanner.until.unwrap() - scanner.since, 3_600);

    for (address, time) in [("127.0.0.1", ""), ("<b>", ""), ("", "1h"), ("192.0.2.8", "soon")] {
        let page = ban(address, time, "");
        assert!(page.starts_with(BAD) && !page.contains("<b>"), "{address}: {page}");
        let shown = address.replace('<', "&#60;").replace('>', "&#62;");
        assert!(
            page.contains(&format!("name=\"address\" value=\"{shown}\"")),
            "{address}: {page}"
        );
    }
    assert_eq!(bans(&client).total, 2);

    let lift = |address: &str| client.instruct(TRAFFIC, &[("address", address), ("do", "lift")]);
    let page = lift("192.0.2.7");
    assert!(
        page.starts_with(&format!("{GOOD}the ban of 192.0.2.7 was lifted")) && !page.contains("scanner"),
        "{page}"
    );
    assert!(lift("192.0.2.7").starts_with(BAD));
    lift("2001:db8::/32");
    assert_eq!(bans(&client).total, 0);
}

#[test]
fn worst_clients_refused_requests_and_lists_are_shown() {
    let config = format!(
        "{DASHBOARD_CONFIG}limit = \"1/h\"\n[ban]\nexempt = []\nnot_found = false\nrefused = false\nfiles = [\"bans.txt\"]\n"
    );
    let client = DashboardClient::start(&config, &[("bans.txt", "203.0.113.0/24\nno address\n")]);
    assert!(client.server.get("/none").starts_with("HTTP/1.1 404 "));
    assert!(client.server.get("/").starts_with("HTTP/1.1 429 "));
    let page = client.page(TRAFFIC).body;
    assert_eq!(fact(&page, "Requests refused by limits"), "1");
    assert_eq!(fact(&client.page("/").body, "Requests refused by limits"), "1");
    let (_, row) = page
        .split_once("<th scope=\"row\"><code>127.0.0.1</code></th>")
        .expect(&page);
    let numbers =
        "<td class=\"number\">0</td><td class=\"number\">1</td><td class=\"number\">1</td><td class=\"number\">0</td>";
    assert!(row.starts_with(numbers), "{row}");
    assert!(row.contains("aria-label=\"Ban 127.0.0.1\">Ban</button>"), "{row}");
    assert!(
        page.contains("bans.txt</code></th><td class=\"number\">1</td><td><span class=\"tag fair\">▲ Skipped lines: 1"),
        "{page}"
    );
    // The button of the worst client.
    let page = client.instruct(TRAFFIC, &[("address", "127.0.0.1"), ("do", "ban")]);
    assert!(page.starts_with(GOOD) && page.contains("✖ Banned"), "{page}");
}

#[test]
fn stored_responses_are_dropped() {
    let upstream = Upstream::start(0);
    let config = format!(
        "{}proxy = \"http://{}\"\ncache = true\n",
        DASHBOARD_CONFIG.replace("root = \"www\"\n", ""),
        upstream.address
    );
    let client = DashboardClient::start(&config, &[]);
    // Requests both pages, and returns the number of requests that the upstream has got because of that.
    let forwarded = || {
        let before = upstream.requests();
        for path in ["/a", "/b"] {
            assert!(client.server.get(path).ends_with(path));
        }
        upstream.requests() - before
    };
    assert_eq!(fact(&client.page("/").body, "Sent from these"), "–");
    assert_eq!((forwarded(), forwarded()), (2, 0));
    let page = client.page(TRAFFIC).body;
    assert_eq!(
        fact(&page, "Sent from these"),
        "50.0 % of 4 requests: 2 fresh, 0 stale, 0 shared"
    );
    assert!(fact(&page, "In memory").ends_with(", of 2 URLs"), "{page}");
    assert!(fact(&page, "Forwarded").starts_with("2, and 0 "), "{page}");
    assert_eq!(fact(&client.page("/").body, "Sent from these"), "50.0 % of 4 requests");
    let purge = |what: &str, text: &str, site: &str| {
        let fields = [("what", what), ("text", text), ("site", site), ("do", "purge")];
        client.instruct(TRAFFIC, &fields)
    };
    let url = format!("http://{}", client.server.authority());
    for (what, text, site, dropped) in [
        ("url", format!("{url}/a"), "", 1),
        ("url", format!("{url}/a"), "other.test", 0),
        ("prefix", format!("{url}/"), "default", 2),
        ("tag", "product-42".to_owned(), "", 0),
        ("all", String::new(), "other.test", 0),
        ("all", String::new(), "default", 2),
        ("all", String::new(), "", 2),
    ] {
        let page = purge(what, &text, site);
        let expected = format!("{GOOD}stored responses of {dropped} URLs were dropped");
        assert!(page.starts_with(&expected), "{what} {text} {site}: {page}");
        assert_eq!(forwarded(), dropped, "{what} {text} {site}");
    }
    // An incomplete form drops nothing, and its input stays.
    for (what, text) in [
        ("url", ""),
        ("prefix", "no URL"),
        ("all", "product-42"),
        ("nothing", ""),
    ] {
        let page = purge(what, text, "default");
        assert!(page.starts_with(BAD), "{what} {text}: {page}");
        assert!(page.contains(&format!("name=\"text\" value=\"{text}\"")), "{page}");
        assert!(page.contains("name=\"site\" value=\"default\""), "{page}");
    }
    assert_eq!(forwarded(), 0);
}
