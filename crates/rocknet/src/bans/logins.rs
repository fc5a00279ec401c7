//! Logins in progress. Each counts as failed from its beginning on, so that many guesses at once do not exceed the rate
//! of failed logins that leads to a ban.

use std::sync::Arc;

use rocknet_limit::{Budget, Rate, RateTable, Taken};

/// Logins of clients that have begun, less those that did not fail. Times are in nanoseconds of one monotonic clock.
pub struct Logins(RateTable);

/// A login that was counted as failed before its response is known.
#[derive(Debug, Clone, Copy)]
pub struct CountedLogin {
    /// Hash of the client.
    key: u64,
    /// Rate by which it was counted. A reload may change the rate of later logins.
    rate: Rate,
    /// Time at which it was counted.
    at: u64,
}

impl Logins {
    /// Creates an empty table.
    pub fn new(budget: &Arc<Budget>) -> Logins {
        Logins(RateTable::new(budget))
    }

    /// Returns the table, for the transfer to the successor of an upgrade.
    pub fn table(&self) -> &RateTable {
        &self.0
    }

    /// Counts a login as failed. `key`: hash of the client.
    ///
    /// # Errors
    ///
    /// Fails with the time after which the client may try again, if the login would exceed the rate.
    pub fn take(&self, key: u64, rate: Rate, now: u64) -> Result<CountedLogin, u64> {
        match self.0.take(&rate, key, now) {
            Taken::Admitted { .. } => Ok(CountedLogin { key, rate, at: now }),
            Taken::Refused { retry_after } => Err(retry_after),
        }
    }

    /// Takes back that a login was counted as failed, except for the part that the rate has refilled since.
    pub fn give_back(&self, login: &CountedLogin, now: u64) {
        let elapsed = now.saturating_sub(login.at);
        self.0.give_back(&login.rate, login.key, elapsed);
    }

    /// Forgets the logins of a client.
    pub fn forget(&self, key: u64, now: u64) {
        // 0: the bucket is full, so no login is counted.
        self.0.update(key, now, |full_at| *full_at = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const KEY: u64 = 7;

    /// Begins logins until one is refused, at most 100.
    fn take_all(logins: &Logins, rate: Rate, now: u64) -> Vec<CountedLogin> {
        let take = |_| logins.take(KEY, rate, now).ok();
        (0..100).map_while(take).collect()
    }

    #[test]
    fn logins_that_did_not_fail_do_not_count() {
        let (logins, rate) = (Logins::new(&Arc::default()), Rate::new(10 * S, 5, None));
        for now in [0, S, 2 * S] {
            for _ in 0..100 {
                let login = logins.take(KEY, rate, now).unwrap();
                logins.give_back(&login, now);
            }
        }
        let failed = take_all(&logins, rate, 2 * S);
        assert_eq!(failed.len(), 5);
        assert_eq!(logins.take(KEY, rate, 2 * S).unwrap_err(), 10 * S);
        // A success soon after makes room for another login.
        logins.give_back(&failed[0], 3 * S);
        assert!(logins.take(KEY, rate, 3 * S).is_ok() && logins.take(KEY, rate, 3 * S).is_err());
        logins.forget(KEY, 3 * S);
        assert_eq!(take_all(&logins, rate, 3 * S).len(), 5);
    }

    /// Otherwise a client with an account could begin logins that succeed late, and gain as many guesses.
    #[test]
    fn a_login_that_ends_late_gives_back_only_what_the_rate_has_not() {
        for (late, gained) in [(0, 5), (5 * S, 3), (10 * S, 0), (50 * S, 0), (1_000 * S, 0)] {
            let (logins, rate) = (Logins::new(&Arc::default()), Rate::new(10 * S, 5, None));
            let slow = take_all(&logins, rate, 0);
            // All tokens that the rate has refilled are used up.
            let refilled = take_all(&logins, rate, late);
            assert_eq!(refilled.len() as u64, (late / (10 * S)).min(5));
            slow.iter().for_each(|login| logins.give_back(login, late));
            assert_eq!(take_all(&logins, rate, late).len(), gained, "{late}");
        }
    }

    #[test]
    fn a_login_is_given_back_by_the_rate_that_counted_it() {
        let logins = Logins::new(&Arc::default());
        let (short, long) = (Rate::new(S, 5, None), Rate::new(100 * S, 5, None));
        let begun = take_all(&logins, short, 0);
        // A reload has changed the rate.
        begun.iter().for_each(|login| logins.give_back(login, 0));
        assert_eq!(take_all(&logins, long, 0).len(), 5);
    }
}
