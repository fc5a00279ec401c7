//! Encodes and decodes HPACK field blocks line by line, for comparison with another implementation.
//!
//! `read HEX` prints the fields of a block as `NAME:VALUE`, or `refused` if the block is invalid. `write NAME:VALUE …`
//! prints the block for these fields. Blocks, names and values are in hexadecimal. `allow N` sets the maximum size of
//! the encoder's dynamic table in bytes and prints nothing.

mod pipe;

use std::io::{BufRead, Write};

use pipe::{bytes, field, hex};
use rocknet_proto::fuzzing::{Hpack, OwnedField};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 4,096 bytes is the default size of a dynamic table (RFC 9113 §6.5.2).
    let mut hpack = Hpack::new(4096);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match verb {
            "allow" => hpack.set_max_table_size(rest.parse()?),
            "read" => {
                let (fields, is_valid) = hpack.decode(&bytes(rest)?);
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{}", hex(name), hex(value)))
                    .collect();
                writeln!(out, "{}", if is_valid { fields.join(" ") } else { "refused".into() })?;
            }
            "write" => {
                let fields: Vec<OwnedField> = rest.split_whitespace().map(field).collect::<Result<_, _>>()?;
                writeln!(out, "{}", hex(&hpack.encode(&fields)))?;
            }
            _ => return Err(format!("unknown command: {verb}").into()),
        }
        out.flush()?;
    }
    Ok(())
}
