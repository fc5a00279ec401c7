//! The command `sign`, whose URLs the keys of the configuration admit.

use std::time::{SystemTime, UNIX_EPOCH};

use rocknet::signed_url::{SignedRequest, SigningKeys, Verdict};
use rocknet::url_keys;

use crate::program::{ProgramFolder, ProgramOutput};

const CONFIG: &str = "[server]\nstate = \"state\"\n[site.\"example.com\"]\nroot = \"www\"\ntls = \"off\"\n\
    [site.\"example.com\".route.\"/dl/*\"]\nauth = { signed = \"url.keys\" }\n\
    [site.\"example.com\".route.\"/own/*\"]\nauth = { signed = true }\n";

fn run(dir: &ProgramFolder, line: &str) -> ProgramOutput {
    dir.run(&line.split(' ').collect::<Vec<_>>())
}

fn verdict(keys: &SigningKeys, method: &str, url: &str, client: Option<&str>, after_s: u64) -> Verdict {
    let request = SignedRequest {
        method: method.as_bytes(),
        authority: b"example.com",
        target: url.strip_prefix("http://example.com").expect(url).as_bytes(),
        client: client.map(|client| client.parse().unwrap()),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    keys.verify(&request, std::iter::empty(), now + after_s)
}

#[test]
fn signed_urls_are_valid_until_their_end() {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", CONFIG)]);
    let (new, old) = (run(&dir, "sign --new-key 2026-11"), run(&dir, "sign --new-key"));
    assert!(
        new.out.starts_with("2026-11:") && old.out.starts_with("main:"),
        "{new:?} {old:?}"
    );
    let file = dir.write("url.keys", &format!("{}{}", new.out, old.out));
    let keys = url_keys::read(&file).unwrap();
    let sign = |line: &str| {
        let output = run(&dir, &format!("sign {line}"));
        assert_eq!(output.code, Some(0), "{line}: {output:?}");
        output.out.trim().to_owned()
    };
    for url in ["http://example.com/dl/a%20b.zip", "http://example.com/dl/?x=1"] {
        let signed = sign(url);
        assert!(signed.starts_with(url) && signed.contains(".2026-11."), "{signed}");
        assert_eq!(verdict(&keys, "GET", &signed, None, 3_500), Verdict::Valid, "{signed}");
        assert_eq!(
            verdict(&keys, "GET", &signed, None, 3_601),
            Verdict::Expired,
            "{signed}"
        );
    }
    let put = sign("http://example.com/dl/x#top --method PUT --expires 1d --key main --client 192.0.2.1");
    assert_eq!(
        verdict(&keys, "PUT", &put, Some("192.0.2.1"), 86_000),
        Verdict::Valid,
        "{put}"
    );
    assert_eq!(
        verdict(&keys, "PUT", &put, Some("192.0.2.2"), 0),
        Verdict::Invalid,
        "{put}"
    );
    let folder = sign("http://example.com/dl/v/list.m3u8 --folder --json");
    let folder: serde_json::Value = serde_json::from_str(&folder).unwrap();
    let part = format!(
        "http://example.com/dl/v/1.ts?signed={}",
        folder["signed"].as_str().unwrap()
    );
    assert_eq!(verdict(&keys, "GET", &part, None, 0), Verdict::Valid, "{folder}");
    assert_eq!(
        verdict(&keys, "GET", folder["url"].as_str().unwrap(), None, 0),
        Verdict::Valid
    );
}

#[test]
fn urls_that_cannot_be_signed_are_refused_with_the_reason() {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", CONFIG)]);
    dir.write("url.keys", &run(&dir, "sign --new-key").out);
    for (line, code, part) in [
        ("sign", 2, "URL"),
        ("sign /dl/x", 2, "write the host"),
        ("sign http://*.example.com/dl/x", 2, "write the host"),
        ("sign http://example.com/dl/\u{e4}", 2, "%20 for a space"),
        ("sign http://example.com/dl/a%2Fb", 2, "encoded slash"),
        (
            "sign http://example.com/dl/x?signed=1.main.x",
            2,
            "has a signature already",
        ),
        ("sign http://example.com/dl/x --expires 0s", 2, "whole number"),
        (
            "sign http://example.com/dl/x --expires forever",
            2,
            "write a whole number and a unit, such as 30m, 1h or 7d\n",
        ),
        ("sign http://example.com/dl/x --key none", 2, "no key"),
        ("sign http://example.com/dl/x --method G/T", 2, "not a method"),
        ("sign http://example.com/", 1, "has no signed URLs"),
        ("sign http://example.org:1/", 1, "no site"),
        ("sign http://example.com/own/x", 1, "start the server first"),
        ("sign http://example.com/own/x --key-file none", 1, "cannot be read"),
        ("sign --new-key a.b", 2, "not an identifier"),
    ] {
        let output = run(&dir, line);
        assert!(
            output.code == Some(code) && output.err.contains(part),
            "{line}: {output:?}"
        );
    }
}
