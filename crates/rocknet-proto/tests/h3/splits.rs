//! Property test of the engine: any split of the bytes gives the same events.

use proptest::prelude::*;

use super::wire::{GET, Peer, frame, headers, post};

/// Parts of a request stream, valid and invalid.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // Heads, trailers, and a head without a method.
        3 => Just(headers(&GET)),
        3 => Just(headers(&post(&[("content-length", "6")]))),
        3 => Just(headers(&post(&[("priority", "u=1")]))),
        1 => Just(headers(&[("x-trailer", "1")])),
        1 => Just(headers(&GET[1..])),
        // DATA frames, frames of mostly unknown types, frames of types that are known or reserved, and random bytes.
        4 => prop::collection::vec(any::<u8>(), 0..7).prop_map(|body| frame(0, &body)),
        2 => (0x21..0x60u64, 0..9usize).prop_map(|(kind, length)| frame(kind, &vec![7; length])),
        1 => (0..0x10u64).prop_map(|kind| frame(kind, &[0])),
        1 => prop::collection::vec(any::<u8>(), 0..9),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(parts in prop::collection::vec(part(), 0..6), size in 1..20usize, fin in any::<bool>()) {
        let bytes = parts.concat();
        let whole = Peer::new().request(&bytes, fin);
        let mut peer = Peer::new();
        let stream = peer.open();
        let split = peer.receive(stream, &bytes, fin, size);
        // If the end of the stream arrives after the head, the engine cannot know yet that the request has no body.
        // These differences between the events are removed.
        let normalized = |events: Vec<String>| -> Vec<String> {
            events
                .into_iter()
                .map(|event| event.replace(" end=true", "").replace(" end=false", "").replace(" continue=true", " continue=false"))
                .filter(|event| event != "last")
                .collect()
        };
        prop_assert_eq!(normalized(whole), normalized(split));
    }
}
