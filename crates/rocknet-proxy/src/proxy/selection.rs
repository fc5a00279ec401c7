//! Selects the upstream for a request and acquires a permit for it.

use std::sync::atomic::Ordering;

use rocknet_config::model::{Balance, Priority, UpstreamRole};
use rocknet_io::wheel::{Deadline, Wheel};

use super::{Member, Proxy, non_draining_members};
use crate::error::ProxyError;
use crate::permit::Permit;
use crate::upstream::Upstream;
use rocknet_handler::balance::{self, Candidate};

/// Weight factor at which a recovered upstream starts, equal to the default of Envoy. The factor rises to 1 during
/// `slow_start`.
const MIN_WEIGHT_FACTOR: f64 = 0.1;

/// Properties of a request that determine its upstream.
pub struct Selection<'a> {
    /// Key of the request; `None` unless the balance selects by key and the request has the key.
    pub key: Option<&'a [u8]>,
    /// Name hash of the upstream in the client's sticky cookie, if the client sent a valid one.
    pub sticky: Option<u64>,
    pub priority: Priority,
}

impl Proxy {
    /// Selects an upstream for the request and returns a permit for it. Waits if all upstreams are at their limit.
    /// `excluded` is the id of the upstream that was tried before, `now_ms` is the uptime in milliseconds, and `draw`
    /// returns a random number. `deadline` is a timer of the caller, which the wait sets.
    ///
    /// # Errors
    ///
    /// Returns [`ProxyError::NoCapacity`] if the wait timed out or too many requests wait. Returns
    /// [`ProxyError::NoHealthyUpstream`] if each upstream fails its health checks or is drained.
    pub(crate) async fn acquire(
        &self,
        selection: &Selection<'_>,
        excluded: Option<u32>,
        now_ms: u64,
        draw: impl Fn() -> u64,
        deadline: &Deadline,
        wheel: &Wheel,
    ) -> Result<Permit, ProxyError> {
        match self.select(selection, excluded, now_ms, &draw) {
            Err(ProxyError::NoCapacity) => {}
            result => return result,
        }
        // If no other upstream is available, the request waits for the excluded one too.
        let is_other = |member: &Member| {
            let upstream = &member.upstream;
            Some(upstream.id) != excluded && !upstream.is_unhealthy() && upstream.is_available(now_ms)
        };
        let excluded = excluded.filter(|_| non_draining_members(&self.members).any(is_other));
        let ticks = wheel.ticks(self.queue_timeout);
        let permit = Box::pin(
            self.queue
                .wait(selection.priority, excluded, self.rules, deadline, ticks),
        )
        .await;
        let permit = permit.ok_or(ProxyError::NoCapacity)?;
        // Upstreams may have become unhealthy during the wait.
        if non_draining_members(&self.members).all(|member| member.upstream.is_unhealthy()) {
            return Err(ProxyError::NoHealthyUpstream);
        }
        Ok(permit)
    }

    /// Selects an upstream without waiting. The arguments are the same as those of [`Proxy::acquire`].
    ///
    /// # Errors
    ///
    /// Returns [`ProxyError::NoCapacity`] if the best upstreams are at their limit. Returns
    /// [`ProxyError::NoHealthyUpstream`] if each upstream fails its health checks or is drained.
    fn select(
        &self,
        selection: &Selection<'_>,
        excluded: Option<u32>,
        now_ms: u64,
        draw: impl Fn() -> u64,
    ) -> Result<Permit, ProxyError> {
        if let [only] = &self.members[..]
            && !only.is_draining()
        {
            // The breaker is not queried: with only one upstream, it could only replace one error with another.
            return match only.upstream.is_unhealthy() {
                true => Err(ProxyError::NoHealthyUpstream),
                false => self.admit(only, selection.priority, now_ms),
            };
        }
        if let Some(drawn) = self.draw_two(selection, excluded, now_ms, &draw) {
            return self.admit(drawn, selection.priority, now_ms);
        }
        let is_sticky = |member: &Member| selection.sticky == Some(member.upstream.name_hash);
        let healthy = self.members.iter().filter(|member| !member.upstream.is_unhealthy());
        let usable = healthy.filter(|member| !member.is_draining() || is_sticky(member));
        // The smallest rank is the best. An upstream that the breaker has paused ranks before the upstream that this
        // request has just tried, which is used only if there is no other.
        let ranked = usable.map(|member| {
            let was_tried = Some(member.upstream.id) == excluded;
            let is_paused = !member.upstream.is_available(now_ms);
            let is_backup = member.role == UpstreamRole::Backup && !is_sticky(member);
            ((was_tried, is_paused, is_backup), member)
        });
        let ranked: Vec<_> = ranked.collect();
        let best = ranked
            .iter()
            .map(|(rank, _)| *rank)
            .min()
            .ok_or(ProxyError::NoHealthyUpstream)?;
        let best_ranked = ranked.into_iter().filter(|(rank, _)| *rank == best);
        let best_ranked: Vec<&Member> = best_ranked.map(|(_, member)| member).collect();
        let candidates: Vec<Candidate> = best_ranked
            .iter()
            .enumerate()
            .filter(|(_, member)| {
                member
                    .upstream
                    .limit
                    .has_capacity(self.max_requests, selection.priority, now_ms)
            })
            .map(|(index, member)| self.candidate(index, member, now_ms))
            .collect();
        let sticky = selection
            .sticky
            .and_then(|name| candidates.iter().find(|candidate| candidate.name_hash == name));
        let result = match sticky {
            Some(candidate) => Some(candidate.index),
            None => self.balance_among(&candidates, selection.key, draw),
        };
        self.admit(
            best_ranked[result.ok_or(ProxyError::NoCapacity)?],
            selection.priority,
            now_ms,
        )
    }

    /// Selects one of two upstreams drawn at random, for `random_two`, without ranking all members. Returns `None` if
    /// all members must be ranked: with other balances, for a client with a sticky cookie, or if a few draws find no
    /// available upstream.
    fn draw_two(
        &self,
        selection: &Selection<'_>,
        excluded: Option<u32>,
        now_ms: u64,
        draw: impl Fn() -> u64,
    ) -> Option<&Member> {
        if self.balance != Balance::RandomTwo || selection.sticky.is_some() {
            return None;
        }
        let candidate_at = |index: usize| {
            let member = &self.members[index];
            let upstream = &member.upstream;
            let is_usable = member.role == UpstreamRole::Active
                && !upstream.is_drained()
                && !upstream.is_unhealthy()
                && Some(upstream.id) != excluded
                && upstream.is_available(now_ms)
                && upstream
                    .limit
                    .has_capacity(self.max_requests, selection.priority, now_ms);
            is_usable.then(|| self.candidate(index, member, now_ms))
        };
        let drawn = balance::sample_two(self.members.len(), self.max_weight, draw, candidate_at)?;
        Some(&self.members[drawn])
    }

    /// Returns a member as a candidate for the balance. `index` is its position in the list that the caller selects
    /// from.
    fn candidate(&self, index: usize, member: &Member, now_ms: u64) -> Candidate {
        Candidate {
            index,
            load: member.upstream.limit.load(),
            weight: member.weight * self.weight_factor(&member.upstream, now_ms),
            name_hash: member.upstream.name_hash,
        }
    }

    /// Returns the index of the candidate that the balance selects; `None` if there are no candidates.
    fn balance_among(&self, candidates: &[Candidate], key: Option<&[u8]>, draw: impl Fn() -> u64) -> Option<usize> {
        match (&self.balance, key) {
            (Balance::RoundRobin, _) => {
                balance::round_robin(candidates, self.next_index.fetch_add(1, Ordering::Relaxed))
            }
            (Balance::LeastConn, _) => {
                balance::least_loaded(candidates, self.next_index.fetch_add(1, Ordering::Relaxed))
            }
            (Balance::IpHash | Balance::Uri | Balance::Header(_), Some(key)) => balance::rendezvous(candidates, key),
            // `random_two`, or a balance by key if the request has no key.
            _ => balance::random_two(candidates, draw),
        }
    }

    /// Returns a permit for the upstream of a member, if it has capacity, and records the start of the request.
    fn admit(&self, member: &Member, priority: Priority, now_ms: u64) -> Result<Permit, ProxyError> {
        let upstream = &member.upstream;
        // `try_acquire` alone would let the request overtake waiting ones.
        if !upstream.limit.has_capacity(self.max_requests, priority, now_ms) {
            return Err(ProxyError::NoCapacity);
        }
        let permit = upstream
            .try_acquire(self.max_requests, priority, now_ms)
            .ok_or(ProxyError::NoCapacity)?;
        upstream.request_started(now_ms, self.rules);
        Ok(permit)
    }

    /// Converts the permit of a request whose response is a tunnel. Tunnels may last for hours, so they do not count
    /// against the default limit, which is meant for requests.
    pub(crate) fn tunnel_permit(&self, permit: Permit) -> Permit {
        match self.counts_tunnels {
            true => permit,
            false => permit.into_unlimited(),
        }
    }

    /// Returns the current slow-start factor for the weight of an upstream, from [`MIN_WEIGHT_FACTOR`] to 1.
    fn weight_factor(&self, upstream: &Upstream, now_ms: u64) -> f64 {
        match upstream.recovered_at_ms() {
            // The clock of this worker may lag behind the clock of the thread that recorded the recovery.
            Some(since_ms) if self.slow_start_ms > 0 && now_ms < since_ms.saturating_add(self.slow_start_ms) => {
                let passed = now_ms.saturating_sub(since_ms) as f64 / self.slow_start_ms as f64;
                passed.clamp(MIN_WEIGHT_FACTOR, 1.0)
            }
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rocknet_config::model;

    use super::*;
    use rocknet_config::model::{Host, Upstream as To, WeightedUpstream};

    /// Returns a proxy with two upstreams, balanced by a key.
    fn two() -> Proxy {
        let to = (1..=2).map(|port| WeightedUpstream {
            upstream: To::at(Host::Address([127, 0, 0, 9].into(), port)),
            weight: 1,
            role: UpstreamRole::Active,
        });
        let model = model::Proxy {
            balance: Balance::Uri,
            ..model::Proxy::to(to.collect())
        };
        Proxy::new(&model, &Arc::default(), Duration::ZERO).expect("upstreams without TLS")
    }

    /// Returns the id of the upstream that a request is sent to.
    fn selected(proxy: &Proxy, key: u32, excluded: Option<u32>) -> u32 {
        let key = key.to_le_bytes();
        let selection = Selection {
            key: Some(&key),
            sticky: None,
            priority: Priority::Normal,
        };
        let permit = proxy.select(&selection, excluded, 1, || 0);
        permit.map(|permit| permit.upstream.id).expect("a permit")
    }

    #[test]
    fn slow_start_raises_the_weight_even_if_the_clock_is_behind() {
        let mut proxy = two();
        let upstream = Arc::clone(&proxy.members[0].upstream);
        assert_eq!(proxy.weight_factor(&upstream, 0), 1.0, "never out of rotation");
        for _ in 0..proxy.rules.fails {
            proxy.failed(&upstream, 1_000);
        }
        proxy.succeeded(&upstream, 20_000);
        for now_ms in [0, 19_990, 20_000, 50_000] {
            assert_eq!(
                proxy.weight_factor(&upstream, now_ms),
                1.0,
                "without a slow start, at {now_ms}"
            );
        }
        proxy.slow_start_ms = 10_000;
        let shares = [19_990, 20_000, 20_500, 25_000, 29_000, 30_000, 40_000]
            .map(|now_ms| proxy.weight_factor(&upstream, now_ms));
        assert_eq!(shares, [0.1, 0.1, 0.1, 0.5, 0.9, 1.0, 1.0]);
    }

    #[test]
    fn a_configured_limit_counts_tunnels_and_the_default_does_not() {
        for (port, connections, max_requests, counted_tunnels) in [(3, None, 1024, 0), (4, Some(2), 2, 1)] {
            let to = WeightedUpstream {
                upstream: To::at(Host::Address([127, 0, 0, 9].into(), port)),
                weight: 1,
                role: UpstreamRole::Active,
            };
            let model = model::Proxy {
                connections,
                ..model::Proxy::to(vec![to])
            };
            let proxy = Proxy::new(&model, &Arc::default(), Duration::ZERO).expect("an upstream without TLS");
            let upstream = &proxy.members[0].upstream;
            let tunnel = proxy.tunnel_permit(
                upstream
                    .try_acquire(proxy.max_requests, Priority::Normal, 1)
                    .expect("free capacity"),
            );
            let permits: Vec<_> = std::iter::from_fn(|| upstream.try_acquire(proxy.max_requests, Priority::Normal, 1))
                .take(2 * max_requests)
                .collect();
            assert_eq!(permits.len(), max_requests - counted_tunnels, "{connections:?}");
            drop(tunnel);
        }
    }

    #[test]
    fn a_tried_upstream_ranks_below_one_that_failed_earlier() {
        let proxy = two();
        for paused in [&[][..], &[0], &[1], &[0, 1]] {
            for member in &proxy.members {
                proxy.succeeded(&member.upstream, 0);
            }
            for &member in paused {
                for _ in 0..proxy.rules.fails {
                    proxy.failed(&proxy.members[member].upstream, 0);
                }
            }
            for key in 0..20 {
                let first = selected(&proxy, key, None);
                let healthy = |id| !paused.iter().any(|&member| proxy.members[member].upstream.id == id);
                assert!(healthy(first) || paused.len() == 2, "{paused:?}");
                assert_ne!(selected(&proxy, key, Some(first)), first, "{paused:?}");
            }
        }
    }

    #[test]
    fn the_queue_has_upstreams_that_an_operator_drains() {
        let upstreams = Arc::default();
        let to = [(5, UpstreamRole::Active), (6, UpstreamRole::Drain)].map(|(port, role)| WeightedUpstream {
            upstream: To::at(Host::Address([127, 0, 0, 9].into(), port)),
            weight: 1,
            role,
        });
        let model = model::Proxy::to(to.into());
        let proxy = || Proxy::new(&model, &upstreams, Duration::ZERO).expect("upstreams without TLS");
        let before = proxy();
        assert!(upstreams.set_drained("http://127.0.0.9:5", true));
        let reloaded = proxy();
        let queued: Vec<u32> = reloaded.queue.upstreams().map(|upstream| upstream.id).collect();
        assert_eq!(queued, [before.members[0].upstream.id]);
        assert!(Arc::ptr_eq(&before.queue, &reloaded.queue));
    }
}
