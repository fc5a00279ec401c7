//! Huffman code of HPACK (RFC 7541 §5.2, appendix B), computed at compile time from the lengths of its codes.

use super::HpackError;

/// Appends the string that `coded` decodes to.
///
/// The output is at most 8/5 of the input, because the shortest code has five bits. The caller bounds the input.
#[inline]
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let start = out.len();
    // The symbols are written in place, and the output is truncated afterwards: reserving room symbol by symbol cost a
    // third of the time.
    out.resize(start + decoded_bound(coded.len()), 0);
    let room = out.get_mut(start..).unwrap_or_default();
    let written = decode_into(coded, room);
    out.truncate(start + *written.as_ref().unwrap_or(&0));
    written.map(|_| ())
}

/// Returns the maximum number of bytes that a coded string of `coded` bytes can decode to.
#[inline]
pub(crate) const fn decoded_bound(coded: usize) -> usize {
    coded * 8 / SHORTEST as usize
}

/// Decodes `coded` into `room` and returns the number of bytes written. `room` has [`decoded_bound`] bytes, so it is
/// never exhausted.
fn decode_into(coded: &[u8], room: &mut [u8]) -> Result<usize, HpackError> {
    // The next `count` bits of the input are at the top of `bits`. The bits below them belong to a byte that is not
    // counted yet, or are zeros; at the end of the input they are ones.
    let (mut bits, mut count, mut at) = (0u64, 0u32, 0usize);
    let mut written = room.iter_mut();
    let mut size = 0;
    loop {
        if let Some(chunk) = coded.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            // Adds as many whole bytes as fit, so that `count` becomes 56 to 63. Its low three bits do not change.
            bits |= u64::from_be_bytes(*chunk) >> count;
            at += ((63 - count) >> 3) as usize;
            count |= 56;
        } else {
            while count <= 56 && at < coded.len() {
                bits |= u64::from(coded[at]) << (56 - count);
                at += 1;
                count += 8;
            }
            if at == coded.len() && count < 64 {
                // Padding consists of ones (RFC 7541 §5.2). A code that reaches into these ones is longer than `count`
                // and is rejected below.
                bits |= u64::MAX >> count;
            }
            if count < LONGEST {
                break;
            }
        }
        while count >= LONGEST {
            let (symbol, length) = symbol_at(bits)?;
            let Some(output) = written.next() else { return Ok(size) };
            *output = symbol;
            size += 1;
            bits <<= length;
            count -= length;
        }
    }
    while count > 0 {
        bits |= u64::MAX >> count;
        // Up to seven ones are padding, because every code of that length contains a zero.
        if count < 8 && bits == u64::MAX {
            return Ok(size);
        }
        let Ok((symbol, length)) = symbol_at(bits) else { break };
        if length > count {
            break;
        }
        let Some(output) = written.next() else { return Ok(size) };
        *output = symbol;
        size += 1;
        bits <<= length;
        count -= length;
    }
    // The rest must be padding: less than a byte, and a prefix of the code of EOS, which is all ones.
    if count >= 8 || (count > 0 && bits >> (64 - count) != (1 << count) - 1) {
        return Err(HpackError::HuffmanPadding);
    }
    Ok(size)
}

/// Returns the symbol whose code is at the top of `bits`, and the length of that code in bits.
#[inline(always)]
fn symbol_at(bits: u64) -> Result<(u8, u32), HpackError> {
    let entry = SHORT_TABLE[(bits >> (64 - SHORT_BITS)) as usize];
    if entry != 0 {
        return Ok((entry as u8, u32::from(entry >> 8)));
    }
    long_symbol_at(bits)
}

/// Does the work of [`symbol_at`] for codes longer than [`SHORT_BITS`].
#[cold]
fn long_symbol_at(bits: u64) -> Result<(u8, u32), HpackError> {
    for length in SHORT_BITS + 1..=LONGEST {
        let code = (bits >> (64 - length)) as u32;
        let range = &CANONICAL.ranges[length as usize];
        // `code` is at least `range.first`: a smaller number would begin with a shorter code, which was found before.
        if code < range.end {
            let symbol = CANONICAL.symbols[usize::from(range.first_symbol) + (code - range.first) as usize];
            // EOS within a string is an error (RFC 7541 §5.2).
            return match u8::try_from(symbol) {
                Ok(symbol) => Ok((symbol, length)),
                Err(_) => Err(HpackError::HuffmanEos),
            };
        }
    }
    // Never reached, because the code is complete: every 30 bits begin with a code.
    Err(HpackError::HuffmanEos)
}

/// Returns the length of the coded string in bytes.
pub(crate) fn coded_length(string: &[u8]) -> usize {
    let bits: usize = string.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the coded string, padded with ones to whole bytes.
pub(crate) fn encode(string: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for &byte in string {
        let (code, length) = (CODES[usize::from(byte)], u32::from(LENGTHS[usize::from(byte)]));
        // Fewer than eight bits are unwritten, so the shift drops only bits that were written already.
        bits = bits << length | u64::from(code);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

/// Number of symbols: the bytes, and EOS.
const SYMBOLS: usize = 257;
/// Length of the shortest code in bits.
const SHORTEST: u32 = 5;
/// Length of the longest code in bits.
const LONGEST: u32 = 30;

/// Codes up to this length in bits are found with one lookup in a table of 2 KiB, which stays in the L1 cache. They
/// include all letters and digits, and most punctuation of paths and queries.
const SHORT_BITS: u32 = 10;

/// Length of each symbol's code in bits (RFC 7541 appendix B). The code is canonical: codes of equal length follow the
/// order of their symbols, so the lengths define it.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Codes of one length: from `first` up to, but not including, `end`, for the symbols from `first_symbol` on.
#[derive(Clone, Copy)]
struct CodeRange {
    first: u32,
    end: u32,
    first_symbol: u16,
}

/// Symbols and their codes, ordered by the length of the code.
struct CanonicalCode {
    /// Codes of each length, by that length.
    ranges: [CodeRange; LONGEST as usize + 1],
    /// Symbols by length of code, then by value.
    symbols: [u16; SYMBOLS],
}

static CANONICAL: CanonicalCode = canonical_code();
/// Code of each symbol, in its low bits. [`LENGTHS`] has the number of these bits.
static CODES: [u32; SYMBOLS] = codes();
static SHORT_TABLE: [u16; 1 << SHORT_BITS] = short_table();

/// Computes the ranges of codes from [`LENGTHS`].
const fn canonical_code() -> CanonicalCode {
    const NONE: CodeRange = CodeRange {
        first: 0,
        end: 0,
        first_symbol: 0,
    };
    let mut canonical_code = CanonicalCode {
        ranges: [NONE; LONGEST as usize + 1],
        symbols: [0; SYMBOLS],
    };
    let (mut length, mut code, mut position) = (1, 0, 0);
    while length <= LONGEST {
        code <<= 1;
        let (first, first_symbol) = (code, position as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as u32 == length {
                canonical_code.symbols[position] = symbol as u16;
                position += 1;
                code += 1;
            }
            symbol += 1;
        }
        canonical_code.ranges[length as usize] = CodeRange {
            first,
            end: code,
            first_symbol,
        };
        length += 1;
    }
    assert!(
        position == SYMBOLS && code == 1 << LONGEST,
        "the Huffman code is incomplete"
    );
    canonical_code
}

/// Computes the code of every symbol.
const fn codes() -> [u32; SYMBOLS] {
    let canonical_code = canonical_code();
    let mut codes = [0; SYMBOLS];
    let mut length = SHORTEST as usize;
    while length <= LONGEST as usize {
        let range = canonical_code.ranges[length];
        let mut code = range.first;
        while code < range.end {
            let symbol = canonical_code.symbols[range.first_symbol as usize + (code - range.first) as usize];
            codes[symbol as usize] = code;
            code += 1;
        }
        length += 1;
    }
    codes
}

/// Computes the lookup table: the symbol in the lower byte, and the length of its code in the upper byte. 0 if the code
/// is longer than [`SHORT_BITS`].
const fn short_table() -> [u16; 1 << SHORT_BITS] {
    let codes = codes();
    let mut table = [0; 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let length = LENGTHS[symbol] as u32;
        if length <= SHORT_BITS {
            let spare = SHORT_BITS - length;
            let mut index = (codes[symbol] << spare) as usize;
            let end = index + (1 << spare);
            while index < end {
                table[index] = (length << 8) as u16 | symbol as u16;
                index += 1;
            }
        }
        symbol += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes a string into a buffer that already has bytes, and checks that these bytes are kept.
    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = b"kept".to_vec();
        decode(coded, &mut out)?;
        assert_eq!(&out[..4], b"kept");
        Ok(out.split_off(4))
    }

    #[test]
    fn examples_of_rfc_7541() {
        // RFC 7541 C.4 and C.6.
        let rows: &[(&str, &[u8])] = &[
            (
                "www.example.com",
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
            ("", &[]),
        ];
        for &(string, coded) in rows {
            let mut out = Vec::new();
            encode(string.as_bytes(), &mut out);
            assert_eq!(out, coded, "{string}");
            assert_eq!(coded_length(string.as_bytes()), coded.len(), "{string}");
            assert_eq!(decoded(coded).as_deref(), Ok(string.as_bytes()));
        }
    }

    #[test]
    fn invalid_padding_and_eos_are_rejected() {
        // Coded string, and the expected error.
        let rows: &[(&[u8], HpackError)] = &[
            (&[0xff], HpackError::HuffmanPadding), // a whole byte of padding
            (&[0x64, 0x02, 0xff], HpackError::HuffmanPadding),
            (&[0b0000_0000], HpackError::HuffmanPadding), // '0' and three zeros
            (&[0xff, 0xff, 0xff, 0xff], HpackError::HuffmanPadding), // EOS, which is 30 ones, with two ones after it
            (&[0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0, 0], HpackError::HuffmanEos),
        ];
        for &(coded, error) in rows {
            let found = decoded(coded);
            // Either error is right for EOS at the end.
            assert!(
                found == Err(error) || found == Err(HpackError::HuffmanEos),
                "{coded:?}: {found:?}, not {error:?}"
            );
        }
    }

    #[test]
    fn every_symbol_decodes_at_every_bit_offset() {
        for symbol in 0..=255u8 {
            for lead in 0..8 {
                let string = [&[b'0'; 7][..lead], &[symbol, b'a', symbol]].concat();
                let mut out = Vec::new();
                encode(&string, &mut out);
                assert_eq!(decoded(&out).as_deref(), Ok(string.as_slice()), "{symbol} after {lead}");
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(string in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&string, &mut out);
            prop_assert_eq!(out.len(), coded_length(&string));
            prop_assert_eq!(decoded(&out), Ok(string));
        }

        /// The code is complete and its padding is fixed, so a string that decodes has exactly one coded form.
        #[test]
        fn valid_code_encodes_back_identically(coded in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(string) = decoded(&coded) {
                let mut out = Vec::new();
                encode(&string, &mut out);
                prop_assert_eq!(out, coded);
            }
        }
    }
}
