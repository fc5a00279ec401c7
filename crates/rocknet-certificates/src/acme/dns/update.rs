//! Sends dynamic updates of a zone to its server over UDP (RFC 2136).

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocknet_config::model;
use tokio::net::UdpSocket;

use super::action::Action;
use super::message::{self, Change, SOA, TsigKey};
use crate::acme::random::random_fraction;

/// The server of a zone and the key that may change the zone.
pub struct Zone {
    server: SocketAddr,
    /// Name of the zone; if `None`, SOA queries find the zone.
    name: Option<String>,
    /// Key that signs the updates; `None`: they are not signed.
    key: Option<TsigKey>,
}

impl Zone {
    /// Copies server, zone and key from the configuration.
    pub fn new(zone: &model::DnsZone) -> Zone {
        Zone {
            server: zone.server,
            name: zone.name.clone(),
            key: zone.key.as_ref().map(|key| TsigKey {
                name: key.name.clone(),
                secret: key.secret.bytes().to_vec(),
            }),
        }
    }

    /// Adds or deletes a TXT record.
    ///
    /// # Errors
    /// Describes why the server did not update the zone.
    pub async fn apply(&self, action: Action, record: &str, text: &str) -> Result<(), String> {
        let zone = match &self.name {
            Some(name) => name.clone(),
            None => self.find_zone(record).await?,
        };
        let change = match action {
            Action::Present => Change::Add { ttl: TTL },
            Action::Cleanup => Change::Delete,
        };
        let id = random_id();
        // The text is a digest in Base64, which is shorter than 255 bytes, so only a name can be refused.
        let mut update = message::update(id, &zone, change, record, text)
            .ok_or_else(|| format!("{record} in {zone} is not a valid domain name"))?;
        if let Some(key) = &self.key {
            let unix = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            message::sign(&mut update, key, unix)
                .ok_or_else(|| format!("the key name {} is not a domain name", key.name))?;
        }
        match self.query(&update, id).await? {
            (0, _) => Ok(()),
            (code, _) => Err(format!(
                "{} did not update {zone}: {}",
                self.server,
                message::describe_code(code)
            )),
        }
    }

    /// Finds the zone of a name: the closest parent that has an SOA record.
    async fn find_zone(&self, record: &str) -> Result<String, String> {
        let mut name = record;
        while let Some((_, parent)) = name.split_once('.') {
            name = parent;
            let id = random_id();
            let question =
                rocknet_proto::dns::query(id, name, SOA).ok_or_else(|| format!("{name} is not a domain name"))?;
            if let (0, true) = self.query(&question, id).await? {
                return Ok(name.to_owned());
            }
        }
        Err(format!(
            "{} serves no zone for {record}; set `zone` in `tls.dns`",
            self.server
        ))
    }

    /// Sends a message and waits for its response; tries up to `TRIES` times. Returns the response code and whether the
    /// response contains an answer record.
    async fn query(&self, question: &[u8], id: u16) -> Result<(u8, bool), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.server);
        let any_local_address: SocketAddr = if self.server.is_ipv4() {
            ([0, 0, 0, 0], 0).into()
        } else {
            ([0u16; 8], 0).into()
        };
        let socket = UdpSocket::bind(any_local_address).await.map_err(failed)?;
        // A connected socket receives no responses from other addresses.
        socket.connect(self.server).await.map_err(failed)?;
        let mut response = [0; rocknet_proto::dns::MAX_RESPONSE];
        for _ in 0..TRIES {
            socket.send(question).await.map_err(failed)?;
            let wait = async {
                loop {
                    let length = socket.recv(&mut response).await?;
                    if let Some(outcome) = message::parse_response(&response[..length], id) {
                        return Ok::<_, std::io::Error>(outcome);
                    }
                }
            };
            match tokio::time::timeout(TIMEOUT, wait).await {
                Ok(outcome) => return outcome.map_err(failed),
                Err(_) => continue,
            }
        }
        Err(format!("{} did not respond to {TRIES} queries", self.server))
    }
}

/// Returns an unpredictable message ID.
fn random_id() -> u16 {
    // The product is below 65,535, so the conversion drops only its fraction.
    (random_fraction() * f64::from(u16::MAX)) as u16
}

/// TTL of the record in seconds. Resolvers cache the record for at most a minute.
const TTL: u32 = 60;

/// Maximum number of attempts. Datagrams can be lost.
const TRIES: u32 = 3;
/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);
