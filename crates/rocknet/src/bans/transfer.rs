//! Transfer of the offences of clients to the process that replaces this one in an upgrade, so that a client on its way
//! to a ban does not begin again. The bans themselves are in the store.

use rocknet_limit::RateTable;
use rocknet_limit::offenders::Offender;
use rocknet_limit::transfer::{Transfer, TransferWriter, TransferredBucket};

use super::offence::Offence;
use super::{Bans, lock, unix_s};

/// Section kind for the tables of offences. There is a section for each [`Offence`], named after the rate that leads to
/// a ban: `not_found 30/60000000000ns` for 30 offences in a minute.
/// The kinds 1 and 5 belong to `limits/transfer.rs` and `limit_transfer.rs`.
const OFFENCES: u32 = 2;
/// Section kind for the table of logins that have not succeeded, which includes logins in progress: until a login
/// succeeds, it counts as failed. This section has the same name as the section of [`OFFENCES`] for failed logins.
const LOGINS: u32 = 3;
/// Section kind for the clients with the most offences. The name of this section lists the names of all [`Offence`]s.
const OFFENDERS: u32 = 4;

/// Offences of one client in the list of offenders.
type ListedOffender = Offender<{ Offence::ALL.len() }>;

/// Name of the section with the offenders.
fn offenders_name() -> String {
    Offence::ALL.map(Offence::name).join(" ")
}

impl Bans {
    /// Writes the offences.
    pub fn write(&self, transfer: &mut TransferWriter) {
        let now = self.elapsed();
        for (kind, table, name, _) in self.tables() {
            transfer.section(kind, name.as_bytes(), |write| {
                table.for_each_used(now, |key, left| write(&TransferredBucket { key, left }.record()));
            });
        }
        let offenders = lock(&self.offenders);
        transfer.section::<{ ListedOffender::RECORD_SIZE }>(OFFENDERS, offenders_name().as_bytes(), |write| {
            for offender in offenders.all() {
                let mut record = [0; ListedOffender::RECORD_SIZE];
                offender.write(&mut record);
                write(&record);
            }
        });
    }

    /// Adopts the offences that a predecessor has counted, except those whose rate has another name now, because it has
    /// changed. Returns the number of adopted entries.
    pub fn adopt(&self, transfer: &Transfer<'_>) -> usize {
        let (now, mut adopted) = (self.elapsed(), 0);
        for (kind, table, name, capacity) in self.tables() {
            for section in transfer
                .sections(kind)
                .filter(|section| section.name == name.as_bytes())
            {
                for bucket in transfer.buckets(&section, capacity) {
                    table.adopt(bucket.key, bucket.left, now);
                    adopted += 1;
                }
            }
        }
        let (name, mut offenders) = (offenders_name(), lock(&self.offenders));
        let sections = transfer
            .sections(OFFENDERS)
            .filter(|section| section.name == name.as_bytes());
        for record in sections.flat_map(|section| section.records::<{ ListedOffender::RECORD_SIZE }>()) {
            if let Some(offender) = ListedOffender::read(record) {
                offenders.adopt(offender, unix_s());
                adopted += 1;
            }
        }
        adopted
    }

    /// Returns the tables of the rates that lead to bans: the kind and the name of their sections, and the nanoseconds
    /// in which an empty bucket becomes full.
    fn tables(&self) -> Vec<(u32, &RateTable, String, u64)> {
        let rules = self.rules();
        let of_offence = |offence: Offence| {
            let (_, rate) = rules.rate(offence)?;
            let (name, capacity) = (rate.name(offence), rate.up_to_ban.capacity());
            Some((OFFENCES, &self.rates[offence as usize], name, capacity))
        };
        let mut tables: Vec<_> = Offence::ALL.into_iter().filter_map(of_offence).collect();
        if let Some((_, rate)) = rules.rate(Offence::Login) {
            tables.push((
                LOGINS,
                self.logins.table(),
                rate.name(Offence::Login),
                rate.up_to_ban.capacity(),
            ));
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rocknet_config::model::{Ban, Config, OffenceRate};
    use rocknet_limit::KeySeed;

    use super::*;
    use crate::exchange::Client;

    /// Returns bans that allow this number of offences of each kind in an hour before one leads to a ban.
    fn bans(logins: u32, not_found: u32) -> Arc<Bans> {
        let rate = |count| {
            Some(OffenceRate {
                count,
                window: Duration::from_secs(3_600),
            })
        };
        let bans = Arc::new(Bans::new(KeySeed::new(&[7; KeySeed::SIZE])));
        let config = Config {
            ban: Some(Ban {
                logins: rate(logins),
                not_found: rate(not_found),
                ..Ban::default()
            }),
            ..Config::default()
        };
        bans.configure(&config).unwrap();
        bans
    }

    #[test]
    fn offences_continue() {
        let (old, new) = (bans(3, 2), bans(3, 9));
        let client = Client::Ip {
            address: "198.51.100.7".parse().unwrap(),
            port: 0,
        };
        assert!(matches!(old.take_login(client), Ok(Some(_))));
        for offence in [Offence::Login, Offence::Login, Offence::NotFound] {
            old.offend(client, offence);
        }
        assert!(!old.is_banned(client));
        let mut writer = TransferWriter::new(&old.seed, 5);
        old.write(&mut writer);
        let bytes = writer.finish();
        // One client in the tables of failed logins and of logins that have begun, and in the list of offenders. The
        // rate of missing files is another one.
        assert_eq!(new.adopt(&Transfer::read(&bytes, &new.seed, 5).unwrap()), 3);
        let offenders = lock(&new.offenders).worst(2, unix_s());
        assert_eq!((offenders.len(), offenders[0].counts), (1, [2, 1, 0, 0]));
        for _ in 0..2 {
            new.offend(client, Offence::NotFound);
            assert!(!new.is_banned(client));
        }
        assert!(new.take_login(client).is_ok() && new.take_login(client).is_ok());
        assert!(new.take_login(client).is_err());
        new.offend(client, Offence::Login);
        assert!(new.is_banned(client));
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        assert!(old.stop(deadline) && new.stop(deadline));
    }
}
