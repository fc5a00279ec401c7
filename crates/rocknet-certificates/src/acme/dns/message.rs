//! Builds DNS messages for updates (RFC 1035 §4, RFC 2136), signs them with TSIG (RFC 8945), and parses the responses.

use aws_lc_rs::hmac;
use rocknet_proto::dns::{IN, header, put_name, put_u16s};

/// Record type of texts.
pub const TXT: u16 = 16;
/// Record type that marks the start of a zone.
pub const SOA: u16 = 6;
/// Record type of signatures (RFC 8945 §4.2).
const TSIG: u16 = 250;
/// Class of a record to be deleted (RFC 2136 §2.5.4).
const NONE: u16 = 254;
/// Class of TSIG records (RFC 8945 §4.2).
const ANY: u16 = 255;

/// A TSIG key: a shared secret and its name.
#[derive(Clone)]
pub struct TsigKey {
    pub name: String,
    pub secret: Vec<u8>,
}

/// A change of a record. `ttl` is in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add { ttl: u32 },
    Delete,
}

/// Builds an update of one TXT record of a zone. Returns `None` if a name is not a valid domain name, or the text is
/// longer than 255 bytes.
pub fn update(id: u16, zone: &str, change: Change, name: &str, text: &str) -> Option<Vec<u8>> {
    let text_length = u8::try_from(text.len()).ok()?;
    // One zone, no prerequisite, one update, no additional record.
    let mut message = header(id, UPDATE, [1, 0, 1, 0]);
    put_name(&mut message, zone)?;
    put_u16s(&mut message, [SOA, IN]);
    put_name(&mut message, name)?;
    let (class, ttl) = match change {
        Change::Add { ttl } => (IN, ttl),
        // RFC 2136 §2.5.4: deletes this record only, not other TXT records of the name.
        Change::Delete => (NONE, 0),
    };
    put_u16s(&mut message, [TXT, class]);
    message.extend(ttl.to_be_bytes());
    put_u16s(&mut message, [u16::from(text_length) + 1]);
    message.push(text_length);
    message.extend(text.as_bytes());
    Some(message)
}

/// Signs a message that has no additional record yet (RFC 8945 §4.3.3). `unix` is the time in seconds since 1970.
/// Returns `None` if the key's name is not a domain name or the message has no header.
pub fn sign(message: &mut Vec<u8>, key: &TsigKey, unix: u64) -> Option<()> {
    let id = *message.first_chunk::<2>()?;
    let mut signed = message.clone();
    let mut variables = Vec::new();
    put_name(&mut variables, &key.name)?;
    // The class of a TSIG record is ANY, and its TTL is 0.
    put_u16s(&mut variables, [ANY]);
    variables.extend(0u32.to_be_bytes());
    put_name(&mut variables, ALGORITHM)?;
    put_time(&mut variables, unix);
    // The zeros are the TSIG fields Error and Other Len, here and at the end of the record.
    put_u16s(&mut variables, [FUDGE, 0, 0]);
    signed.extend(&variables);
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.secret), &signed);

    put_name(message, &key.name)?;
    put_u16s(message, [TSIG, ANY]);
    message.extend(0u32.to_be_bytes());
    let mut data = Vec::new();
    put_name(&mut data, ALGORITHM)?;
    put_time(&mut data, unix);
    put_u16s(&mut data, [FUDGE, u16::try_from(mac.as_ref().len()).ok()?]);
    data.extend(mac.as_ref());
    data.extend(id);
    put_u16s(&mut data, [0, 0]);
    put_u16s(message, [u16::try_from(data.len()).ok()?]);
    message.extend(data);
    // Bytes 10 and 11 of the header count the additional records.
    let additional = u16::from_be_bytes([*message.get(10)?, *message.get(11)?]).checked_add(1)?;
    message.get_mut(10..12)?.copy_from_slice(&additional.to_be_bytes());
    Some(())
}

/// Parses the response to the message with this ID. Returns the response code and whether the response contains an
/// answer record, or `None` if it is not a response to that message.
pub fn parse_response(response: &[u8], id: u16) -> Option<(u8, bool)> {
    let head = response.first_chunk::<12>()?;
    let is_response = head[2] & 0x80 != 0;
    let has_id = u16::from_be_bytes([head[0], head[1]]) == id;
    (is_response && has_id).then(|| (head[3] & 0x0f, head[6] != 0 || head[7] != 0))
}

/// Describes a response code (RFC 1035 §4.1.1, RFC 2136 §2.2, RFC 8945 §5.2). In the texts, “it” is the DNS server.
pub fn describe_code(code: u8) -> &'static str {
    match code {
        1 => "it could not parse the update (FORMERR)",
        2 => "it failed (SERVFAIL)",
        3 => "the name does not exist (NXDOMAIN)",
        4 => "it does not support updates (NOTIMP)",
        5 => "it refused the update: this machine or the key may not change the zone (REFUSED)",
        9 => "it is not authoritative for the zone, or rejects the key or the clock of this machine (NOTAUTH)",
        10 => "the name is outside of the zone (NOTZONE)",
        _ => "it refused",
    }
}

/// Writes a time as 48 bits of seconds.
fn put_time(out: &mut Vec<u8>, unix: u64) {
    out.extend(&unix.to_be_bytes()[2..]);
}

/// Opcode of an update (RFC 2136 §1.3).
const UPDATE: u8 = 5;

/// TSIG algorithm that every implementation must support (RFC 8945 §6).
const ALGORITHM: &str = "hmac-sha256";

/// Permitted difference between the clocks of client and server in seconds, as RFC 8945 §10 recommends.
const FUDGE: u16 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn an_update_has_the_layout_of_the_standard() {
        let add = update(
            0x1234,
            "Example.com.",
            Change::Add { ttl: 60 },
            "_acme-challenge.example.com",
            "ab",
        )
        .unwrap();
        let zone = "076578616d706c6503636f6d00";
        let name = format!("0f5f61636d652d6368616c6c656e6765{zone}");
        let head = "123428000001000000010000";
        assert_eq!(
            hex(&add),
            format!("{head}{zone}00060001{name}001000010000003c0003026162")
        );
        let delete = update(
            0x1234,
            "example.com",
            Change::Delete,
            "_acme-challenge.example.com",
            "ab",
        )
        .unwrap();
        assert_eq!(
            hex(&delete),
            format!("{head}{zone}00060001{name}001000fe000000000003026162")
        );
        let question = rocknet_proto::dns::query(1, "example.com", SOA).unwrap();
        assert_eq!(hex(&question), format!("000100000001000000000000{zone}00060001"));
    }

    #[test]
    fn names_and_texts_that_do_not_fit_are_refused() {
        // A label of more than 63 bytes, and a name of more than 255 bytes.
        let long = "a".repeat(64);
        let whole = vec!["a".repeat(63); 4].join(".");
        for name in ["a..b", ".a", long.as_str(), whole.as_str()] {
            assert!(rocknet_proto::dns::query(1, name, SOA).is_none(), "{name}");
        }
        assert!(rocknet_proto::dns::query(1, &"a".repeat(63), SOA).is_some());
        assert!(rocknet_proto::dns::query(1, "", SOA).is_some(), "the root");
        for (length, good) in [(255, true), (256, false)] {
            let text = "x".repeat(length);
            assert_eq!(update(1, "a", Change::Delete, "b.a", &text).is_some(), good);
        }
    }

    #[test]
    fn a_signature_covers_message_key_and_time() {
        let key = |secret: &[u8]| TsigKey {
            name: "k".to_owned(),
            secret: secret.to_vec(),
        };
        let signed = |text: &str, secret: &[u8], unix| {
            let mut message = update(7, "a", Change::Delete, "b.a", text).unwrap();
            let plain = message.len();
            sign(&mut message, &key(secret), unix).unwrap();
            assert_eq!(message[10..12], [0, 1]);
            // The signature follows: key name; type, class, TTL and length; algorithm; time; fudge and signature size.
            let at = plain + 3 + 10 + 13 + 6 + 4;
            (message[at..at + 32].to_vec(), message.len() - at)
        };
        let (first, length) = signed("x", b"s", 5);
        // After the signature: the message ID, Error and Other Len, with two bytes each.
        assert_eq!(length, 32 + 6);
        assert_eq!(signed("x", b"s", 5).0, first);
        for other in [signed("y", b"s", 5), signed("x", b"t", 5), signed("x", b"s", 6)] {
            assert_ne!(other.0, first);
        }
    }

    #[test]
    fn only_responses_with_the_id_of_the_message_are_parsed() {
        for (response, expected) in [
            (&[0, 7, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0][..], Some((0, true))),
            (&[0, 7, 0xa8, 9, 0, 0, 0, 0, 0, 0, 0, 0], Some((9, false))),
            (&[0, 8, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0, 7, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0, 7, 0x80], None),
            (&[], None),
        ] {
            assert_eq!(parse_response(response, 7), expected, "{response:?}");
        }
    }
}
