//! Measures the time that a limit by client takes for one request: the clock, the hash of the address and the bucket.
//! Run it with `cargo run --release -p rocknet-limit --example cost`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rocknet_limit::{KeySeed, Rate, RateTable};

const REQUESTS: u64 = 10_000_000;

fn main() {
    let (table, seed) = (RateTable::new(&Arc::default()), KeySeed::new(&[7; KeySeed::SIZE]));
    let rate = Rate::new(1, 1_000, None);
    let start = Instant::now();
    for clients in [1, 1_000, 100_000] {
        let began = Instant::now();
        for number in 0..REQUESTS {
            let now = start.elapsed().as_nanos() as u64;
            let address = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % clients);
            black_box(table.take(&rate, seed.of_client(black_box(address)), now));
        }
        let ns = began.elapsed().as_nanos() as f64 / REQUESTS as f64;
        println!("{clients} clients: {ns:.0} ns for each request");
    }
}
