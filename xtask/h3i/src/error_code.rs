//! Error codes of HTTP/3 and QPACK.

/// Error code of RFC 9114 §8.1 or RFC 9204 §6.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum ErrorCode {
    NoError = 0x100,
    StreamCreationError = 0x103,
    ClosedCriticalStream = 0x104,
    FrameUnexpected = 0x105,
    FrameError = 0x106,
    IdError = 0x108,
    SettingsError = 0x109,
    MissingSettings = 0x10a,
    RequestIncomplete = 0x10d,
    MessageError = 0x10e,
    QpackDecompressionFailed = 0x200,
    QpackEncoderStreamError = 0x201,
    QpackDecoderStreamError = 0x202,
}

impl ErrorCode {
    pub fn number(self) -> u64 {
        self as u64
    }
}
