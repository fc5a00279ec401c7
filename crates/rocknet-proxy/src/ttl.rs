//! Queries the DNS for the TTL of a name.
//!
//! Addresses come from the system resolver. It uses more sources than the DNS (`/etc/hosts`, name servers for single
//! domains, and others) but does not report a TTL. Only the TTL is queried from the DNS. Therefore a wrong response can
//! make the next lookup too early or too late, within bounds, but never changes an address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::rand;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use rocknet_proto::dns::{self, MAX_RESPONSE};

/// Resolver configuration of the system.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Maximum number of bytes of [`RESOLV_CONF`] that are parsed. It is generous: lists of search domains traditionally
/// have at most 256 characters.
const MAX_CONF: usize = 16 * 1024;
/// Maximum number of name servers, equal to the maximum of the system resolver (`MAXNS`).
const MAX_SERVERS: usize = 3;
/// Maximum number of search domains, equal to the maximum of glibc before 2.26.
const MAX_SEARCH: usize = 6;
/// Timeout of one query. It is short, because the system has just queried the name server, which has cached the result.
const TIMEOUT: Duration = Duration::from_millis(500);
const DNS_PORT: u16 = 53;
/// Type of records with an IPv4 address (RFC 1035 §3.2.2).
const A: u16 = 1;
/// Type of records with an IPv6 address (RFC 3596 §2.1).
const AAAA: u16 = 28;
/// Flag that requests recursion by the name server (RFC 1035 §4.1.1).
const RECURSION_DESIRED: u8 = 1;

/// Returns the TTL of a name in seconds, or `None` if the DNS does not report one.
pub async fn lookup(name: &str) -> Option<u32> {
    // A blocking read is acceptable, because the file is small and usually in the page cache, and this thread serves no
    // client.
    let conf = std::fs::read(RESOLV_CONF).ok()?;
    let conf = ResolvConf::read(&String::from_utf8_lossy(&conf[..conf.len().min(MAX_CONF)]));
    for name in conf.names(name) {
        for server in &conf.servers {
            if let Some(seconds) = query_server(SocketAddr::new(*server, DNS_PORT), &name).await {
                return Some(seconds);
            }
        }
    }
    None
}

/// Parsed resolver configuration.
#[derive(Debug, PartialEq, Eq)]
struct ResolvConf {
    servers: Vec<IpAddr>,
    search: Vec<String>,
    /// Names with at least this number of dots are first tried as absolute names.
    dots: usize,
}

impl ResolvConf {
    fn read(text: &str) -> ResolvConf {
        let mut conf = ResolvConf {
            servers: Vec::new(),
            search: Vec::new(),
            dots: 1,
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                // A server whose address has a zone (`%eth0`) is skipped.
                Some("nameserver") => conf
                    .servers
                    .extend(words.next().and_then(|ip| ip.parse::<IpAddr>().ok())),
                // The last `search` or `domain` line is used.
                Some("search" | "domain") => conf.search = words.take(MAX_SEARCH).map(str::to_owned).collect(),
                Some("options") => {
                    let dots = words
                        .filter_map(|word| word.strip_prefix("ndots:")?.parse().ok())
                        .next_back();
                    conf.dots = dots.unwrap_or(conf.dots);
                }
                _ => {}
            }
        }
        conf.servers.truncate(MAX_SERVERS);
        if conf.servers.is_empty() {
            // The system resolver has the same default.
            conf.servers.push(Ipv4Addr::LOCALHOST.into());
        }
        conf
    }

    /// Returns the names to try, in the order of the system resolver.
    fn names(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return vec![name.to_owned()];
        }
        let searched = self.search.iter().map(|domain| format!("{name}.{domain}"));
        let whole = [name.to_owned()];
        match name.matches('.').count() >= self.dots {
            true => whole.into_iter().chain(searched).collect(),
            false => searched.chain(whole).collect(),
        }
    }
}

/// Queries a name server for the TTL of a name; `None` if the query fails or the name has no address.
async fn query_server(server: SocketAddr, name: &str) -> Option<u32> {
    for kind in [A, AAAA] {
        let found = timeout(TIMEOUT, query(server, name, kind)).await.ok()??;
        if let Some(seconds) = found {
            return Some(seconds);
        }
    }
    None
}

/// Queries one record type. Returns `None` if the query fails, and `Some(None)` if there are no such records.
async fn query(server: SocketAddr, name: &str, kind: u16) -> Option<Option<u32>> {
    let mut id = [0; 2];
    rand::fill(&mut id).ok()?;
    let mut request = dns::query(u16::from_be_bytes(id), name, kind)?;
    *request.get_mut(2)? |= RECURSION_DESIRED;
    // The socket has its own random port and is connected, so it receives only from that server.
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(&request).await.ok()?;
    let mut response = [0; MAX_RESPONSE];
    loop {
        let length = socket.recv(&mut response).await.ok()?;
        // A message that does not match the question is a late response or forged, so it is ignored.
        if let Some(seconds) = min_ttl(&request, response.get(..length)?, kind) {
            return Some(seconds);
        }
    }
}

/// Returns the minimum TTL of the records in a response, in seconds. Returns `None` if the message is not a response to
/// `request`, and `Some(None)` if the response has no record of type `kind`.
fn min_ttl(request: &[u8], response: &[u8], kind: u16) -> Option<Option<u32>> {
    // The header has the id at 0, flags at 2, the number of questions at 4 and of answers at 6 (RFC 1035 §4.1.1).
    const HEADER: usize = 12;
    const RESPONSE: u8 = 0x80;
    let is_match = response.get(..2)? == request.get(..2)?
        && response.get(2)? & RESPONSE != 0
        && u16_at(response, 4)? == 1
        && response
            .get(HEADER..request.len())?
            .eq_ignore_ascii_case(request.get(HEADER..)?);
    if !is_match {
        return None;
    }
    let (mut at, mut min_ttl, mut has_record) = (request.len(), None::<u32>, false);
    for _ in 0..u16_at(response, 6)? {
        // If the response was too long for a datagram, the list is truncated. The complete records still count.
        let Some((record, next)) = record(response, at) else {
            break;
        };
        at = next;
        has_record |= record.kind == kind;
        // The TTL of an alias (CNAME) counts too.
        min_ttl = Some(min_ttl.map_or(record.seconds, |other| other.min(record.seconds)));
    }
    Some(min_ttl.filter(|_| has_record))
}

struct DnsRecord {
    kind: u16,
    /// TTL of the record.
    seconds: u32,
}

/// Parses the record at `at` and returns it with the position of the next record (RFC 1035 §4.1.3). Returns `None` if
/// the record is incomplete or invalid.
///
/// ```text
/// name, type(2) class(2) ttl(4) length(2) data (length)
/// ```
fn record(message: &[u8], at: usize) -> Option<(DnsRecord, usize)> {
    let at = skip_name(message, at)?;
    let fixed = message.get(at..)?.first_chunk::<10>()?;
    let [kind_high, kind_low, _, _, seconds @ .., high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let record = DnsRecord {
        kind: u16::from_be_bytes([kind_high, kind_low]),
        // A TTL with the first bit set counts as zero (RFC 2181 §8).
        seconds: Some(u32::from_be_bytes(seconds))
            .filter(|seconds| seconds >> 31 == 0)
            .unwrap_or(0),
    };
    let next = at + fixed.len() + length;
    (next <= message.len()).then_some((record, next))
}

/// Returns the position after a name, which ends with its empty label or a compression pointer; `None` if the name is
/// incomplete or invalid.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length < 0x40 => at += usize::from(length) + 1,
            length if length >= 0xc0 => return Some(at + 2),
            _ => return None,
        }
    }
}

fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(at..)?.first_chunk::<2>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tried_in_the_order_of_resolv_conf() {
        let conf = ResolvConf::read(
            "# x\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver ::1\nsearch a.test b.test\n\
             options edns0 ndots:2\n",
        );
        assert_eq!(
            conf.servers,
            ["127.0.0.53", "::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"))
        );
        assert_eq!(conf.names("app"), ["app.a.test", "app.b.test", "app"]);
        assert_eq!(conf.names("app.x.y"), ["app.x.y", "app.x.y.a.test", "app.x.y.b.test"]);
        assert_eq!(conf.names("app."), ["app."]);
        let none = ResolvConf::read("");
        assert_eq!((none.servers.len(), none.dots), (1, 1));
        assert_eq!(none.names("app"), ["app"]);
    }

    /// Returns a response to `request` with these records: type, TTL, data.
    fn response(request: &[u8], records: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let mut response = request.to_vec();
        response[2] |= 0x80;
        response[7] = u8::try_from(records.len()).expect("few records");
        for (kind, seconds, data) in records {
            // A compression pointer to the name in the question.
            response.extend([0xc0, 12]);
            response.extend(kind.to_be_bytes());
            // The class is `IN`.
            response.extend([0, 1]);
            response.extend(seconds.to_be_bytes());
            response.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
            response.extend(*data);
        }
        response
    }

    #[test]
    fn the_minimum_ttl_is_used() {
        let request = dns::query(7, "app.test", A).expect("a name");
        const CNAME: u16 = 5;
        for (records, expected) in [
            (&[(A, 60, &[10, 0, 0, 1][..])][..], Some(Some(60))),
            (
                &[(CNAME, 300, &[0]), (A, 60, &[10, 0, 0, 1]), (A, 90, &[10, 0, 0, 2])],
                Some(Some(60)),
            ),
            (&[(CNAME, 5, &[0]), (A, 60, &[10, 0, 0, 1])], Some(Some(5))),
            (&[(A, 1 << 31, &[10, 0, 0, 1])], Some(Some(0))),
            (&[(CNAME, 300, &[0])], Some(None)),
            (&[], Some(None)),
        ] {
            assert_eq!(
                min_ttl(&request, &response(&request, records), A),
                expected,
                "{records:?}"
            );
        }
        let good = response(&request, &[(A, 60, &[10, 0, 0, 1]), (A, 50, &[10, 0, 0, 1])]);
        let mut other_id = good.clone();
        other_id[0] ^= 1;
        let mut query = good.clone();
        query[2] &= !0x80;
        // The first letter of the name is at 13, after the header and the length of the label.
        let mut other_question = good.clone();
        other_question[13] ^= 0x40;
        for wrong in [&other_id, &query, &other_question] {
            assert_eq!(min_ttl(&request, wrong, A), None);
        }
        // A response that is truncated at any position is rejected, or the TTLs of its complete records count.
        for length in 0..good.len() {
            let ttl = min_ttl(&request, &good[..length], A);
            assert!(matches!(ttl, None | Some(None | Some(60))), "{length}: {ttl:?}");
        }
    }

    #[test]
    fn responses_to_other_questions_are_ignored() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let ttl = runtime.block_on(async {
            let server = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
            let address = server.local_addr().expect("its address");
            let answering = tokio::spawn(async move {
                let mut request = [0; 512];
                let (length, client) = server.recv_from(&mut request).await.expect("a question");
                let request = &request[..length];
                assert_eq!(request[2], RECURSION_DESIRED);
                let mut wrong = response(request, &[(A, 1, &[10, 0, 0, 1])]);
                wrong[1] ^= 1;
                for message in [wrong, vec![0; 3], response(request, &[(A, 42, &[10, 0, 0, 1])])] {
                    server.send_to(&message, client).await.expect("a sent message");
                }
            });
            let ttl = query(address, "app.test", A).await;
            answering.await.expect("an end without a panic");
            ttl
        });
        assert_eq!(ttl, Some(Some(42)));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
            records in 0..40_u8,
            at in 0..600_usize,
        ) {
            let request = dns::query(7, "app.test", A).expect("a name");
            // The header and the question match the request, so that the bytes after them are parsed.
            let mut message = response(&request, &[]);
            message[7] = records;
            message.extend(&bytes);
            message.truncate(at.max(request.len()));
            let ttl = min_ttl(&request, &message, A);
            proptest::prop_assert!(ttl.is_some());
            min_ttl(&request, &bytes, A);
        }
    }
}
