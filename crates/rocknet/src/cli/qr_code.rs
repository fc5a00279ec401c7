//! QR codes for the terminal, which phones read to open a URL.

use qrcodegen::{QrCode, QrCodeEcc, Version};

/// Maximum version, with 53 × 53 modules. With the margin and the indentation, its lines take 59 columns of a terminal.
const MAX_VERSION: u8 = 9;

/// Width of the blank margin in modules. The standard requires four, and readers of phones need two.
const MARGIN: i32 = 2;

/// Renders the code of a text with two rows of modules in each line; `None` if the text is too long. `colour`: true to
/// print black on white, whatever the colours of the terminal are. Without it, a dark terminal is assumed.
pub fn render(text: &str, colour: bool) -> Option<String> {
    let segments = qrcodegen::QrSegment::make_segments(text);
    // The arguments after the versions let the encoder choose the mask, and raise the error correction where space is
    // left.
    let code = QrCode::encode_segments_advanced(
        &segments,
        QrCodeEcc::Low,
        Version::MIN,
        Version::new(MAX_VERSION),
        None,
        true,
    )
    .ok()?;
    let range = -MARGIN..code.size() + MARGIN;
    let mut out = String::new();
    for y in range.clone().step_by(2) {
        out.push_str("  ");
        if colour {
            out.push_str("\x1b[38;5;16;48;5;231m");
        }
        for x in range.clone() {
            // Modules outside of the code are light. The last line may have a row after the margin, which is light too.
            let (upper, lower) = (code.get_module(x, y), code.get_module(x, y + 1));
            // Without colours the characters draw the light modules, because the background is dark.
            out.push(match (upper ^ !colour, lower ^ !colour) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        if colour {
            out.push_str("\x1b[0m");
        }
        out.push('\n');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders a code, and reads its modules back from the characters, including the margin. True: dark.
    fn modules(text: &str, colour: bool) -> Vec<Vec<bool>> {
        let shown = render(text, colour).expect("a short text");
        let mut rows = Vec::new();
        for line in shown.lines() {
            let line = line.replace("\x1b[38;5;16;48;5;231m", "").replace("\x1b[0m", "");
            let drawn: Vec<char> = line.chars().skip(2).collect();
            rows.push(drawn.iter().map(|c| "█▀".contains(*c) == colour).collect());
            rows.push(drawn.iter().map(|c| "█▄".contains(*c) == colour).collect());
        }
        rows
    }

    #[test]
    fn codes_have_a_margin_and_the_modules_of_the_encoder() {
        let text = "http://192.168.1.5:8080/";
        let code = QrCode::encode_text(text, QrCodeEcc::Low).expect("a short text");
        for colour in [true, false] {
            let rows = modules(text, colour);
            let size = usize::try_from(code.size() + 2 * MARGIN).expect("a size");
            assert!(
                rows.len() >= size && rows.iter().all(|row| row.len() == size),
                "{colour}"
            );
            // The finder pattern is at the upper left corner of the code, inside of the margin.
            assert!(rows[..2].iter().flatten().all(|module| !module), "{colour}");
            assert!(rows[2][2..9].iter().all(|module| *module), "{colour}");
            assert_eq!(
                rows[3][2..9],
                [true, false, false, false, false, false, true],
                "{colour}"
            );
        }
        assert_eq!(render(&"x".repeat(1_000), true), None);
    }
}
