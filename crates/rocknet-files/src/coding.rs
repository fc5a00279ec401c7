//! Encoders of the content codings that RockNet applies. Each encoder writes into its own buffer.

use std::io::{self, Write};

use rocknet_proto::semantics::negotiation::Coding;

/// Minimum length of content that is encoded, in bytes. For shorter content, the header fields of a coding add more
/// bytes than the coding saves.
pub const COMPRESS_FROM: u64 = 1024;

/// Levels at which encoding takes less time than sending the saved bytes would take.
const BROTLI_QUALITY: u32 = 4;
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 5;

/// Size in bytes of the buffer between the Brotli encoder and the vector of the output: the default of the library.
const BROTLI_OUTPUT: usize = 4096;

/// Distance within which an encoder searches for repetitions, which determines the memory of the encoder.
///
/// Between two writes, a Brotli encoder holds 6.4 MB with a large window for 1 MB of text, and at most 10.4 MB for
/// longer texts. With a small window, it holds at most 1.8 MB. The output for 1 MB of text is 8 % to 10 % longer with
/// the small window (all measured). The window of gzip is always 32 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// For whole content, whose encoder exists only during one call, and for files, of which a server encodes only a
    /// few at the same time.
    Large,
    /// For streams, whose encoders use memory until their clients have received the response.
    Small,
}

impl Window {
    /// Returns the binary logarithm of the window size.
    fn brotli_bits(self) -> u32 {
        match self {
            Window::Large => 20,
            Window::Small => 16,
        }
    }

    /// Returns the binary logarithm of the window size; `None` for the default of the level, which is 21 for level 3.
    fn zstd_bits(self) -> Option<u32> {
        match self {
            Window::Large => None,
            Window::Small => Some(18),
        }
    }
}

/// An encoder that writes into its own buffer.
pub enum Encoder {
    Br(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// Creates an encoder; `None` for identity, which needs no encoder.
    ///
    /// # Errors
    ///
    /// Returns an error if the Zstandard library cannot allocate its state.
    pub fn new(coding: Coding, window: Window) -> io::Result<Option<Encoder>> {
        Ok(Some(match coding {
            Coding::Br => {
                let bits = window.brotli_bits();
                let writer = brotli::CompressorWriter::new(Vec::new(), BROTLI_OUTPUT, BROTLI_QUALITY, bits);
                Encoder::Br(Box::new(writer))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                if let Some(bits) = window.zstd_bits() {
                    encoder.window_log(bits)?;
                }
                Encoder::Zstd(encoder)
            }
            Coding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), level))
            }
            Coding::Identity => return Ok(None),
        }))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Br(writer) => writer,
            Encoder::Zstd(writer) => writer,
            Encoder::Gzip(writer) => writer,
        }
    }

    /// Encodes content. The encoder emits output only when a block is full.
    ///
    /// # Errors
    ///
    /// Returns an error if the library fails.
    pub fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.writer().write_all(content)
    }

    /// Emits the output for all content written so far, so that a client can decode this content.
    ///
    /// # Errors
    ///
    /// Returns an error if the library fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }

    /// Returns the output since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Encoder::Br(writer) => writer.get_mut(),
            Encoder::Zstd(writer) => writer.get_mut(),
            Encoder::Gzip(writer) => writer.get_mut(),
        })
    }

    /// Completes the encoded content and returns the remaining output.
    ///
    /// # Errors
    ///
    /// Returns an error if the library fails.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Br(writer) => Ok(writer.into_inner()),
            Encoder::Zstd(writer) => writer.finish(),
            Encoder::Gzip(writer) => writer.finish(),
        }
    }
}

/// Encodes the whole `content`; `None` if the result is not shorter, the coding is identity, or the library fails.
pub fn encode(coding: Coding, content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(coding, Window::Large).ok()??;
    encoder.write(content).ok()?;
    let encoded = encoder.finish().ok()?;
    (encoded.len() < content.len()).then_some(encoded)
}
