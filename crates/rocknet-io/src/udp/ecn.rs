//! Explicit congestion notification (ECN, RFC 3168).

/// ECN codepoint of a datagram (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    None = 0,
    /// ECT(1): ECN-capable.
    Ect1 = 1,
    /// ECT(0): ECN-capable.
    Ect0 = 2,
    /// CE: a router signals congestion.
    Congested = 3,
}

#[cfg(target_os = "linux")]
impl Ecn {
    /// Reads the codepoint from the two low bits of the traffic class.
    pub(super) fn of(class: u8) -> Ecn {
        [Ecn::None, Ecn::Ect1, Ecn::Ect0, Ecn::Congested][usize::from(class & 3)]
    }
}
