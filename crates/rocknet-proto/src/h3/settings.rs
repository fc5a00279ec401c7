//! SETTINGS parameters (RFC 9114 §7.2.4).

use super::error::ConnectionError;
use super::frame;
use super::varint;

// Identifiers of the QPACK settings (RFC 9204 §5).
const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
/// Identifier of the setting for the maximum size of the decoded fields of a message (RFC 9114 §7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// Identifier of the setting that permits extended CONNECT (RFC 9220 §5).
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
/// A reserved setting of the form `0x1f * N + 0x21` with an arbitrary N, which has no meaning. Sending one keeps
/// clients tolerant of new settings (RFC 9114 §7.2.4.1).
const RESERVED: u64 = 0x1f * 27 + 0x21;
/// Maximum number of settings of a client. Normal use needs five.
const COUNT_MAX: usize = 64;

/// Returns true for setting 0 and the settings of HTTP/2 without an equivalent. They are reserved and forbidden
/// (RFC 9114 §7.2.4.1, §11.2.2).
fn is_reserved_from_http2(setting: u64) -> bool {
    matches!(setting, 0x0 | 0x2..=0x5)
}

/// Settings that the server announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ServerSettings {
    /// Capacity of the decoder's dynamic table in bytes.
    pub table_capacity: u64,
    /// Number of streams that may wait for the dynamic table at once.
    pub blocked_streams: u64,
    /// Maximum size of the decoded fields of a message in bytes: names, values, and 32 bytes per field (RFC 9114
    /// §4.2.2).
    pub field_section_size: u64,
    /// True if extended CONNECT is accepted (RFC 9220).
    pub connect_protocol: bool,
}

impl ServerSettings {
    /// Appends the SETTINGS frame.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // Initial capacity in bytes, enough for the five settings.
        let mut payload = Vec::with_capacity(32);
        for (setting, value) in [
            (QPACK_MAX_TABLE_CAPACITY, self.table_capacity),
            (MAX_FIELD_SECTION_SIZE, self.field_section_size.min(varint::MAX)),
            (QPACK_BLOCKED_STREAMS, self.blocked_streams),
            (ENABLE_CONNECT_PROTOCOL, u64::from(self.connect_protocol)),
            (RESERVED, 1),
        ] {
            varint::encode(setting, &mut payload);
            varint::encode(value, &mut payload);
        }
        frame::header(frame::SETTINGS, payload.len() as u64, out);
        out.extend_from_slice(&payload);
    }
}

/// Settings of a client that the server uses. Missing settings are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClientSettings {
    /// Capacity in bytes that the client permits for the dynamic table of the server's encoder.
    pub table_capacity: u64,
    /// Number of streams that may wait for that table at once.
    pub blocked_streams: u64,
}

impl ClientSettings {
    /// Parses the payload of a SETTINGS frame. Unknown settings are ignored.
    ///
    /// # Errors
    ///
    /// The error for the first setting that is invalid, for too many settings, or for an incomplete payload.
    pub(crate) fn parse(mut payload: &[u8]) -> Result<ClientSettings, ConnectionError> {
        let (mut settings, mut seen) = (ClientSettings::default(), Vec::new());
        while !payload.is_empty() {
            let (setting, size) = varint::decode(payload).ok_or(ConnectionError::FrameError)?;
            payload = &payload[size..];
            let (value, size) = varint::decode(payload).ok_or(ConnectionError::FrameError)?;
            payload = &payload[size..];
            if seen.contains(&setting) || is_reserved_from_http2(setting) {
                return Err(ConnectionError::InvalidSetting);
            }
            if seen.len() == COUNT_MAX {
                return Err(ConnectionError::ControlFrameTooLarge);
            }
            seen.push(setting);
            match setting {
                QPACK_MAX_TABLE_CAPACITY => settings.table_capacity = value,
                QPACK_BLOCKED_STREAMS => settings.blocked_streams = value,
                ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(ConnectionError::InvalidSetting),
                // The other settings do not affect the server. MAX_FIELD_SECTION_SIZE is advisory (RFC 9114 §4.2.2): a
                // client can reset a response that is too large for it.
                _ => {}
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the payload of a SETTINGS frame with these identifiers and values.
    fn payload(settings: &[(u64, u64)]) -> Vec<u8> {
        let mut payload = Vec::new();
        for &(setting, value) in settings {
            varint::encode(setting, &mut payload);
            varint::encode(value, &mut payload);
        }
        payload
    }

    #[test]
    fn client_settings_are_parsed() {
        let settings = |table_capacity, blocked_streams| {
            Ok(ClientSettings {
                table_capacity,
                blocked_streams,
            })
        };
        type SettingsRow<'a> = (&'a [(u64, u64)], Result<ClientSettings, ConnectionError>);
        // Identifiers and values of settings, and the expected result. Settings 1 and 7 belong to QPACK, 6 is
        // MAX_FIELD_SECTION_SIZE, 8 is ENABLE_CONNECT_PROTOCOL, and `0x1f * 3 + 0x21` has no meaning.
        let rows: &[SettingsRow<'_>] = &[
            (&[], settings(0, 0)),
            (
                &[(1, 4096), (7, 16), (6, 1000), (0x1f * 3 + 0x21, 5)],
                settings(4096, 16),
            ),
            (&[(8, 1)], settings(0, 0)),
            (&[(8, 2)], Err(ConnectionError::InvalidSetting)),
            (&[(1, 1), (1, 1)], Err(ConnectionError::InvalidSetting)),
            (&[(0, 0)], Err(ConnectionError::InvalidSetting)),
            (&[(2, 0)], Err(ConnectionError::InvalidSetting)),
            (&[(5, 0)], Err(ConnectionError::InvalidSetting)),
        ];
        for (settings, expected) in rows {
            assert_eq!(ClientSettings::parse(&payload(settings)), *expected, "{settings:?}");
        }
        assert_eq!(ClientSettings::parse(&[1]), Err(ConnectionError::FrameError));
        assert_eq!(ClientSettings::parse(&[0x40]), Err(ConnectionError::FrameError));
        let many: Vec<(u64, u64)> = (0..100).map(|number| (1000 + number, 0)).collect();
        assert_eq!(
            ClientSettings::parse(&payload(&many)),
            Err(ConnectionError::ControlFrameTooLarge)
        );
    }

    #[test]
    fn the_settings_of_the_server_are_valid_for_a_client() {
        let mut out = Vec::new();
        ServerSettings {
            table_capacity: 4096,
            blocked_streams: 16,
            field_section_size: u64::MAX,
            connect_protocol: true,
        }
        .write(&mut out);
        let mut at = 0;
        let header = frame::FrameHeaderReader::default()
            .read(&out, &mut at)
            .expect("a header");
        assert_eq!((header.kind, header.length), (frame::SETTINGS, (out.len() - at) as u64));
        let found = ClientSettings::parse(&out[at..]).expect("valid settings");
        assert_eq!((found.table_capacity, found.blocked_streams), (4096, 16));
    }
}
