//! Which of several servers is next: pure choices among those that can be asked, by their load, their weight, or a key.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// A server that can be asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its number among all servers of the place.
    pub index: usize,
    /// Requests that it has now.
    pub load: usize,
    /// Its share; a server that has just come back has less of it for a while.
    pub weight: f64,
    /// What it is called, as a number that lasts.
    pub name_hash: u64,
}

/// The less loaded of two that are drawn at random by their weights: close to the best choice, and no herd runs after the
/// same one (Mitzenmacher, 2001). `draw` gives random numbers.
pub fn random_two(all: &[Candidate], mut draw: impl FnMut() -> u64) -> Option<usize> {
    let total: f64 = all.iter().map(|candidate| candidate.weight).sum();
    let first = candidate_at(all, unit(draw()) * total)?;
    if all.len() == 1 {
        return Some(first.index);
    }
    let mut second = candidate_at(all, unit(draw()) * total)?;
    if second.index == first.index {
        // The next one instead: of two servers both are always compared.
        let place = all.iter().position(|candidate| candidate.index == first.index)?;
        second = &all[(place + 1) % all.len()];
    }
    Some(less_loaded(first, second).index)
}

/// The same without a look at all of `count` servers: those that are drawn are asked about, and counted by their share of the
/// `heaviest` weight. `None`: not even one that can be asked was found in a few draws, and it is better to look at all.
pub fn sample_two(
    count: usize,
    heaviest: f64,
    mut draw: impl FnMut() -> u64,
    look: impl Fn(usize) -> Option<Candidate>,
) -> Option<usize> {
    let mut drawn = || {
        let number = draw();
        // One half of the number says which, the other whether its share is large enough.
        let index = ((number >> 32) * count as u64) >> 32;
        look(index as usize).filter(|drawn| unit(number << 32) * heaviest < drawn.weight)
    };
    let first = (0..MAX_SAMPLES).find_map(|_| drawn())?;
    // The first one stays whether or not another is found: who starts over until two differ draws the light ones too often.
    let second = (0..MAX_SAMPLES)
        .find_map(|_| drawn().filter(|second| second.index != first.index))
        .or_else(|| (1..count).find_map(|step| look((first.index + step) % count)));
    Some(second.map_or(first.index, |second| less_loaded(&first, &second).index))
}

/// Among servers of which half can be asked, or that have half the weight of the heaviest, none is found once in sixty-four.
const MAX_SAMPLES: usize = 6;

/// The one with the least load for its weight; those that have as little take turns, as their weights say.
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

/// One after the other, those of more weight more often, spread evenly.
pub fn round_robin(all: &[Candidate], turn: usize) -> Option<usize> {
    let first = all.first()?;
    if all.iter().all(|candidate| candidate.weight == first.weight) {
        return Some(all[turn % all.len()].index);
    }
    // Steps of the golden ratio meet every stretch of a circle as often as its length says, and never twice in a row
    // where they can help it.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let total: f64 = all.iter().map(|candidate| candidate.weight).sum();
    let point = unit((turn as u64).wrapping_mul(GOLDEN)) * total;
    candidate_at(all, point).map(|candidate| candidate.index)
}

/// The same one for the same key as long as it can be asked; one that leaves takes no more keys with it than its own
/// (rendezvous hashing, Thaler and Ravishankar, 1998).
pub fn rendezvous(all: &[Candidate], key: &[u8]) -> Option<usize> {
    let score = |candidate: &Candidate| {
        let hash = FixedState::with_seed(candidate.name_hash).hash_one(key);
        // Neither 0 nor 1, whose logarithms rank nobody.
        -candidate.weight / unit(hash).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON).ln()
    };
    let scored = all.iter().map(|candidate| (score(candidate), candidate.index));
    scored
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, index)| index)
}

/// A number that lasts for a name.
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

/// The one whose turn it is, unless `other` has no more for its weight with this request than `one` has without. Among
/// equals the idler one is taken. With less than that between them weights alone decide: by their load, one of little weight
/// would get nothing as long as the others have little to do, or would be the first as long as it has nothing.
fn less_loaded<'c>(one: &'c Candidate, other: &'c Candidate) -> &'c Candidate {
    if other.cost_of_one_more() <= one.cost() {
        other
    } else {
        one
    }
}

/// Whose share of all weights a point lies in.
fn candidate_at(all: &[Candidate], mut point: f64) -> Option<&Candidate> {
    for candidate in all {
        if point < candidate.weight {
            return Some(candidate);
        }
        point -= candidate.weight;
    }
    all.last()
}

/// From 0 up to 1.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers by load and weight.
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

    fn dice(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            state
        }
    }

    /// How often each was chosen in a thousand.
    fn shares(count: usize, mut choose: impl FnMut(usize) -> Option<usize>) -> Vec<usize> {
        let mut shares = vec![0; count];
        for turn in 0..1000 {
            shares[choose(turn).expect("a choice")] += 1;
        }
        shares
    }

    #[track_caller]
    fn near(found: &[usize], expected: &[usize], off: usize) {
        assert!(
            found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= off),
            "{found:?}, not {expected:?}"
        );
    }

    #[test]
    fn nobody_is_chosen_of_none_and_the_only_one_always() {
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
            // Of servers that have nothing to do.
            let mut draw = dice(7);
            near(&shares(weights.len(), |_| random_two(&all, &mut draw)), expected, 60);
            near(&shares(weights.len(), |turn| least_loaded(&all, turn)), expected, 3);
        }
    }

    /// What each has got of a thousand requests, of which `at_once` are under way at any time and end in their order.
    fn under_way(
        weights: &[f64],
        at_once: usize,
        mut choose: impl FnMut(&[Candidate], usize) -> Option<usize>,
    ) -> Vec<usize> {
        let mut all = servers(&weights.iter().map(|weight| (0, *weight)).collect::<Vec<_>>());
        let mut running = std::collections::VecDeque::new();
        shares(weights.len(), |turn| {
            if running.len() == at_once {
                let ended: usize = running.pop_front().expect("as many as that");
                all[ended].load -= 1;
            }
            let chosen = choose(&all, turn).expect("a choice");
            all[chosen].load += 1;
            running.push_back(chosen);
            Some(chosen)
        })
    }

    /// Roughly: of two requests under way one may be a whole share too many, and the other server is asked then.
    #[test]
    fn shares_follow_weights_whatever_is_under_way() {
        for at_once in [1, 2, 3, 5, 17, 100] {
            for (weights, expected) in [
                (&[1.0, 1.0][..], &[500, 500][..]),
                (&[3.0, 1.0], &[750, 250]),
                (&[3.0, 1.0, 1.0], &[600, 200, 200]),
                // A server that has just come back, and one that is half there.
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
    fn two_drawn_are_drawn_by_their_weights_and_never_from_those_that_cannot_be_asked() {
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
            let look = |index: usize| Some(all[index]).filter(|candidate| candidate.weight > 0.0);
            let able: Vec<_> = all.iter().copied().filter(|candidate| candidate.weight > 0.0).collect();
            let (mut one, mut other) = (dice(11), dice(12));
            let mut found = 0;
            let mut drawn = || {
                let drawn = sample_two(all.len(), heaviest, &mut one, look);
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
    fn the_less_loaded_is_taken() {
        for (all, expected) in [
            (&[(1, 1.0), (0, 1.0)][..], 1),
            (&[(9, 1.0), (3, 1.0), (4, 1.0)], 1),
            // Three for one of weight four is less than one for one of weight one.
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
    fn a_server_that_leaves_takes_no_keys_but_its_own() {
        let all = servers(&[(0, 1.0); 5]);
        for gone in 0..5 {
            let left: Vec<_> = all
                .iter()
                .copied()
                .filter(|candidate| candidate.index != gone)
                .collect();
            for key in 0..500_u32 {
                let key = key.to_le_bytes();
                let (before, after) = (rendezvous(&all, &key), rendezvous(&left, &key));
                assert!(before == after || before == Some(gone));
                assert_eq!(after, rendezvous(&left, &key), "the same key, the same server");
            }
        }
    }
}
