//! Control messages: metadata of datagrams that is passed to the kernel, or received from it, along with their bytes.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use libc::c_int;
use socket2::Socket;

use super::ecn::Ecn;
use super::option::set;
use super::transmit::Transmit;

/// Capacity in bytes: enough for a destination in both address families, an ECN mark and a segment length. An IPv6
/// socket that receives over IPv4 gets all of these messages. On 64-bit systems they have 40 bytes (IPv6 destination),
/// 32 (IPv4 destination), 24 (mark) and 24 (segment length): 120 in total.
const CAPACITY: usize = 128;

/// Buffer for control messages, with the alignment that they require.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct ControlBuffer([u8; CAPACITY]);

/// Metadata of a batch of received datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// The local address to which the datagrams were sent, never in IPv4-mapped form.
    pub destination: Option<IpAddr>,
    /// Congestion mark.
    pub ecn: Ecn,
    /// Length of each datagram except the last; `None` if the kernel did not coalesce datagrams.
    pub segment: Option<usize>,
}

/// Makes the kernel report the destination and the ECN mark of each datagram and coalesce datagrams of one peer (GRO),
/// and forbids fragmentation, as QUIC requires (RFC 9000 §14). `v6` is true for an IPv6 socket.
pub(super) fn enable_options(socket: &Socket, v6: bool) -> io::Result<()> {
    // An IPv6 socket can also send and receive over IPv4, which has its own options.
    for (level, name, value) in [
        (libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
    ] {
        set(socket, level, name, value)?;
    }
    if v6 {
        for (name, value) in [
            (libc::IPV6_RECVPKTINFO, 1),
            (libc::IPV6_RECVTCLASS, 1),
            (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
        ] {
            set(socket, libc::IPPROTO_IPV6, name, value)?;
        }
    }
    // Kernels before 5.0 lack GRO and report each datagram separately.
    let _ = set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(())
}

#[allow(unsafe_code)]
impl ControlBuffer {
    /// Creates a buffer without messages.
    pub fn new() -> ControlBuffer {
        ControlBuffer([0; CAPACITY])
    }

    /// Returns the address of the buffer.
    pub fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Returns the size of the buffer in bytes.
    pub const fn capacity() -> usize {
        CAPACITY
    }

    /// Writes the metadata of datagrams to send and returns its length in bytes. With `split`, the kernel splits the
    /// bytes of the send into datagrams of `transmit.segment` bytes.
    pub fn write(&mut self, transmit: &Transmit<'_>, split: bool) -> usize {
        let mut used = 0;
        let mark = transmit.ecn as c_int;
        let v4 = transmit.destination.ip().to_canonical().is_ipv4();
        if mark != 0 && v4 {
            used = self.add(used, libc::IPPROTO_IP, libc::IP_TOS, mark);
        } else if mark != 0 {
            used = self.add(used, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, mark);
        }
        match transmit.source {
            // The destination is an IPv4-mapped IPv6 address, so the socket is an IPv6 socket, which requires the
            // source in mapped form too.
            Some(IpAddr::V4(from)) if transmit.destination.is_ipv6() => used = self.add_v6(used, from.to_ipv6_mapped()),
            Some(IpAddr::V6(from)) => used = self.add_v6(used, from),
            Some(IpAddr::V4(from)) => {
                let from = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(from.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                used = self.add(used, libc::IPPROTO_IP, libc::IP_PKTINFO, from);
            }
            None => {}
        }
        if split {
            used = self.add(used, libc::SOL_UDP, libc::UDP_SEGMENT, transmit.segment as u16);
        }
        used
    }

    /// Appends the local IPv6 address to send from. Returns the number of bytes in use, including this message.
    fn add_v6(&mut self, used: usize, from: Ipv6Addr) -> usize {
        let from = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
            ipi6_ifindex: 0,
        };
        self.add(used, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, from)
    }

    /// Appends one message after `used` bytes, and returns the number of bytes used including the message.
    fn add<T: Copy>(&mut self, used: usize, level: c_int, kind: c_int, value: T) -> usize {
        // SAFETY: both functions only compute a size.
        let (space, length) = unsafe {
            (
                libc::CMSG_SPACE(size_of::<T>() as u32) as usize,
                libc::CMSG_LEN(size_of::<T>() as u32),
            )
        };
        assert!(used + space <= CAPACITY, "the control messages exceed the buffer");
        // SAFETY: the message is within the capacity, as just asserted. Its header is aligned, because the buffer is,
        // and `space` is a multiple of the alignment. The data follows the header and is written without alignment.
        unsafe {
            let head = self.0.as_mut_ptr().add(used).cast::<libc::cmsghdr>();
            (*head).cmsg_level = level;
            (*head).cmsg_type = kind;
            (*head).cmsg_len = length as _;
            libc::CMSG_DATA(head).cast::<T>().write_unaligned(value);
        }
        used + space
    }
}

/// Reads the metadata of a received message. The control buffer that `message` points to must still exist, with the
/// bytes that the kernel has written.
#[allow(unsafe_code)]
pub(super) fn read(message: &libc::msghdr) -> Received {
    let mut received = Received::default();
    // SAFETY: the kernel has written whole control messages into the buffer of `message`, which the caller keeps alive.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: `next` points to a whole header within that buffer.
        let head = unsafe { ptr::read_unaligned(next) };
        match (head.cmsg_level, head.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                received.ecn = value::<u8>(next, &head).map(Ecn::of).unwrap_or_default();
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                received.ecn = value::<c_int>(next, &head)
                    .map(|class| Ecn::of(class as u8))
                    .unwrap_or_default();
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // An IPv6 socket may report the destination of an IPv4 datagram twice: as an IPv4-mapped address by
                // IPV6_PKTINFO, and by this message. Both mean the same address, so an address that is already known is
                // kept.
                let to = value::<libc::in_pktinfo>(next, &head);
                received.destination = received
                    .destination
                    .or(to.map(|to| Ipv4Addr::from(to.ipi_addr.s_addr.to_ne_bytes()).into()));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let to = value::<libc::in6_pktinfo>(next, &head);
                received.destination = to.map(|to| IpAddr::from(Ipv6Addr::from(to.ipi6_addr.s6_addr)).to_canonical());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                received.segment = value::<c_int>(next, &head).and_then(|segment| usize::try_from(segment).ok());
            }
            _ => {}
        }
        // SAFETY: as above; the last call returns null.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    received
}

/// Returns the data of a message; `None` if the data is too short for the type.
#[allow(unsafe_code)]
#[allow(clippy::unnecessary_cast)] // `cmsg_len` has 32 bits in musl.
fn value<T: Copy>(at: *const libc::cmsghdr, head: &libc::cmsghdr) -> Option<T> {
    // SAFETY: this only computes a size.
    let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) };
    if (head.cmsg_len as usize) < needed as usize {
        return None;
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the kernel has written at least this many bytes after the header, and every T used here is valid for any
    // bytes.
    unsafe {
        ptr::copy_nonoverlapping(libc::CMSG_DATA(at), value.as_mut_ptr().cast(), size_of::<T>());
        Some(value.assume_init())
    }
}
