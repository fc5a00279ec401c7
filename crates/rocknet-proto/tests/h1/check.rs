//! Functions that check the rows of all test tables.

use rocknet_proto::Limits;
use rocknet_proto::fuzzing::{ResponseTiming, client_transcript, server_transcript};
use rocknet_proto::h1::{Refusal, ResponseError};

/// A valid request. It must be parsed after the bytes of a row if the connection persists.
const FOLLOWER: &[u8] = b"GET /follower HTTP/1.1\r\nHost: follower\r\n\r\n";
const FOLLOWER_LINE: &str = "GET /follower @follower None";

/// A response without a request, which an upstream might plant for the next client.
const UNSOLICITED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";

/// Checks the [transcript](server_transcript) of a server that receives `bytes`, in every split and with a request
/// after them.
pub fn server(bytes: impl AsRef<[u8]>, expected: &[&str]) {
    server_with(&Limits::default(), None, bytes, expected);
}

/// Checks like [`server`], with other limits. `site_limit` is the limit of the request body in bytes that the site
/// sets.
pub fn server_with(limits: &Limits, site_limit: Option<u64>, bytes: impl AsRef<[u8]>, expected: &[&str]) {
    let bytes = bytes.as_ref();
    let shown = bytes.escape_ascii().to_string();
    let run = |pieces: &[&[u8]]| server_transcript(pieces, limits, site_limit, ResponseTiming::AfterBody);
    in_all_splits(bytes, &shown, expected, run);
    // More bytes would complete the unfinished message.
    if expected.last() == Some(&"more") {
        return;
    }
    let mut followed = expected.to_vec();
    if followed.last() == Some(&"idle") {
        followed.insert(followed.len() - 1, FOLLOWER_LINE);
    }
    let long = [bytes, FOLLOWER].concat();
    in_all_splits(&long, &format!("{shown} and a follower"), &followed, run);
}

/// Checks that one request without a body is accepted and that the connection persists.
pub fn accepted(head: impl AsRef<[u8]>, line: &str) {
    server(head, &[&format!("{line} None"), "idle"]);
}

/// Checks that the bytes are refused before any request.
pub fn refused(bytes: impl AsRef<[u8]>, refusal: impl Into<Refusal>) {
    server(bytes, &[&format!("refused {:?}", refusal.into())]);
}

/// Checks like [`refused`], with other limits.
pub fn refused_with(limits: &Limits, bytes: impl AsRef<[u8]>, refusal: impl Into<Refusal>) {
    server_with(limits, None, bytes, &[&format!("refused {:?}", refusal.into())]);
}

/// Checks the [transcript](client_transcript) of a client that receives `bytes` after a request with this method, in
/// every split and with an unsolicited response after them.
pub fn client(method: &str, bytes: impl AsRef<[u8]>, expected: &[&str]) {
    client_with(&Limits::default(), method, None, bytes, expected);
}

/// Checks like [`client`], with other limits. `upgrade` is the value of the Upgrade field in the request.
pub fn client_with(limits: &Limits, method: &str, upgrade: Option<&str>, bytes: impl AsRef<[u8]>, expected: &[&str]) {
    let bytes = bytes.as_ref();
    let shown = bytes.escape_ascii().to_string();
    let run = |pieces: &[&[u8]]| client_transcript(pieces, limits, method, upgrade);
    in_all_splits(bytes, &shown, expected, run);
    let mut followed = expected.to_vec();
    match followed.last_mut() {
        Some(last @ &mut ("reusable" | "not reusable")) => *last = "error Unsolicited",
        Some(&mut "switched") => {}
        // More bytes would complete a truncated response, or extend a response that ends with the connection.
        Some(last) if last.starts_with("error") && *last != "error Truncated" => {}
        _ => return,
    }
    let long = [bytes, UNSOLICITED].concat();
    in_all_splits(&long, &format!("{shown} and more"), &followed, run);
}

/// Checks that a response to GET is rejected before any event.
pub fn rejected(bytes: impl AsRef<[u8]>, error: ResponseError) {
    client("GET", bytes, &[&format!("error {error:?}")]);
}

/// Checks the transcript of the whole bytes, of single bytes, and of two pieces for each position of the cut.
fn in_all_splits(bytes: &[u8], shown: &str, expected: &[&str], run: impl Fn(&[&[u8]]) -> Vec<String>) {
    assert_eq!(run(&[bytes]), expected, "whole: {shown}");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(&single), expected, "byte by byte: {shown}");
    // The time for cuts at every position grows with the square of the length, so long rows are cut at about sixty
    // positions.
    for cut in (1..bytes.len()).step_by(bytes.len() / 60 + 1) {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(run(&[front, back]), expected, "cut at {cut}: {shown}");
    }
}
