//! SETTINGS parameters (RFC 9113 §6.5).

use super::error::ConnectionError;
use super::flow::{INITIAL_WINDOW, WINDOW_MAX};
use super::frame::{FRAME_SIZE_MAX, FRAME_SIZE_MIN};

// Identifiers of settings (RFC 9113 §6.5.2).
pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(crate) const ENABLE_PUSH: u16 = 0x2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 §3.
pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
/// RFC 9218 §2.1.
pub(crate) const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Settings of a client, or their initial values. All sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClientSettings {
    pub header_table_size: u32,
    pub enable_push: bool,
    pub max_concurrent_streams: u32,
    pub initial_window_size: u32,
    pub max_frame_size: u32,
}

impl ClientSettings {
    /// Initial values (RFC 9113 §6.5.2).
    pub(crate) const INITIAL: ClientSettings = ClientSettings {
        header_table_size: 4096,
        enable_push: true,
        max_concurrent_streams: u32::MAX,
        initial_window_size: INITIAL_WINDOW,
        max_frame_size: FRAME_SIZE_MIN,
    };

    /// Applies the settings of a payload in their order. Unknown settings are ignored. The caller has checked that the
    /// length is a multiple of six (RFC 9113 §6.5).
    ///
    /// # Errors
    ///
    /// The error for the first invalid value.
    pub(crate) fn with_payload(mut self, payload: &[u8]) -> Result<ClientSettings, ConnectionError> {
        // A setting is an identifier of two bytes and a value of four.
        for &[a, b, v, w, x, y] in payload.as_chunks::<6>().0 {
            let value = u32::from_be_bytes([v, w, x, y]);
            match u16::from_be_bytes([a, b]) {
                HEADER_TABLE_SIZE => self.header_table_size = value,
                ENABLE_PUSH => self.enable_push = parse_flag(value)?,
                MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
                INITIAL_WINDOW_SIZE if value > WINDOW_MAX => return Err(ConnectionError::InitialWindowTooLarge),
                INITIAL_WINDOW_SIZE => self.initial_window_size = value,
                MAX_FRAME_SIZE if !(FRAME_SIZE_MIN..=FRAME_SIZE_MAX).contains(&value) => {
                    return Err(ConnectionError::InvalidSetting);
                }
                MAX_FRAME_SIZE => self.max_frame_size = value,
                // These settings have no effect on a server, so only their values are checked.
                ENABLE_CONNECT_PROTOCOL | NO_RFC7540_PRIORITIES => {
                    parse_flag(value)?;
                }
                // Unknown settings, and MAX_HEADER_LIST_SIZE, which is advisory (RFC 9113 §10.5.1). A client can reset
                // a stream whose response head is too large.
                _ => {}
            }
        }
        Ok(self)
    }
}

/// Parses a setting that must be 0 or 1.
fn parse_flag(value: u32) -> Result<bool, ConnectionError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ConnectionError::InvalidSetting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_accepted_within_their_bounds() {
        let plain = ClientSettings::INITIAL;
        // Number of the setting, its value, and the expected settings.
        let rows = [
            (
                1,
                0,
                Ok(ClientSettings {
                    header_table_size: 0,
                    ..plain
                }),
            ),
            (
                1,
                u32::MAX,
                Ok(ClientSettings {
                    header_table_size: u32::MAX,
                    ..plain
                }),
            ),
            (
                2,
                0,
                Ok(ClientSettings {
                    enable_push: false,
                    ..plain
                }),
            ),
            (2, 2, Err(ConnectionError::InvalidSetting)),
            (
                3,
                0,
                Ok(ClientSettings {
                    max_concurrent_streams: 0,
                    ..plain
                }),
            ),
            (
                4,
                0,
                Ok(ClientSettings {
                    initial_window_size: 0,
                    ..plain
                }),
            ),
            (
                4,
                WINDOW_MAX,
                Ok(ClientSettings {
                    initial_window_size: WINDOW_MAX,
                    ..plain
                }),
            ),
            (4, WINDOW_MAX + 1, Err(ConnectionError::InitialWindowTooLarge)),
            (5, 16_383, Err(ConnectionError::InvalidSetting)),
            (5, 16_384, Ok(plain)),
            (
                5,
                16_777_215,
                Ok(ClientSettings {
                    max_frame_size: 16_777_215,
                    ..plain
                }),
            ),
            (5, 16_777_216, Err(ConnectionError::InvalidSetting)),
            (6, 0, Ok(plain)),
            (8, 1, Ok(plain)),
            (8, 2, Err(ConnectionError::InvalidSetting)),
            (9, 3, Err(ConnectionError::InvalidSetting)),
            (0xffff, 7, Ok(plain)),
        ];
        for (name, value, expected) in rows {
            let mut payload = Vec::new();
            payload.extend_from_slice(&u16::to_be_bytes(name));
            payload.extend_from_slice(&u32::to_be_bytes(value));
            assert_eq!(plain.with_payload(&payload), expected, "{name} = {value}");
        }
        // The last of two values for one setting applies.
        assert_eq!(
            plain
                .with_payload(&[0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 0, 2])
                .map(|settings| settings.initial_window_size),
            Ok(2)
        );
    }
}
