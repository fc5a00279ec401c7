//! Encodes and decodes QPACK field sections line by line, for comparison with another implementation.
//!
//! Each line is a command with its arguments; each response is one line. Bytes, names and values are in hexadecimal.
//!
//! | command | effect | response |
//! |---|---|---|
//! | `settings CAPACITY BLOCKED` | sets what the peer's decoder permits | bytes for the encoder stream |
//! | `write STREAM NAME:VALUE …` | encodes a section | section, a comma, bytes for the encoder stream |
//! | `feedback HEX` | receives bytes of the peer's decoder stream | `ok` |
//! | `instructions HEX` | receives bytes of the peer's encoder stream | `ok` |
//! | `read STREAM HEX` | decodes a section | `NAME:VALUE …`, or `blocked` |
//! | `cancel STREAM` | abandons a stream | `ok` |
//! | `acknowledge` | takes the pending acknowledgments | bytes for the decoder stream |
//!
//! `CAPACITY` is the capacity of the dynamic table in bytes, and `BLOCKED` is the number of streams that may be
//! blocked. The response to invalid bytes is `refused` and the reason.

mod pipe;

use std::error::Error;
use std::io::{BufRead, Write};

use pipe::{bytes, field, hex};
use rocknet_proto::fuzzing::{OwnedField, Qpack, QpackError, QpackSection};

/// Capacity of the dynamic table of the peer's encoder in bytes, and number of streams that this encoder may block.
const PERMITTED: (usize, usize) = (4096, 16);

fn main() -> Result<(), Box<dyn Error>> {
    let mut qpack = Qpack::new(PERMITTED.0, PERMITTED.1);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", respond(&mut qpack, &line?)?)?;
        out.flush()?;
    }
    Ok(())
}

/// Executes the command in a line and returns the line of its response.
fn respond(qpack: &mut Qpack, line: &str) -> Result<String, Box<dyn Error>> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let refused = |error: QpackError| format!("refused {}", error.reason());
    Ok(match verb {
        "settings" => {
            qpack.set_peer_settings(first.parse()?, second.parse()?);
            hex(&qpack.take_encoder_stream())
        }
        "write" => {
            let fields: Vec<OwnedField> = second.split_whitespace().map(field).collect::<Result<_, _>>()?;
            let section = qpack.encode(first.parse()?, &fields);
            format!("{},{}", hex(&section), hex(&qpack.take_encoder_stream()))
        }
        "feedback" => qpack
            .receive_decoder_stream(&bytes(rest)?)
            .map_or_else(refused, |()| "ok".to_owned()),
        "instructions" => qpack
            .receive_encoder_stream(&bytes(rest)?)
            .map_or_else(refused, |()| "ok".to_owned()),
        "read" => match qpack.decode(first.parse()?, &bytes(second)?) {
            Ok(QpackSection::Fields(fields)) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{}", hex(name), hex(value)))
                    .collect();
                fields.join(" ")
            }
            Ok(QpackSection::Blocked) => "blocked".to_owned(),
            Err(error) => refused(error),
        },
        "cancel" => {
            qpack.cancel(rest.parse()?);
            "ok".to_owned()
        }
        "acknowledge" => hex(&qpack.take_decoder_stream()),
        _ => return Err(format!("unknown command: {verb}").into()),
    })
}
