//! Measures the transfer of the tables of 1,000,000 clients, as in an upgrade: writing in one process and adopting in
//! the other. Run it with `cargo run --release -p rocknet-limit --example transfer`.

use std::sync::Arc;
use std::time::Instant;

use rocknet_limit::transfer::{Transfer, TransferWriter, TransferredBucket};
use rocknet_limit::{Budget, KeySeed, Rate, RateTable};

/// Number of limits. A table has at most 131,072 clients.
const LIMITS: u128 = 8;

/// Number of clients that send requests to each limit. With as many, the tables get nearly full.
const CLIENTS: u128 = 400_000;

const SECOND: u64 = 1_000_000_000;

fn main() {
    let (seed, rate) = (KeySeed::new(&[7; KeySeed::SIZE]), Rate::new(SECOND, 100, None));
    let tables = || {
        let budget: Arc<Budget> = Arc::default();
        (0..LIMITS).map(|_| RateTable::new(&budget)).collect::<Vec<_>>()
    };
    for round in 0..10 {
        let (old, new) = (tables(), tables());
        for (limit, table) in (0..).zip(&old) {
            for client in 0..CLIENTS {
                table.take(&rate, seed.of_client(limit << 64 | client), SECOND);
            }
        }
        let began = Instant::now();
        let mut writer = TransferWriter::new(&seed, 0);
        for table in &old {
            writer.section(1, b"limit", |write| {
                table.for_each_used(SECOND, |key, left| write(&TransferredBucket { key, left }.record()));
            });
        }
        let bytes = writer.finish();
        let written = began.elapsed();
        let transfer = Transfer::read(&bytes, &seed, 0).expect("a whole transfer");
        for (section, table) in transfer.sections(1).zip(&new) {
            for bucket in transfer.buckets(&section, rate.capacity()) {
                table.adopt(bucket.key, bucket.left, SECOND);
            }
        }
        let adopted = began.elapsed() - written;
        let count = |tables: &[RateTable]| tables.iter().map(|table| table.used(SECOND)).sum::<usize>();
        println!(
            "round {round}: {} of {} clients in {} KB: {} µs to write, {} µs to adopt",
            count(&new),
            count(&old),
            bytes.len() / 1_000,
            written.as_micros(),
            adopted.as_micros()
        );
    }
}
