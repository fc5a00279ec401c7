//! Conditional requests (RFC 9110 §13): each condition, and the order of their evaluation.

use rocknet_proto::semantics::date;

use super::files::{AFTER, BEFORE, CHANGED_TEXT, check, digits, etag};
use super::support::Running;

#[test]
fn conditions_are_evaluated_in_order() {
    let server = Running::site(digits(), "");
    let etag = etag();
    // `this`, `weak`, `list`, `matches` and `weakly` name the entity tag of the file; `other` and `differs` do not.
    // `since` and `until` have the date of its last change.
    let field = |name: &str, value: &str| format!("{name}: {value}");
    let (this, other) = (field("If-None-Match", &etag), field("If-None-Match", "\"x\""));
    let weak = field("If-None-Match", &format!("W/{etag}"));
    let list = field("If-None-Match", &format!("\"x\", W/\"y\",{etag}"));
    let (matches, differs) = (field("If-Match", &etag), field("If-Match", "\"x\""));
    let weakly = field("If-Match", &format!("W/{etag}"));
    let (since, since_before) = (
        field("If-Modified-Since", CHANGED_TEXT),
        field("If-Modified-Since", BEFORE),
    );
    let since_after = field("If-Modified-Since", AFTER);
    let (until, until_before) = (
        field("If-Unmodified-Since", CHANGED_TEXT),
        field("If-Unmodified-Since", BEFORE),
    );
    let tag = field("ETag", &etag);
    let validators = [
        tag.as_str(),
        "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT",
        "!Content-Range",
    ];
    // A row has the fields of the request, and the status of the response.
    let rows: &[(&[&str], u16)] = &[
        (&[], 200),
        (&[&this], 304),
        (&[&other], 200),
        (&[&weak], 304),
        (&[&list], 304),
        (&[&other, &this], 304),
        (&["If-None-Match: *"], 304),
        (&["If-None-Match: garbage"], 200),
        (&[&since], 304),
        (&[&since_after], 304),
        (&[&since_before], 200),
        (&["If-Modified-Since: yesterday"], 200),
        (&[&other, &since], 200),
        (&[&this, &since_before], 304),
        (&[&matches], 200),
        (&[&differs], 412),
        (&[&weakly], 412),
        (&["If-Match: *"], 200),
        (&[&until], 200),
        (&[&until_before], 412),
        (&[&matches, &until_before], 200),
        (&[&matches, &this], 304),
        (&[&differs, &this], 412),
        (&[&this, "Range: bytes=0-1"], 304),
        (&[&differs, "Range: bytes=0-1"], 412),
    ];
    let mut client = server.connect();
    for (fields, status) in rows {
        let (expected, content): (&[&str], _) = match status {
            200 => (&validators, "0123456789"),
            304 => (&validators, ""),
            _ => (&["!ETag"], ""),
        };
        for (method, content) in [("GET", content), ("HEAD", "")] {
            let content = (*status != 412).then_some(content);
            check(
                &mut client,
                &[(&format!("{method} /digits.txt"), fields, *status, expected, content)],
            );
        }
    }
    let fields = ["!Content-Length", "!Content-Type", "!Accept-Ranges"];
    check(&mut client, &[("GET /digits.txt", &[&this], 304, &fields, Some(""))]);
}

#[test]
fn future_modification_dates_are_capped() {
    let folder = digits();
    folder.write("www/tomorrow.txt", "later");
    folder.date("www/tomorrow.txt", FAR_FUTURE);
    let server = Running::site(folder, "");
    let response = server.get("/tomorrow.txt");
    let time = |name: &str| date::parse(response.field(name).unwrap_or_default().as_bytes());
    assert!(
        time("Last-Modified") <= time("Date") && time("Last-Modified").is_some(),
        "{response:?}"
    );
    let since = format!(
        "If-Modified-Since: {}",
        response.field("Last-Modified").unwrap_or_default()
    );
    server
        .fetch("GET /tomorrow.txt", &[&since])
        .expect("unchanged", 304, &[]);
}

/// Unix time of 2100-01-01.
const FAR_FUTURE: u64 = 4_102_444_800;

over_http3! {
    conditions_are_evaluated_in_order,
    future_modification_dates_are_capped,
}
