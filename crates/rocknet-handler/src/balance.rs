//! Load-balancing policies: pure functions that choose one of the available servers by load, weight or key.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// An available server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Index among all servers of the group, including those that are unavailable.
    pub index: usize,
    /// Number of requests in progress.
    pub load: usize,
    /// Relative share of the requests, above 0. Slow start lowers it for a server that has just recovered.
    pub weight: f64,
    /// Hash of the server's name, from [`hash_name`]. Stable across restarts.
    pub name_hash: u64,
}

/// Picks the less loaded of two servers drawn at random by weight (power of two choices; Mitzenmacher, 2001).
///
/// The choice is close to the best one, and concurrent workers do not all pick the same server. `draw` returns random
/// numbers. Returns the index of the server; `None` if `all` is empty.
pub fn random_two(all: &[Candidate], mut draw: impl FnMut() -> u64) -> Option<usize> {
    let total: f64 = all.iter().map(|candidate| candidate.weight).sum();
    let first = candidate_at(all, unit(draw()) * total)?;
    if all.len() == 1 {
        return Some(first.index);
    }
    let mut second = candidate_at(all, unit(draw()) * total)?;
    if second.index == first.index {
        // Takes the next server instead, so that two servers are always compared.
        let place = all.iter().position(|candidate| candidate.index == first.index)?;
        second = &all[(place + 1) % all.len()];
    }
    Some(less_loaded(first, second).index)
}

/// Like [`random_two`], but inspects only the servers that are drawn, not all `count` servers. Further servers are
/// inspected only if the draws find no second server.
///
/// A draw is accepted with the probability of the server's weight divided by `heaviest`, the greatest weight. `get`
/// returns the server at an index if it is available. Returns `None` if the draws found no available server. The caller
/// then inspects all servers, which costs less than further draws.
pub fn sample_two(
    count: usize,
    heaviest: f64,
    mut draw: impl FnMut() -> u64,
    get: impl Fn(usize) -> Option<Candidate>,
) -> Option<usize> {
    let mut drawn = || {
        let number = draw();
        // The upper half of the number selects the server; the lower half decides whether its weight suffices.
        let index = ((number >> 32) * count as u64) >> 32;
        get(index as usize).filter(|drawn| unit(number << 32) * heaviest < drawn.weight)
    };
    let first = (0..MAX_SAMPLES).find_map(|_| drawn())?;
    // Keeps the first server even if the draws find no second one. Drawing both again until they differ would favour
    // light servers.
    let second = (0..MAX_SAMPLES)
        .find_map(|_| drawn().filter(|second| second.index != first.index))
        .or_else(|| (1..count).find_map(|step| get((first.index + step) % count)));
    Some(second.map_or(first.index, |second| less_loaded(&first, &second).index))
}

/// Number of draws for one server. If half of the servers are available, or their weights are half of the greatest, all
/// draws fail in one case of 64.
const MAX_SAMPLES: usize = 6;

/// Picks the server with the least load per weight, or the one whose turn it is by weight if the difference is less
/// than one request. Servers with equal load thus alternate in proportion to their weights.
///
/// `turn` is the number of this choice; the caller increments it. Returns `None` if `all` is empty.
pub fn least_loaded(all: &[Candidate], turn: usize) -> Option<usize> {
    let first = round_robin(all, turn)?;
    let first = all.iter().find(|candidate| candidate.index == first)?;
    let rotated = (0..all.len()).map(|place| &all[(place + turn) % all.len()]);
    let least = rotated.reduce(|best, next| {
        if next.cost_of_one_more() < best.cost_of_one_more() {
            next
        } else {
            best
        }
    })?;
    Some(less_loaded(first, least).index)
}

/// Picks the servers in turn, in proportion to their weights, evenly interleaved.
///
/// `turn` is the number of this choice; the caller increments it. Returns `None` if `all` is empty.
pub fn round_robin(all: &[Candidate], turn: usize) -> Option<usize> {
    let first = all.first()?;
    if all.iter().all(|candidate| candidate.weight == first.weight) {
        return Some(all[turn % all.len()].index);
    }
    // Steps of the golden ratio hit each arc of a circle in proportion to its length, and avoid hitting one twice in a
    // row.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let total: f64 = all.iter().map(|candidate| candidate.weight).sum();
    let point = unit((turn as u64).wrapping_mul(GOLDEN)) * total;
    candidate_at(all, point).map(|candidate| candidate.index)
}

/// Picks the server with the highest hash score for a key (rendezvous hashing; Thaler and Ravishankar, 1998).
///
/// A key keeps its server while that server is available. When a server becomes unavailable, only the keys of this
/// server move. Returns `None` if `all` is empty.
pub fn rendezvous(all: &[Candidate], key: &[u8]) -> Option<usize> {
    let score = |candidate: &Candidate| {
        let hash = FixedState::with_seed(candidate.name_hash).hash_one(key);
        // Excludes 0, whose logarithm is infinite, and numbers so close to 1 that their logarithm is nearly 0.
        -candidate.weight / unit(hash).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON).ln()
    };
    let scored = all.iter().map(|candidate| (score(candidate), candidate.index));
    scored
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, index)| index)
}

/// Hashes a server name for [`Candidate::name_hash`]. The result is the same in each process.
pub fn hash_name(name: &str) -> u64 {
    FixedState::with_seed(0).hash_one(name.as_bytes())
}

impl Candidate {
    fn cost(&self) -> f64 {
        self.load as f64 / self.weight
    }

    fn cost_of_one_more(&self) -> f64 {
        (self.load + 1) as f64 / self.weight
    }
}

/// Picks `other` if its load per weight, with this request added, does not exceed the present load per weight of `one`;
/// else `one`.
///
/// If the loads differ by less than one request, `one`, which was chosen by weight, is kept. Comparing the present
/// loads of both would prefer a light server whenever it is idle. Adding the request to both would starve a light
/// server while the others are nearly idle.
fn less_loaded<'c>(one: &'c Candidate, other: &'c Candidate) -> &'c Candidate {
    if other.cost_of_one_more() <= one.cost() {
        other
    } else {
        one
    }
}

/// Returns the server whose interval contains `point`, where the intervals are the weights laid end to end.
fn candidate_at(all: &[Candidate], mut point: f64) -> Option<&Candidate> {
    for candidate in all {
        if point < candidate.weight {
            return Some(candidate);
        }
        point -= candidate.weight;
    }
    all.last()
}

/// Maps a random number to [0, 1).
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns servers with these loads and weights.
    fn servers(all: &[(usize, f64)]) -> Vec<Candidate> {
        let named = all.iter().enumerate();
        named
            .map(|(index, &(load, weight))| Candidate {
                index,
                load,
                weight,
                name_hash: hash_name(&format!("http://10.0.0.{index}")),
            })
            .collect()
    }

    /// Returns a linear congruential generator of pseudo-random numbers.
    fn dice(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            state
        }
    }

    /// Counts how often each server is chosen in 1,000 choices.
    fn shares(count: usize, mut choose: impl FnMut(usize) -> Option<usize>) -> Vec<usize> {
        let mut shares = vec![0; count];
        for turn in 0..1000 {
            shares[choose(turn).expect("a choice")] += 1;
        }
        shares
    }

    /// Asserts that each number differs from the expected one by at most `off`.
    #[track_caller]
    fn near(found: &[usize], expected: &[usize], off: usize) {
        assert!(
            found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= off),
            "{found:?}, not {expected:?}"
        );
    }

    #[test]
    fn an_empty_list_yields_none_and_a_single_server_is_always_chosen() {
        assert_eq!(random_two(&[], dice(1)), None);
        assert_eq!(
            (least_loaded(&[], 3), round_robin(&[], 3), rendezvous(&[], b"x")),
            (None, None, None)
        );
        let one = servers(&[(7, 0.1)]);
        assert_eq!(random_two(&one, dice(1)), Some(0));
        assert_eq!(
            (least_loaded(&one, 3), round_robin(&one, 3), rendezvous(&one, b"x")),
            (Some(0), Some(0), Some(0))
        );
    }

    #[test]
    fn shares_follow_weights() {
        for (weights, expected) in [
            (&[1.0, 1.0][..], &[500, 500][..]),
            (&[3.0, 1.0], &[750, 250]),
            (&[1.0, 0.0, 1.0], &[500, 0, 500]),
            (&[5.0, 1.0, 1.0, 3.0], &[500, 100, 100, 300]),
        ] {
            let all = servers(&weights.iter().map(|weight| (0, *weight)).collect::<Vec<_>>());
            let all: Vec<_> = all.into_iter().filter(|candidate| candidate.weight > 0.0).collect();
            near(&shares(weights.len(), |turn| round_robin(&all, turn)), expected, 3);
            near(
                &shares(weights.len(), |turn| rendezvous(&all, &turn.to_le_bytes())),
                expected,
                60,
            );
            // The policies that depend on load, with idle servers.
            let mut draw = dice(7);
            near(&shares(weights.len(), |_| random_two(&all, &mut draw)), expected, 60);
            near(&shares(weights.len(), |turn| least_loaded(&all, turn)), expected, 3);
        }
    }

    /// Counts the requests of each server out of 1,000, with `at_once` requests in progress at any time. Requests end
    /// in the order of their start.
    fn under_way(
        weights: &[f64],
        at_once: usize,
        mut choose: impl FnMut(&[Candidate], usize) -> Option<usize>,
    ) -> Vec<usize> {
        let mut all = servers(&weights.iter().map(|weight| (0, *weight)).collect::<Vec<_>>());
        let mut running = std::collections::VecDeque::new();
        shares(weights.len(), |turn| {
            if running.len() == at_once {
                let ended: usize = running.pop_front().expect("a request in progress");
                all[ended].load -= 1;
            }
            let chosen = choose(&all, turn).expect("a choice");
            all[chosen].load += 1;
            running.push_back(chosen);
            Some(chosen)
        })
    }

    /// The tolerance is wide: with two requests in progress, one of them may exceed a server's whole share.
    #[test]
    fn shares_follow_weights_with_requests_in_progress() {
        for at_once in [1, 2, 3, 5, 17, 100] {
            for (weights, expected) in [
                (&[1.0, 1.0][..], &[500, 500][..]),
                (&[3.0, 1.0], &[750, 250]),
                (&[3.0, 1.0, 1.0], &[600, 200, 200]),
                // A server at the beginning of its slow start, and one half-way.
                (&[1.0, 0.1], &[909, 91]),
                (&[1.0, 0.5, 1.0], &[400, 200, 400]),
            ] {
                let mut draw = dice(at_once as u64);
                near(
                    &under_way(weights, at_once, |all, _| random_two(all, &mut draw)),
                    expected,
                    100,
                );
                near(&under_way(weights, at_once, least_loaded), expected, 100);
            }
        }
    }

    #[test]
    fn samples_follow_weights_and_skip_unavailable_servers() {
        for weights in [
            &[1.0, 1.0][..],
            &[2.0, 2.0, 2.0, 2.0, 2.0],
            &[1.0, 3.0],
            &[9.0, 1.0],
            &[3.0, 1.0, 2.0],
            &[1.0, 0.0, 1.0, 1.0],
            &[0.1, 1.0, 1.0, 0.0, 0.5, 1.0],
        ] {
            let all = servers(&weights.iter().map(|weight| (0, *weight)).collect::<Vec<_>>());
            let heaviest = weights.iter().copied().fold(0.0, f64::max);
            let get = |index: usize| Some(all[index]).filter(|candidate| candidate.weight > 0.0);
            let able: Vec<_> = all.iter().copied().filter(|candidate| candidate.weight > 0.0).collect();
            let (mut one, mut other) = (dice(11), dice(12));
            let mut found = 0;
            let mut drawn = || {
                let drawn = sample_two(all.len(), heaviest, &mut one, get);
                found += usize::from(drawn.is_some());
                drawn.or_else(|| random_two(&able, &mut one))
            };
            let by_draws = shares(all.len(), |_| drawn());
            near(&by_draws, &shares(all.len(), |_| random_two(&able, &mut other)), 60);
            assert!(found > 950, "of {weights:?} only {found} were found");
        }
        assert_eq!(sample_two(3, 1.0, dice(1), |_| None), None);
        let one = servers(&[(0, 1.0)])[0];
        assert_eq!(sample_two(1, 1.0, dice(1), |_| Some(one)), Some(0));
        assert_eq!(
            sample_two(2, 1.0, dice(1), |index| Some(one).filter(|one| one.index == index)),
            Some(0)
        );
    }

    #[test]
    fn the_less_loaded_server_is_chosen() {
        for (all, expected) in [
            (&[(1, 1.0), (0, 1.0)][..], 1),
            (&[(9, 1.0), (3, 1.0), (4, 1.0)], 1),
            // A load of 3 at weight 4 is less than a load of 1 at weight 1.
            (&[(1, 1.0), (3, 4.0)], 1),
            (&[(1, 0.1), (8, 1.0)], 1),
        ] {
            let all = servers(all);
            for turn in 0..5 {
                assert_eq!(least_loaded(&all, turn), Some(expected), "{all:?}");
            }
            if all.len() == 2 {
                assert_eq!(random_two(&all, dice(3)), Some(expected), "{all:?}");
            }
        }
    }

    #[test]
    fn only_the_keys_of_a_server_that_leaves_move() {
        let all = servers(&[(0, 1.0); 5]);
        for removed in 0..5 {
            let left: Vec<_> = all
                .iter()
                .copied()
                .filter(|candidate| candidate.index != removed)
                .collect();
            for key in 0..500_u32 {
                let key = key.to_le_bytes();
                let (before, after) = (rendezvous(&all, &key), rendezvous(&left, &key));
                assert!(before == after || before == Some(removed));
                assert_eq!(after, rendezvous(&left, &key), "the same key, the same server");
            }
        }
    }
}
