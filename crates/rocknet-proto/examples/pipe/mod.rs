//! Parses and formats the hexadecimal bytes and the fields in the lines that the examples exchange with another
//! program.

use rocknet_proto::fuzzing::OwnedField;

/// Parses `NAME:VALUE`.
pub fn field(text: &str) -> Result<OwnedField, Box<dyn std::error::Error>> {
    let (name, value) = text.split_once(':').ok_or("a field without a colon")?;
    Ok((bytes(name)?, bytes(value)?))
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses pairs of hexadecimal digits.
pub fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
        return Err("an odd number of hexadecimal digits".into());
    };
    pairs
        .iter()
        .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
        .collect()
}
