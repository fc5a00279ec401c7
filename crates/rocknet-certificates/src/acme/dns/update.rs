//! An update of a zone at its server, by UDP (RFC 2136).

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocknet_config::model;
use tokio::net::UdpSocket;

use super::action::Action;
use super::message::{self, Change, SOA, TsigKey};
use crate::acme::random::random_fraction;

/// The server of a zone, and the key that may change it.
pub struct Zone {
    server: SocketAddr,
    /// None: asked for.
    name: Option<String>,
    key: Option<TsigKey>,
}

impl Zone {
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
        let mut update = message::update(id, &zone, change, record, text)
            .ok_or_else(|| format!("{record} in {zone} makes no update"))?;
        if let Some(key) = &self.key {
            let unix = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            message::sign(&mut update, key, unix).ok_or_else(|| format!("the key's name {} is none", key.name))?;
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

    /// The zone that a name lies in: the first above it that has an SOA record of its own.
    async fn find_zone(&self, record: &str) -> Result<String, String> {
        let mut name = record;
        while let Some((_, parent)) = name.split_once('.') {
            name = parent;
            let id = random_id();
            let question = rocknet_proto::dns::question(id, name, SOA).ok_or_else(|| format!("{name} is no name"))?;
            if let (0, true) = self.query(&question, id).await? {
                return Ok(name.to_owned());
            }
        }
        Err(format!("{} holds no zone for {record}; name it by `zone`", self.server))
    }

    async fn query(&self, question: &[u8], id: u16) -> Result<(u8, bool), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.server);
        let any: SocketAddr = if self.server.is_ipv4() {
            ([0, 0, 0, 0], 0).into()
        } else {
            ([0u16; 8], 0).into()
        };
        let socket = UdpSocket::bind(any).await.map_err(failed)?;
        // Answers of others do not reach it.
        socket.connect(self.server).await.map_err(failed)?;
        let mut response = [0; rocknet_proto::dns::MAX_ANSWER];
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
        Err(format!("{} does not answer", self.server))
    }
}

/// A number that others cannot guess.
fn random_id() -> u16 {
    // From the upper half of what chance gives, without loss.
    (random_fraction() * f64::from(u16::MAX)) as u16
}

/// Seconds that others may keep the record: it is gone in a minute.
const TTL: u32 = 60;

/// UDP may be lost.
const TRIES: u32 = 3;
const TIMEOUT: Duration = Duration::from_secs(5);
