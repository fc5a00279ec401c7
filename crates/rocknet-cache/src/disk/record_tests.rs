//! Tests of records.

use super::super::tests::{moment, stored};
use super::*;

#[test]
fn responses_are_read_as_they_were_written() {
    let mut response = stored("max-age=60", "body");
    response.tags = Arc::from([Box::from("a"), Box::from("b c")]);
    response.url = Some(Box::from(&b"h\0/a"[..]));
    response.error_page = ErrorPage::Never;
    response.is_negotiated = true;
    response.variation = Variation::from_selectors(vec![
        (Box::from(&b"accept"[..]), Some(b"x".to_vec())),
        (Box::from(&b"cookie"[..]), None),
    ]);
    response.server_fields.add("X-LiteSpeed-Tag", "t");
    let now = moment();
    let head = encode_response(b"key", &response, now).expect("valid fields");
    let decoded = decode_response(&head).expect("a response");
    assert_eq!(decoded.key, b"key");
    let read = decoded.into_stored(response.body.clone(), now).expect("a response");
    assert_eq!(format!("{read:?}"), format!("{response:?}"));
    for length in 0..head.len() {
        assert!(decode_response(&head[..length]).is_none(), "{length} bytes");
    }
    let longer = [&head[..], b"x"].concat();
    assert!(decode_response(&longer).is_none());
    // A response whose head cannot be sent is not written.
    response.fields.add("X-A", "b\nc");
    assert!(encode_response(b"key", &response, now).is_none());
}

#[test]
fn a_header_with_a_flipped_bit_is_refused() {
    let mut header = Header::new(Kind::Response, 0x1234_5678_9abc_def0, 7, 100, 200).expect("a header");
    header.position = Position {
        segment: 3,
        offset: 4000,
    };
    assert_eq!((header.length(), header.end().offset), (348, 4348));
    let bytes = header.encode();
    assert_eq!(Header::decode(&bytes), Some(header));
    for bit in 0..HEADER * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Header::decode(&flipped), None, "bit {bit}");
    }
    assert!(Header::new(Kind::Purge, 0, 0, MAX_HEAD as usize + 1, 0).is_none());
}

#[test]
fn purges_are_read_as_they_were_written() {
    let of_site = Purge {
        site: Some("s".to_owned()),
        ..Purge::everything()
    };
    let prefix = Purge::url("https://h/a", true).expect("a purge");
    let url = Purge::url("https://h/a", false).expect("a purge");
    for purge in [Purge::everything(), of_site, prefix, url, Purge::tag("t")] {
        let head = encode_purge(&purge);
        assert_eq!(decode_purge(&head), Some(purge.clone()));
        assert!(
            (0..head.len()).all(|length| decode_purge(&head[..length]).is_none()),
            "{purge:?}"
        );
    }
}

#[test]
fn trims_are_read_as_they_were_written() {
    let before = Position {
        segment: 7,
        offset: 4000,
    };
    let head = encode_trim(b"example.com", before);
    assert_eq!(decode_trim(&head), Some((&b"example.com"[..], before)));
    assert!((0..head.len()).all(|length| decode_trim(&head[..length]).is_none()));
}
