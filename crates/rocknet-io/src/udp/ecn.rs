//! Marks of congestion that datagrams carry (ECN, RFC 3168).

/// What routers on the way have to say, or may: explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    #[default]
    None = 0,
    Ect1 = 1,
    Ect0 = 2,
    Congested = 3,
}

impl Ecn {
    /// Of a byte whose upper bits are the class of the traffic.
    pub(super) fn of(class: u8) -> Ecn {
        [Ecn::None, Ecn::Ect1, Ecn::Ect0, Ecn::Congested][usize::from(class & 3)]
    }
}
