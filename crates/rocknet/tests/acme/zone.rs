//! DNS server that accepts dynamic updates (RFC 2136): it parses and verifies them, and forwards the records to
//! Pebble's DNS server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use aws_lc_rs::hmac;

use crate::pebble::{change_record, own_address};

pub struct Zone {
    pub address: SocketAddr,
    /// Applied updates, in order: `add` or `delete`, and the record name.
    pub done: Arc<Mutex<Vec<String>>>,
}

impl Zone {
    /// Starts the server for one zone. Updates must be signed with the TSIG key named `key`, which has this secret.
    /// `dns`: address of Pebble's DNS server, which receives the records.
    pub fn serve(zone: &'static str, key: &'static str, secret: &[u8], dns: Ipv4Addr) -> Zone {
        let socket = UdpSocket::bind((own_address(), 0)).unwrap();
        let served = Zone {
            address: socket.local_addr().unwrap(),
            done: Arc::default(),
        };
        let (done, secret) = (Arc::clone(&served.done), secret.to_vec());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                let message = &bytes[..length];
                // The response is the header of the message, marked as a response, with all counts set to 0.
                let mut response = message[..12].to_vec();
                response[2] |= 0x80;
                response[4..12].fill(0);
                // The opcode is 0 for a query and 5 for an update.
                match message[2] >> 3 & 0xf {
                    // A query for the SOA record of a name. The number of answers (byte 7) is 1 only for the zone of
                    // this server. The record itself is missing, because the client does not read it.
                    0 => response[7] = u8::from(name(message, &mut 12) == zone),
                    5 => match update(message, zone, key, &secret) {
                        Ok((operation, record, text)) => {
                            let host = format!("{record}.");
                            match operation {
                                "add" => {
                                    change_record(dns, "set-txt", &format!(r#"{{"host":"{host}","value":"{text}"}}"#));
                                }
                                _ => change_record(dns, "clear-txt", &format!(r#"{{"host":"{host}"}}"#)),
                            }
                            done.lock().unwrap().push(format!("{operation} {record}"));
                        }
                        Err(code) => response[3] = code,
                    },
                    // The response code NOTIMP: the opcode is not implemented.
                    _ => response[3] = 4,
                }
                let _ = socket.send_to(&response, from);
            }
        });
        served
    }
}

/// Parses and verifies an update. Returns its operation, record name and text, or the response code of a refusal: 1
/// (FORMERR), or 9 (NOTAUTH) for another zone, another key or a wrong signature.
fn update(message: &[u8], zone: &str, key: &str, secret: &[u8]) -> Result<(&'static str, String, String), u8> {
    assert_eq!(
        message[4..12],
        [0, 1, 0, 0, 0, 1, 0, 1],
        "one zone, one change, one signature"
    );
    let mut at = 12;
    if name(message, &mut at) != zone {
        return Err(9);
    }
    // Type and class of the zone.
    at += 4;
    let record = name(message, &mut at);
    // The record continues with its type, class, TTL and data length. The data is a string after its length byte.
    let class = u16(message, at + 2);
    let length = usize::from(u16(message, at + 8));
    let text = String::from_utf8(message[at + 11..at + 10 + length].to_vec()).unwrap();
    at += 10 + length;
    let unsigned = at;
    // RFC 8945: the signature covers the message without the signature record, followed by the key name, its class
    // and TTL, the algorithm and the times.
    if name(message, &mut at) != key {
        return Err(9);
    }
    // Type TSIG, class ANY and TTL 0.
    assert_eq!(message[at..at + 8], [0, 250, 0, 255, 0, 0, 0, 0]);
    at += 10;
    let algorithm = at;
    assert_eq!(name(message, &mut at), "hmac-sha256");
    let times = at;
    let size = usize::from(u16(message, at + 8));
    let mac = &message[at + 10..at + 10 + size];
    let mut signed = message[..unsigned].to_vec();
    // The count of additional records excludes the signature.
    signed[11] = 0;
    signed.extend(&message[unsigned..unsigned + key.len() + 2]);
    signed.extend([0, 255, 0, 0, 0, 0]);
    signed.extend(&message[algorithm..times + 8]);
    signed.extend([0, 0, 0, 0]);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::verify(&key, &signed, mac).map_err(|_| 9)?;
    // Class IN adds a record, and class NONE deletes one (RFC 2136 §2.5).
    match class {
        1 => Ok(("add", record, text)),
        254 => Ok(("delete", record, text)),
        _ => Err(1),
    }
}

/// Reads a domain name without compression at `at`, and moves `at` after it.
fn name(message: &[u8], at: &mut usize) -> String {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(message[*at]);
        *at += 1;
        if length == 0 {
            return labels.join(".");
        }
        labels.push(String::from_utf8(message[*at..*at + length].to_vec()).unwrap());
        *at += length;
    }
}

fn u16(message: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([message[at], message[at + 1]])
}
