//! Property tests of connections: splits do not change events, and no bytes cause a panic.

use super::check::*;
use proptest::prelude::*;
use rocknet_proto::Limits;
use rocknet_proto::fuzzing::{self, H2ResponseTiming, h2_transcript};
use rocknet_proto::h2::Config;

/// Generates valid and invalid frames, so that random sequences reach most states.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = 0u32..10;
    let value = prop::sample::select(vec!["", "v", "trailers", "100-continue", "3", "u=1, i"]);
    let name = prop::sample::select(vec![
        "x",
        "te",
        "expect",
        "content-length",
        "priority",
        "host",
        "cookie",
        ":path",
    ]);
    let text = prop::sample::select(vec!["", "x", "abc", "0123456789"]);
    prop_oneof![
        4 => stream.clone().prop_map(|stream| get(stream | 1)),
        4 => stream.clone().prop_map(|stream| post(stream | 1)),
        // The response to `/big` is longer than the initial windows.
        2 => stream.clone().prop_map(|stream| get_path(stream | 1, "/big")),
        2 => (stream.clone(), name.clone(), value.clone()).prop_map(|(stream, name, value)| get_with(stream | 1, &[(name, value)])),
        2 => (stream.clone(), name, value).prop_map(|(stream, name, value)| trailers(stream | 1, &[(name, value)])),
        4 => (stream.clone(), text, 0u8..2).prop_map(|(stream, text, flags)| frame(DATA, flags, stream | 1, text)),
        1 => (stream.clone(), 0u8..5).prop_map(|(stream, size)| frame(DATA, PADDED, stream | 1, [size, 0, 0])),
        2 => stream.clone().prop_map(|stream| rst(stream, 8)),
        2 => (stream.clone(), 0u32..100_000).prop_map(|(stream, by)| window(stream, by)),
        1 => (0u16..10, 0u32..100_000).prop_map(|(name, value)| settings(&[(name, value)])),
        1 => Just(frame(PING, 0, 0, "12345678")),
        1 => Just(frame(GOAWAY, 0, 0, [0; 8])),
        1 => stream.prop_map(|stream| frame(PRIORITY_UPDATE, 0, 0, [0, 0, 0, stream as u8, b'u', b'=', b'0'])),
    ]
}

/// Generates all bytes that a client sends on a connection. In one case of five, one byte is replaced by a random byte.
fn connections() -> impl Strategy<Value = Vec<u8>> {
    let frames = prop::collection::vec(frames(), 0..14);
    let noise = prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    (frames, noise).prop_map(|(frames, noise)| {
        let mut bytes = [beginning(), frames.concat()].concat();
        if let Some((position, byte)) = noise {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_events(bytes in connections(), cuts in prop::collection::vec(0usize..40, 0..12)) {
        let (mut pieces, mut rest) = (Vec::new(), bytes.as_slice());
        for cut in cuts {
            let (piece, tail) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        pieces.push(rest);
        // The connection raises the windows to their minimum, 65,535 bytes.
        let narrow = Config { streams: 2, stream_window: 0, connection_window: 0, connect_protocol: true };
        for config in [Config::default(), narrow] {
            for timing in [H2ResponseTiming::AfterHead, H2ResponseTiming::AfterBody, H2ResponseTiming::Never] {
                let whole = h2_transcript(&[&bytes], &Limits::default(), &config, timing);
                prop_assert_eq!(&whole, &h2_transcript(&pieces, &Limits::default(), &config, timing));
            }
        }
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::h2_frames(&bytes);
        fuzzing::h2_connection(&bytes);
        fuzzing::hpack(&bytes);
    }
}
