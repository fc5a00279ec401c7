//! Connects the encoder to a decoder through streams whose bytes arrive in any order and any pieces.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::super::decoder_stream::DecoderInstruction;
use super::super::{Decoder, Encoder, QpackError};
use super::{OwnedField, decode};

const NAMES: [&str; 12] = [
    "server",
    "vary",
    "set-cookie",
    "etag",
    "content-type",
    "x-one",
    "x-two",
    "x-three",
    "a",
    "b",
    "c",
    "cache-control",
];

/// Event of a simulation.
#[derive(Clone, Debug)]
enum Step {
    /// A section is sent on a stream. Each field has the position of its name in [`NAMES`], the length of its value,
    /// and a number that selects the letter which fills the value.
    Send(u8, Vec<(usize, usize, u8)>),
    /// At most this number of bytes of the encoder stream arrive.
    Instructions(usize),
    /// At most this number of bytes of the decoder stream arrive.
    Feedback(usize),
    /// The next section of a stream arrives.
    Section(u8),
    /// The client abandons a stream.
    Cancel(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let fields = prop::collection::vec(
        (0..NAMES.len(), prop::sample::select(vec![0usize, 3, 9, 30]), 0u8..2),
        0..10,
    );
    prop_oneof![
        4 => (0u8..12, fields).prop_map(|(stream, fields)| Step::Send(stream, fields)),
        3 => (1usize..200).prop_map(Step::Instructions),
        3 => (1usize..12).prop_map(Step::Feedback),
        4 => (0u8..12).prop_map(Step::Section),
        1 => (0u8..12).prop_map(Step::Cancel),
    ]
}

/// Section in transit, with the fields that it must decode to.
type SentSection = (Vec<u8>, Vec<OwnedField>);

struct Simulation {
    encoder: Encoder,
    decoder: Decoder,
    /// Bytes of the encoder stream in transit.
    instructions: VecDeque<u8>,
    /// Bytes of the decoder stream in transit.
    feedback: VecDeque<u8>,
    /// Sections in transit by stream. A stream that was cancelled gets a new number.
    sections: BTreeMap<u64, VecDeque<SentSection>>,
    /// Number of cancellations of each of the twelve streams.
    generations: [u64; 12],
}

impl Simulation {
    /// Creates a simulation with a table of at most `capacity` bytes and at most `blocked_streams` blocked streams.
    fn new(capacity: usize, blocked_streams: usize) -> Simulation {
        let mut encoder = Encoder::new();
        encoder.set_client_settings(capacity as u64, blocked_streams as u64);
        Simulation {
            encoder,
            decoder: Decoder::new(capacity, blocked_streams),
            instructions: VecDeque::new(),
            feedback: VecDeque::new(),
            sections: BTreeMap::new(),
            generations: [0; 12],
        }
    }

    /// Returns the current ID of one of the twelve streams. The IDs of request streams are multiples of 4, so twelve
    /// streams need a range of 48.
    fn stream(&self, stream: u8) -> u64 {
        self.generations[usize::from(stream)] * 48 + u64::from(stream) * 4
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Send(stream, choices) => {
                let fields: Vec<OwnedField> = choices
                    .into_iter()
                    .map(|(name, length, byte)| (NAMES[name].as_bytes().to_vec(), vec![b'a' + byte; length]))
                    .collect();
                let (stream, mut section) = (self.stream(stream), Vec::new());
                let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
                self.encoder.encode(stream, pairs, &mut section);
                self.instructions.extend(self.encoder.output().drain(..));
                self.sections.entry(stream).or_default().push_back((section, fields));
            }
            Step::Instructions(count) => {
                let count = count.min(self.instructions.len());
                let bytes: Vec<u8> = self.instructions.drain(..count).collect();
                self.decoder.receive_instructions(&bytes).expect("valid instructions");
            }
            Step::Feedback(count) => {
                self.feedback.extend(self.decoder.output().drain(..));
                let count = count.min(self.feedback.len());
                let bytes: Vec<u8> = self.feedback.drain(..count).collect();
                self.encoder.receive_instructions(&bytes).expect("valid feedback");
            }
            Step::Section(stream) => {
                let stream = self.stream(stream);
                self.deliver(stream);
            }
            Step::Cancel(stream) => {
                let number = self.stream(stream);
                if self
                    .sections
                    .remove(&number)
                    .is_some_and(|sections| !sections.is_empty())
                {
                    self.decoder.cancel(number);
                }
                self.generations[usize::from(stream)] += 1;
            }
        }
    }

    /// Decodes the next section of a stream. Returns false if it remains blocked.
    fn deliver(&mut self, stream: u64) -> bool {
        let Some(sections) = self.sections.get_mut(&stream) else {
            return true;
        };
        let Some((section, expected)) = sections.front() else {
            return true;
        };
        match decode(&mut self.decoder, stream, section).expect("a valid section") {
            Some(fields) => {
                assert_eq!(&fields, expected);
                sections.pop_front();
                true
            }
            None => false,
        }
    }

    /// Delivers everything in transit.
    fn settle(&mut self) {
        self.run(Step::Instructions(usize::MAX));
        let streams: Vec<u64> = self.sections.keys().copied().collect();
        for stream in streams {
            while !self.sections[&stream].is_empty() {
                assert!(
                    self.deliver(stream),
                    "a section is blocked although all instructions have arrived"
                );
            }
        }
        self.run(Step::Feedback(usize::MAX));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_encoded_is_decoded(
        capacity in prop_oneof![1 => Just(0usize), 4 => 128usize..300, 2 => 0usize..5000],
        blocked_streams in 0usize..5,
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut simulation = Simulation::new(capacity, blocked_streams);
        for step in steps {
            simulation.run(step);
            // Each table has less than 5,000 bytes by the rules of QPACK; the bound leaves room for its overhead.
            prop_assert!(simulation.encoder.memory() < 40_000 && simulation.decoder.memory() < 40_000);
        }
        simulation.settle();
        // Every section is acknowledged or cancelled, and every entry is acknowledged.
        for stream in 0..simulation.generations.iter().max().map_or(0, |generation| (generation + 1) * 12) {
            let mut acknowledgment = Vec::new();
            DecoderInstruction::Acknowledge(stream * 4).write(&mut acknowledgment);
            let found = simulation.encoder.receive_instructions(&acknowledgment);
            prop_assert_eq!(found, Err(QpackError::Acknowledgment));
        }
        // `[1]` is an Insert Count Increment of 1.
        prop_assert_eq!(simulation.encoder.receive_instructions(&[1]), Err(QpackError::Increment));
    }
}
