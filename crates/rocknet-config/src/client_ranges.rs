//! Lookup of client addresses in lists of addresses and networks, such as those of `allow` and `deny`.

use std::net::IpAddr;

use crate::model::{ClientRange, Network, PRIVATE_NETWORKS};

/// Sorted and disjoint address ranges, so that a lookup in 10,000 networks takes 14 steps.
#[derive(Debug, Clone, Default)]
pub struct ClientRanges {
    /// First and last address of each range.
    v4: Box<[(u32, u32)]>,
    /// First and last address of each range.
    v6: Box<[(u128, u128)]>,
    /// True if clients on Unix sockets are in the list.
    unix: bool,
}

impl ClientRanges {
    /// Prepares ranges for lookups.
    pub fn new(written: &[ClientRange]) -> ClientRanges {
        let (mut v4, mut v6, mut unix) = (Vec::new(), Vec::new(), false);
        let mut add = |network: &Network| match *network {
            Network::Unix => unix = true,
            Network::Ip {
                ip: IpAddr::V4(ip),
                length,
            } => {
                let host_bits = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                v4.push((ip.to_bits() & !host_bits, ip.to_bits() | host_bits));
            }
            Network::Ip {
                ip: IpAddr::V6(ip),
                length,
            } => {
                let host_bits = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                v6.push((ip.to_bits() & !host_bits, ip.to_bits() | host_bits));
            }
        };
        for range in written {
            match range {
                ClientRange::Network(network) => add(network),
                ClientRange::Private => PRIVATE_NETWORKS.iter().for_each(&mut add),
                ClientRange::All => {
                    add(&Network::Unix);
                    for ip in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
                        add(&Network::Ip { ip, length: 0 });
                    }
                }
            }
        }
        ClientRanges {
            v4: merged(v4),
            v6: merged(v6),
            unix,
        }
    }

    /// Returns true if there is no range, so that no client is contained.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && !self.unix
    }

    /// Returns true if one of the ranges contains a client. `ip`: its address; `None` for a client on a Unix socket.
    pub fn contain(&self, ip: Option<IpAddr>) -> bool {
        match ip {
            None => self.unix,
            // An IPv4-mapped IPv6 address is looked up as the IPv4 address.
            Some(ip) => match ip.to_canonical() {
                IpAddr::V4(ip) => contains_address(&self.v4, ip.to_bits()),
                IpAddr::V6(ip) => contains_address(&self.v6, ip.to_bits()),
            },
        }
    }
}

/// Returns the bits of the network that bans and limits count as one client. A customer of an Internet provider
/// controls a whole IPv6 /64. The bits of IPv4 addresses are those of their IPv4-mapped form. That form has bits set in
/// the lower half, so the result is never that of an IPv6 network.
pub fn client_network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits() >> 64 << 64,
    }
}

/// Sorts ranges and merges overlapping ranges.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable();
    let mut all: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match all.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => all.push((first, last)),
        }
    }
    all.into()
}

/// Returns true if one of the ranges contains the address. The ranges must be sorted and disjoint.
fn contains_address<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after > 0 && address <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Asserts that sorting and merging change no decision.
        #[test]
        fn ranges_match_their_networks(
            networks in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..20),
            address in any::<u32>(),
            near in any::<prop::sample::Index>(),
            offset in -2_i64..=2,
        ) {
            let networks: Vec<Network> =
                networks.iter().map(|(ip, length)| Network::Ip { ip: IpAddr::V4((*ip).into()), length: *length }).collect();
            let written: Vec<ClientRange> = networks.iter().map(|network| ClientRange::Network(*network)).collect();
            let ranges = ClientRanges::new(&written);
            // The search is most likely wrong at the edges of ranges, so addresses near an edge are looked up. `near`
            // chooses a range. A negative `offset` is added to its first address, any other to its last address.
            let edge = (!ranges.v4.is_empty()).then(|| {
                let (first, last) = *near.get(&ranges.v4);
                if offset < 0 { first } else { last }
            });
            for bits in edge.into_iter().map(|edge| (i64::from(edge) + offset) as u32).chain([address]) {
                let address = IpAddr::V4(bits.into());
                let expected = networks.iter().any(|network| network.contains(address));
                prop_assert_eq!(ranges.contain(Some(address)), expected);
            }
        }
    }
}
