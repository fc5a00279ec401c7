//! How long the DNS says that the addresses of a name hold.
//!
//! Addresses come from the system, which knows more than the DNS (`/etc/hosts`, other sources, other servers for other
//! domains) and does not tell how long they hold. So the DNS is asked beside it, for that alone: a wrong answer makes the
//! next look come too soon or too late, within bounds, and never leads to another address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::rand;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use rocknet_proto::dns::{MAX_RESPONSE, query};

/// Where the system keeps the servers that it asks.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// What is read of it: lists of search domains have at most 256 characters, by tradition.
const MAX_CONF: usize = 16 * 1024;
/// Servers that are asked, as the system does (`MAXNS`).
const MAX_SERVERS: usize = 3;
/// Domains in which a short name is looked for (glibc before 2.26 had that bound).
const MAX_SEARCH: usize = 6;
/// For one answer: it is in the cache of the server that the system has just asked.
const PATIENCE: Duration = Duration::from_millis(500);
const DNS_PORT: u16 = 53;
/// Kinds of records (RFC 1035 §3.2.2, RFC 3596 §2.1).
const A: u16 = 1;
const AAAA: u16 = 28;
/// Asks a server to ask others (RFC 1035 §4.1.1).
const RECURSION_DESIRED: u8 = 1;

/// Seconds for which what the DNS says of a name holds; `None`: it does not say.
pub async fn of(name: &str) -> Option<u32> {
    // Small, and in the page cache as a rule; the thread that waits for it serves nobody.
    let conf = std::fs::read(RESOLV_CONF).ok()?;
    let conf = Conf::read(&String::from_utf8_lossy(&conf[..conf.len().min(MAX_CONF)]));
    for name in conf.names(name) {
        for server in &conf.servers {
            if let Some(seconds) = ask(SocketAddr::new(*server, DNS_PORT), &name).await {
                return Some(seconds);
            }
        }
    }
    None
}

/// What is known of the system's way to the DNS.
#[derive(Debug, PartialEq, Eq)]
struct Conf {
    servers: Vec<IpAddr>,
    search: Vec<String>,
    /// Names with so many dots are whole ones first.
    dots: usize,
}

impl Conf {
    fn read(text: &str) -> Conf {
        let mut conf = Conf {
            servers: Vec::new(),
            search: Vec::new(),
            dots: 1,
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                // A server with a zone is left out: it costs no more than the usual interval.
                Some("nameserver") => conf
                    .servers
                    .extend(words.next().and_then(|ip| ip.parse::<IpAddr>().ok())),
                // The last line counts.
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
            conf.servers.push(Ipv4Addr::LOCALHOST.into());
        }
        conf
    }

    /// The names that one may stand for, in the order in which the system tries them.
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

async fn ask(server: SocketAddr, name: &str) -> Option<u32> {
    for kind in [A, AAAA] {
        let heard = timeout(PATIENCE, exchange(server, name, kind)).await.ok()??;
        if let Some(seconds) = heard {
            return Some(seconds);
        }
    }
    None
}

/// `None`: nobody can be asked so. `Some(None)`: there are no such records.
async fn exchange(server: SocketAddr, name: &str, kind: u16) -> Option<Option<u32>> {
    let mut id = [0; 2];
    rand::fill(&mut id).ok()?;
    let mut asked = query(u16::from_be_bytes(id), name, kind)?;
    *asked.get_mut(2)? |= RECURSION_DESIRED;
    // A port of its own, and answers from that server alone.
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(&asked).await.ok()?;
    let mut answer = [0; MAX_RESPONSE];
    loop {
        let length = socket.recv(&mut answer).await.ok()?;
        // What is no answer to this question is somebody else's, or made up.
        if let Some(seconds) = shortest(&asked, answer.get(..length)?, kind) {
            return Some(seconds);
        }
    }
}

/// The shortest time that a record of an answer holds. `None`: it is none to that question.
fn shortest(asked: &[u8], answer: &[u8], kind: u16) -> Option<Option<u32>> {
    const HEADER: usize = 12;
    const RESPONSE: u8 = 0x80;
    let is_one = answer.get(..2)? == asked.get(..2)?
        && answer.get(2)? & RESPONSE != 0
        && number(answer, 4)? == 1
        && answer
            .get(HEADER..asked.len())?
            .eq_ignore_ascii_case(asked.get(HEADER..)?);
    if !is_one {
        return None;
    }
    let (mut at, mut shortest, mut is_there) = (asked.len(), None::<u32>, false);
    for _ in 0..number(answer, 6)? {
        // A list that breaks off, as in an answer that was too long for a datagram, still tells what it tells.
        let Some((record, next)) = record(answer, at) else {
            break;
        };
        at = next;
        is_there |= record.kind == kind;
        // Names that lead to other names (CNAME) hold no longer than those.
        shortest = Some(shortest.map_or(record.seconds, |other| other.min(record.seconds)));
    }
    Some(shortest.filter(|_| is_there))
}

struct Record {
    kind: u16,
    seconds: u32,
}

/// ```text
/// name, type(2) class(2) ttl(4) length(2) data (length)
/// ```
fn record(message: &[u8], at: usize) -> Option<(Record, usize)> {
    let at = behind_name(message, at)?;
    let fixed = message.get(at..)?.first_chunk::<10>()?;
    let [kind_high, kind_low, _, _, seconds @ .., high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let record = Record {
        kind: u16::from_be_bytes([kind_high, kind_low]),
        // With its first bit set it is none at all (RFC 2181 §8).
        seconds: Some(u32::from_be_bytes(seconds))
            .filter(|seconds| seconds >> 31 == 0)
            .unwrap_or(0),
    };
    let next = at + fixed.len() + length;
    (next <= message.len()).then_some((record, next))
}

/// Where a name ends: at its empty label, or behind a pointer, which need not be followed.
fn behind_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length < 0x40 => at += usize::from(length) + 1,
            length if length >= 0xc0 => return Some(at + 2),
            _ => return None,
        }
    }
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(at..)?.first_chunk::<2>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_asked_as_it_asks() {
        let conf = Conf::read(
            "# x\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver ::1\nsearch a.test b.test\noptions edns0 ndots:2\n",
        );
        assert_eq!(
            conf.servers,
            ["127.0.0.53", "::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"))
        );
        assert_eq!(conf.names("app"), ["app.a.test", "app.b.test", "app"]);
        assert_eq!(conf.names("app.x.y"), ["app.x.y", "app.x.y.a.test", "app.x.y.b.test"]);
        assert_eq!(conf.names("app."), ["app."]);
        let none = Conf::read("");
        assert_eq!((none.servers.len(), none.dots), (1, 1));
        assert_eq!(none.names("app"), ["app"]);
    }

    /// An answer to `asked` with these records: kind, seconds, data.
    fn answer(asked: &[u8], records: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let mut answer = asked.to_vec();
        answer[2] |= 0x80;
        answer[7] = u8::try_from(records.len()).expect("few records");
        for (kind, seconds, data) in records {
            answer.extend([0xc0, 12]);
            answer.extend(kind.to_be_bytes());
            answer.extend([0, 1]);
            answer.extend(seconds.to_be_bytes());
            answer.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
            answer.extend(*data);
        }
        answer
    }

    #[test]
    fn the_shortest_time_counts() {
        let asked = query(7, "app.test", A).expect("a name");
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
            assert_eq!(shortest(&asked, &answer(&asked, records), A), expected, "{records:?}");
        }
        let good = answer(&asked, &[(A, 60, &[10, 0, 0, 1]), (A, 50, &[10, 0, 0, 1])]);
        let mut other = good.clone();
        other[0] ^= 1;
        let mut query = good.clone();
        query[2] &= !0x80;
        let mut asks_else = good.clone();
        asks_else[13] ^= 0x40;
        for wrong in [&other, &query, &asks_else] {
            assert_eq!(shortest(&asked, wrong, A), None);
        }
        // Cut anywhere, it is no answer, or tells what is there.
        for length in 0..good.len() {
            let told = shortest(&asked, &good[..length], A);
            assert!(matches!(told, None | Some(None | Some(60))), "{length}: {told:?}");
        }
    }

    #[test]
    fn a_server_is_asked_and_strangers_are_not_heard() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let told = runtime.block_on(async {
            let server = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
            let address = server.local_addr().expect("its address");
            let answering = tokio::spawn(async move {
                let mut asked = [0; 512];
                let (length, client) = server.recv_from(&mut asked).await.expect("a question");
                let asked = &asked[..length];
                assert_eq!(asked[2], RECURSION_DESIRED);
                let mut wrong = answer(asked, &[(A, 1, &[10, 0, 0, 1])]);
                wrong[1] ^= 1;
                for message in [wrong, vec![0; 3], answer(asked, &[(A, 42, &[10, 0, 0, 1])])] {
                    server.send_to(&message, client).await.expect("to be sent");
                }
            });
            let told = exchange(address, "app.test", A).await;
            answering.await.expect("to end well");
            told
        });
        assert_eq!(told, Some(Some(42)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
            records in 0..40_u8,
            at in 0..600_usize,
        ) {
            let asked = query(7, "app.test", A).expect("a name");
            // Behind a head that fits, so that what follows is looked at.
            let mut message = answer(&asked, &[]);
            message[7] = records;
            message.extend(&bytes);
            message.truncate(at.max(asked.len()));
            let told = shortest(&asked, &message, A);
            proptest::prop_assert!(told.is_some());
            shortest(&asked, &bytes, A);
        }
    }
}
