//! What the kernel tells and is received beside the bytes of a datagram: control messages.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::c_int;
use socket2::Socket;

use super::ecn::Ecn;
use super::transmit::Transmit;

/// RecvBuffers for an address, a mark and a length, and to spare.
const CAPACITY: usize = 128;

/// Aligned as control messages have to be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct ControlBuffer([u8; CAPACITY]);

/// What is received of a datagram that has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub destination: Option<IpAddr>,
    pub ecn: Ecn,
    pub segment: Option<usize>,
}

/// Has the kernel tell of each datagram where it was sent to, how it is marked, and put together those that belong
/// together; and none is cut to pieces on its way (QUIC forbids it, RFC 9000, 14).
pub(super) fn enable_options(socket: &Socket, v6: bool) -> io::Result<()> {
    // A socket for IPv6 may carry IPv4 too, which has options of its own.
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
    // A kernel before 5.0 tells of each alone.
    let _ = set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(())
}

#[allow(unsafe_code)]
fn set(socket: &Socket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the value is a live int, and its size is what is received.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[allow(unsafe_code)]
impl ControlBuffer {
    pub fn new() -> ControlBuffer {
        ControlBuffer([0; CAPACITY])
    }

    pub fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    pub const fn capacity() -> usize {
        CAPACITY
    }

    /// What is to be received of datagrams that leave; gives its length.
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
            // Through a socket for IPv6 an address of IPv4 is written as one of IPv6.
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

    fn add_v6(&mut self, used: usize, from: Ipv6Addr) -> usize {
        let from = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
            ipi6_ifindex: 0,
        };
        self.add(used, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, from)
    }

    /// Writes one message behind those there are.
    fn add<T: Copy>(&mut self, used: usize, level: c_int, kind: c_int, value: T) -> usize {
        // SAFETY: these only count.
        let (space, length) = unsafe {
            (
                libc::CMSG_SPACE(size_of::<T>() as u32) as usize,
                libc::CMSG_LEN(size_of::<T>() as u32),
            )
        };
        assert!(used + space <= CAPACITY, "all messages there are fit");
        // SAFETY: within the room, as was just asserted, and aligned: the start is, and `space` is a multiple of it. The
        // data of a message lies behind its head and is written as bytes of any alignment.
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

/// Reads what the kernel has received in a message whose control memory is still there.
#[allow(unsafe_code)]
pub(super) fn read(message: &libc::msghdr) -> Received {
    let mut received = Received::default();
    // SAFETY: the kernel has written whole messages into the memory that this head names, which the caller keeps.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: it points to a whole head within that memory.
        let head = unsafe { ptr::read_unaligned(next) };
        match (head.cmsg_level, head.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                received.ecn = value::<u8>(next, &head).map(Ecn::of).unwrap_or_default()
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                received.ecn = value::<c_int>(next, &head)
                    .map(|class| Ecn::of(class as u8))
                    .unwrap_or_default();
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
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
        // SAFETY: as above; it ends with null.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    received
}

/// The data of a message; `None` if it is too short for this type.
#[allow(unsafe_code)]
#[allow(clippy::unnecessary_cast)] // musl counts with 32 bits.
fn value<T: Copy>(at: *const libc::cmsghdr, head: &libc::cmsghdr) -> Option<T> {
    // SAFETY: this only counts.
    let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) };
    if (head.cmsg_len as usize) < needed as usize {
        return None;
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: so many bytes were written behind the head, and every T used here is whole with any bytes.
    unsafe {
        ptr::copy_nonoverlapping(libc::CMSG_DATA(at), value.as_mut_ptr().cast(), size_of::<T>());
        Some(value.assume_init())
    }
}
