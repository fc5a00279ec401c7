//! Encodes DNS queries and parts of DNS messages (RFC 1035 §4).

/// Class IN (Internet), the class of all records in use.
pub const IN: u16 = 1;

/// Maximum size of a response, or any other message, over UDP without EDNS, in bytes (RFC 1035 §4.2.1).
pub const MAX_RESPONSE: usize = 512;

/// Maximum length of a name in text form without its trailing dot, in bytes. On the wire, 255 bytes are allowed (RFC
/// 1035 §2.3.4), but a name has two more bytes there: the length of its first label, and the zero at its end.
pub const MAX_NAME: usize = 253;
/// Maximum length of a label in bytes, because the two upper bits of the length byte are reserved (RFC 1035 §4.1.4).
const MAX_LABEL: u8 = 63;

/// Returns a query for the records of type `record_type` of a name; `None` if the name is invalid. Recursion is not
/// requested: a query to a resolver, unlike one to an authoritative server, needs the flag RD, which its caller sets.
pub fn query(id: u16, name: &str, record_type: u16) -> Option<Vec<u8>> {
    // Opcode 0 is QUERY. The message has one question and no other records.
    let mut message = header(id, 0, [1, 0, 0, 0]);
    put_name(&mut message, name)?;
    put_u16s(&mut message, [record_type, IN]);
    Some(message)
}

/// Returns a message that consists of a header only. `counts` holds the number of records in each of the four sections:
/// question, answer, authority and additional.
pub fn header(id: u16, opcode: u8, counts: [u16; 4]) -> Vec<u8> {
    let mut message = Vec::with_capacity(MAX_RESPONSE);
    message.extend(id.to_be_bytes());
    message.extend([opcode << 3, 0]);
    put_u16s(&mut message, counts);
    message
}

/// Appends a name as labels, in lower case, without trailing dots. Returns `None` if the name is invalid; `out` then
/// has an incomplete name.
pub fn put_name(out: &mut Vec<u8>, name: &str) -> Option<()> {
    let name = name.trim_end_matches('.');
    if name.len() > MAX_NAME {
        return None;
    }
    // The root, an empty name, has no labels.
    for label in name.split('.').filter(|_| !name.is_empty()) {
        let length = u8::try_from(label.len())
            .ok()
            .filter(|length| (1..=MAX_LABEL).contains(length))?;
        out.push(length);
        // TSIG signs names in lower case (RFC 8945 §4.3.3).
        out.extend(label.to_ascii_lowercase().as_bytes());
    }
    out.push(0);
    Some(())
}

/// Appends numbers in network byte order.
pub fn put_u16s<const N: usize>(out: &mut Vec<u8>, numbers: [u16; N]) {
    for number in numbers {
        out.extend(number.to_be_bytes());
    }
}
